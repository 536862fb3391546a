"""What the settings of avahi-daemon.conf do to discovery. Measured on avahi-daemon 0.8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from avahi_gpu.files.avahi_conf import AvahiConf
from avahi_gpu.files.domain_name import labels_of

# stops: the daemon does not start. breaks: this host is not found, or does not find others.
# hinders: part of what avahi-gpu does is refused, or fails in a larger cluster. note: worth knowing.
Weight = Literal["stops", "breaks", "hinders", "note"]

LEAST_RATE = 10.0  # packets a second; with one a second a browser saw nothing within four seconds
LEAST_CACHE = 100  # records; ten nodes have about sixty
LEAST_CLIENTS = 4  # doctor, peers, a job's agent, and one more
LEAST_OBJECTS = 32  # a browser and a resolver for each of ten nodes, twice over
LEAST_ENTRIES = 3  # PTR, SRV and TXT of a job
LEAST_PROCESSES = 2  # the daemon and its chroot helper
SHARED_PROCESSES = 3  # an old default; the limit counts the processes of the user avahi in all containers
LEAST_FILES = 13  # 12 open files were too few, 16 enough
LEAST_DATA = 1_000_000  # bytes; with 200 000 the daemon ran without D-Bus
LEAST_ADDRESS_SPACE = 16_000_000  # bytes; with 8 000 000 the daemon ran without D-Bus


@dataclass(frozen=True)
class Harm:
    """One setting that does harm. ``line`` is None where it is the want of a setting."""

    key: str
    weight: Weight
    says: str
    hint: str
    line: int | None = None


def effects(
    conf: AvahiConf, interfaces: Sequence[str] | None = None, *, port_shared: bool | None = None
) -> list[Harm]:
    """Return the harms of a configuration, the worst first.

    ``interfaces``: the names of those that reach the LAN, None where not known. ``port_shared``: whether
    another process holds UDP port 5353.
    """
    harms = [
        *_judge_protocols(conf),
        *_judge_interfaces(conf, interfaces),
        *_judge_names(conf),
        *_judge_switches(conf, port_shared),
        *_judge_numbers(conf),
        *_judge_limits(conf),
    ]
    order: list[Weight] = ["stops", "breaks", "hinders", "note"]
    return sorted(harms, key=lambda harm: order.index(harm.weight))


def starts(harms: Sequence[Harm]) -> bool:
    """Whether the daemon starts."""
    return all(harm.weight != "stops" for harm in harms)


def breaks_discovery(harms: Sequence[Harm]) -> bool:
    """Whether this host cannot be found or cannot find others."""
    return any(harm.weight in ("stops", "breaks") for harm in harms)


def _harm(conf: AvahiConf, place: str, weight: Weight, says: str, hint: str) -> Harm:
    section, _, key = place.partition("/")
    setting = conf.find(section, key)
    return Harm(key, weight, says, hint, setting.line if setting else None)


def _judge_protocols(conf: AvahiConf) -> list[Harm]:
    if conf.says_yes("server", "use-ipv4", default=True):
        return []
    if not conf.says_yes("server", "use-ipv6", default=True):
        says = "IPv4 and IPv6 are both switched off: the daemon does not start"
        return [_harm(conf, "server/use-ipv4", "stops", says, "set use-ipv4=yes")]
    says = "IPv4 is switched off: peers get IPv6 addresses only"
    return [_harm(conf, "server/use-ipv4", "breaks", says, "set use-ipv4=yes")]


def _judge_interfaces(conf: AvahiConf, interfaces: Sequence[str] | None) -> list[Harm]:
    allowed, denied = conf.names("server", "allow-interfaces"), conf.names("server", "deny-interfaces") or ()
    denied = tuple(name.lower() for name in denied)
    known = None if interfaces is None else [name for name in interfaces if name.lower() not in denied]
    if allowed is not None:
        wanted = [name for name in allowed if name and name.lower() not in denied]
        good = [name for name in wanted if not any(c in name for c in " \t#;")]
        if known is not None:
            names = [name.lower() for name in known]
            good = [name for name in good if name.lower() in names]
        if good:
            return []
        shown = ",".join(allowed)
        if not shown.strip(","):
            says, hint = "allow-interfaces is empty, which allows no interface at all", "remove the line"
        elif len(wanted) < len([name for name in allowed if name]) and not wanted:
            says, hint = "deny-interfaces denies what allow-interfaces allows", "remove one of the two"
        else:
            says = f"allow-interfaces “{shown}” names no interface that reaches the LAN"
            hint = "write names as “ip link” shows them, parted by commas, with nothing behind them"
        return [_harm(conf, "server/allow-interfaces", "breaks", says, hint)]
    if interfaces and not known:
        says = "deny-interfaces denies every interface that reaches the LAN"
        return [
            _harm(conf, "server/deny-interfaces", "breaks", says, "take the interface of the LAN out of it")
        ]
    return []


def _judge_names(conf: AvahiConf) -> list[Harm]:
    harms = []
    domain = conf.find("server", "domain-name")
    if domain is not None:
        labels = labels_of(domain.value)
        if labels is None:
            says = f"domain-name “{domain.value}” is no domain name: the daemon does not start"
            harms.append(_harm(conf, "server/domain-name", "stops", says, "set domain-name=local"))
        elif [label.lower() for label in labels] != [b"local"]:
            says = f"domain-name is “{domain.value}”: names and services are not in .local, where peers look"
            harms.append(_harm(conf, "server/domain-name", "breaks", says, "set domain-name=local"))
    host = conf.find("server", "host-name")
    if host is not None:
        labels = labels_of(host.value)
        if labels is None or len(labels) != 1:
            says = f"host-name “{host.value}” is no host name: the daemon does not start"
            hint = "write one name of 1 to 63 bytes, without a dot and without .local"
            harms.append(_harm(conf, "server/host-name", "stops", says, hint))
        else:
            says = f"the host is published as {host.value}.local, whatever its host name is"
            hint = "remove host-name to publish the machine's own"
            harms.append(_harm(conf, "server/host-name", "note", says, hint))
    elif (from_id := conf.find("server", "host-name-from-machine-id")) and from_id.value[:1] in ("y", "Y"):
        says = "the host is published under its machine id, not under its host name"
        hint = "set host-name-from-machine-id=no"
        harms.append(_harm(conf, "server/host-name-from-machine-id", "note", says, hint))
    return harms


def _judge_switches(conf: AvahiConf, port_shared: bool | None) -> list[Harm]:
    harms = []
    dbus = conf.find("server", "enable-dbus")
    if dbus is not None and dbus.value[:1] not in tuple("yYwW"):
        says = f"enable-dbus is “{dbus.value}”: no program can ask the daemon what is on the LAN"
        harms.append(_harm(conf, "server/enable-dbus", "breaks", says, "set enable-dbus=yes"))
    if conf.says_yes("server", "disallow-other-stacks", default=False):
        says = (
            "disallow-other-stacks keeps the daemon from starting while another program holds UDP port 5353"
        )
        weight: Weight = "stops" if port_shared else "note"
        harms.append(_harm(conf, "server/disallow-other-stacks", weight, says, "set it to no"))
    if conf.says_yes("server", "check-response-ttl", default=False):
        says = "check-response-ttl drops answers that came through a router or some access points"
        harms.append(_harm(conf, "server/check-response-ttl", "note", says, "set it to no"))
    if conf.says_yes("publish", "disable-publishing", default=False):
        says = "disable-publishing is on: this host sees others and nobody sees it"
        harms.append(_harm(conf, "publish/disable-publishing", "breaks", says, "set it to no"))
    if conf.says_yes("publish", "disable-user-service-publishing", default=False):
        says = "disable-user-service-publishing is on: a job cannot be published"
        harms.append(_harm(conf, "publish/disable-user-service-publishing", "hinders", says, "set it to no"))
    if not conf.says_yes("publish", "publish-addresses", default=True):
        says = "publish-addresses is off: peers see the service and find no address for it"
        harms.append(_harm(conf, "publish/publish-addresses", "breaks", says, "set publish-addresses=yes"))
    if conf.says_yes("reflector", "enable-reflector", default=False):
        says = "the reflector is on: it can make hosts conflict with themselves and change their names"
        harms.append(_harm(conf, "reflector/enable-reflector", "hinders", says, "set enable-reflector=no"))
    return harms


def _judge_numbers(conf: AvahiConf) -> list[Harm]:
    harms = []
    cache = conf.number("server", "cache-entries-max")
    if cache is not None and cache < LEAST_CACHE:
        blind = cache < 2  # measured: 0 and 1 find nothing
        says = f"cache-entries-max is {cache}: " + (
            "nothing is found at all" if blind else "too few for ten nodes"
        )
        hint = "remove the line (4096 is the default)"
        harms.append(_harm(conf, "server/cache-entries-max", "breaks" if blind else "hinders", says, hint))
    interval, burst = (
        conf.number("server", "ratelimit-interval-usec"),
        conf.number("server", "ratelimit-burst"),
    )
    if interval and (burst or 0) * 1e6 / interval < LEAST_RATE:
        says = f"the rate limit lets {burst or 0} packets pass in {interval / 1e6:g} s: discovery starves"
        hint = "set ratelimit-interval-usec=1000000 and ratelimit-burst=1000"
        harms.append(_harm(conf, "server/ratelimit-burst", "breaks", says, hint))
    for key, least, says in (
        ("clients-max", LEAST_CLIENTS, "few programs can use the daemon at a time"),
        ("objects-per-client-max", LEAST_OBJECTS, "too few for browsing ten nodes"),
        ("entries-per-entry-group-max", LEAST_ENTRIES, "too few for publishing a job"),
    ):
        number = conf.number("server", key)
        if number and number < least:  # 0 means the default
            harms.append(
                _harm(conf, f"server/{key}", "hinders", f"{key} is {number}: {says}", "remove the line")
            )
    return harms


def _judge_limits(conf: AvahiConf) -> list[Harm]:
    harms = []
    processes = conf.number("rlimits", "rlimit-nproc")
    if processes is not None and processes <= SHARED_PROCESSES:
        stopped = processes < LEAST_PROCESSES
        says = f"rlimit-nproc is {processes}: " + (
            "the daemon cannot start its chroot helper, and ends"
            if stopped
            else "the daemon does not start where containers share its user"
        )
        weight: Weight = "stops" if stopped else "note"
        harms.append(_harm(conf, "rlimits/rlimit-nproc", weight, says, "remove the line"))
    for key, least, weight, says in (
        ("rlimit-nofile", LEAST_FILES, "stops", "the daemon does not start with so few open files"),
        (
            "rlimit-data",
            LEAST_DATA,
            "breaks",
            "so little memory leaves the daemon without D-Bus; it counts bytes",
        ),
        ("rlimit-as", LEAST_ADDRESS_SPACE, "breaks", "so little memory leaves the daemon without D-Bus"),
    ):
        number = conf.number("rlimits", key)
        if number is not None and number < least:
            harms.append(
                _harm(conf, f"rlimits/{key}", weight, f"{key} is {number}: {says}", "remove the line")
            )
    return harms

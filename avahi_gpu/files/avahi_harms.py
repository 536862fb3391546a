"""What the settings of avahi-daemon.conf do to discovery. Measured on avahi-daemon 0.8."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from avahi_gpu.files.avahi_conf import AvahiConf
from avahi_gpu.files.avahi_conf_edit import Wanted
from avahi_gpu.files.domain_name import labels_of

# stops: the daemon does not start. breaks: this host is not found, or does not find others.
# bars: hosts find each other, and no job can be published. hinders: something fails in a larger cluster, or
# is not as it was meant. note: worth knowing.
Weight = Literal["stops", "breaks", "bars", "hinders", "note"]

BLIND_RATE = 2.0  # packets a second; with one a browser saw nothing within four seconds, with two a peer
LEAST_RATE = 10.0  # packets a second, for more than a handful of nodes
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
    """One setting that does harm. ``line`` is None where it is the want of a setting.

    ``mends``: the edit that is right whatever else the file says, () where only its owner knows.
    """

    key: str
    weight: Weight
    says: str
    hint: str
    line: int | None = None
    mends: tuple[Wanted, ...] = ()


def effects(
    conf: AvahiConf,
    interfaces: Sequence[str] | None = None,
    *,
    port_shared: bool | None = None,
    families: Collection[int] = (4, 6),
) -> list[Harm]:
    """Return the harms of a configuration, the worst first.

    ``interfaces``: the names of those that reach the LAN, None where not known. ``port_shared``: whether
    another process holds UDP port 5353. ``families``: those in which the LAN has addresses.
    """
    harms = [
        *_judge_protocols(conf, families),
        *_judge_interfaces(conf, interfaces),
        *_judge_patterns(conf, interfaces),
        *_judge_names(conf),
        *_judge_switches(conf, port_shared),
        *_judge_numbers(conf),
        *_judge_limits(conf),
    ]
    order: list[Weight] = ["stops", "breaks", "bars", "hinders", "note"]
    return sorted(harms, key=lambda harm: order.index(harm.weight))


def starts(harms: Sequence[Harm]) -> bool:
    """Whether the daemon starts."""
    return all(harm.weight != "stops" for harm in harms)


def breaks_discovery(harms: Sequence[Harm]) -> bool:
    """Whether this host cannot be found or cannot find others."""
    return any(harm.weight in ("stops", "breaks") for harm in harms)


def _harm(
    conf: AvahiConf,
    place: str,
    weight: Weight,
    says: str,
    hint: str,
    *,
    mends: str | tuple[Wanted, ...] | None = (),
) -> Harm:
    """``mends``: the right value of the key, None to take it out; or edits of several keys."""
    section, _, key = place.partition("/")
    setting = conf.find(section, key)
    edits = mends if isinstance(mends, tuple) else (Wanted(section, key, mends),)
    return Harm(key, weight, says, hint, setting.line if setting else None, edits)


def _judge_protocols(conf: AvahiConf, families: Collection[int]) -> list[Harm]:
    four = conf.says_yes("server", "use-ipv4", default=True)
    six = conf.says_yes("server", "use-ipv6", default=True)
    if not four and not six:
        says = "IPv4 and IPv6 are both switched off: the daemon does not start"
        return [_harm(conf, "server/use-ipv4", "stops", says, "set use-ipv4=yes", mends="yes")]
    if not four and 4 in families:
        says = "IPv4 is switched off: peers get IPv6 addresses only"
        return [_harm(conf, "server/use-ipv4", "breaks", says, "set use-ipv4=yes", mends="yes")]
    if not six and 4 not in families:
        says = "IPv6 is switched off, and the LAN has no IPv4"
        return [_harm(conf, "server/use-ipv6", "breaks", says, "set use-ipv6=yes", mends="yes")]
    return []


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
        mends = (*_allow(interfaces), *_undeny(conf, interfaces))
        if not shown.strip(","):
            says, hint = "allow-interfaces is empty, which allows no interface at all", "remove the line"
        elif len(wanted) < len([name for name in allowed if name]) and not wanted:
            says, hint = "deny-interfaces denies what allow-interfaces allows", "remove one of the two"
        else:
            says = f"allow-interfaces “{shown}” names no interface that reaches the LAN"
            hint = "write names as “ip link” shows them, parted by commas, with nothing behind them"
        return [_harm(conf, "server/allow-interfaces", "breaks", says, hint, mends=mends)]
    if interfaces and not known:
        says = "deny-interfaces denies every interface that reaches the LAN"
        hint = "take the interface of the LAN out of it"
        return [_harm(conf, "server/deny-interfaces", "breaks", says, hint, mends=_undeny(conf, interfaces))]
    return []


def _judge_patterns(conf: AvahiConf, interfaces: Sequence[str] | None) -> list[Harm]:
    """Names are compared as they are: no wildcards, and an alias like eth0:0 is no interface."""
    harms = []
    for key in ("allow-interfaces", "deny-interfaces"):
        names = conf.names("server", key) or ()
        odd = [name for name in names if any(c in name for c in "*?[]!:^ \t#;")]
        if not odd:
            continue
        says = f"{key} holds “{', '.join(odd)}”: avahi-daemon knows no wildcards, aliases or remarks there"
        hint = "name each interface in full; allow-interfaces with those of the LAN needs no list of others"
        drop = (Wanted("server", key, None),) if key == "deny-interfaces" else ()
        mends = (*drop, *_allow(interfaces)) if interfaces else ()
        harms.append(_harm(conf, f"server/{key}", "hinders", says, hint, mends=mends))
    return harms


def _allow(interfaces: Sequence[str] | None) -> tuple[Wanted, ...]:
    return (Wanted("server", "allow-interfaces", ",".join(interfaces) if interfaces else None),)


def _undeny(conf: AvahiConf, interfaces: Sequence[str] | None) -> tuple[Wanted, ...]:
    """Take the LAN's interfaces out of deny-interfaces."""
    names = conf.names("server", "deny-interfaces")
    lan = [name.lower() for name in interfaces or ()]
    if names is None or not any(name.lower() in lan for name in names):
        return ()
    rest = [name for name in names if name and name.lower() not in lan]
    return (Wanted("server", "deny-interfaces", ",".join(rest) or None),)


def _judge_names(conf: AvahiConf) -> list[Harm]:
    harms = []
    domain = conf.find("server", "domain-name")
    if domain is not None:
        labels = labels_of(domain.value)
        if labels is None:
            says = f"domain-name “{domain.value}” is no domain name: the daemon does not start"
            harms.append(
                _harm(conf, "server/domain-name", "stops", says, "set domain-name=local", mends=None)
            )
        elif [label.lower() for label in labels] != [b"local"]:
            says = f"domain-name is “{domain.value}”: names and services are not in .local, where peers look"
            harms.append(
                _harm(conf, "server/domain-name", "breaks", says, "set domain-name=local", mends=None)
            )
    host = conf.find("server", "host-name")
    if host is not None:
        labels = labels_of(host.value)
        if labels is None or len(labels) != 1:
            says = f"host-name “{host.value}” is no host name: the daemon does not start"
            hint = "write one name of 1 to 63 bytes, without a dot and without .local"
            harms.append(_harm(conf, "server/host-name", "stops", says, hint, mends=None))
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
        harms.append(_harm(conf, "server/enable-dbus", "breaks", says, "set enable-dbus=yes", mends="yes"))
    if conf.says_yes("server", "disallow-other-stacks", default=False):
        says = (
            "disallow-other-stacks keeps the daemon from starting while another program holds UDP port 5353"
        )
        weight: Weight = "stops" if port_shared else "note"
        mends = "no" if port_shared else ()
        harms.append(_harm(conf, "server/disallow-other-stacks", weight, says, "set it to no", mends=mends))
    if conf.says_yes("server", "check-response-ttl", default=False):
        says = "check-response-ttl drops answers that came through a router or some access points"
        harms.append(_harm(conf, "server/check-response-ttl", "note", says, "set it to no"))
    if conf.says_yes("publish", "disable-publishing", default=False):
        says = "disable-publishing is on: this host sees others and nobody sees it"
        harms.append(_harm(conf, "publish/disable-publishing", "breaks", says, "set it to no", mends="no"))
    if conf.says_yes("publish", "disable-user-service-publishing", default=False):
        says = "disable-user-service-publishing is on: a job cannot be published"
        key = "publish/disable-user-service-publishing"
        harms.append(_harm(conf, key, "bars", says, "set it to no", mends="no"))
    if not conf.says_yes("publish", "publish-addresses", default=True):
        says = "publish-addresses is off: peers see the service and find no address for it"
        hint = "set publish-addresses=yes"
        harms.append(_harm(conf, "publish/publish-addresses", "breaks", says, hint, mends="yes"))
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
        harms.append(
            _harm(conf, "server/cache-entries-max", "breaks" if blind else "hinders", says, hint, mends=None)
        )
    interval, burst = (
        conf.number("server", "ratelimit-interval-usec"),
        conf.number("server", "ratelimit-burst"),
    )
    rate = (burst or 0) * 1e6 / interval if interval and interval > 0 else LEAST_RATE
    if interval and rate < LEAST_RATE:
        says = f"the rate limit lets {burst or 0} packets pass in {interval / 1e6:g} s: discovery starves"
        hint = "set ratelimit-interval-usec=1000000 and ratelimit-burst=1000"
        starved: Weight = "breaks" if rate < BLIND_RATE else "hinders"
        both = (
            Wanted("server", "ratelimit-interval-usec", "1000000"),
            Wanted("server", "ratelimit-burst", "1000"),
        )
        harms.append(_harm(conf, "server/ratelimit-burst", starved, says, hint, mends=both))
    for key, least, says in (
        ("clients-max", LEAST_CLIENTS, "few programs can use the daemon at a time"),
        ("objects-per-client-max", LEAST_OBJECTS, "too few for browsing ten nodes"),
        ("entries-per-entry-group-max", LEAST_ENTRIES, "too few for publishing a job"),
    ):
        number = conf.number("server", key)
        if number and number < least:  # 0 means the default
            # who browses resolves too, which makes two objects
            weight: Weight = "breaks" if key == "objects-per-client-max" and number < 2 else "hinders"
            harms.append(
                _harm(
                    conf,
                    f"server/{key}",
                    weight,
                    f"{key} is {number}: {says}",
                    "remove the line",
                    mends=None,
                )
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
        harms.append(_harm(conf, "rlimits/rlimit-nproc", weight, says, "remove the line", mends=None))
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
                _harm(
                    conf,
                    f"rlimits/{key}",
                    weight,
                    f"{key} is {number}: {says}",
                    "remove the line",
                    mends=None,
                )
            )
    return harms

"""3xx: avahi-daemon.conf. It is strict about form, and some of its settings blind a host in silence."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import avahi_conf, avahi_conf_edit, avahi_harms
from avahi_gpu.files.avahi_conf_edit import Wanted
from avahi_gpu.files.avahi_harms import Harm
from avahi_gpu.model import Facts, Fix, Interface

RESTART = "avahi-daemon reads it when it starts: restart it afterwards"
# what an option of avahi-daemon.conf is called in configuration.nix
NIXOS = {
    "allow-interfaces": "allowInterfaces",
    "deny-interfaces": "denyInterfaces",
    "disable-publishing": "publish.enable",
    "disable-user-service-publishing": "publish.userServices",
    "publish-addresses": "publish.addresses",
    "use-ipv4": "ipv4",
    "use-ipv6": "ipv6",
    "domain-name": "domainName",
    "host-name": "hostName",
    "cache-entries-max": "cacheEntriesMax",
    "enable-reflector": "reflector",
}
# what nobody writes by mistake: it keeps a machine unseen, or out of reach
MEANT = frozenset(
    {
        "disable-publishing",
        "disable-user-service-publishing",
        "publish-addresses",
        "enable-dbus",
        "use-ipv4",
        "use-ipv6",
        "domain-name",
        "deny-interfaces",
    }
)


@check(
    "AG303",
    slug="avahi-config",
    area="host",
    says="avahi-daemon.conf is one that avahi-daemon starts with",
    needs=("AG302",),
    setup=True,
    image=True,
)
def avahi_config(facts: Facts) -> Outcome:
    """A daemon that runs took the file as it was then; what is wrong now stops it at its next start."""
    state = facts.avahi_conf
    if state.content is None and state.exists:
        return unknown(f"{state.path} could not be read ({state.error})")
    if state.content is None:
        hint = "or install the package avahi-daemon again"
        return _stopped(facts, f"{state.path} is missing", "", hint, fixes.make_conf(facts))
    try:
        stops = [h for h in _harms(facts) if h.weight == "stops"]
    except MalformedInput as fault:
        fix = fixes.write_conf(
            facts, avahi_conf_edit.mend(read_conf(facts)), f"mend {state.path}", then_restart=False
        )
        return _stopped(facts, "avahi-daemon.conf is malformed", fault.message, fault.hint, fix)
    if stops:
        return _stopped(
            facts, stops[0].says, _place(facts, stops[0]), _hint(facts, stops[0]), _fix(facts, stops)
        )
    crowded = _crowded(facts)
    if crowded is not None:
        return crowded
    return ok()


@check(
    "AG305",
    slug="avahi-publishes",
    area="host",
    says="avahi-daemon.conf lets this host publish and find others",
    needs=("AG303",),
    setup=True,
    image=True,
)
def avahi_publishes(facts: Facts) -> Outcome:
    """The harms that nobody is told of: the daemon runs and says that all is well."""
    try:
        harms = [h for h in _harms(facts) if h.weight != "stops"]
    except MalformedInput:
        return unknown("avahi-daemon.conf is malformed")
    if not harms:
        return ok()
    worst = harms[0]
    places = [_place(facts, h) for h in harms]
    if worst.weight == "note":
        return info(worst.says, places, hint=worst.hint)
    fix = _fix(facts, harms)
    hint = f"{_hint(facts, worst)}; {RESTART}"
    if worst.weight == "hinders":
        return warn(worst.says, places, fix=fix, hint=hint)
    if not is_in_force(facts) and facts.daemon.on_bus:
        says = f"{worst.says}: it will be so when avahi-daemon starts anew"
        return warn(says, places, fix=fix, hint=_hint(facts, worst))
    return error(worst.says, places, fix=fix, hint=hint)


def read_conf(facts: Facts) -> str:
    """Return avahi-daemon.conf as text; every byte of it comes back by the same way."""
    return (facts.avahi_conf.content or b"").decode("utf-8", "surrogateescape")


def lan_names(facts: Facts) -> list[str]:
    """Return the names of the interfaces that reach the LAN: real ones, others only where there are none."""
    usable = usable_interfaces(facts)
    return [i.name for i in usable if _is_real(i)] or [i.name for i in usable]


def card_names(facts: Facts) -> list[str]:
    """Return ``lan_names`` with the cards that have no cable or no address now: they may get them."""
    lan = lan_names(facts)
    cards = [i.name for i in facts.interfaces if _is_real(i) and i.multicast]
    return [*lan, *(name for name in cards if name not in lan)] if set(lan) & set(cards) else lan


def admits(facts: Facts) -> set[str]:
    """Return the names of the interfaces that the file lets avahi-daemon use. Raises MalformedInput."""
    conf = avahi_conf.parse(read_conf(facts), facts.avahi_conf.path)
    allowed, denied = (
        None if names is None else {name.lower() for name in names}
        for names in (conf.names("server", key) for key in ("allow-interfaces", "deny-interfaces"))
    )
    return {
        i.name
        for i in facts.interfaces
        if i.name.lower() not in (denied or ()) and (allowed is None or i.name.lower() in allowed)
    }


def is_in_force(facts: Facts) -> bool:
    """Whether the daemon that runs has read the file as it is now; True where that cannot be told."""
    started = next((p.started for p in facts.avahi.processes or () if p.pid == facts.daemon.pid), None)
    changed = facts.avahi_conf.changed
    return started is None or changed is None or changed <= started


def keep_to_the_lan(facts: Facts, title: str) -> Fix | None:
    """Return the fix that lets the daemon use the interfaces of the LAN alone."""
    try:
        conf = avahi_conf.parse(read_conf(facts), facts.avahi_conf.path)
    except MalformedInput:
        return None
    denied = {name.lower() for name in conf.names("server", "deny-interfaces") or ()}
    names = [name for name in card_names(facts) if name.lower() not in denied]
    allowed = conf.find("server", "allow-interfaces")
    question = _ask(facts, f"allow-interfaces={allowed.value}") if allowed is not None else ""
    text = avahi_conf_edit.change(read_conf(facts), (Wanted("server", "allow-interfaces", ",".join(names)),))
    return fixes.write_conf(facts, text, title, then_restart=True, question=question)


def says_no_dbus(facts: Facts) -> bool:
    """Whether the file keeps the daemon off the bus."""
    try:
        return any(h.key == "enable-dbus" for h in _harms(facts))
    except MalformedInput:
        return False


def _is_real(interface: Interface) -> bool:
    return interface.link in ("wired", "wireless")


def _harms(facts: Facts) -> list[Harm]:
    conf = avahi_conf.parse(read_conf(facts), facts.avahi_conf.path)
    # a machine without any LAN has a finding of its own: its configuration is not to blame for that
    names = lan_names(facts) or None
    families = {a.family for i in usable_interfaces(facts) for a in i.addresses if a.scope == "global"}
    others = [s for s in facts.network.mdns_sockets or () if s.pid not in (facts.daemon.pid, None)]
    return avahi_harms.effects(conf, names, port_shared=bool(others), families=families or (4, 6))


def _crowded(facts: Facts) -> Outcome | None:
    """Tell of the limit of processes that counts those of all containers, where it can be the cause."""
    if facts.daemon.pid is not None or facts.daemon.on_bus or not facts.avahi.shared_user:
        return None
    harms = [h for h in _harms(facts) if h.key == "rlimit-nproc"]
    if not harms:
        return None
    says = f"{harms[0].says}: {facts.avahi.shared_user} processes run as that user"
    return error(says, [_place(facts, harms[0])], fix=_fix(facts, harms), hint=harms[0].hint)


def _fix(facts: Facts, harms: list[Harm]) -> Fix | None:
    """Return the one edit that takes all these harms away, and a restart where the daemon runs."""
    wanted: dict[tuple[str, str], Wanted] = {}
    for one in (w for h in harms for w in h.mends):
        wanted.setdefault((one.section, one.key), one)
    if not wanted:
        return None
    keys = ", ".join(dict.fromkeys(h.key for h in harms if h.mends))
    text = avahi_conf_edit.change(read_conf(facts), tuple(wanted.values()))
    meant = [h for h in harms if h.mends and h.key in MEANT and h.weight in ("breaks", "bars")]
    question = _ask(facts, " and ".join(_setting(facts, h) for h in meant)) if meant else ""
    title = f"mend {keys} in {facts.avahi_conf.path}"
    return fixes.write_conf(facts, text, title, then_restart=True, question=question)


def _setting(facts: Facts, harm: Harm) -> str:
    return read_conf(facts).split("\n")[(harm.line or 1) - 1].strip()


def _ask(facts: Facts, setting: str) -> str:
    """Return the question about what an administrator has written, it seems, and no node can live with."""
    return f"{facts.avahi_conf.path} says {setting}, as if somebody meant it; no node can be so. Change it?"


def _hint(facts: Facts, harm: Harm) -> str:
    if fixes.is_of_nixos(facts.avahi_conf):
        option = NIXOS.get(harm.key, "extraConfig")
        return f"set services.avahi.{option} in configuration.nix and rebuild ({harm.key} in the file)"
    return harm.hint


def _place(facts: Facts, harm: Harm) -> str:
    where = f"{facts.avahi_conf.path}:{harm.line}" if harm.line else facts.avahi_conf.path
    return f"{where}: {harm.says}"


def _stopped(facts: Facts, says: str, evidence: str, hint: str, fix: Fix | None = None) -> Outcome:
    shown = [evidence] if evidence else []
    if facts.daemon.on_bus:
        return warn(f"{says}: avahi-daemon runs, but will not start again", shown, fix=fix, hint=hint)
    return error(f"{says}: avahi-daemon does not start", shown, fix=fix, hint=hint)

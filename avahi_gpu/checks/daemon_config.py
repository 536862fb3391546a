"""3xx: avahi-daemon.conf. It is strict about form, and some of its settings blind a host in silence."""

from __future__ import annotations

from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import avahi_conf, avahi_harms
from avahi_gpu.files.avahi_harms import Harm
from avahi_gpu.model import Facts

RESTART = "avahi-daemon reads it when it starts: restart it afterwards"


@check(
    "AG303",
    slug="avahi-config",
    area="host",
    says="avahi-daemon.conf is one that avahi-daemon starts with",
    needs=("AG302",),
)
def avahi_config(facts: Facts) -> Outcome:
    """A daemon that runs took the file as it was then; what is wrong now stops it at its next start."""
    state = facts.avahi_conf
    if state.content is None and state.exists:
        return unknown(f"{state.path} could not be read ({state.error})")
    if state.content is None:
        return _stopped(facts, f"{state.path} is missing", "", "install the package avahi-daemon again")
    try:
        stops = [h for h in _harms(facts) if h.weight == "stops"]
    except MalformedInput as fault:
        return _stopped(facts, "avahi-daemon.conf is malformed", fault.message, fault.hint)
    if stops:
        return _stopped(facts, stops[0].says, _place(facts, stops[0]), stops[0].hint)
    return ok()


@check(
    "AG305",
    slug="avahi-publishes",
    area="host",
    says="avahi-daemon.conf lets this host publish and find others",
    needs=("AG303",),
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
    if worst.weight == "breaks":
        return error(worst.says, places, hint=f"{worst.hint}; {RESTART}")
    if worst.weight == "hinders":
        return warn(worst.says, places, hint=f"{worst.hint}; {RESTART}")
    return info(worst.says, places, hint=worst.hint)


def _harms(facts: Facts) -> list[Harm]:
    text = (facts.avahi_conf.content or b"").decode("utf-8", "surrogateescape")
    conf = avahi_conf.parse(text, facts.avahi_conf.path)
    # a machine without any LAN has a finding of its own: its configuration is not to blame for that
    names = [i.name for i in usable_interfaces(facts)] or None
    return avahi_harms.effects(conf, names)


def _place(facts: Facts, harm: Harm) -> str:
    where = f"{facts.avahi_conf.path}:{harm.line}" if harm.line else facts.avahi_conf.path
    return f"{where}: {harm.says}"


def _stopped(facts: Facts, says: str, evidence: str, hint: str) -> Outcome:
    shown = [evidence] if evidence else []
    if facts.daemon.on_bus:
        return warn(f"{says}: avahi-daemon runs, but will not start again", shown, hint=hint)
    return error(f"{says}: avahi-daemon does not start", shown, hint=hint)

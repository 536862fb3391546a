"""1xx: the names that the user asked about: what became of each on its way, in words, and what is wrong."""

from __future__ import annotations

from avahi_gpu.checks.hosts_line import machine_of
from avahi_gpu.checks.name_servers import (
    ANSWERING,
    DECIDING,
    PHRASES,
    dns_wait_s,
    local_is_claimed,
    where_to_correct,
)
from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unread, warn
from avahi_gpu.checks.peers import is_traced_stranger
from avahi_gpu.checks.registry import check
from avahi_gpu.files import etc_hosts, mdns_allow
from avahi_gpu.files.nsswitch_chain import FULL, IPV6_ONLY, MDNS, MINIMAL
from avahi_gpu.model import Facts, ModuleAnswer, NameServer, Step, Story, StoryStep, Trace

SLOW_S = 1.0  # an answer of mDNS takes a quarter of a second at most
AVAHI_WAITS_S = 4.5  # a name that nobody has costs five

_EFFECTS = {"return": "the search ends here", "continue": "the search goes on", "merge": "the search goes on"}


# --- checks ----------------------------------------------------------------------------------------------


@check(
    "AG118",
    slug="asked-local-names",
    area="names",
    says="every .local name that was asked about resolves",
    needs=("AG102", "AG104", "AG203", "AG304"),
    follows=("AG109", "AG110", "AG114", "AG116", "AG120"),
)
def asked_local_names(facts: Facts) -> Outcome:
    """Names of nodes that are listed are judged with them."""
    return _judge([t for t in _others(facts) if _is_local(t.name)], facts)


@check(
    "AG119",
    slug="asked-names",
    area="names",
    says="every other name that was asked about resolves",
    needs=("AG101",),
)
def asked_names(facts: Facts) -> Outcome:
    """Names outside ``.local`` are DNS's, or those of /etc/hosts."""
    return _judge([t for t in _others(facts) if not _is_local(t.name)], facts)


def _judge(traces: list[Trace], facts: Facts) -> Outcome:
    if facts.names.traces is None and facts.wanted_peers:
        return unread(facts, "names.traces", "the way of the names that were asked about")
    lost = [t for t in traces if not t.glibc.addresses]
    late = [t for t in lost if t.glibc.error == "timeout" and dns_wait_s(facts)]
    if lost and lost == late:
        return skip("the look-up did not end in time: see AG108 (dns-answers)")
    stories = {t.name: tell_story(facts, t) for t in traces}
    if lost:
        return error(
            "; ".join(stories[t.name].says for t in lost),
            [line for t in lost for line in _lines(stories[t.name])],
            hint=_how_to_find(facts, lost),
        )
    dead = [t for t in traces if t.answers and all(there is False for _, there in t.answers)]
    if dead:
        says = "; ".join(stories[t.name].says for t in dead)
        hint = "the name is right, and the machine behind it is off, cut off, or shut by a firewall"
        return warn(says, [line for t in dead for line in _lines(stories[t.name])], hint=hint)
    return ok(*(stories[t.name].says for t in traces))


def _how_to_find(facts: Facts, lost: list[Trace]) -> str:
    if any(t.avahi.addresses for t in lost):
        return "see the way of the name above"
    servers = [s for s in facts.names.servers or () if not s.upstream]
    if any(_is_local(t.name) for t in lost):
        return "is the name spelled right, and is that machine switched on and in this LAN?"
    if not any(s.says in ANSWERING for s in servers):
        return f"no name server answers here: {where_to_correct(facts)}"
    return "is the name spelled right? Names outside .local are for the name server or /etc/hosts to know"


def _others(facts: Facts) -> list[Trace]:
    """Return the traces of names that are no listed node's; a bare name must be one (AG601)."""
    return [t for t in facts.names.traces or () if is_traced_stranger(facts, t.asked)]


def _lines(story: Story) -> list[str]:
    return [f"{s.module}: {s.words}{f' ({s.why})' if s.why else ''}" for s in story.steps if s.words]


# --- the story -------------------------------------------------------------------------------------------


def tell_story(facts: Facts, trace: Trace) -> Story:
    """Return what became of a name, module by module, and one sentence on the whole."""
    steps = tuple(_tell_step(facts, trace, step) for step in trace.steps)
    return Story(trace, steps, _conclude(facts, trace, steps))


def _tell_step(facts: Facts, trace: Trace, step: Step) -> StoryStep:
    answer = step.answer
    if answer is None:
        return StoryStep(step.module, step.actions, "", "", "not asked")
    words = {
        "success": ", ".join(answer.addresses) or "found",
        "notfound": "not found",
        "unavail": "gives no answer",
        "tryagain": "could not tell",
        None: answer.error or "no answer",
    }[answer.status]
    effect = _EFFECTS.get(step.action, "glibc still waits" if answer.late else "how it went on is not known")
    if answer.status == "success" and step.action == "return":
        effect = "found: the search ends here"
    return StoryStep(
        step.module, step.actions, words, _why(facts, trace, step.module, answer), effect, answer.elapsed_s
    )


def _why(facts: Facts, trace: Trace, module: str, answer: ModuleAnswer) -> str:
    """Return the reason of an answer where it is known, '' where there is nothing to say."""
    if answer.loaded is False:
        return "there is no such module here" if not facts.nss_modules.get(module) else answer.error
    reasons = []
    if module == "files" and answer.status == "success":
        reasons.append(_places(facts, trace.name))
    elif module in MDNS:
        reasons.append(_why_mdns(facts, trace, module, answer))
    elif module == "dns":
        reasons.append(_why_dns(facts, answer))
    silent = [s.address for s in facts.names.servers or () if s.says == "silent" and not s.upstream]
    waits = module == "dns" or module in _asks_dns(facts)
    if waits and silent and answer.elapsed_s >= SLOW_S and dns_wait_s(facts):
        reasons.append(f"waited for the name server {' and '.join(silent)}, which does not answer")
    return "; ".join(r for r in reasons if r)


def _why_mdns(facts: Facts, trace: Trace, module: str, answer: ModuleAnswer) -> str:
    if answer.status == "success":
        return _about_local(facts) if module in _asks_dns(facts) else ""
    if answer.status == "notfound" and module.startswith("mdns4") and _only_ipv6(trace):
        return "it gives IPv4 addresses only, and that machine has none"
    if answer.status == "notfound":
        waited = answer.elapsed_s >= AVAHI_WAITS_S
        return "nobody on the LAN has that name" + (": Avahi waits 5 s for an answer" if waited else "")
    if answer.status != "unavail":
        return ""
    if module in IPV6_ONLY and not trace.avahi.error:
        return "it gives IPv6 addresses only"
    allow = facts.mdns_allow.content
    if module in FULL and allow is not None:
        if not mdns_allow.allows(mdns_allow.parse(allow), trace.name):
            return "/etc/mdns.allow does not allow that name"
    elif not mdns_allow.is_plain_local(trace.name):
        return "it is asked for names of the form host.local alone"
    elif local_is_claimed(facts):
        who = [s.address for s in facts.names.servers or () if s.says == "owner"]
        return f"it stands back: the name server {' and '.join(who)} claims the domain local"
    if not facts.daemon.on_bus and facts.daemon.pid is None:
        return "avahi-daemon does not run"
    return ""


def _about_local(facts: Facts) -> str:
    """Say what came of the question about ``local`` that the module puts to DNS first, where it was quick."""
    servers = [s for s in facts.names.servers or () if not s.upstream and s.says != "silent"]
    if not servers:
        return ""
    first = next((s for s in servers if s.says in DECIDING), servers[0])
    return f"it asked DNS about local first: {first.address} {PHRASES[first.says]}"


def _why_dns(facts: Facts, answer: ModuleAnswer) -> str:
    servers = [s for s in facts.names.servers or () if not s.upstream]
    if answer.status == "notfound":
        return f"{_addresses(servers)} knows no such name" if len(servers) == 1 else ""
    if answer.status == "success":
        return ""
    shut = [s for s in servers if s.says == "closed"]
    if shut and len(shut) == len(servers):
        return f"nobody listens at {_addresses(shut)}"
    failing = [s for s in servers if s.says in ("refused", "servfail")]
    return f"{_addresses(failing)} refuses or fails" if failing and len(failing) == len(servers) else ""


def _conclude(facts: Facts, trace: Trace, steps: tuple[StoryStep, ...]) -> str:
    name, found = trace.name, trace.glibc.addresses
    if not machine_of(facts).glibc:
        return f"{name} is {', '.join(found)}" if found else f"{name} does not resolve"
    if trace.defect:
        return f"glibc cannot read nsswitch.conf ({trace.defect}), so no name resolves"
    slow = f" after {trace.glibc.elapsed_s:.1f} s" if trace.glibc.elapsed_s >= SLOW_S else ""
    known = [address for address, _ in trace.avahi.addresses]
    if not found:
        if trace.glibc.error == "timeout":
            return f"the look-up of {name} did not end within {trace.glibc.elapsed_s:.0f} s"
        if known:
            blame = next((s for s in steps if s.module in MDNS and s.why), None)
            why = f": {blame.module} – {blame.why}" if blame else ""
            return f"glibc does not resolve {name}{slow}, though Avahi knows {', '.join(known)}{why}"
        if trace.avahi.asked and not trace.avahi.error:
            return f"nobody has the name {name}"
        if trace.avahi.asked and facts.daemon.on_bus:
            return f"nobody on the LAN has the name {name}{slow and ': saying so took' + slow[6:]}"
        return f"{name} does not resolve{slow}"
    shown = ", ".join(found)
    if known and not set(known) & {a.partition("%")[0] for a in found}:
        decided = trace.decided_by
        who = f" ({decided.module})" if decided else ""
        return f"{name} is {shown} to programs{who}, but {', '.join(known)} to Avahi"
    there = [alive for address, alive in trace.answers if address in found]
    if any(there):
        return f"{name} is {shown}{slow}, and it answers"
    if there and all(alive is False for alive in there):
        return f"{name} is {shown}{slow}, but nobody answers there"
    return f"{name} is {shown}{slow}"


def _only_ipv6(trace: Trace) -> bool:
    return bool(trace.avahi.addresses) and all(":" in address for address, _ in trace.avahi.addresses)


def _places(facts: Facts, name: str) -> str:
    text = (facts.etc_hosts.content or b"").decode("utf-8", "replace")
    entries = etc_hosts.find(etc_hosts.parse(text), name)
    return f"{etc_hosts.PATH}:{', '.join(str(e.line) for e in entries)}" if entries else ""


def _asks_dns(facts: Facts) -> tuple[str, ...]:
    """Return the modules that ask DNS about ``local`` first."""
    return MINIMAL if facts.mdns_allow.content is not None else (*MINIMAL, *FULL)


def _addresses(servers: list[NameServer]) -> str:
    return " and ".join(s.address for s in servers)


def _is_local(name: str) -> bool:
    return name.lower().rstrip(".").endswith(mdns_allow.SUFFIX)

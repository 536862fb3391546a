"""1xx: the DNS servers, which glibc's mDNS modules ask about ``local`` before they ask Avahi."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.hosts_line import machine_of
from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.files import mdns_allow, nsswitch, nsswitch_full, resolv_conf
from avahi_gpu.files.nsswitch_chain import FULL, MINIMAL, find_barrier
from avahi_gpu.model import Change, Facts, Fix, NameServer

# what waits longer hurts: torch asks for names at every start, and a look-up of a living server takes
# milliseconds. One second for each of three servers is the shortest that resolv.conf can be told to wait.
LONG_WAIT_S = 4
SLOW_ANSWER_S = 1.0  # the question was asked again by then; a server across the world answers in 0.3 s
DECIDING = ("owner", "nxdomain", "nodata")  # glibc takes these for the answer and asks nobody else
ANSWERING = (*DECIDING, "refused", "servfail")
IMPATIENT = "options timeout:1 attempts:1"

# what a server says, as it follows its address
PHRASES = {
    "owner": "claims the domain local",
    "nxdomain": "knows no domain local, as it should be",
    "nodata": "knows no domain local, as it should be",
    "refused": "refuses to answer",
    "servfail": "fails to answer (SERVFAIL)",
    "odd": "cannot be asked",
    "silent": "does not answer",
    "closed": "is none: nobody listens there",
    "unreachable": "cannot be reached: there is no way to it",
}
# programs that write resolv.conf anew, by a word of their header or of where the file really lies
_WRITERS = {
    "NetworkManager": "NetworkManager",
    "systemd-resolved": "systemd-resolved",
    "systemd/resolve": "systemd-resolved",
    "resolvconf": "resolvconf",
    "dhcpcd": "dhcpcd",
    "netconfig": "netconfig",
    "WSL": "WSL",
    "Docker": "Docker",
}


@check(
    "AG108",
    slug="dns-answers",
    area="names",
    says="no name server keeps look-ups waiting",
    needs=("AG100", "AG200"),
)
def dns_answers(facts: Facts) -> Outcome:
    """glibc waits for a silent one at every look-up, of ``.local`` too; one that refuses costs nothing."""
    servers = facts.names.servers
    if servers is None:
        return unread(facts, "names.servers", "the name servers")
    conf = parsed(facts)
    silent = [s for s in servers if s.says == "silent" and not s.upstream]
    wait_s = dns_wait_s(facts)
    evidence = describe(servers)
    if not silent and all(s.says in ("closed", "unreachable", "odd") for s in servers):
        return info(
            "no name server can be asked: names beyond .local and /etc/hosts do not resolve", evidence
        )
    slow = next((s for s in servers if s.says in ANSWERING and s.elapsed_s >= SLOW_ANSWER_S), None)
    if not silent and slow is not None:
        says = f"the name server {slow.address} takes {slow.elapsed_s:.1f} s to answer, at each look-up"
        return warn(says, evidence, hint="look for a nearer one, or for what is slow behind it")
    if not silent:
        return ok(*evidence)
    names = " and ".join(s.address for s in silent)
    answers = "do not answer" if len(silent) > 1 else "does not answer"
    if all(s.answers_others for s in silent):
        answers = "never answer" if len(silent) > 1 else "never answers"
        answers += " what nss-mdns asks about the domain local"
    if not wait_s:
        return info(
            f"the name server {names} {answers}, but another one is asked first",
            evidence,
            hint=where_to_correct(facts),
        )
    who = f"the name servers {names}" if len(silent) > 1 else f"the name server {names}"
    says = f"{who} {answers}: each look-up of a .local name waits up to {wait_s} s"
    if wait_s < LONG_WAIT_S:
        return warn(says, evidence, hint=where_to_correct(facts))
    limits = f"resolv.conf: {conf.attempts} attempts of {conf.timeout_s} s"
    return error(says, [*evidence, limits], fix=_hurry(facts, conf), hint=where_to_correct(facts))


@check(
    "AG109",
    slug="dns-leaves-local",
    area="names",
    says="no name server claims the domain local",
    needs=("AG100", "AG200"),
    setup=True,
    grant="mdns-allow",
)
def dns_leaves_local(facts: Facts) -> Outcome:
    """nss-mdns leaves ``.local`` to DNS where a server is responsible for it (its README; util.c)."""
    servers = facts.names.servers
    if servers is None:
        return unread(facts, "names.servers", "the name servers")
    claiming = [s for s in servers if s.says == "owner"]
    if not claiming:
        return ok(*describe(servers))
    who = " and ".join(s.address for s in claiming)
    evidence = describe(servers)
    if not local_is_claimed(facts):
        return info(f"{who} claims the domain local, but another name server is asked first", evidence)
    if not mdns_is_hidden(facts):
        return info(f"{who} claims the domain local; mDNS is asked here all the same", evidence)
    fix, hint = _ask_all_the_same(facts)
    return error(
        f"the name server {who} claims the domain local, so glibc does not ask mDNS for .local names",
        evidence,
        fix=fix,
        hint=hint,
    )


def parsed(facts: Facts) -> resolv_conf.ResolvConf:
    """Return what glibc takes from resolv.conf."""
    return resolv_conf.parse((facts.resolv_conf.content or b"").decode("utf-8", "replace"))


def dns_wait_s(facts: Facts) -> int:
    """Return the seconds that a question to DNS waits for silent servers; 0 where none is known."""
    servers = facts.names.servers or ()
    silent = {s.address for s in servers if s.says == "silent"}
    deciding = {s.address for s in servers if s.says in DECIDING}
    return parsed(facts).wait_s(silent, deciding) if silent else 0


def local_is_claimed(facts: Facts) -> bool:
    """Whether the server that decides claims ``local``: the first one that says anything glibc believes."""
    servers = [s for s in facts.names.servers or () if not s.upstream]
    if "rotate" in parsed(facts).options:
        return any(s.says == "owner" for s in servers)
    return next((s.says == "owner" for s in servers if s.says in DECIDING), False)


def mdns_is_hidden(facts: Facts) -> bool:
    """Whether a claim of ``local`` keeps the mDNS modules before DNS from asking Avahi.

    Full modules do not look at the claim where mdns.allow exists; and what a module really answered counts.
    """
    if any(a.status == "success" for a in facts.names.own_by_module or ()):
        return False
    line = nsswitch.parse(nsswitch.decode(facts.nsswitch.content or b"")).hosts
    services = line.services if line else ()
    before = services[: find_barrier(services)]
    obeying = [s.name for s in before if s.name in MINIMAL + FULL]
    if facts.mdns_allow.content is None:
        return True
    suffixes = mdns_allow.parse(facts.mdns_allow.content)
    return not any(name in FULL and mdns_allow.allows(suffixes, "x.local") for name in obeying)


def describe(servers: tuple[NameServer, ...]) -> list[str]:
    """Return one line for each server: what it says and how long it took."""
    return [_describe(s) for s in servers]


def _describe(server: NameServer) -> str:
    asked = "asked by systemd-resolved: " if server.upstream else ""
    words = PHRASES[server.says]
    if server.says == "silent" and server.answers_others:
        words = "answers other questions, but none about local"
    return f"{asked}nameserver {server.address} {words} ({server.elapsed_s:.2f} s)"


def writer_of(facts: Facts) -> str:
    """Return the program that writes resolv.conf anew, '' where nothing tells of one."""
    head = (facts.resolv_conf.content or b"")[:2000].decode("utf-8", "replace")
    told = "\n".join(line for line in head.split("\n") if line.startswith(("#", ";")))
    place = f"{facts.resolv_conf.link_target or ''}\n{told}"
    return next((name for word, name in _WRITERS.items() if word in place), "")


def where_to_correct(facts: Facts) -> str:
    """Say what to do about a name server that is of no use, and where."""
    writer = writer_of(facts)
    where = f"in the settings of {writer}, which writes resolv.conf" if writer else "in /etc/resolv.conf"
    return f"correct or remove it {where}, or repair the server"


def _hurry(facts: Facts, conf: resolv_conf.ResolvConf) -> Fix | None:
    """Return the fix that makes glibc wait a second in place of ten: DNS stays as it was told to be.

    None where another program writes the file, or the options stand there already and do not help.
    """
    state = facts.resolv_conf
    if state.content is None or not state.writable or state.link_target or writer_of(facts):
        return None
    if (conf.timeout_s, conf.attempts) == (1, 1):
        return None
    title = "let glibc wait one second for a name server"
    old = state.content if state.content.endswith(b"\n") or not state.content else state.content + b"\n"
    mode = 0o644 if state.mode is None else state.mode
    content = old + IMPATIENT.encode() + b"\n"
    return Fix(title, (Change("file", title, state.path, content, mode, before=state.content),))


def _ask_all_the_same(facts: Facts) -> tuple[Fix | None, str]:
    """Return the fix that lets a full module ask Avahi whatever DNS claims, else how to get there by hand."""
    hint = "or have the domain taken off that name server: local belongs to mDNS (RFC 6762)"
    repair = nsswitch_full.use_full_module(facts.nsswitch.content, machine_of(facts))
    allow = facts.mdns_allow
    if repair.content is None:
        return None, f"{repair.says}; {repair.hint}; {hint}"
    changes = []
    if repair.content != facts.nsswitch.content:
        title = "put a full mDNS module on the hosts line"
        changes.append(fixes.write_nsswitch(title, facts.nsswitch, repair.content))
    # a minimal module did not read the file: an old "*" in it would keep every name from DNS now
    content = mdns_allow.without_everything(allow.content or b"")
    if content != allow.content:
        title = "let it ask for .local names whatever DNS says"
        mode = 0o644 if allow.mode is None else allow.mode
        changes.append(Change("file", title, allow.path, content, mode, before=allow.content))
    if not changes:
        return None, hint
    return Fix("let glibc ask mDNS whatever DNS claims", tuple(changes)), hint

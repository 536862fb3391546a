"""1xx: glibc's mDNS modules themselves: can they be loaded, what mdns.allow does to them, what they cost."""

from __future__ import annotations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.hosts_line import machine_of
from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.files import mdns_allow, nsswitch, nsswitch_full
from avahi_gpu.files.nsswitch_chain import FULL, MINIMAL, find_barrier
from avahi_gpu.files.nsswitch_grammar import Line, Service
from avahi_gpu.model import Change, Facts, FileState, Fix

SLOW_REVERSE_S = 1.0
WRITABLE_BY_ALL = 0o222  # a socket is asked by whoever may write to it (unix(7))
REINSTALL = {
    "apt": "apt-get install --reinstall libnss-mdns",
    "dnf": "dnf reinstall nss-mdns",
    "pacman": "pacman -S nss-mdns",
    "zypper": "zypper install --force nss-mdns",
}
LOCAL_ONLY = frozenset((".local", ".local."))  # what minimal modules ask for without any file


@check(
    "AG110",
    slug="mdns-module-loads",
    area="names",
    says="glibc can load its module for mDNS",
    needs=("AG102",),
)
def mdns_module_loads(facts: Facts) -> Outcome:
    """A module that is there but cannot be loaded counts as UNAVAIL, and glibc says nothing."""
    answers = facts.names.own_by_module
    if answers is None:
        return unread(facts, "names.own_by_module", "what glibc's mDNS module answers")
    bad = [a for a in answers if a.loaded is False and facts.nss_modules.get(a.module)]
    if bad:
        command = REINSTALL.get(facts.package_manager or "")
        return error(
            f"glibc cannot load its module {' and '.join(a.module for a in bad)}",
            [a.error for a in bad],
            fix=Fix("install nss-mdns again", commands=(command,)) if command else None,
            hint="" if command else "install nss-mdns again",
        )
    return ok(*(f"{a.module}: {a.status or a.error}" for a in answers))


@check(
    "AG120",
    slug="mdns-socket",
    area="names",
    says="glibc's module for mDNS can ask avahi-daemon",
    needs=("AG102", "AG304"),
)
def mdns_socket(facts: Facts) -> Outcome:
    """The module speaks to a socket in /run; who removes it, or shuts it, makes every name unknown."""
    state = facts.avahi.socket
    if state is None:
        return unread(facts, "avahi.socket", "avahi-daemon's socket")
    if not state.exists:
        return error(
            f"avahi-daemon runs, but its socket {state.path} is gone: glibc's module finds nobody to ask",
            fix=fixes.restart_avahi(facts),
            hint="something has cleared /run; in a container the folder is to be mounted from the host",
        )
    if state.mode is not None and state.mode & WRITABLE_BY_ALL != WRITABLE_BY_ALL:
        return error(
            f"only some users may ask avahi-daemon at {state.path}: the programs of others find no name",
            [f"mode {state.mode:04o}, wanted 0666"],
            fix=fixes.restart_avahi(facts),
            hint="avahi-daemon makes it anew when it starts",
        )
    return ok(state.path)


@check(
    "AG111",
    slug="mdns-allow-obeyed",
    area="names",
    says="what /etc/mdns.allow allows is asked of mDNS",
    needs=("AG101",),
)
def mdns_allow_obeyed(facts: Facts) -> Outcome:
    """Modules named ``*_minimal`` never read the file."""
    content = facts.mdns_allow.content
    if content is None:
        return ok()
    line = _hosts(facts)
    minimal = [s.name for s in line.services if s.name in MINIMAL] if line else []
    if not minimal or any(s.name in FULL for s in _services(line)):
        return ok()
    suffixes = mdns_allow.parse(content)
    beyond = [s for s in suffixes if s.lower() not in LOCAL_ONLY]
    evidence = [f"{facts.mdns_allow.path}: {' '.join(suffixes) or 'nothing'}", *_quoted(facts, line)]
    if not beyond:
        return info(f"/etc/mdns.allow has no effect: {minimal[0]} does not read it", evidence)
    says = f"/etc/mdns.allow has no effect: {minimal[0]} does not read it, so names in {' '.join(beyond)} "
    if mdns_allow.EVERYTHING in beyond:
        says = f"/etc/mdns.allow has no effect: {minimal[0]} does not read it, and asks for host.local alone"
        hint = "write the domains that mDNS shall answer in place of *, and mdns4 in place of mdns4_minimal"
        return error(says, evidence, hint=hint)
    repair = nsswitch_full.use_full_module(facts.nsswitch.content, machine_of(facts))
    fix = None
    if repair.content is not None:
        title = "put a full mDNS module on the hosts line"
        changes = (fixes.write_nsswitch(title, facts.nsswitch, repair.content), *_allow_local(facts))
        fix = Fix("let glibc ask mDNS for what /etc/mdns.allow allows", changes)
    hint = "remove /etc/mdns.allow if nobody needs those names" if fix else repair.hint
    return error(f"{says}are not asked of mDNS", evidence, fix=fix, hint=hint)


@check(
    "AG112",
    slug="reverse-fast",
    area="names",
    says="no mDNS module delays the search for an address's name",
    needs=("AG101",),
)
def reverse_fast(facts: Facts) -> Outcome:
    """A full module at the end waits five seconds for each address that nobody on the LAN has a name for."""
    surplus = nsswitch_full.find_surplus(facts.nsswitch.content)
    if surplus is None:
        return ok()
    evidence = _quoted(facts, _hosts(facts))
    measured = facts.names.reverse
    if measured is not None:
        evidence.append(
            f"the name of {measured.name} took {measured.elapsed_s:.1f} s: {measured.error or 'found'}"
        )
    says = f"{surplus.module} at the end of the hosts line delays each search for an address's name by 5 s"
    if measured is not None and measured.elapsed_s < SLOW_REVERSE_S:
        return warn(f"{says} while avahi-daemon runs", evidence, hint=f"take {surplus.module} off the line")
    if facts.mdns_allow.content is not None and not surplus.after_full:
        hint = "it is there for what /etc/mdns.allow allows, it seems: take both away if nobody needs them"
        return warn(says, evidence, hint=hint)
    repair = nsswitch_full.drop_surplus(facts.nsswitch.content, machine_of(facts))
    if repair.content is None:
        return error(says, evidence, hint=f"{repair.says}; {repair.hint}")
    title = f"take {surplus.module} off the end of the hosts line"
    return error(
        says, evidence, fix=Fix(title, (fixes.write_nsswitch(title, facts.nsswitch, repair.content),))
    )


@check("AG113", slug="name-caches", area="names", says="no cache stands between programs and the hosts line")
def name_caches(facts: Facts) -> Outcome:
    """nscd answers for glibc out of its memory: what was mended seems broken for a while."""
    running = facts.names.caches
    if running is None:
        return unread(facts, "names.caches", "which caches of names run")
    if "nscd" in running:
        return info(
            "nscd keeps answers of the hosts line, also that a name does not exist",
            [f"running: {' '.join(running)}"],
            hint="after a change run as root: nscd --invalidate hosts",
        )
    return ok(*running)


@check(
    "AG114",
    slug="mdns-allow-local",
    area="names",
    says="/etc/mdns.allow does not keep .local names from mDNS",
    needs=("AG101",),
    setup=True,
    image=True,
)
def mdns_allow_local(facts: Facts) -> Outcome:
    """Where the file exists, full modules ask for what it lists and for nothing else."""
    content = facts.mdns_allow.content
    if content is None:
        if facts.mdns_allow.exists:
            return info(f"/etc/mdns.allow could not be read ({facts.mdns_allow.error})")
        return ok()
    before = _before_dns(facts)
    full = [s.name for s in before if s.name in FULL]
    suffixes = mdns_allow.parse(content)
    if not full or any(s.name in MINIMAL for s in before) or mdns_allow.allows(suffixes, "x.local"):
        return ok()
    fix = Fix("allow .local names", tuple(_allow_local(facts)))
    return error(
        f"/etc/mdns.allow keeps {full[0]} from asking mDNS for .local names",
        [
            f"{facts.mdns_allow.path}: {' '.join(suffixes) or 'allows nothing'}",
            *_quoted(facts, _hosts(facts)),
        ],
        fix=fix,
    )


@check(
    "AG115",
    slug="mdns-allow-narrow",
    area="names",
    says="/etc/mdns.allow leaves other names to DNS",
    needs=("AG101",),
)
def mdns_allow_narrow(facts: Facts) -> Outcome:
    """``*`` makes a full module ask Avahi for every name, for five seconds, and with NOTFOUND end there."""
    content = facts.mdns_allow.content
    if content is None or mdns_allow.EVERYTHING not in mdns_allow.parse(content):
        return ok()
    full = next((s for s in _before_dns(facts) if s.name in FULL), None)
    if full is None:
        return ok()
    effect = "never asked" if full.actions.notfound == "return" else "asked 5 s late"
    title = "allow .local names in place of all names"
    change = _write(facts.mdns_allow, title, mdns_allow.without_everything(content))
    return error(
        f"/etc/mdns.allow allows every name (*), so {full.name} takes them all and DNS is {effect}",
        [f"{facts.mdns_allow.path}: *", *_quoted(facts, _hosts(facts))],
        fix=Fix(title, (change,)),
    )


def _hosts(facts: Facts) -> Line | None:
    return nsswitch.parse(nsswitch.decode(facts.nsswitch.content or b"")).hosts


def _services(line: Line | None) -> tuple[Service, ...]:
    return line.services if line else ()


def _before_dns(facts: Facts) -> tuple[Service, ...]:
    services = _services(_hosts(facts))
    return services[: find_barrier(services)]


def _quoted(facts: Facts, line: Line | None) -> list[str]:
    return [f"{facts.nsswitch.path}:{line.number}: {' '.join(line.text.split())}"] if line else []


def _allow_local(facts: Facts) -> list[Change]:
    content = mdns_allow.with_local(facts.mdns_allow.content)
    if content == facts.mdns_allow.content:
        return []
    return [_write(facts.mdns_allow, "allow .local names", content)]


def _write(state: FileState, title: str, content: bytes) -> Change:
    mode = 0o644 if state.mode is None else state.mode
    return Change("file", title, state.path, content, mode, before=state.content)

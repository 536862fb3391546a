"""1xx: nsswitch.conf, its hosts line, and the module that asks Avahi on behalf of glibc."""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.checks import authselect, fixes, installation
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown
from avahi_gpu.checks.registry import check
from avahi_gpu.files import nsswitch, nsswitch_full
from avahi_gpu.files.nsswitch_chain import MDNS
from avahi_gpu.model import Facts, Fix

WANTED_MODULE = "mdns4_minimal"
IPV6 = 6
LOOKS_LIKE = (
    0.8  # of difflib: a letter or two of mdns4_minimal; and what is mistyped begins rightly: dns is none
)
FOR_IPV6 = "run: authselect enable-feature with-mdns6"
MUSL = frozenset({"alpine", "chimera", "openwrt"})  # their C library has no name service switch


@check(
    "AG101",
    slug="nsswitch-valid",
    area="names",
    says="nsswitch.conf is well-formed",
    needs=("AG100",),
    setup=True,
    image=True,
)
def nsswitch_valid(facts: Facts) -> Outcome:
    """One malformed action makes glibc drop the whole file: users, groups and localhost with it."""
    state = facts.nsswitch
    if state.content is None and state.exists:
        return unknown(f"{state.path} could not be read ({state.error})")
    repair = nsswitch.repair(state.content, machine_of(facts))
    if repair.verdict == "critical":
        # root is no user any more for programs that start now, those of a package manager among them
        fix = fix_hosts_line(facts, repair, first=True)
        return error(repair.says, _quoted(facts, repair), fix=fix, hint=repair.hint)
    if repair.verdict == "not-applicable":
        return skip(f"{repair.says}; {repair.hint}")
    if state.content is None:
        return info(f"{state.path} is missing; glibc goes by its own defaults")
    return ok()


@check(
    "AG102",
    slug="mdns-module",
    area="names",
    says="glibc's module for mDNS is on this machine",
    needs=("AG101",),
    setup=True,
    image=True,
)
def mdns_module(facts: Facts) -> Outcome:
    """Those that the hosts line names, else the one that setup would put there."""
    if facts.distribution == "nixos":
        return skip("NixOS hands glibc's modules to its nscd alone, from wherever they lie")
    named = nsswitch.modules(nsswitch.decode(facts.nsswitch.content or b""))
    modules = [name for name in named if name in MDNS] or [WANTED_MODULE]
    missing = [name for name in modules if facts.nss_modules.get(name) is False]
    if missing:
        files = [f"there is no libnss_{name}.so.2" for name in missing]
        fix = installation.install("nss-mdns", facts)
        hint = installation.explain(facts)
        return error("glibc's module for mDNS is not installed", files, fix=fix, hint=hint)
    if any(name not in facts.nss_modules for name in modules):
        return unknown(f"nobody looked for the module {' or '.join(modules)}")
    return ok(*modules)


@check(
    "AG104",
    slug="mdns-before-dns",
    area="names",
    says="the hosts line asks mDNS before DNS",
    needs=("AG101",),
    setup=True,
    image=True,
)
def mdns_before_dns(facts: Facts) -> Outcome:
    """Else ``.local`` names are asked of a name server, which has never heard of them."""
    repair = nsswitch.repair(facts.nsswitch.content, machine_of(facts))
    quoted = _quoted(facts, repair)
    if repair.verdict == "untouched":
        return ok(*quoted)
    if repair.verdict == "works":
        return info(f"the hosts line asks mDNS before DNS, though not by the book: {repair.says}", quoted)
    says = f"the hosts line does not ask mDNS before DNS: {repair.says}"
    quoted += _mistyped(facts)
    if repair.verdict == "managed" and facts.names.authselect is not None:
        told = authselect.put_mdns_first(facts.names.authselect, facts.nsswitch.content)
        return error(says, [*quoted, *told.evidence], fix=told.fix, hint=told.hint)
    if repair.wanted:
        return error(says, quoted, fix=fix_hosts_line(facts, repair))
    hint = repair.hint or "put mdns4_minimal [NOTFOUND=return] before dns by hand if you want .local names"
    return error(says, quoted, hint=hint)


@check(
    "AG116",
    slug="mdns-family",
    area="names",
    says="the mDNS module gives addresses of the kind that this LAN has",
    needs=("AG101", "AG104"),
    setup=True,
)
def mdns_family(facts: Facts) -> Outcome:
    """``mdns4_minimal`` knows IPv4 alone, so on a LAN without IPv4 it finds nobody, after five seconds."""
    outside = [i for i in facts.interfaces if i.link != "loopback"]
    lan = [i for i in outside if i.up and i.running and i.multicast and i.link != "tunnel"]
    has_ipv6 = any(a.family == IPV6 and a.scope == "global" for i in lan for a in i.addresses)
    if not has_ipv6 or any(i.ipv4 for i in outside):
        return ok()
    repair = nsswitch_full.answer_ipv6(facts.nsswitch.content, machine_of(facts))
    if repair.verdict == "untouched":
        return ok()
    return error(
        "the mDNS module on the hosts line gives IPv4 addresses only, and this LAN has none",
        [*_quoted(facts, repair), *(f"{i.name}: {', '.join(a.ip for a in i.addresses)}" for i in lan)],
        fix=fix_hosts_line(facts, repair),
        hint=repair.hint if facts.names.authselect is None else FOR_IPV6,
    )


def machine_of(facts: Facts) -> nsswitch.Machine:
    """Return what the rule of repair asks about the machine."""
    return nsswitch.Machine(
        glibc=facts.glibc and facts.distribution not in MUSL,
        distribution=facts.distribution,
        link_target=facts.nsswitch.link_target,
        dangling=facts.nsswitch.link_target is not None and not facts.nsswitch.exists,
        writable=facts.nsswitch.writable,
        immutable=facts.nsswitch.immutable,
        mdns_allow=facts.mdns_allow.content,
        modules=facts.nss_modules,
    )


def fix_hosts_line(facts: Facts, repair: nsswitch.Repair, *, first: bool = False) -> Fix | None:
    """Return the fix that writes what a repair wants, None where it wants nothing."""
    if repair.content is None:
        return None
    title = "correct the hosts line of nsswitch.conf"
    return Fix(title, (replace(fixes.write_nsswitch(title, facts.nsswitch, repair.content), first=first),))


def _mistyped(facts: Facts) -> list[str]:
    """Name words on the hosts line that are no module here, and look like one for mDNS."""
    from difflib import get_close_matches  # seldom wanted

    found = []
    for name in nsswitch.modules(nsswitch.decode(facts.nsswitch.content or b"")):
        near = get_close_matches(name, sorted(MDNS), n=1, cutoff=LOOKS_LIKE) if name[0] == "m" else []
        if near and name not in MDNS and not facts.nss_modules.get(name):
            found.append(f"{name} is no module; {near[0]} may be meant")
    return found


def quote_line(facts: Facts, number: int | None) -> list[str]:
    """Return that line of nsswitch.conf with its place; [] where there is none."""
    lines = nsswitch.decode(facts.nsswitch.content or b"").split("\n")
    if not number or number > len(lines):
        return []
    return [f"{facts.nsswitch.path}:{number}: {' '.join(lines[number - 1].split())}"]


def _quoted(facts: Facts, repair: nsswitch.Repair) -> list[str]:
    return quote_line(facts, repair.line)

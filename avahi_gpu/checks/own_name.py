"""3xx: /etc/hosts, and what this machine's own name means to torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from avahi_gpu.checks import fixes
from avahi_gpu.checks.hosts_line import fix_hosts_line, machine_of, quote_line
from avahi_gpu.checks.names import is_alternative
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.checks.surroundings import is_container
from avahi_gpu.files import etc_hosts, etc_hosts_edit, nsswitch_files
from avahi_gpu.files.etc_hosts import HostEntry
from avahi_gpu.model import Change, Facts, Fix, PinnedName

# Debian's own address for the own name, where there is no LAN to take one from (hosts(5))
DEBIANS_ADDRESS = "127.0.1.1"
_LINKS = {"wired": 0, "wireless": 1, "virtual": 2}
SHOWN = 4  # lines of evidence


@check(
    "AG320",
    slug="own-name-known",
    area="host",
    says="this machine can look its own host name up",
    needs=("AG101",),
)
def own_name_known(facts: Facts) -> Outcome:
    """torchrun calls getaddrinfo(gethostname()) and dies where that fails; gloo falls back to loopback."""
    lookup = facts.kernel_name
    if lookup is None:
        return unknown("nobody looked the host name up")
    # asked twice, by getent and by Python: a process that was killed meanwhile is no answer
    addresses = lookup.addresses or (facts.host.own_name.addresses if facts.host.own_name else ())
    if addresses:
        return ok(f"{lookup.name} is {', '.join(addresses)}")
    if is_alternative(facts.hostname.partition(".")[0], facts.daemon.host_name):
        return skip(f"another machine has the name {facts.hostname}, so this one needs another (AG107)")
    if etc_hosts_edit.is_localhost(facts.hostname):
        return info(f"{facts.hostname} does not resolve, and is no name of this machine's own")
    if _own_entries(facts) and (unasked := nsswitch_files.find_unasked(facts.nsswitch.content)):
        repair = nsswitch_files.ask_files(facts.nsswitch.content, machine_of(facts))
        return error(
            f"glibc does not take this machine's own host name from {etc_hosts.PATH}: {unasked.says}",
            [*quote_line(facts, unasked.line), *_in_file(facts)],
            fix=fix_hosts_line(facts, repair),
            hint=repair.hint or "put files first on the hosts line",
        )
    hint = "torchrun ends with `Name or service not known`; a line in /etc/hosts, or the module "
    hint += f"nss-myhostname (package libnss-myhostname), answers for the own name{_caveat(facts)}"
    return error(
        f"this machine cannot look its own host name {facts.hostname} up",
        [f"{lookup.error or 'no answer'} after {lookup.elapsed_s:.1f} s", *_in_file(facts)],
        fix=_own_entry(facts),
        hint=hint,
    )


@check(
    "AG321",
    slug="own-name-not-localhost",
    area="host",
    says="the name that torchrun would tell other nodes is not localhost",
    needs=("AG320",),
)
def own_name_not_localhost(facts: Facts) -> Outcome:
    """torchrun publishes socket.getfqdn() as MASTER_ADDR: localhost leads every node to itself."""
    own = facts.host.own_name
    if own is None:
        return unread(facts, "host.own_name", "what Python makes of the own host name")
    if not etc_hosts_edit.is_localhost(own.fqdn):
        return ok(f"{own.fqdn}")
    if etc_hosts_edit.is_localhost(facts.hostname):
        return error(
            f"this machine has no host name of its own: it is called {facts.hostname}",
            hint=f"give it one, as root: {fixes.NEW_NAME}",
        )
    shared = [e for e in _own_entries(facts) if e.is_loopback and e.address != DEBIANS_ADDRESS]
    return error(
        f"Python takes {own.fqdn} for this machine's full name, and torchrun would tell that to the others",
        _quoted(shared),
        fix=_instead(facts, shared, f"give {facts.hostname} a line of its own in {etc_hosts.PATH}"),
        hint=f"each node that is told localhost connects to itself and waits for ever{_caveat(facts)}",
    )


@check(
    "AG322",
    slug="own-name-here",
    area="host",
    says="the host name means an address that this machine has",
    needs=("AG201", "AG320"),
)
def own_name_here(facts: Facts) -> Outcome:
    """A line that was copied from elsewhere, or is older than the address."""
    own = _own_addresses(facts)
    lookup = facts.kernel_name
    if lookup is None or not own:
        return unknown("the addresses of this machine or of its name are not known")
    foreign = [a for a in lookup.addresses if not _is_own(a, own)]
    if not foreign:
        return ok(f"{lookup.name} is {', '.join(lookup.addresses)}")
    wrong = [e for e in _own_entries(facts) if not _is_own(e.address, own)]
    says = f"the host name {facts.hostname} means {', '.join(foreign)}, which this machine has not"
    if not wrong:
        return warn(
            says,
            [f"{etc_hosts.PATH} does not say so: a name server does"],
            hint="correct the record there, or give the name a line in /etc/hosts",
        )
    fix = _instead(facts, wrong, f"correct what {etc_hosts.PATH} says of {facts.hostname}")
    if len(foreign) < len(lookup.addresses):
        return warn(f"{says}, beside one that it has", _quoted(wrong), fix=fix)
    return error(
        says,
        _quoted(wrong),
        fix=fix,
        hint=f"torch on other nodes, and gloo on this one, would connect there{_caveat(facts)}",
    )


@check(
    "AG323",
    slug="local-names-not-hidden",
    area="host",
    says=f"{etc_hosts.PATH} hides no .local name behind another address",
)
def local_names_not_hidden(facts: Facts) -> Outcome:
    """The module files comes before mDNS on the hosts line, so a line that was once right wins for ever."""
    own = _own_addresses(facts)
    names = {f"{n.partition('.')[0]}.local".lower() for n in (facts.hostname, facts.daemon.host_name) if n}
    entries = etc_hosts.find_pinned(_text(facts))
    if not entries:
        return ok()
    asked = {(p.name, p.address): p for p in facts.host.pinned_names or ()}
    wrong: dict[int, set[str]] = {}
    reasons: list[str] = []
    others: list[HostEntry] = []
    for entry in entries:
        for name in filter(etc_hosts.is_mdns_name, entry.names):
            plain = name.lower().rstrip(".")
            why = (
                _hides_own(entry, own)
                if plain in names
                else _hides_other(entry, asked.get((plain, entry.address)), own)
            )
            if why:
                wrong.setdefault(entry.line, set()).add(name)
                reasons.append(f"{etc_hosts.PATH}:{entry.line}: {entry.address} {name}: {why}")
            else:
                others.append(entry)
    if wrong:
        hidden = sorted({name for found in wrong.values() for name in found})
        return error(
            f"{etc_hosts.PATH} gives {', '.join(hidden[:SHOWN])} an address that is wrong",
            reasons[:SHOWN],
            fix=_without(facts, wrong, f"take {', '.join(hidden[:SHOWN])} out of {etc_hosts.PATH}"),
            hint=f"Avahi answers for these names where the file does not{_caveat(facts)}",
        )
    return info(
        f"{etc_hosts.PATH} has fixed addresses for names in .local: right until an address changes",
        _quoted(others),
    )


@check(
    "AG324",
    slug="hosts-file-readable",
    area="host",
    says=f"glibc takes every line of {etc_hosts.PATH}",
    needs=("AG100",),
)
def hosts_file_readable(facts: Facts) -> Outcome:
    """glibc skips what does not begin with an address, in silence (hosts(5))."""
    state = facts.etc_hosts
    if state.content is None and state.exists:
        return unknown(f"{state.path} could not be read ({state.error})")
    skipped = etc_hosts.find_malformed(_text(facts))
    if not skipped:
        return ok()
    lines = [f"{etc_hosts.PATH}:{n}: {words[:80]}" for n, words in skipped[:SHOWN]]
    count = "a line" if len(skipped) == 1 else f"{len(skipped)} lines"
    return info(
        f"glibc skips {count} of {etc_hosts.PATH}",
        lines,
        hint="a line is an address, then names; an address has no zone, no port and no leading zeros",
    )


def lan_address(facts: Facts) -> str | None:
    """Return the address that others know this machine by, IPv4 first; None without a LAN."""
    best = sorted(usable_interfaces(facts), key=lambda i: (_LINKS.get(i.link, 3), i.ipv4 is None, i.index))
    for interface in best:
        addresses = [a for a in interface.addresses if a.scope == "global"]
        for address in sorted(addresses, key=lambda a: a.family):
            return address.ip
    return None


def _hides_own(entry: HostEntry, own: Collection[str]) -> str:
    if entry.is_loopback:
        return "loopback, which no peer can reach"
    if own and not _is_own(entry.address, own):
        return "no address of this machine"
    return ""


def _hides_other(entry: HostEntry, asked: PinnedName | None, own: Collection[str]) -> str:
    """Say why a line for another machine's name is wrong, '' where it is right or nobody knows."""
    if entry.is_loopback or entry.address in own:
        return "the address is this machine's own"
    if asked is None or not asked.told or entry.address in asked.told:
        return ""
    if asked.holder and asked.holder != asked.name:
        return f"the address is {asked.holder}'s; Avahi says {', '.join(asked.told)}"
    if asked.answers is False:
        return f"nobody is there; Avahi says {', '.join(asked.told)}"
    return ""


def _own_entry(facts: Facts) -> Fix | None:
    """Return the fix that gives the own name a line; None where it has one and is still not found."""
    if _own_entries(facts) or (facts.etc_hosts.content is None and facts.etc_hosts.exists):
        return None
    address = lan_address(facts) or DEBIANS_ADDRESS
    content = etc_hosts_edit.add_entry(facts.etc_hosts.content or b"", address, _own_names(facts))
    return _change(facts, content, f"give {facts.hostname} a line in {etc_hosts.PATH}")


def _instead(facts: Facts, entries: Sequence[HostEntry], title: str) -> Fix | None:
    """Return the fix that takes the own name from these lines, and gives it one where none is left."""
    if not entries or facts.etc_hosts.content is None:
        return None
    names = _own_names(facts)
    # a full name that the line gives belongs to the own name and moves with it
    full = [n for e in entries for n in e.names if n.lower().startswith(f"{names[-1].lower()}.")]
    moved = list(dict.fromkeys([*full, *names]))
    content = etc_hosts_edit.remove_names(facts.etc_hosts.content, moved, [e.line for e in entries])
    if not etc_hosts.find(etc_hosts.parse(_decode(content)), names[0]):
        address = lan_address(facts) or DEBIANS_ADDRESS
        kept = [n for n in moved if not (address == DEBIANS_ADDRESS and etc_hosts.is_mdns_name(n))]
        content = etc_hosts_edit.add_entry(content, address, kept)
    return _change(facts, content, title)


def _without(facts: Facts, wrong: dict[int, set[str]], title: str) -> Fix | None:
    content = facts.etc_hosts.content
    if content is None:
        return None
    for line in sorted(wrong, reverse=True):  # from below: a line that goes moves none that is still named
        content = etc_hosts_edit.remove_names(content, wrong[line], [line])
    return _change(facts, content, title)


def _change(facts: Facts, content: bytes, title: str) -> Fix | None:
    state = facts.etc_hosts
    if content == state.content or not state.writable:
        return None
    mode = 0o644 if state.mode is None else state.mode
    return Fix(title, (Change("file", title, etc_hosts.PATH, content, mode, before=state.content),))


def _caveat(facts: Facts) -> str:
    """Say who else writes the file, or why nobody can; '' where it is an ordinary one."""
    if b"manage_etc_hosts" in (facts.etc_hosts.content or b""):
        return (
            "; cloud-init writes the file anew at boot: set manage_etc_hosts: false in /etc/cloud/cloud.cfg"
        )
    if facts.distribution == "nixos":
        return "; on NixOS the file comes from networking.hosts in configuration.nix"
    if is_container(facts):
        return "; in a container the file is the engine's: docker run --add-host"
    if not facts.etc_hosts.writable:
        return f"; {etc_hosts.PATH} cannot be written here: it is immutable (lsattr) or mounted read-only"
    return ""


def _own_names(facts: Facts) -> list[str]:
    """Return the host name, and its first label where it is a full one."""
    return list(dict.fromkeys([facts.hostname, facts.hostname.partition(".")[0]]))


def _own_entries(facts: Facts) -> list[HostEntry]:
    return list(etc_hosts.find(etc_hosts.parse(_text(facts)), facts.hostname))


def _own_addresses(facts: Facts) -> set[str]:
    return {a.ip.partition("%")[0] for i in facts.interfaces for a in i.addresses}


def _is_own(address: str, own: Collection[str]) -> bool:
    return etc_hosts.is_loopback(address) or address.partition("%")[0] in own


def _in_file(facts: Facts) -> list[str]:
    entries = _own_entries(facts)
    return _quoted(entries) or [f"{etc_hosts.PATH} does not name it"]


def _quoted(entries: Sequence[HostEntry]) -> list[str]:
    shown = dict.fromkeys(f"{etc_hosts.PATH}:{e.line}: {e.address} {' '.join(e.names)}" for e in entries)
    return list(shown)[:SHOWN]


def _text(facts: Facts) -> str:
    return _decode(facts.etc_hosts.content or b"")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")

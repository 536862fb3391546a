"""1xx: names, from nsswitch.conf to what glibc answers."""

from __future__ import annotations

import re

from avahi_gpu.checks import fixes
from avahi_gpu.checks.name_servers import dns_wait_s
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.files import etc_hosts, resolv_conf
from avahi_gpu.model import AVAHI_SOCKET, Facts, Fix

# an mDNS answer takes milliseconds from the cache and a quarter of a second from the network; what takes
# longer waits for a DNS server: nss-mdns asks it for the SOA of "local" on every lookup
SLOW_LOOKUP_S = 1.0
# Avahi's alternative for a name that is taken: a trailing number is counted up, or "-2" appended
_NUMBERED = re.compile(r"(.*?)-?(\d*)")


@check(
    "AG103",
    slug="hosts-loopback",
    area="names",
    says="the bare host name means a LAN address",
    needs=("AG320", "AG321", "AG322"),
)
def hosts_loopback(facts: Facts) -> Outcome:
    """Debian writes ``127.0.1.1 hostname``: programs that look their own name up then offer loopback."""
    lookup = facts.kernel_name
    if lookup is None:
        return unknown("nobody looked the host name up")
    if not lookup.addresses:
        return info(f"the bare host name {facts.hostname} does not resolve ({lookup.error})")
    if any(etc_hosts.is_loopback(a) for a in lookup.addresses):
        return info(
            f"the bare host name {facts.hostname} means {', '.join(lookup.addresses)}: no peer reaches that",
            _lines_with(facts.etc_hosts.content, facts.hostname),
            hint="avahi-gpu launch passes addresses and is not hurt; a hand-written torchrun may be",
        )
    return ok(f"{lookup.name} is {', '.join(lookup.addresses)}")


@check(
    "AG105",
    slug="own-name-resolves",
    area="names",
    says="glibc resolves this machine's .local name to a LAN address",
    needs=("AG102", "AG104", "AG203", "AG304", "AG305", "AG309", "AG323"),
    follows=("AG109", "AG110", "AG114", "AG116", "AG120", "AG313"),
)
def own_name_resolves(facts: Facts) -> Outcome:
    """The way of ssh, ping and every program that knows nothing of Avahi."""
    lookup = facts.own_name
    if lookup is None:
        return unknown("nobody looked this machine's .local name up")
    if not lookup.addresses and lookup.error == "timeout" and dns_wait_s(facts):
        return skip("the look-up did not end in time: see AG108 (dns-answers)")
    if not lookup.addresses:
        fix, hint = _mend_own_name(facts)
        return error(
            f"glibc does not resolve {lookup.name}",
            [
                f"{lookup.error or 'no answer'} after {lookup.elapsed_s:.1f} s",
                *(f"{a.module} by itself: {a.status or a.error}" for a in facts.names.own_by_module or ()),
                *_nameservers_say(facts),
            ],
            fix=fix,
            hint=hint,
        )
    if all(etc_hosts.is_loopback(a) for a in lookup.addresses):
        return error(
            f"{lookup.name} means {', '.join(lookup.addresses)}, which no peer can reach",
            _lines_with(facts.etc_hosts.content, lookup.name),
            hint="take the .local name out of /etc/hosts: Avahi answers for it",
        )
    own = {a.ip.partition("%")[0] for i in facts.interfaces if i.link != "loopback" for a in i.addresses}
    foreign = [a for a in lookup.addresses if a.partition("%")[0] not in own and not etc_hosts.is_loopback(a)]
    if own and foreign:
        return error(
            f"{lookup.name} means {', '.join(foreign)}, which is no address of this machine",
            _lines_with(facts.etc_hosts.content, lookup.name),
            hint="look for the name in /etc/hosts; otherwise another machine has the same name",
        )
    return ok(f"{lookup.name} is {', '.join(lookup.addresses)}")


@check(
    "AG106",
    slug="lookups-fast",
    area="names",
    says="looking a .local name up is fast",
    needs=("AG105",),
    follows=("AG108",),
)
def lookups_fast(facts: Facts) -> Outcome:
    """nss-mdns asks DNS for the SOA of ``local`` first: a dead name server costs seconds for every name."""
    lookup = facts.own_name
    if lookup is None:
        return unknown("nobody looked this machine's .local name up")
    took = f"{lookup.name} took {lookup.elapsed_s:.2f} s"
    if lookup.elapsed_s > SLOW_LOOKUP_S and dns_wait_s(facts):
        return skip(f"{took}: see AG108 (dns-answers)")
    if lookup.elapsed_s > SLOW_LOOKUP_S:
        return warn(
            f"looking {lookup.name} up took {lookup.elapsed_s:.1f} s",
            [took, *_nameservers_say(facts)],
            hint=_slow_hint(facts),
        )
    return ok(took)


@check(
    "AG107",
    slug="published-name",
    area="names",
    says="the name that Avahi publishes is the host name",
    needs=("AG304",),
)
def published_name(facts: Facts) -> Outcome:
    """Where the name is taken Avahi counts up: a second gpu-node-1 poses as gpu-node-2."""
    published = facts.daemon.host_name
    kernel = facts.hostname.partition(".")[0]
    if not published:
        return unknown("avahi-daemon did not tell which name it publishes")
    if published.lower() == kernel.lower():
        return ok(f"{published}.local")
    evidence = [f"host name: {kernel}", f"published: {published}.local"]
    rival = facts.names.rival
    if rival:
        evidence.append(f"{kernel}.local is {rival}")
    if is_alternative(kernel, published):
        if rival == "":
            return error(
                f"Avahi publishes this machine as {published}, though nobody else has the name {kernel}",
                evidence,
                fix=fixes.restart_avahi(facts),
                hint="the conflict has passed, or Avahi took its own words for another machine's: a restart "
                "heals it; where it comes back, look for a second mDNS program or a reflector",
            )
        if rival and rival in {a.ip for i in facts.interfaces for a in i.addresses}:
            return error(
                f"another program on this machine answers for {kernel}.local, so Avahi publishes {published}",
                evidence,
                hint="stop the other mDNS program, a container with its own Avahi or systemd-resolved say, "
                "then restart avahi-daemon",
            )
        return error(
            f"another machine on the LAN has the name {kernel}, so this one is published as {published}",
            evidence,
            hint=f"give one of the two another name, as root: {fixes.NEW_NAME}",
        )
    return warn(
        f"Avahi publishes the name {published}, but the host name is {kernel}",
        evidence,
        hint="restart avahi-daemon after a new host name, or take host-name= out of avahi-daemon.conf",
    )


def _mend_own_name(facts: Facts) -> tuple[Fix | None, str]:
    """Return what helps where the own name is not found: by what the mDNS module alone has said."""
    if facts.own_name is not None and facts.own_name.elapsed_s > SLOW_LOOKUP_S:
        return None, _slow_hint(facts)
    said = {a.status for a in facts.names.own_by_module or () if a.loaded}
    if said == {"unavail"} and facts.daemon.on_bus:
        fix = fixes.restart_avahi(facts) if facts.daemon.installed else None
        return fix, f"glibc's module does not reach Avahi at {AVAHI_SOCKET}: a restart makes it anew"
    if "success" in said and "nscd" in (facts.names.caches or ()):
        return None, "the module finds it, so nscd gives an old answer: run as root: nscd --invalidate hosts"
    if "success" in said:
        return None, "the module finds it, so something before it on the hosts line ends the search"
    return None, "a restart of avahi-daemon may help; avahi-gpu doctor NAME shows the way of a name"


def nameservers(content: bytes | None) -> tuple[str, ...]:
    """Return the name servers that a resolv.conf names; without any glibc asks 127.0.0.1, which is nobody."""
    text = (content or b"").decode("utf-8", "replace")
    return resolv_conf.parse(text).nameservers if "nameserver" in text else ()


def _nameservers_say(facts: Facts) -> list[str]:
    servers = nameservers(facts.resolv_conf.content)
    return [f"/etc/resolv.conf: nameserver {', '.join(servers)}"] if servers else []


def _slow_hint(facts: Facts) -> str:
    servers = nameservers(facts.resolv_conf.content)
    if not servers:
        return "something before mDNS on the hosts line of nsswitch.conf waits for an answer"
    return (
        f"the DNS server {servers[0]} in /etc/resolv.conf probably does not answer: "
        "correct or remove it; every lookup of a .local name asks it first"
    )


def is_alternative(kernel: str, published: str) -> bool:
    """Tell whether Avahi would have made ``published`` of ``kernel`` because that was taken."""
    stem, number = _split_number(kernel)
    other, higher = _split_number(published)
    return stem.lower() == other.lower() and (higher or 0) > (number or 1)


def _split_number(name: str) -> tuple[str, int | None]:
    found = _NUMBERED.fullmatch(name)
    if found is None or not found[2]:
        return name, None
    return found[1], int(found[2])


def _lines_with(content: bytes | None, name: str) -> list[str]:
    """Return the lines of /etc/hosts that name ``name``, at most three."""
    entries = etc_hosts.find(etc_hosts.parse((content or b"").decode("utf-8", "replace")), name)
    return [f"{etc_hosts.PATH}:{e.line}: {e.address} {' '.join(e.names)}" for e in entries[:3]]

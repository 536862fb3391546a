"""A real avahi-daemon judges our reading of service files: one folder full of them, seen from a peer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.service_file import parse
from tests.lab.cluster import Cluster

PUBLISHED_WITHIN_S = 10.0  # the probes take one second; the rest is for a busy machine

HEAD = "<service-group><name>{name}</name><service>"
TAIL = "</service></service-group>"
TYPE = "<type>_xy._tcp</type>"

INSIDE = [
    TYPE + "<port>29500</port>",
    TYPE + "<port> 29500 </port>",
    TYPE + "<port>0x733C</port>",
    TYPE + "<port>$PORT</port>",
    TYPE + "<port>4294996796</port>",
    TYPE + "<port>65536</port>",
    TYPE + "<port>-1</port>",
    TYPE + "<port>1</port><port>2</port>",
    "<port>7</port>" + TYPE,
    TYPE + "<ports>7</ports>",
    TYPE + "<txt-record>a=b=c</txt-record>",
    TYPE + "<txt-record>a&amp;b=&lt;c></txt-record>",
    TYPE + "<txt-record>=a</txt-record>",
    TYPE + "<txt-record></txt-record>",
    TYPE + "<txt-record> a = %h </txt-record>",
    TYPE + f"<txt-record>a={'x' * 253}</txt-record>",
    TYPE + f"<txt-record>a={'x' * 254}</txt-record>",
    TYPE + '<txt-record value-format="binary-hex">a=41fF</txt-record>',
    TYPE + '<txt-record value-format="binary-hex">a=4</txt-record>',
    TYPE + '<txt-record value-format="binary-hex">4142</txt-record>',
    TYPE + '<txt-record value-format="binary-base64">a=QUI=</txt-record>',
    TYPE + '<txt-record value-format="binary-base64">a=QUI</txt-record>',
    TYPE + '<txt-record value-format="">a=b</txt-record>',
    "<type>_xy._tcp.</type>",
    "<type>_XY._TCP</type>",
    "<type>_x._tcp</type>",
    "<type> _xy._tcp</type>",
    "<type>_xy._tcp.local</type>",
    "<type>_xy._sctp</type>",
    r"<type>_x\.y._tcp</type>",
    r"<type>_xy\032._tcp</type>",
    TYPE + "<host-name>other</host-name>",
    TYPE + "<host-name>10.0.0.1</host-name>",
    TYPE + "<domain-name>local</domain-name>",
    TYPE + "<domain-name>a..b</domain-name>",
    TYPE + "</service><service>" + TYPE,
    TYPE + "</service><service>" + TYPE + "<port>1</port>",
    "<type>_xy._tcp</type></service><service><type>_xz._udp</type>",
    "",
]


def read(name: str, content: str) -> dict[str, tuple[int, frozenset[str]]]:
    """Return what we think is published: type -> port and TXT items as avahi-browse writes them."""
    try:
        group = parse(content.encode(), name)
    except MalformedInput:
        return {}
    return {
        service.type.rstrip(".").lower(): (service.port, frozenset(map(show, service.txt)))
        for service in group.services
    }


def show(item: bytes) -> str:
    """Write an item as avahi-browse -p does: what is not printable in three digits."""
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\{byte:03d}" for byte in item)


def browse(lab: Cluster, kind: str) -> dict[str, tuple[int, frozenset[str]]]:
    """Return what the second host sees of the first's services: instance name -> port and TXT items."""
    done = lab.hosts[1].run(["avahi-browse", "-prtk", kind], check=True, timeout=30)
    found = {}
    for line in done.stdout.splitlines():
        fields = line.split(";", 9)
        if fields[0] == "=" and fields[2] == "IPv4":
            found[fields[3]] = (int(fields[8]), frozenset(re.findall(r'"([^"]*)"', fields[9])))
    return found


def test_avahi_publishes_what_we_say(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(2)
    files = {f"c{n:02d}": HEAD.format(name=f"c{n:02d}") + inside + TAIL for n, inside in enumerate(INSIDE)}
    said = {name: read(name, content) for name, content in files.items()}
    kinds = {kind for services in said.values() for kind in services} | {"_xy._tcp"}

    for name, content in files.items():
        lab.hosts[0].write(f"/etc/avahi/services/{name}.service", content)
    lab.hosts[0].restart_avahi()

    wanted = {kind: {n: s[kind] for n, s in said.items() if kind in s} for kind in kinds}
    deadline = time.monotonic() + PUBLISHED_WITHIN_S
    seen = {kind: browse(lab, kind) for kind in kinds}
    while seen != wanted and time.monotonic() < deadline:
        time.sleep(0.3)
        seen = {kind: browse(lab, kind) for kind in kinds}
    differing = {
        name: (files[name], seen[kind].get(name, "not seen"), wanted[kind].get(name, "refused"))
        for kind in kinds
        for name in files
        if seen[kind].get(name) != wanted[kind].get(name)
    }
    assert differing == {}  # the file, what was seen, what we say
    assert any(not services for services in said.values())

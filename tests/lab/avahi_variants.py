"""Made-up avahi-daemon.conf and service files, from a seed: what people write, and what nobody should."""

from __future__ import annotations

import random
from collections.abc import Iterator

from avahi_gpu.files.avahi_conf import KEYS

BASE = (
    "# See avahi-daemon.conf(5)\n\n[server]\n#host-name=foo\nuse-ipv4=yes\nuse-ipv6=yes\n"
    "#allow-interfaces=eth0\n"
    "ratelimit-interval-usec=1000000\nratelimit-burst=1000\n\n[wide-area]\nenable-wide-area=yes\n\n"
    "[publish]\npublish-hinfo=no\npublish-workstation=no\n\n[reflector]\n#enable-reflector=no\n\n[rlimits]\n"
)
# other hosts of the lab share the daemon's user, and limits of memory depend on the build
UNTRIED = ("rlimit-nproc", "rlimit-as", "rlimit-data", "rlimit-stack", "rlimit-nofile", "rlimit-fsize")
PLACES = [(section, key) for section, keys in KEYS.items() for key in keys if key not in UNTRIED]
NUMBERS = (
    *(
        "0",
        "1",
        "10",
        "1000",
        "0x10",
        "010",
        "08",
        "-0",
        "-1",
        "+5",
        " 5",
        "5 ",
        "5k",
        "",
        "1e3",
        "4294967295",
    ),
    *("4294967296", "99999999999999999999", "\t7", "1000 # many"),
)
WORDS = ("yes", "no", "Yes", "true", "on", "1", " yes", "", "yes # remark", '"yes"', "warn", "No")
NAMES = ("box", "a.b", "", "-x", "x" * 63, "x" * 64, "häuschen", "a b", "local", "node.local", "10.0.0.1")
DOMAINS = ("local", "LOCAL", "local.", "lan", "a..b", "", ".", "0pointer.de, zeroconf.org", "a,,b", "x" * 64)
INTERFACES = ("eth0", "ETH0", "eth0,eth1", "eth1", "", "eth0 ", " eth0", "eth0 # lan", "eth*", "lo", "eth0:0")
NOISE = (
    *(
        "; remark",
        "// remark",
        "%remark",
        " # remark",
        "words",
        "=",
        "=yes",
        "[",
        "[]",
        "[server",
        "[ server ]",
    ),
    *("[Server]", "[SERVER] x", "[avahi]", "use-ipv4", "use-ipv4 =yes", "use-ipv4 = yes", "Use-IPv4=yes"),
    *(
        "use_ipv4=yes",
        "#" + "x" * 260,
        "#" + "=" * 260,
        "\ufeff",
        "\t",
        "\r",
        "host-name=" + "a." * 150,
        "\x0b",
    ),
)


def confs(seed: int, count: int) -> Iterator[str]:
    """Yield ``count`` files, each the usual one with one to three changes."""
    chance = random.Random(seed)
    for _ in range(count):
        lines = BASE.split("\n")
        for _ in range(chance.choice((1, 1, 2, 3))):
            _change(lines, chance)
        yield "\n".join(lines)


def settings(seed: int, count: int) -> Iterator[str]:
    """Yield ``count`` files that are well-formed, with one to three settings in the right place."""
    chance = random.Random(seed)
    for _ in range(count):
        lines = BASE.split("\n")
        for _ in range(chance.choice((1, 2, 3))):
            section, key = chance.choice(PLACES)
            lines.insert(lines.index(f"[{section}]") + 1, f"{key}={_value(key, chance)}")
        yield "\n".join(lines)


def _change(lines: list[str], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    kind = chance.random()
    section, key = chance.choice(PLACES)
    if kind < 0.5:
        lines.insert(
            lines.index(f"[{section}]") + 1 if f"[{section}]" in lines else at, f"{key}={_value(key, chance)}"
        )
    elif kind < 0.7:
        lines.insert(at, f"{key}={_value(key, chance)}")
    elif kind < 0.9:
        lines.insert(at, chance.choice(NOISE))
    elif kind < 0.95:
        del lines[at]
    else:
        lines[at] += chance.choice((" ", "\r", "#", " # x", "=", "\t"))


def _value(key: str, chance: random.Random) -> str:
    if key in ("allow-interfaces", "deny-interfaces"):
        return chance.choice(INTERFACES)
    if key == "host-name":
        return chance.choice(NAMES)
    if key in ("domain-name", "browse-domains"):
        return chance.choice(DOMAINS)
    if key.endswith(("max", "usec", "burst")) or key.startswith("rlimit"):
        return chance.choice(NUMBERS)
    if key in ("publish-dns-servers", "reflect-filters"):
        return chance.choice(("192.168.50.1", "a, b", "", "_airplay._tcp.local", "::1"))
    return chance.choice(WORDS)


# --- service files ---------------------------------------------------------------------------------------

HEADS = (
    '<?xml version="1.0" standalone=\'no\'?>\n<!DOCTYPE service-group SYSTEM "avahi-service.dtd">\n',
    *(
        '<?xml version="1.0"?>',
        "",
        "<!-- remark -->",
        '<?xml version="1.0" encoding="ISO-8859-1"?>',
        "\ufeff",
    ),
    *(' <?xml version="1.0"?>', '<?xml version="1.1"?>', '<?xml version="1.0" encoding="latin1"?>', "\n\n"),
    "<!DOCTYPE service-group [<!ENTITY e 'x'>]>",
)
NAME_TAGS = (
    *("<name>{name}</name>", '<name replace-wildcards="yes">{name}</name>', "<name>{name}</name><name/>"),
    *('<name replace-wildcards="true">{name}</name>', "<Name>{name}</Name>", "<name> {name}</name>", ""),
    *("<name><![CDATA[{name}]]></name>", '<name replace="yes">{name}</name>', "<name>{name}&amp;</name>"),
    *("<name>{name}<b/></name>", "<name>{name}&e;</name>", "<name>{name}ä</name>", "<name>{name}\\x</name>"),
)
TYPES = (
    *("_t{n}._tcp", "_t{n}._udp", "_t{n}._TCP", "_t{n}._tcp.", "t{n}._tcp", "_t{n}.tcp", "_t{n}._tcp.local"),
    *(
        " _t{n}._tcp",
        "_t{n}._tcp\n",
        "",
        "_t{n}-x._tcp",
        "_t{n}_x._tcp",
        "_-t{n}._tcp",
        "_t{n}" + "y" * 60 + "._tcp",
    ),
    *("_sub._t{n}._tcp", "_a._sub._t{n}._tcp", "_t{n}._sctp", "_._tcp"),
)
PORTS = (
    "29500",
    " 80 ",
    "0",
    "-1",
    "65535",
    "65536",
    "0x50",
    "",
    "8e3",
    "$PORT",
    "80.5",
    "+80",
    "99999999999",
    "abc",
)
INSIDE = (
    *("<txt-record>a=b</txt-record>", "<txt-record>a</txt-record>", "<txt-record>=b</txt-record>"),
    *("<txt-record></txt-record>", "<txt-record/>", f"<txt-record>a={'x' * 253}</txt-record>"),
    *(f"<txt-record>a={'x' * 254}</txt-record>", "<txt-record>a=b & c</txt-record>", "<txt>a=b</txt>"),
    *('<txt-record value-format="text">a=b</txt-record>', '<txt-record value-format="hex">a=b</txt-record>'),
    *('<txt-record value-format="binary-hex">a=4142</txt-record>', "<txt-record>ä=ö</txt-record>"),
    *('<txt-record value-format="binary-hex">a=414</txt-record>', "<!-- x -->", "<!-- -- -->", "text"),
    *('<txt-record value-format="binary-base64">a=QUI=</txt-record>', "<subtype>_x._sub._t._tcp</subtype>"),
    *('<txt-record value-format="binary-base64">a=Q</txt-record>', "<host-name>x.local</host-name>"),
    *("<host-name>x</host-name>", "<host-name>1.2.3.4</host-name>", "<domain-name>local</domain-name>"),
    *(
        "<protocol>ipv4</protocol>",
        "<port>1</port>",
        "<PORT>1</PORT>",
        "<name>x</name>",
        "&amp;",
        "&#x20;",
        "&x;",
    ),
)
OPENINGS = (
    *("<service>", '<service protocol="ipv4">', '<service protocol="any">', '<service protocol="IPv4">'),
    *('<service protocol="">', '<service port="1">', "<Service>", "<service >"),
)
TAILS = (
    "</service></service-group>",
    "</service></service-group>\n",
    "</service>",
    "</service></service-group>x",
)


def service_files(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` files as (instance name, content); most are sound but for one thing."""
    chance = random.Random(seed)

    def pick(choices: tuple[str, ...], odds: float) -> str:
        return chance.choice(choices) if chance.random() < odds else choices[0]

    for n in range(count):
        name = f"v{n}v"
        parts = [
            pick(HEADS, 0.15),
            pick(("<service-group>", "<service-group x='1'>", "<group>"), 0.05),
            pick(NAME_TAGS, 0.2).format(name=name),
            pick(OPENINGS, 0.2),
            f"<type>{pick(TYPES, 0.25).format(n=n)}</type>",
            f"<port>{pick(PORTS, 0.3)}</port>",
            *(chance.choice(INSIDE) for _ in range(chance.choice((0, 0, 1, 1, 2)))),
            pick(TAILS, 0.1),
        ]
        if chance.random() < 0.1:
            chance.shuffle(parts)
        text = "".join(parts)
        yield name, text.encode("latin-1" if "ISO-8859-1" in text else "utf-8", "replace")

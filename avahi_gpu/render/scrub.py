"""Take out of a text what tells who sits there and where: for a report that goes to strangers. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_SHORTEST_NAME = 3  # a user named "a" would take half of the report with him
# accounts that tell nobody, and words of ours or of the files that we quote
_NOBODY = frozenset(
    (
        *("root", "user", "users", "admin", "nobody", "test", "guest", "default", "local", "host", "node"),
        *("service", "daemon", "files", "avahi", "gpu", "torch", "nvidia", "docker", "debian", "ubuntu"),
        *("fedora", "arch", "alpine", "centos", "rocky", "vagrant", "cloud", "ec2-user", "pi"),
    )
)

_MAC = re.compile(r"(?<![0-9A-Fa-f:.-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5,19}(?![0-9A-Fa-f])")
_DOTTED_MAC = re.compile(r"\b[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\b")
# systemd.net-naming-scheme(7): the name of an interface may be its address
_NAMED_BY_MAC = re.compile(r"\b(en|wl|ww|ib|sl)x[0-9a-f]{12}\b")
_UUID = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_LONG_HEX = re.compile(r"\b[0-9A-Fa-f]{32,}\b")  # machine-id(5), keys, digests
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL)
_SSH_KEY = re.compile(
    r"\b(?:ssh-[a-z0-9-]+|ecdsa-[a-z0-9-]+|sk-[a-z0-9@.-]+) +AAAA[0-9A-Za-z+/=]+(?: +\S+@\S+)?"
)
_FINGERPRINT = re.compile(r"\bSHA256:[0-9A-Za-z+/=]{20,}")
_SECRET = re.compile(r"(?i)\b(\w*(?:token|secret|password|passwd|api_?key)\w*)(\s*=\s*)[^\s,;]+")
_HOME = re.compile(r"([/\\](?:home|Users|media|run/media)[/\\]+)[^/\\\s:'\"]+")
_ROOT_HOME = re.compile(r"(?<![\w./])/root(?=[/\s:'\"]|$)")
_MAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]+@(?=[\w-]+\.[\w.-]*\w)(?![\w@:.-]*\.(?:service|socket|timer|mount|slice|target))"
)
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:)[0-9A-Fa-f:]+(?:\.\d{1,3}){0,3}(?!\w)")
_REVERSED = re.compile(r"(?i)(?:\b[0-9a-f]\.){16,32}(?=ip6\.arpa)")
_INTERFACE_ID = 8  # octets of an IPv6 address that tell the machine


def scrub(text: str, users: Iterable[str] = ()) -> str:
    """Return ``text`` without names of users, home folders, hardware and public addresses, ids and keys.

    Private, link-local and documentation addresses stay, and host names: without them nobody could follow
    it. A public address becomes ``PUBLIC-1``, and the same one the same word again.
    """
    text = _SSH_KEY.sub("SSH-KEY", _PEM.sub("KEY", text))
    text = _FINGERPRINT.sub("FINGERPRINT", _SECRET.sub(r"\1\2SECRET", text))
    text = _NAMED_BY_MAC.sub(r"\1xMAC", _DOTTED_MAC.sub("MAC", _MAC.sub("MAC", text)))
    text = _LONG_HEX.sub("ID", _UUID.sub("UUID", text))
    text = _ROOT_HOME.sub("/home/USER", _HOME.sub(r"\1USER", text))
    text = _MAIL.sub("USER@", text)
    text = _hide_addresses(text)
    names = {u.lower() for u in users if len(u) >= _SHORTEST_NAME} - _NOBODY
    for name in sorted(names, key=lambda n: (-len(n), n)):
        text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", "USER", text, flags=re.IGNORECASE)
    return text


def _hide_addresses(text: str) -> str:
    known: dict[str, str] = {}

    def number(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
        return known.setdefault(address.exploded, f"PUBLIC-{len(known) + 1}")

    def hide4(found: re.Match[str]) -> str:
        # leading zeros are no reason to show it
        address = _address(".".join(part.lstrip("0") or "0" for part in found[0].split(".")))
        return number(address) if address is not None and _is_public(address) else found[0]

    def hide6(found: re.Match[str]) -> str:
        word = found[0].rstrip(":") if not found[0].endswith("::") else found[0]
        address = _address(word)
        if not isinstance(address, ipaddress.IPv6Address):
            return found[0]
        rest = found[0][len(word) :]
        if _is_public(address):
            return number(address) + rest
        if address.packed[11:13] == b"\xff\xfe":  # made of the hardware address (RFC 4291 appendix A)
            prefix = ipaddress.IPv6Address(address.packed[:_INTERFACE_ID] + bytes(_INTERFACE_ID))
            return f"{prefix}MAC{rest}"
        return found[0]

    text = _REVERSED.sub("PUBLIC.", text)
    return _IPV4.sub(hide4, _IPV6.sub(hide6, text))


def _address(word: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(word)
    except ValueError:
        return None


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast

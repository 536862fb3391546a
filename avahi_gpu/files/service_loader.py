"""Avahi's static service files, read as avahi-daemon 0.8 reads them.

Source: avahi-daemon/static-services.c (what the file may hold), avahi-core/entry.c and avahi-common/domain.c
(what is refused when it is published), avahi.service(5). The parser is expat, as it is there.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from xml.parsers import expat

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.domain_name import is_host_name, is_service_type, labels_of

SIZE_LIMIT = 256 * 1024  # bytes; a file of ours has about one thousand
NAME_LIMIT = 63  # bytes of a DNS label
TXT_ITEM_LIMIT = 255  # bytes of one item of a TXT record, RFC 6763 section 6.1
TXT_TOTAL_WISE = 1000  # bytes of a whole TXT; above about 1400 Avahi publishes what no peer can resolve

_READ_SIZE = 10 * 1024  # what avahi-daemon gives expat at a time
_ENCODINGS = ("utf-8", "utf-16", "iso-8859-1", "us-ascii")  # expat's own; Avahi adds none
_IN_SERVICE = ("type", "subtype", "domain-name", "host-name", "port", "txt-record")
_ATOI = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)", re.ASCII)


@dataclass(frozen=True)
class StaticService:
    """One ``<service>``, starting on ``line``. ``txt`` is in the file's order; Avahi reverses it."""

    type: str
    port: int
    protocol: str = "any"  # ipv4, ipv6 or any
    txt: tuple[bytes, ...] = ()
    subtypes: tuple[str, ...] = ()
    domain_name: str = ""  # '' means local
    host_name: str = ""  # '' means this host
    line: int = 1

    @property
    def txt_bytes(self) -> int:
        """Bytes of the TXT record on the wire: each item has a byte of length before it."""
        return sum(len(item) + 1 for item in self.txt)


@dataclass(frozen=True)
class ServiceGroup:
    """A whole file."""

    name: str
    replace_wildcards: bool
    services: tuple[StaticService, ...]

    def published_name(self, host_name: str) -> str:
        """Return the name as published on the host ``host_name`` (its first label), short of a collision."""
        return self.name.replace("%h", host_name) if self.replace_wildcards else self.name


def is_loaded(file_name: str) -> bool:
    """Whether avahi-daemon looks at a file of that name in its folder of services."""
    return file_name.endswith(".service") and not file_name.startswith(".")


def parse(content: bytes, where: str = "torch.service", host_name: str = "h") -> ServiceGroup:
    """Return what a file publishes on the host ``host_name``.

    Raises MalformedInput (``where:line``) for what avahi-daemon refuses: when it loads the file, or when it
    publishes it.
    """
    if len(content) > SIZE_LIMIT:
        raise MalformedInput(f"{where}:1", f"a service file has more than {SIZE_LIMIT // 1024} KiB")
    loader = _Loader(where)
    parser = expat.ParserCreate()
    parser.ordered_attributes = True
    parser.buffer_text = False  # the rule for “=” below sees the pieces that Avahi sees
    parser.XmlDeclHandler = loader.declare
    parser.StartElementHandler = loader.start
    parser.EndElementHandler = loader.end
    parser.CharacterDataHandler = loader.add_text
    loader.parser = parser
    try:
        for start in range(0, len(content), _READ_SIZE):
            parser.Parse(content[start : start + _READ_SIZE], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        hint = (
            "nothing may stand before <?xml" if "start of entity" in reason else "write it as well-formed XML"
        )
        raise MalformedInput(f"{where}:{error.lineno}", f"not XML: {reason}", hint) from None
    group = ServiceGroup(loader.name, loader.replace_wildcards, tuple(loader.services))
    _check_published(group, where, host_name)
    return group


# of text: entities in a file of a kilobyte can stand for gigabytes
MAX_CHARACTERS = 64 * 1024


class _Loader:
    """The handlers of static-services.c; each refusal is a MalformedInput that ends the parsing."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.parser: expat.XMLParserType
        self.name = ""
        self.replace_wildcards = False
        self.services: list[StaticService] = []
        self._inside = ""  # the element whose text counts, '' outside the root
        self._text = ""
        self._key: str | None = None  # of a txt-record, once its “=” has come
        self._format = "text"
        self._open: dict[str, str] = {}
        self._characters = 0  # of text in all, entities expanded
        self._open_txt: list[bytes] = []
        self._open_subtypes: list[str] = []
        self._open_line = 0

    def fail(self, says: str, hint: str = "") -> MalformedInput:
        return MalformedInput(f"{self.where}:{self.parser.CurrentLineNumber}", says, hint)

    def declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        # Python's expat knows more encodings than the daemon's
        if encoding and encoding.lower() not in _ENCODINGS:
            raise self.fail(f"the encoding {encoding} is unknown to avahi-daemon", "write the file in UTF-8")

    def start(self, element: str, attributes: list[str]) -> None:
        if self._inside == "" and element == "service-group":
            self._take_attribute(element, attributes, "")
            self._inside = element
        elif self._inside == "service-group" and element == "name":
            self.replace_wildcards = (
                self._take_attribute(element, attributes, "replace-wildcards") == "yes"
                if attributes
                else self.replace_wildcards
            )
            self._inside = element
        elif self._inside == "service-group" and element == "service":
            protocol = self._take_attribute(element, attributes, "protocol", "any")
            if protocol not in ("ipv4", "ipv6", "any"):
                raise self.fail(f"protocol is “{protocol}”", "write ipv4, ipv6 or any, in small letters")
            self._open = {"protocol": protocol, "port": "0"}
            self._open_txt, self._open_subtypes = [], []
            self._open_line = self.parser.CurrentLineNumber
            self._inside = element
        elif self._inside == "service" and element in _IN_SERVICE:
            allowed = "value-format" if element == "txt-record" else ""
            self._format = self._take_attribute(element, attributes, allowed, "text")
            if self._format not in ("text", "binary-hex", "binary-base64"):
                hint = "write text, binary-hex or binary-base64"
                raise self.fail(f"value-format is “{self._format}”", hint)
            self._inside = element
        else:
            place = f"in <{self._inside}>" if self._inside else "as the root"
            raise self.fail(f"<{element}> is not allowed {place}", "see avahi.service(5)")

    def _take_attribute(self, element: str, attributes: list[str], allowed: str, default: str = "") -> str:
        if attributes and (attributes[0] != allowed or len(attributes) > 2):
            wrong = attributes[0] if attributes[0] != allowed else attributes[2]
            raise self.fail(f"<{element}> has no attribute “{wrong}”", "see avahi.service(5)")
        return attributes[1] if attributes else default

    def add_text(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise self.fail(f"more than {MAX_CHARACTERS} characters of text", "a service needs a few hundred")
        if self._inside == "name":
            self.name += text
        elif self._inside in ("type", "domain-name", "host-name"):
            self._open[self._inside] = self._open.get(self._inside, "") + text
        elif self._inside in ("port", "subtype"):
            self._text += text
        elif self._inside == "txt-record":
            if self._key is None and "=" in text:
                head, _, text = text.partition("=")
                # a key without a character is none to Avahi, and its “=” is lost
                self._key, self._text = (self._text + head) or None, ""
            self._text += text

    def end(self, _element: str) -> None:
        inside, self._inside = self._inside, "service"
        if inside == "service-group":
            self._inside = ""
            if not self.name or not self.services:
                missing = "<name>" if not self.name else "<service>"
                raise self.fail(f"the service group has no {missing}")
        elif inside == "name":
            self._inside = "service-group"
        elif inside == "service":
            self._inside = "service-group"
            self._close_service()
        elif inside == "port":
            port = _atoi(self._text)
            if not 0 <= port <= 0xFFFF:
                raise self.fail(f"“{self._text.strip()}” is not a port", "write a number from 0 to 65535")
            self._open["port"] = str(port)
        elif inside == "txt-record":
            self._open_txt.append(self._close_txt())
        elif inside == "subtype":
            self._open_subtypes.append(self._text)
        self._text, self._key = "", None

    def _close_service(self) -> None:
        if not self._open.get("type"):
            raise self.fail("the service has no <type>")
        self.services.append(
            StaticService(
                type=self._open["type"],
                port=int(self._open["port"]),
                protocol=self._open["protocol"],
                txt=tuple(self._open_txt),
                subtypes=tuple(self._open_subtypes),
                domain_name=self._open.get("domain-name", ""),
                host_name=self._open.get("host-name", ""),
                line=self._open_line,
            )
        )

    def _close_txt(self) -> bytes:
        if self._key is None:
            return self._text.encode()
        if self._format == "text":
            value = self._text.encode()
        else:
            try:
                value = _decode_binary(self._text, self._format)
            except ValueError as error:
                raise self.fail(f"the value of “{self._key}” is not {self._format}: {error}") from None
        return self._key.encode() + b"=" + value


def _atoi(text: str) -> int:
    """Return what C's atoi makes of ``text``: 0 where no number starts it, 32 bits of a larger one."""
    number = _ATOI.match(text)
    if number is None:
        return 0
    value = max(-(2**63), min(2**63 - 1, int(number[1][:32])))
    return (value + 2**31) % 2**32 - 2**31


def _decode_binary(text: str, value_format: str) -> bytes:
    if value_format == "binary-hex":
        if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text):
            raise ValueError("an even number of hexadecimal digits is wanted, without blanks")
        return binascii.unhexlify(text)
    if not re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
        raise ValueError("groups of four base64 characters are wanted, without blanks")
    return base64.b64decode(text)


def _check_published(group: ServiceGroup, where: str, host_name: str) -> None:
    """Refuse what entry.c refuses when the group is added to the server."""
    name = group.published_name(host_name)
    if len(name.encode()) > NAME_LIMIT:
        says = f"the name “{name}” has {len(name.encode())} bytes, more than {NAME_LIMIT}"
        raise MalformedInput(f"{where}:{group.services[0].line}", says, "shorten it")
    before: list[StaticService] = []
    for service in group.services:
        here = f"{where}:{service.line}"
        if not is_service_type(service.type):
            hint = "write it like _torch._tcp: no blanks around it, no domain behind it"
            raise MalformedInput(here, f"“{service.type}” is not a service type", hint)
        if service.domain_name and labels_of(service.domain_name) is None:
            raise MalformedInput(here, f"“{service.domain_name}” is not a domain name")
        if service.host_name and not is_host_name(service.host_name):
            hint = "write a host name with its domain, like gpu-node-7.local"
            raise MalformedInput(here, f"“{service.host_name}” is not a full host name", hint)
        for item in service.txt:
            if not 0 < len(item) <= TXT_ITEM_LIMIT:
                says = f"a txt-record has {len(item)} bytes; 1 to {TXT_ITEM_LIMIT} are allowed"
                raise MalformedInput(here, says)
        if any(_collide(service, other) for other in before):
            says = f"two services of the type “{service.type}” stand in one group"
            raise MalformedInput(here, says, "put the second one into a file of its own with another name")
        before.append(service)


def _collide(one: StaticService, other: StaticService) -> bool:
    """Whether both would hold one name with different records, on a protocol that they share."""
    same_name = _fold(one.type) == _fold(other.type) and _domain(one) == _domain(other)
    shared = one.protocol == other.protocol or "any" in (one.protocol, other.protocol)
    equal = (one.port, _fold(one.host_name), one.txt) == (other.port, _fold(other.host_name), other.txt)
    return same_name and shared and not equal


def _domain(service: StaticService) -> tuple[bytes, ...]:
    return _fold(service.domain_name or "local")


def _fold(name: str) -> tuple[bytes, ...]:
    return tuple(label.lower() for label in labels_of(name) or ())

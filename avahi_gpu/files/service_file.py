"""torch.service: the static service file that tells the LAN of this node, rendered from a template."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import txt
from avahi_gpu.files.service_loader import TXT_TOTAL_WISE, ServiceGroup, StaticService, is_loaded, parse
from avahi_gpu.model import DEFAULT_PORT, NODE_SERVICE, NodeFacts

__all__ = ["TXT_TOTAL_WISE", "ServiceGroup", "StaticService", "TxtItem", "is_loaded", "parse", "render"]

# what XML 1.0 cannot hold, and the carriage return, which its reader would turn into a newline
_NOT_TEXT = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class TxtItem:
    """One item of the TXT as a ``<txt-record>`` holds it: the value-format and the (unescaped) text."""

    value_format: str
    text: str


def render(
    template: str, node: NodeFacts, port: int = DEFAULT_PORT, *, where: str = "torch.service.j2"
) -> bytes:
    """Return the service file that ``template`` makes of ``node``.

    The template sees ``service_type``, ``port``, ``txt`` (a list of TxtItem) and ``node``. It runs in a
    sandbox and every value is escaped. Raises MalformedInput (``where:line``) where the template is wrong,
    or where avahi-daemon would refuse what it makes.
    """
    from avahi_gpu.files.service_template import fill  # jinja2 takes 40 ms to load

    items = [write_item(item) for item in txt.encode(node)]
    text = fill(template, where, service_type=NODE_SERVICE, port=port, txt=items, node=node)
    content = text.encode()
    group = parse(content, f"what {where} makes")
    ours = next((service for service in group.services if service.type == NODE_SERVICE), None)
    if ours is None:
        says = f"it publishes no service of the type {NODE_SERVICE}, so that no peer would see this node"
        raise MalformedInput(where, says, "write <type>{{ service_type }}</type> into it")
    if ours.txt_bytes > TXT_TOTAL_WISE:
        says = f"it publishes {ours.txt_bytes} bytes of TXT, more than {TXT_TOTAL_WISE}"
        raise MalformedInput(where, says, "publish less: large records are dropped on their way")
    try:
        if node.id:
            txt.decode(ours.txt)  # that of an image has no id until a machine boots it
    except MalformedInput as error:
        says = f"peers could not read the TXT that it publishes ({error.message})"
        raise MalformedInput(where, says, "write the items of txt as the shipped template does") from None
    return content


def write_item(item: bytes) -> TxtItem:
    """Return how a file holds ``item`` (``key`` or ``key=value``): as text where XML can, else in base64."""
    try:
        text = item.decode()
    except UnicodeDecodeError:
        text = "\0"
    if not _NOT_TEXT.search(text):
        return TxtItem("text", text)
    key, equals, value = item.partition(b"=")
    if not key or not equals or not re.fullmatch(rb"[\x20-\x7e]+", key):
        raise MalformedInput("TXT", "an item that is not text needs a key of printable ASCII")
    return TxtItem("binary-base64", f"{key.decode()}={base64.b64encode(value).decode()}")

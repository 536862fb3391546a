"""torch.service: what avahi-daemon takes, and what we render for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import txt
from avahi_gpu.files.service_file import is_loaded, parse, render, write_item
from avahi_gpu.files.service_loader import SIZE_LIMIT
from avahi_gpu.model import Gpu, NodeFacts, Versions

TEMPLATE = (Path(__file__).parents[3] / "templates" / "torch.service.j2").read_text()
DTD = Path("/usr/share/avahi/avahi-service.dtd")
NODE = NodeFacts("0123456789ab")

FILE = """<service-group>
<name{name_attributes}>{name}</name>
<service{attributes}>{inside}</service>{more}
</service-group>
"""


def make(
    inside: str = "<type>_xy._tcp</type>",
    *,
    name: str = "n",
    name_attributes: str = "",
    attributes: str = "",
    more: str = "",
) -> bytes:
    return FILE.format(
        inside=inside, name=name, name_attributes=name_attributes, attributes=attributes, more=more
    ).encode()


def with_type(inside: str) -> bytes:
    return make("<type>_xy._tcp</type>" + inside)


# --- what avahi-daemon takes -----------------------------------------------------------------------------


def test_all_that_a_service_can_say_in_any_order() -> None:
    group = parse(
        make(
            "<txt-record>a=1</txt-record><port>7</port><host-name>h.local</host-name><type>_xy._udp.</type>"
            "<domain-name>local</domain-name><subtype>_st._sub._xy._udp</subtype><txt-record>b</txt-record>",
            name="%h&#32;&amp; co",
            name_attributes=" replace-wildcards='yes'",
            attributes=' protocol="ipv4"',
        )
    )

    (service,) = group.services
    assert group.published_name("node") == "node & co"
    assert (service.type, service.port, service.protocol) == ("_xy._udp.", 7, "ipv4")
    assert (service.host_name, service.domain_name) == ("h.local", "local")
    assert service.subtypes == ("_st._sub._xy._udp",)
    assert service.txt == (b"a=1", b"b")
    assert service.txt_bytes == 6


@pytest.mark.parametrize("value", ["true", "Yes", "no", "1"])
def test_wildcards_are_replaced_for_the_one_word_yes_only(value: str) -> None:
    group = parse(make(name="%h", name_attributes=f' replace-wildcards="{value}"'))

    assert group.published_name("node") == "%h"


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("29500", 29500),
        ("\n 29500 ", 29500),
        ("+7", 7),
        ("7x", 7),
        ("0x733C", 0),
        ("$PORT", 0),
        ("", 0),
        ("65535", 65535),
        ("4294967296", 0),
        ("4294996796", 29500),
        ("007", 7),
    ],
)
def test_a_port_is_what_atoi_makes_of_it(text: str, port: int) -> None:
    assert parse(with_type(f"<port>{text}</port>")).services[0].port == port


@pytest.mark.parametrize("text", ["65536", "-1", "99999999999", "2147483648"])
def test_a_port_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(MalformedInput, match="not a port"):
        parse(with_type(f"<port>{text}</port>"))


def test_the_last_of_several_ports_counts_and_several_names_are_one() -> None:
    content = make("<type>_xy._tcp</type><port>1</port><port>2</port>").replace(
        b"</name>", b"</name><name>m</name>"
    )

    group = parse(content)

    assert (group.name, group.services[0].port) == ("nm", 2)


@pytest.mark.parametrize(
    ("record", "item"),
    [
        ("<txt-record>a=b=c</txt-record>", b"a=b=c"),
        ("<txt-record>a&amp;b=c</txt-record>", b"a&b=c"),
        ("<txt-record><![CDATA[a=<b>]]></txt-record>", b"a=<b>"),
        ("<txt-record>a</txt-record>", b"a"),
        ("<txt-record>a=</txt-record>", b"a="),
        ("<txt-record> a = b </txt-record>", b" a = b "),
        ("<txt-record>=a</txt-record>", b"a"),
        ("<txt-record>ü=ä</txt-record>", "ü=ä".encode()),
        ('<txt-record value-format="text">a=b</txt-record>', b"a=b"),
        ('<txt-record value-format="binary-hex">a=00fF</txt-record>', b"a=\x00\xff"),
        ('<txt-record value-format="binary-hex">00ff</txt-record>', b"00ff"),
        ('<txt-record value-format="binary-hex">a=</txt-record>', b"a="),
        ('<txt-record value-format="binary-base64">a=AP8=</txt-record>', b"a=\x00\xff"),
        ('<txt-record value-format="binary-base64">a=AA==</txt-record>', b"a=\x00"),
    ],
)
def test_txt_records(record: str, item: bytes) -> None:
    assert parse(with_type(record)).services[0].txt == (item,)


def test_the_same_type_may_stand_twice_for_different_protocols() -> None:
    content = make(
        attributes=' protocol="ipv4"', more='<service protocol="ipv6"><type>_xy._tcp</type></service>'
    )

    assert len(parse(content).services) == 2


def test_twice_the_very_same_is_no_collision() -> None:
    assert len(parse(make(more="<service><type>_xy._tcp</type></service>")).services) == 2


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "no element"),
        (b" <?xml version='1.0'?>" + make(), 1, "start of entity"),
        (make() + make(), 5, "junk"),
        (make()[:-9], 4, "not XML"),
        (make(name="\xe4").decode().encode("latin-1"), 2, "not XML"),
        (b"<?xml version='1.0' encoding='windows-1252'?>" + make(), 1, "windows-1252"),
        (b"<services/>", 1, "<services> is not allowed as the root"),
        (b"<service-group x='y'/>", 1, "no attribute"),
        (b"<service-group>\n<service><type>_xy._tcp</type></service>\n</service-group>", 3, "no <name>"),
        (b"<service-group>\n<name>n</name>\n</service-group>", 3, "no <service>"),
        (make(name=""), 4, "no <name>"),
        (make(inside=""), 3, "no <type>"),
        (make(name="<b>n</b>"), 2, "<b> is not allowed in <name>"),
        (with_type("<ports>1</ports>"), 3, "<ports> is not allowed in <service>"),
        (with_type("<port a='1'>1</port>"), 3, "no attribute"),
        (make(name_attributes=" wildcards='yes'"), 2, "no attribute"),
        (make(name_attributes=" replace-wildcards='yes' x='y'"), 2, "“x”"),
        (make(attributes=' protocol="IPv4"'), 3, "IPv4"),
        (make(attributes=' protocol=""'), 3, "protocol"),
        (with_type('<txt-record value-format="">a=b</txt-record>'), 3, "value-format"),
        (with_type('<txt-record value-format="hex">a=00</txt-record>'), 3, "hex"),
        (with_type('<txt-record value-format="binary-hex">a=0</txt-record>'), 3, "hexadecimal"),
        (with_type('<txt-record value-format="binary-hex">a=0g</txt-record>'), 3, "hexadecimal"),
        (with_type('<txt-record value-format="binary-base64">a=AA</txt-record>'), 3, "base64"),
        # taken when loaded, refused when published
        (make("<type> _xy._tcp</type>"), 3, "not a service type"),
        (make("<type>_xy._tcp.local</type>"), 3, "not a service type"),
        (make("<type>xy._tcp</type>"), 3, "not a service type"),
        (make("<type>_x._tcp</type>"), 3, "not a service type"),
        (make("<type>_xy._sctp</type>"), 3, "not a service type"),
        (make(f"<type>_{'x' * 63}._tcp</type>"), 3, "not a service type"),
        (make(name="n" * 64), 3, "64 bytes"),
        (make(name="ü" * 32), 3, "64 bytes"),
        (make(name="%h" + "n" * 63, name_attributes=" replace-wildcards='yes'"), 3, "64 bytes"),
        (with_type("<txt-record/>"), 3, "0 bytes"),
        (with_type(f"<txt-record>{'x' * 256}</txt-record>"), 3, "256 bytes"),
        (with_type("<host-name>gpu-node-7</host-name>"), 3, "full host name"),
        (with_type("<host-name>10.0.0.1</host-name>"), 3, "full host name"),
        (with_type("<domain-name>a..b</domain-name>"), 3, "domain name"),
        (make(more="\n<service><type>_XY._tcp.</type><port>1</port></service>"), 4, "two services"),
        (b"x" * (SIZE_LIMIT + 1), 1, "KiB"),
    ],
)
def test_what_avahi_refuses_is_refused_with_its_line(content: bytes, line: int, reason: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        parse(content, "x.service")

    assert caught.value.where == f"x.service:{line}"
    assert reason in caught.value.message


def test_which_files_avahi_looks_at() -> None:
    names = ["torch.service", ".torch.service", "torch.service.bak", "torch.Service", "torch.xml"]

    assert [is_loaded(name) for name in names] == [True, False, False, False, False]


@given(st.binary(max_size=400))
def test_no_content_makes_it_fail_otherwise(content: bytes) -> None:
    try:
        parse(content)
    except MalformedInput as error:
        assert error.where.startswith("torch.service:")


# --- what we render --------------------------------------------------------------------------------------


def validate(content: bytes) -> None:
    if DTD.exists():
        dtd = etree.DTD(str(DTD))
        assert dtd.validate(etree.fromstring(content)), dtd.error_log


def test_the_shipped_template() -> None:
    content = render(TEMPLATE, NODE, 29501)

    group = parse(content)
    (service,) = group.services
    validate(content)
    assert group.published_name("gpu-node-1") == "gpu-node-1"
    assert (service.type, service.port, service.protocol) == ("_torch._tcp", 29501, "any")
    assert service.txt == txt.encode(NODE)
    assert content.startswith(b"<?xml ")
    assert content.endswith(b"</service-group>\n")
    assert b"/etc/avahi-gpu/templates/" in content


@pytest.mark.parametrize(
    "name", ["a & b <c> \"d\" 'e'", "%h", "{{ 7*7 }}", "ü 计算 🖥", "a=b=c", "]]>", "-->"]
)
def test_values_come_out_as_they_were(name: str) -> None:
    node = NodeFacts("0123456789ab", cluster=name, gpus=(Gpu(name, 1),))

    content = render(TEMPLATE, node)

    validate(content)
    assert parse(content).services[0].txt == txt.encode(node)
    assert txt.decode(parse(content).services[0].txt).cluster == name


TEXT = st.text(max_size=80)
GPUS = st.builds(Gpu, TEXT, st.integers(0, 10**6), TEXT)
FACTS = st.builds(
    NodeFacts,
    st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    TEXT,
    st.lists(GPUS, max_size=9).map(tuple),
    st.builds(Versions, TEXT, TEXT, TEXT, TEXT, TEXT),
    st.integers(),
)


@given(FACTS, st.integers(0, 65535))
def test_any_facts_are_rendered_and_read_back(node: NodeFacts, port: int) -> None:
    content = render(TEMPLATE, node, port)

    (service,) = parse(content).services
    validate(content)
    assert service.port == port
    assert service.txt == txt.encode(node)


@given(st.binary(max_size=60))
def test_any_value_of_a_txt_item_can_be_written(value: bytes) -> None:
    """Also what XML cannot hold: it goes in base64."""
    item = write_item(b"k=" + value)
    escaped = item.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    record = f'<txt-record value-format="{item.value_format}">{escaped}</txt-record>'

    assert parse(with_type(record)).services[0].txt == (b"k=" + value,)


def test_a_template_of_the_administrator_can_say_more() -> None:
    template = TEMPLATE.replace("%h</name>", "%h ({{ node.gpus | length }})</name>").replace(
        "  </service>\n", "    <txt-record>rack=7</txt-record>\n  </service>\n"
    )

    group = parse(render(template, NODE))

    assert group.published_name("x") == "x (0)"
    assert group.services[0].txt == (*txt.encode(NODE), b"rack=7")


@pytest.mark.parametrize(
    ("template", "where", "reason"),
    [
        ("{{ nothing }}", "t.j2:1", "nothing"),
        ("a\n{% if %}", "t.j2:2", "not a template"),
        ("a\nb\n{{ 1/0 }}", "t.j2:3", "division"),
        ("{{ node.__class__ }}", "t.j2:1", "unsafe"),
        ("{{ node.id.__class__.__mro__ }}", "t.j2:1", "unsafe"),
        ("{% for i in range(10**9) %}{% endfor %}", "t.j2:1", "ange too big"),
        ("{% include '/etc/passwd' %}", "t.j2:1", "fails"),
        ("<service-group/>", "what t.j2 makes:1", "no <name>"),
        (TEMPLATE.replace("{{ service_type }}", "_xy._tcp"), "t.j2", "_torch._tcp"),
        (TEMPLATE.replace("in txt", "in []"), "t.j2", "could not read"),
        (TEMPLATE.replace("in txt", "in txt * 40"), "t.j2", "bytes of TXT"),
        (TEMPLATE.replace("{{ item.text }}", "{{ 'x' * 300 }}"), "what t.j2 makes:7", "300 bytes"),
    ],
)
def test_a_wrong_template_is_one_sentence_with_its_place(template: str, where: str, reason: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        render(template, NODE, where="t.j2")

    assert caught.value.where == where
    assert reason in caught.value.message


def test_entities_that_stand_for_gigabytes_are_refused_at_once() -> None:
    entities = ['<!ENTITY a "' + "x" * 1000 + '">']
    entities += [f'<!ENTITY {name} "{f"&{inner};" * 10}">' for inner, name in ("ab", "bc", "cd", "de")]
    text = f"<?xml version='1.0'?><!DOCTYPE service-group [{''.join(entities)}]>"
    text += "<service-group><name>&e;</name></service-group>"

    with pytest.raises(MalformedInput):
        parse(text.encode(), "bomb.service")

"""Arbitrary bytes into everything that reads: no traceback, no hang; what is untouched is written as it was.

``make fuzz`` runs the same for longer, with a seed of its own.
"""

from __future__ import annotations

import os
import time
import traceback

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from avahi_gpu.changes.record import Before, CommandRecord, FileRecord, decode_records, encode_record
from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files import avahi_conf_edit, etc_hosts_edit, nsswitch_edit, txt
from avahi_gpu.files.avahi_conf_edit import Wanted
from avahi_gpu.files.nsswitch import decode, encode, parse
from tests.unit.parsers import EXEMPT, PARSERS, faults_of, feed_of, find_parsers

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "25"))
LARGE = int(
    os.environ.get("FUZZ_LARGE", str(64 << 10))
)  # bytes; what takes more than a moment for these grows faster than its input
LARGE_S = 4.0  # a hundredth of it on a quiet machine
MOMENT_S = 2.0  # for a few kilobytes

# whole samples of all that is read, to be mangled
SAMPLES = (
    b"passwd: files systemd\nhosts: files mdns4_minimal [NOTFOUND=return] dns # see [1]\r\nrpc: db files\n",
    b"127.0.0.1\tlocalhost\n127.0.1.1 gpu-node-1.lan gpu-node-1 # me\n::1 ip6-localhost\nfe80::1%eth0 x\n",
    b"# by hand\nsearch lan local\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\noptions ndots:2 timeout:1\n",
    b"[server]\nhost-name=x\nuse-ipv4=yes\nallow-interfaces=eth0, eth1\nratelimit-burst=1000\n[wide-area]\n",
    b'<?xml version="1.0"?>\n<!DOCTYPE service-group SYSTEM "avahi-service.dtd">\n<service-group>'
    b'<name replace-wildcards="yes">%h</name><service protocol="ipv4">'
    b"<type>_torch._tcp</type><port>29500</port>"
    b'<txt-record value-format="binary-hex">61=62</txt-record></service></service-group>\n',
    b".local\n.local.\n*\n# x\n",
    b"<port>{{ port }}</port>{% for key, value in txt %}<txt-record>{{ key|e }}={{ value }}</txt-record>"
    b"{% endfor %}{# a comment #}\n",
    b'cluster = "x"\nport = 29500\npriority = -1\npython = "/usr/bin/python3"\n[jobs]\n',
    b"txtvers=1\nid=0123456789ab\ncluster=default\ngpus=2\ngpu=NVIDIA A*2\nvram=24576*2\ncc=8.9\nprio=0\n",
    b'{"kind":"file","path":"/etc/x","before":{"content":"b2xk","mode":420},"after":"","version":1}\n',
    b'{"v":1,"type":"hello","id":"a","host":"h","facts":{"torch":"2.6.0"}}\n',
    b"  sl  local_address rem_address   st tx_queue rx_queue\n 12: 00000000:14E9 00000000:0000 07 "
    b"00000000:00000000 00:00000000 00000000   115        0 12345 2 0000000000000000 0\n",
    b'ID=debian\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n',
    b"10.77.0.2       STREAM gpu-node-2.local\n10.77.0.2       DGRAM\n",
    b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x05local\x00\x00\x06\x00\x01\xc0\x0c\x00\x06\x00\x01\x00\x00\x00"
    b"\x3c\x00\x02\xc0\x0c",
    b"ii  avahi-daemon\tinstall ok installed\nun  libnss-mdns\n",
    b"2.6.0\n12.4\n2.21.5\n3.11.7\n550.54.15\n",
)
WORDS = (
    *(
        b"[",
        b"]",
        b"[NOTFOUND=return]",
        b"hosts:",
        b"mdns4_minimal",
        b"dns",
        b"#",
        b"=",
        b":",
        b"\0",
        b"\xff",
    ),
    *(b"\n", b"\r\n", b"\r", b"\t", b" ", b"\xc0\x0c", b"\xc2\xa0", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"%"),
    *(b"<", b">", b"&amp;", b"&x;", b"<!ENTITY x '&x;&x;'>", b"</service>", b"{", b"}", b'"', b"\\u0000"),
    *(b"{{", b"}}", b"{% for i in range(99999) %}", b"{% endfor %}", b"{#", b"{{ 9 ** 9 ** 9 }}", b"|"),
    *(b"1e400", b"-1", b"99999999999999999999", "\u0663".encode(), "\u202e".encode(), "ｈ".encode(), b"NaN"),
)


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """Return a sample with pieces cut out, doubled, or put in."""
    data = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["cut", "double", "word", "bytes"]))
        piece = {
            "cut": b"",
            "double": data[start:end] * 2,
            "word": draw(st.sampled_from(WORDS)),
            "bytes": draw(st.binary(max_size=6)),
        }[kind]
        data = data[:start] + piece + data[end:]
    return data


anything = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(WORDS), max_size=40).map(b"".join),
    mangled(),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
fuzz = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


def give(name: str, data: bytes) -> float:
    """Feed it and return the seconds of this thread that took; an error of ours is an answer."""
    feed = feed_of(name, PARSERS[name])
    assert feed is not None, f"tests/unit/parsers.py does not know what to give {name}"
    started = time.thread_time()
    try:
        feed(data)
    except faults_of(PARSERS[name]) as error:
        assert str(error)
    except Exception as fault:  # told in short: the data may be long
        at = traceback.extract_tb(fault.__traceback__)[-1]
        where = f"{at.filename}:{at.lineno}"
        said = f"{type(fault).__name__} at {where}: {str(fault)[:200]}"
        raise AssertionError(f"{said}; data {data[:60]!r}, {len(data)} bytes") from None
    return time.thread_time() - started


def test_every_reader_of_raw_text_is_among_those_that_are_tried() -> None:
    names = {name for name, _ in find_parsers()}

    untried = [name for name, node in PARSERS.items() if feed_of(name, node) is None]

    assert untried == []  # say in tests/unit/parsers.py what to give them, or why they are no readers
    assert set(EXEMPT) <= names
    assert len(PARSERS) > 40


@pytest.mark.parametrize("name", PARSERS)
def test_no_bytes_lead_to_a_traceback_or_a_hang(name: str) -> None:

    @fuzz
    @given(anything)
    @example(b"")
    def run(data: bytes) -> None:
        assert give(name, data) < MOMENT_S

    run()


@pytest.mark.parametrize("name", PARSERS)
def test_much_of_the_same_takes_no_long_time(name: str) -> None:
    """Nothing grows with the square of what a file may hold: a small file would take minutes."""
    for piece in (
        b"a",
        b" ",
        b"\n",
        b"[",
        b"a=",
        b"a.",
        b"hosts: ",
        b"[a=b",
        b"<a>",
        b'"',
        b"\\",
        b"1 a\n",
        b'{"a":',
        *SAMPLES,
    ):
        data = piece * (LARGE // len(piece))
        assert give(name, data) < LARGE_S, piece[:20]


# --- untouched is unchanged -----------------------------------------------------------------------------


@fuzz
@given(anything)
def test_an_untouched_nsswitch_conf_is_written_as_it_was(data: bytes) -> None:
    assert encode(nsswitch_edit.join(parse(decode(data)))) == data


@fuzz
@given(anything)
def test_an_untouched_hosts_file_is_written_as_it_was(data: bytes) -> None:
    assert etc_hosts_edit.remove_names(data, (), ()) == data


@fuzz
@given(anything)
def test_an_untouched_avahi_daemon_conf_is_written_as_it_was(data: bytes) -> None:
    text = decode(data)
    before = avahi_conf_edit.set_value(text, Wanted("server", "use-ipv4", "yes"))

    assert avahi_conf_edit.change(text, ()) == text
    if before is not None:  # and what is set already stays
        assert avahi_conf_edit.set_value(before, Wanted("server", "use-ipv4", "yes")) == before


@fuzz
@given(anything)
def test_what_a_node_published_is_published_the_same_again(data: bytes) -> None:
    try:
        facts = txt.decode(data.split(b"\n"))
        again = txt.encode(facts)
    except AvahiGpuError:
        return
    assert txt.decode(again) == facts


@fuzz
@given(
    st.binary(max_size=50),
    st.text(max_size=20),
    st.integers(0, 0o7777),
    st.lists(st.text(max_size=9), max_size=3),
)
def test_a_record_of_the_journal_is_read_as_it_was_written(
    content: bytes, text: str, mode: int, argv: list[str]
) -> None:
    records = [
        FileRecord(f"/etc/{text}", Before(content, mode), "x", run=text),
        CommandRecord(
            "command", text, tuple(argv), undo=tuple(argv), verify=tuple(argv), done=True, run=text
        ),
    ]

    assert decode_records(b"".join(encode_record(r) for r in records)) == (records, [])

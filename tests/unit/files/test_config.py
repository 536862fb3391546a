"""config.toml: right values, and one clear sentence for each wrong one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import ExitCode, MalformedConfiguration
from avahi_gpu.files.config import Config, parse


def test_an_empty_file_means_the_defaults() -> None:
    assert parse("") == Config("default", 0, 29500, None, None, ())
    assert parse(b"# nothing\n") == Config()


def test_all_settings() -> None:
    text = """
cluster = "Küche"
priority = -3
port = 29501
interface = "enp3s0f0.100"
python = "/opt/venv/bin/python"
peers = ["gpu-node-2", "gpu-node-3.local", "10.0.0.4", "fe80::1%eth0"]
key_file = "/etc/train/key"
interfaces = ["enp3s0f0.100", "ib0"]
"""

    assert parse(text) == Config(
        "Küche",
        -3,
        29501,
        "enp3s0f0.100",
        "/opt/venv/bin/python",
        ("gpu-node-2", "gpu-node-3.local", "10.0.0.4", "fe80::1%eth0"),
        "/etc/train/key",
        ("enp3s0f0.100", "ib0"),
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('\ncluser = "a"\n', 2, ["cluser", "cluster"]),
        ("a = 1\n", 1, ["“a”", "known are"]),
        ("cluster = 1\n", 1, ["cluster", 'cluster = "lab"']),
        ('cluster = ""\n', 1, ["cluster"]),
        ('cluster = " a"\n', 1, ["cluster"]),
        (f'cluster = "{"ü" * 32}"\n', 1, ["63 bytes"]),
        ('cluster = "\\u001b[1m"\n', 1, ["cluster"]),
        ("priority = 1.5\n", 1, ["priority"]),
        ("priority = true\n", 1, ["priority"]),
        ("priority = 10000\n", 1, ["9999"]),
        ('port = "29500"\n', 1, ["port", "65535"]),
        ("port = 0\n", 1, ["port"]),
        ("port = 65536\n", 1, ["port"]),
        ("port = true\n", 1, ["port"]),
        ('cluster = "a,b"\n', 1, ["cluster", "commas"]),
        ('interface = "eth0,eth1"\n', 1, ["interface"]),
        ('interface = "\\u202eeth0"\n', 1, ["interface"]),
        ('\ninterfaces = "eth0"\n', 2, ["interfaces", "list"]),
        (f"interfaces = {[f'e{n}' for n in range(17)]}\n", 1, ["16"]),
        ('interfaces = ["eth0", 1]\n', 1, ["interfaces"]),
        ('interfaces = [["eth0"]]\n', 1, ["interfaces"]),
        ('interfaces = ["eth0"]\ninterface = "eth1"\n', 2, ["eth1", "none of interfaces", "c.toml:1"]),
        (f'python = "/{"x" * 5000}"\n', 1, ["python", "…"]),
        (f'"{"k" * 9000}" = 1\n', 1, ["…", "not a setting"]),
        ('interface = ["eth0"]\n', 1, ["interface"]),
        ('interface = "../../x"\n', 1, ["interface"]),
        ('interface = "abcdefghijklmnop"\n', 1, ["interface"]),
        ('python = "python3"\n', 1, ["python", "full path"]),
        ('key_file = "key"\n', 1, ["key_file", "full path"]),
        ('# x\npeers = "a"\n', 2, ["peers", "list"]),
        ('peers = ["a b"]\n', 1, ["peers"]),
        ('peers = ["-oProxyCommand=x"]\n', 1, ["peers"]),
        ("peers = [1]\n", 1, ["peers"]),
        ('peers = ["gpu-node-2", "192.168.1.300"]\n', 1, ["peers", "192.168.1.300"]),
        (f"peers = {['a'] * 65}\n", 1, ["64"]),
        ("[cluster]\nname = 1\n", 1, ["cluster"]),
        ("port = 1\nport = 2\n", 2, ["TOML", "twice", "leave one"]),
        ("port =\n", 1, ["TOML"]),
        ("port = 1\n\ncluster = lab\n", 3, ["TOML", "quotes"]),
        (b"port = 1\n# \xff\n", 2, ["UTF-8"]),
        ("x = " + "[" * 100_000, 1, ["TOML"]),
        ("port = " + "1" * 10_000, 1, ["TOML"]),
    ],
)
def test_each_mistake_is_one_sentence_with_its_line(text: str | bytes, line: int, words: list[str]) -> None:
    with pytest.raises(MalformedConfiguration) as caught:
        parse(text, "c.toml")

    error = caught.value
    assert error.exit_code == ExitCode.USAGE
    assert error.where == f"c.toml:{line}"
    assert error.hint
    for word in words:
        assert word in f"{error.message} {error.hint}"


@given(st.binary(max_size=200))
def test_any_content_is_read_or_refused_in_words(content: bytes) -> None:
    try:
        parse(content)
    except MalformedConfiguration as error:
        assert error.message.startswith("/etc/avahi-gpu/config.toml:")

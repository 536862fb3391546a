"""Which files rules are loaded from at boot, as systemd and the files themselves tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from avahi_gpu.host.firewall_boot import _read_included, file_of
from avahi_gpu.host.system import System


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (("/usr/sbin/nft", "-f", "/etc/nftables.conf"), "/etc/nftables.conf"),
        (("/sbin/nft", "-f", "/etc/sysconfig/nftables.conf"), "/etc/sysconfig/nftables.conf"),
        (("/usr/sbin/nft", "--file", "relative"), ""),
        (("/usr/sbin/nft", "-f"), ""),
        (("/usr/local/bin/my-firewall", "-f", "/etc/x"), ""),
        ((), ""),
    ],
)
def test_the_file_is_read_from_what_the_service_runs(argv: tuple[str, ...], path: str) -> None:
    assert file_of(argv) == path


def test_included_files_are_read_with_those_that_they_include_and_ours_is_not(tmp_path: Path) -> None:
    files = {
        "etc/nftables.conf": 'include "/etc/nft.d/*.nft"\ninclude "x.nft"\n'
        '  include "/etc/avahi-gpu/firewall*.nft"\n',
        "etc/nft.d/a.nft": 'a\ninclude "/etc/nft.d/a.nft"\n# include "/etc/no"\n',
        "etc/nft.d/b.txt": "no",
        "etc/nft.d/.c.nft": "no",
        "etc/x.nft": 'x\ninclude "/etc/y"\ninclude "./z"\n',
        "etc/y": "y",
        "etc/no": "no",
        "etc/avahi-gpu/firewall.nft": "ours",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    system = System(tmp_path)

    texts = _read_included(system, system.read("/etc/nftables.conf"))

    assert [text[:1] for text in texts] == ["a", "x", "y"]

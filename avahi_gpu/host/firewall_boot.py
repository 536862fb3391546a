"""Which files the system's own services load the firewall's rules from at boot."""

from __future__ import annotations

import fnmatch
import re
from typing import Literal

from avahi_gpu.files.firewall_boot import included_by
from avahi_gpu.host import daemons
from avahi_gpu.host.avahi_unit import parse_show
from avahi_gpu.host.system import System
from avahi_gpu.model import NFT_FILE, BootRules, FileState

NFT_UNIT = "nftables.service"
# unit -> the files that it restores with iptables and ip6tables: iptables-persistent, iptables-services
SAVED: dict[str, dict[Literal["iptables", "ip6tables"], str]] = {
    "netfilter-persistent.service": {
        "iptables": "/etc/iptables/rules.v4",
        "ip6tables": "/etc/iptables/rules.v6",
    },
    "iptables.service": {"iptables": "/etc/sysconfig/iptables"},
    "ip6tables.service": {"ip6tables": "/etc/sysconfig/ip6tables"},
}
FILES_MAX = 64  # included ones; a folder of rules has a handful
SIZE_MAX = 4 << 20  # bytes of a file of rules
_PATH = re.compile(r"/[A-Za-z0-9/._-]{1,200}")


def read_boot_rules(system: System) -> tuple[BootRules, ...]:
    """Return the files of those services that systemd starts at boot; () where there is no systemd."""
    if daemons.read_init(system) != "systemd":
        return ()
    found: list[BootRules] = []
    units = (NFT_UNIT, *SAVED)
    properties = "--property=Id,UnitFileState,ExecStart"
    done = system.run(["systemctl", "show", properties, *units], daemons.ASK_SYSTEMD_S)
    for block in done.stdout.split("\n\n") if done.ok else ():
        name = re.search(r"^Id=(.*)$", block, re.MULTILINE)
        unit = parse_show(block)
        if name is None or unit.enabled not in ("enabled", "alias"):
            continue
        if name[1] == NFT_UNIT:
            path = file_of(unit.argv)
            if path:
                file = system.read(path, SIZE_MAX)
                found.append(BootRules("nft", file, system.read(NFT_FILE), _read_included(system, file)))
        else:
            files = SAVED.get(name[1], {})
            found += [BootRules(kind, system.read(path, SIZE_MAX)) for kind, path in files.items()]
    return tuple(found)


def _read_included(system: System, file: FileState) -> tuple[str, ...]:
    """Return the texts of the files that one for nft includes, and of those that these include."""
    texts: dict[str, str] = {}
    waiting = [file]
    while waiting and len(texts) < FILES_MAX:
        text = (waiting.pop(0).content or b"").decode("utf-8", "surrogateescape")
        for pattern in included_by(text):
            folder, _, name = pattern.rpartition("/")
            names = fnmatch.filter(system.list_folder(folder or "/"), name)
            for path in (f"{folder}/{one}" for one in names if not one.startswith(".")):
                if path not in texts and path not in (NFT_FILE, file.path):
                    state = system.read(path, SIZE_MAX)
                    texts[path] = (state.content or b"").decode("utf-8", "surrogateescape")
                    waiting.append(state)
    return tuple(texts.values())


def file_of(argv: tuple[str, ...]) -> str:
    """Return the file that ``nft -f FILE`` loads, '' where that is not what is run."""
    places = [at + 1 for at, word in enumerate(argv[:-1]) if word in ("-f", "--file")]
    path = argv[places[-1]] if places else ""
    return path if argv and argv[0].endswith("/nft") and _PATH.fullmatch(path) else ""

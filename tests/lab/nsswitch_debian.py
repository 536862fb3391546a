"""Debian's own edit of nsswitch.conf: the installed package's script is run, never copied."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lab.host import Host

INFO = Path("/var/lib/dpkg/info")
PACKAGE = "libnss-mdns"
FOLDER = "/var/lib/debians"  # on the host
# scripts of Debian 11 and before edit /etc itself, wherever they are told that the system is
ELSEWHERE = "${DPKG_ROOT}"

# in the host: what the script makes of each file when the package is configured for the first time
EDIT = f"""
import json, os, subprocess, sys
script, package, texts = json.load(sys.stdin)
os.makedirs("{FOLDER}/etc", exist_ok=True)
path = "{FOLDER}/etc/nsswitch.conf"
env = {{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DPKG_ROOT": "{FOLDER}"}}
env["DPKG_MAINTSCRIPT_PACKAGE"] = package
edited = []
for text in texts:
    with open(path, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    open(f"{{path}}.nss.{{package}}-will-install", "w").close()
    subprocess.run(["/bin/sh", "-s", "configure"], input=script, text=True, env=env, check=True, timeout=30)
    with open(path, "rb") as file:
        edited.append(file.read().decode("utf-8", "surrogateescape"))
json.dump(edited, sys.stdout)
"""


def find_script() -> str | None:
    """Return the script that the package runs when it has been installed; None where there is none to run."""
    found = sorted([*INFO.glob(f"{PACKAGE}:*.postinst"), *INFO.glob(f"{PACKAGE}.postinst")])
    text = found[0].read_text(encoding="utf-8") if found else ""
    return text if ELSEWHERE in text else None


def edit(host: Host, script: str, texts: Sequence[str]) -> list[str]:
    """Return what Debian's package makes of each nsswitch.conf."""
    question = json.dumps([script, PACKAGE, list(texts)])
    done = host.run([sys.executable, "-c", EDIT], input=question, check=True, timeout=110)
    edited: list[str] = json.loads(done.stdout)
    return edited

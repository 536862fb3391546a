"""What is told of ``avahi-gpu key``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import AS_ROOT, EXITS, FILES
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="make the key of a cluster, or compare it",
    examples=(
        Example(AS_ROOT + " key new", "make one, for all who train on this machine"),
        Example("avahi-gpu key check", "its fingerprint, to compare with that of another node"),
    ),
    exits={
        "0": EXITS["0"],
        "1": "`check` found no key, or `new` one that is there",
        "2": "wrong usage, or a key file that cannot be used",
        "130": EXITS["130"],
    },
    files={path: FILES[path] for path in ("/etc/avahi-gpu/key", "~/.config/avahi-gpu/key")},
    variables={"AVAHI_GPU_KEY_FILE": "the cluster key"},
    see=("avahi-gpu-launch(1)", "avahi-gpu.toml(5)"),
)

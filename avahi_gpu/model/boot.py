"""What is there before anybody logs in: the unit that renders the facts at boot, and images."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.model.machine_file import FileState


@dataclass(frozen=True)
class BootUnit:
    """avahi-gpu-facts.service, which renders the service file anew at every boot."""

    file: FileState
    wanted: bytes | None  # what it is to be; None where there is no avahi-gpu that could be run at boot
    program: str = ""  # the first word of what it runs
    frail: str = ""  # why that program may be gone one day: it lies in somebody's home, in a source checkout
    exposed: str = ""  # why others than root may change that program: root must not run it at every boot
    present_exposed: str = ""  # the same of what the present unit runs
    enabled: bool | None = None  # None: systemd did not tell
    masked: bool = False  # an administrator has forbidden it
    result: str = ""  # of its last run: success, exit-code, timeout …; '' where that is not known


@dataclass(frozen=True)
class ImageFacts:
    """A root file system under a folder, which no kernel runs: nothing but its files can be asked."""

    folder: str
    cannot_install: str = ""  # why packages cannot be installed into it from here; '' where they can

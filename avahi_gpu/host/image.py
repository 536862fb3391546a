"""A root file system that is set up without running: for PXE, an NFS root, a disk image, a chroot.

Nothing of the machine that works on it counts, and nothing outside the folder is touched: what programs would
do is done with files alone, and the image's own apt is shut in.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from avahi_gpu.errors import ChangeFailed, Misuse
from avahi_gpu.host import image_units
from avahi_gpu.host.process import NOT_EXECUTABLE, Completed
from avahi_gpu.host.system import System

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGE_PROGRAMS = frozenset({"apt-get", "apt-cache", "dpkg"})
POLICY_FILE = "/usr/sbin/policy-rc.d"
# 101: invoke-rc.d(8) and deb-systemd-invoke are not to start what is installed
POLICY = b"#!/bin/sh\n# of avahi-gpu setup --root, which removes this file when it ends\nexit 101\n"
# ELF's numbers of architectures (elf.h), by the names that uname(2) gives them
MACHINES = {3: "i686", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
PROGRAMS = ("/usr/bin/env", "/bin/sh", "/usr/bin/dpkg")  # one of them is in every image that boots
ELF_HEAD_BYTES = 20
PROGRAM_BYTES = 64 << 20  # one program that is all of coreutils takes twelve million
BIG_ENDIAN = 2


@dataclass(frozen=True)
class Image(System):
    """The root file system under ``root``, seen as the machine that will boot it."""

    installs: bool = True  # False: no program of the image is run, whatever its journal says

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
    ) -> Completed:
        """Do what ``systemctl enable`` and the like do to files, or run apt in the image; nothing else."""
        if argv[0] == "systemctl":
            return image_units.systemctl(self, argv)
        if argv[0] in PACKAGE_PROGRAMS:
            return self._run_inside(argv, lambda words: System.run(self, words, timeout_s, env))
        return self._refuse(argv)

    def run_to_its_end(
        self, argv: Sequence[str], timeout_s: float, env: Mapping[str, str], tell: Callable[[], None]
    ) -> Completed:
        """Run the image's own package manager in the image."""
        if argv[0] in PACKAGE_PROGRAMS:
            return self._run_inside(
                argv, lambda words: System.run_to_its_end(self, words, timeout_s, env, tell)
            )
        return self._refuse(argv)

    def start_daemon(self, argv: Sequence[str], timeout_s: float = 0.0) -> Completed:
        """Start nothing: what runs here is another machine."""
        return self._refuse(argv)

    def lock_handle(self, path: str | Path) -> int:
        """Return a descriptor of the image's own folder to lock: a lock file would stay in the image."""
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as fault:
            raise ChangeFailed(f"cannot open {self.root}: {fault.strerror}") from fault

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, and the folders above it. Raises ChangeFailed."""
        folder = path.rpartition("/")[0]
        self.make_folder(folder)
        try:
            self._inside(path).symlink_to(target)
        except OSError as fault:
            raise ChangeFailed(f"cannot make the link {path}: {fault.strerror}") from fault

    def is_program(self, path: str) -> bool:
        """Whether an executable file is there."""
        return self._is_program(path)

    def read_architecture(self) -> str:
        """Return for which architecture its programs are, as uname(2) names it; '' where that is not seen."""
        for path in PROGRAMS:
            head = (self.read(path, PROGRAM_BYTES).content or b"")[:ELF_HEAD_BYTES]
            if head[:4] == b"\x7fELF" and len(head) == ELF_HEAD_BYTES:
                number = int.from_bytes(head[18:20], "big" if head[5] == BIG_ENDIAN else "little")
                return MACHINES.get(number, "")
        return ""

    def why_no_packages(self) -> str:
        """Return why apt cannot be run in the image from here, '' where it can."""
        if not self.is_program("/usr/bin/apt-get"):
            return "there is no apt-get in it"
        there, here = self.read_architecture(), platform.machine()
        if there != here:
            return f"its programs are for {there or 'another architecture'}, and this machine is {here}"
        if shutil.which("unshare", path=PATH) is None:
            return "unshare(1), which keeps what apt starts inside, is not on this machine"
        return ""

    def sweep_policy(self) -> None:
        """Remove what an installation that was cut short has left."""
        if self.read(POLICY_FILE).content == POLICY:
            self.remove(POLICY_FILE)

    def _run_inside(self, argv: Sequence[str], run: Callable[[Sequence[str]], Completed]) -> Completed:
        """Run a program of the image in it: what it starts or mounts ends with it, and no daemon starts."""
        if not self.installs:
            return self._refuse(argv)
        why = self.why_no_packages()
        if why:
            says = f"{argv[0]} is not run in {self.root}: {why}"
            return Completed(tuple(argv), NOT_EXECUTABLE, "", says, 0.0)
        shut_in = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        if self.is_folder("/proc"):
            shut_in.append(f"--mount-proc={self.root}/proc")
        if not self.exists(POLICY_FILE) and self.is_folder("/usr/sbin"):
            self.create(POLICY_FILE, POLICY, 0o755)
        try:
            return run([*shut_in, "chroot", str(self.root), *argv])
        finally:
            self.sweep_policy()

    def _refuse(self, argv: Sequence[str]) -> Completed:
        says = f"{argv[0]} is not run: {self.root} is an image, and no running machine"
        return Completed(tuple(argv), NOT_EXECUTABLE, "", says, 0.0)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        return {**super()._environment(more), "PATH": PATH}


def open_system(root: str | None, *, installs: bool = True) -> System:
    """Return the system that ``--root`` names: this machine for None and ``/``, else an image.

    ``installs``: whether the image's own package manager may be run in it.
    Raises Misuse for what is no root file system.
    """
    if root is None:
        return System()
    folder = Path(root).absolute()
    try:
        if folder.samefile("/"):
            return System()
        folder = folder.resolve()
    except (OSError, RuntimeError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise Misuse(f"--root {root}: {reason}", "name the folder of a root file system") from None
    image = Image(folder, installs=installs)
    missing = [name for name in ("etc", "usr") if not image.is_folder(f"/{name}")]
    if missing:
        raise Misuse(
            f"--root {folder}: there is no folder {' and no folder '.join(missing)} in it",
            "name the folder of a root file system, which holds etc, usr and var",
        )
    return image

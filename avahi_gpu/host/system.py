"""The one door to files and processes: everything that reads or changes the machine goes through ``System``.

Paths are absolute as the machine itself names them (``/etc/nsswitch.conf``); ``root`` is put before them,
and a symbolic link never leads out of it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_field
from pathlib import Path, PurePath, PurePosixPath

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host import atomic
from avahi_gpu.host.atomic import Wanted, append_line, create, read_all, replace, sync_folder, temporary_of
from avahi_gpu.host.attributes import is_locked
from avahi_gpu.host.file_faults import failed_at
from avahi_gpu.host.paths import instead_of, locate
from avahi_gpu.host.process import GRACE_S, QUICK_GRACE_S, Completed, run_process
from avahi_gpu.model import NOT_A_FILE, FileState

MAX_FILE_BYTES = 4 << 20  # no configuration file is larger; what is larger is not what it is taken for
NEW_FILE_MODE = 0o644
DAEMON_START_S = 20.0  # avahi-daemon --daemonize returns once it listens; slow disks included
# not on the PATH of a user: avahi-daemon lives there
ADMIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

_TOP = Path("/")


@dataclass(frozen=True)
class System:
    """A machine, or the tree of one under ``root``."""

    root: Path = field(default_factory=lambda: Path("/"))
    ends_at: float | None = None  # on the monotonic clock: programs that run then only read, and are ended
    stand_in: Path | None = None  # a folder whose files are read in place of those of /etc/avahi-gpu
    program: str = ""  # where avahi-gpu will be, if that is not where it runs now

    def until(self, ends_at: float) -> System:
        """Return the same machine, where no program that we run goes on beyond a time."""
        return replace_field(self, ends_at=ends_at)

    def left_s(self) -> float:
        """Return the seconds that a program may run now."""
        return float("inf") if self.ends_at is None else max(0.0, self.ends_at - time.monotonic())

    @property
    def is_root(self) -> bool:
        """Whether this process may change the machine."""
        return os.geteuid() == 0

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, path: str | Path, limit: int = MAX_FILE_BYTES) -> FileState:
        """Return the file as it is; never raises.

        Anything but a regular file of at most ``limit`` bytes is an error in the state.

        ``writable`` tells of read-only file systems and immutable files; that a user is not root is not a
        property of the file.
        """
        path = str(path)
        if instead := instead_of(self.stand_in, path):
            return replace_field(replace_field(self, stand_in=None).read(instead, limit), path=path)
        link_target = None
        try:
            if self._is_link(path):
                link_target = self._outside(self._locate(path))
            # O_NONBLOCK: a FIFO in a file's place must not hang us
            handle = os.open(self._follow(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError as fault:
            error = fault.strerror or str(fault)
            return FileState(path, None, link_target=link_target, writable=self._writable(path), error=error)
        except OSError as fault:
            return self._unreadable(path, link_target, fault)
        try:
            status = os.fstat(handle)
            owner = (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
            writable = self._writable(path)
            if not stat.S_ISREG(status.st_mode):
                return FileState(path, None, *owner, link_target, writable, NOT_A_FILE)
            content = read_all(handle, limit + 1)
            changed = status.st_mtime_ns / 1e9
            locked = not writable and is_locked(handle)
        except OSError as fault:
            return self._unreadable(path, link_target, fault)
        finally:
            os.close(handle)
        if len(content) > limit:
            return FileState(path, None, *owner, link_target, writable, f"larger than {limit} bytes")
        return FileState(path, content, *owner, link_target, writable, immutable=locked, changed=changed)

    def exists(self, path: str | Path) -> bool:
        """Return whether something is there, links followed. Never raises."""
        try:
            return os.path.exists(self._follow(str(path)))  # noqa: PTH110  a fifth of pathlib's time
        except OSError:
            return False

    def is_absent(self, path: str | Path) -> bool:
        """Return whether nothing at all is there; False also where that cannot be told. Never raises.

        A link that leads nowhere, the last one or one of a folder, is something that is there.
        """
        if instead := instead_of(self.stand_in, path):
            return replace_field(self, stand_in=None).is_absent(instead)
        for part in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            try:
                self._inside(str(part)).lstat()
            except (FileNotFoundError, NotADirectoryError):
                return True
            except OSError:
                return False
            try:
                self._locate(str(part)).lstat()
            except OSError:
                return False
        return False

    def is_folder(self, path: str | PurePath) -> bool:
        """Return whether a folder is there, links followed. Never raises."""
        try:
            return self._locate(str(path)).is_dir()
        except OSError:
            return False

    def list_folder(self, path: str | Path) -> tuple[str, ...]:
        """Return the names in a folder, sorted; () where there is none or it cannot be read."""
        try:
            return tuple(sorted(os.listdir(self._follow(str(path)))))  # noqa: PTH208  thousands in /proc
        except OSError:
            return ()

    def read_link(self, path: str | Path) -> str:
        """Return what a symbolic link says, '' where it is none or cannot be read. Never raises."""
        try:
            return os.readlink(path if self.is_whole else self._inside(str(path)))  # noqa: PTH115  as above
        except OSError:
            return ""

    def read_tail(self, path: str | Path, limit: int) -> bytes | None:
        """Return the last ``limit`` bytes of a regular file; None where there is none. Never raises."""
        try:
            handle = os.open(self._locate(str(path)), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return None
            return os.pread(handle, limit, max(0, status.st_size - limit))
        except OSError:
            return None
        finally:
            os.close(handle)

    def read_label(self, path: str | Path) -> str:
        """Return a file's SELinux context, '' where there is none. Never raises."""
        try:
            label = os.getxattr(self._inside(str(path)), "security.selinux", follow_symlinks=False)
        except OSError:
            return ""
        return label.rstrip(b"\0").decode("utf-8", "replace")

    # --- writing -----------------------------------------------------------------------------------------

    def write(
        self,
        path: str | Path,
        content: bytes,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        *,
        before_rewrite: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the file hold ``content``, all or nothing, also through a power cut. Raises ChangeFailed.

        A symbolic link stays and its target is written. None keeps the mode and owner of an existing file; a
        new one gets 0644 and is ours. A service file gets a later second than it had: avahi-daemon loads one
        again only where that differs (static-services.c). The folder must be there. Other names of the file
        (hard links) keep the old content: such a copy is a snapshot's more often than not.
        A file that nothing can be renamed over is written in place, which a power cut can leave half done:
        ``before_rewrite`` is called first.
        """
        try:
            real = self._locate(str(path))
            old = _status(real)
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise ChangeFailed(f"{path} is not a regular file", "move it out of the way")
            wanted = Wanted(
                content,
                mode if mode is not None else stat.S_IMODE(old.st_mode) if old else NEW_FILE_MODE,
                uid if uid is not None else old.st_uid if old else os.geteuid(),
                gid if gid is not None else old.st_gid if old else os.getegid(),
                atomic.renewed(old) if old and real.suffix == ".service" else None,
            )
            replace(real, wanted, exists=old is not None, before_rewrite=before_rewrite)
        except OSError as fault:
            raise failed_at(f"cannot write {path}", fault) from fault

    def create(self, path: str | Path, content: bytes, mode: int) -> None:
        """Make a new file, all or nothing. Raises ChangeFailed, also where something is there already."""
        try:
            create(self._locate(str(path)), content, mode)
        except FileExistsError:
            raise ChangeFailed(f"{path} is there already", "it stays as it is") from None
        except OSError as fault:
            raise failed_at(f"cannot write {path}", fault) from fault

    def append(self, path: str | Path, line: bytes, mode: int = 0o600) -> None:
        """Add ``line`` to the end of a file, made with ``mode`` where missing, and wait for the disk."""
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._inside(str(path)), flags, mode)
            try:
                append_line(handle, line)
            finally:
                os.close(handle)
            sync_folder(self._inside(str(path)).parent)
        except OSError as fault:
            raise failed_at(f"cannot write {path}", fault) from fault

    def remove(self, path: str | Path) -> None:
        """Remove a file or a symbolic link (not its target); nothing there is fine. Raises ChangeFailed."""
        real = self._inside(str(path))
        try:
            real.unlink(missing_ok=True)
            if real.parent.is_dir():
                sync_folder(real.parent)
        except OSError as fault:
            raise failed_at(f"cannot remove {path}", fault) from fault

    def sweep(self, path: str | Path) -> None:
        """Remove what a crash in the middle of ``write`` may have left beside the file."""
        with contextlib.suppress(OSError):
            temporary_of(self._locate(str(path))).unlink(missing_ok=True)

    def make_folder(self, path: str | PurePath, mode: int = 0o755) -> tuple[str, ...]:
        """Make a folder and those above it; return the paths that were made, outermost first."""
        made: list[str] = []
        try:
            for folder in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
                real = self._locate(str(folder))
                if not real.is_dir():
                    real.mkdir(mode)
                    real.chmod(mode)  # whatever the umask
                    sync_folder(real.parent)
                    made.append(str(folder))
        except OSError as fault:
            raise failed_at(f"cannot make the folder {path}", fault) from fault
        return tuple(made)

    def remove_folder(self, path: str | PurePath) -> bool:
        """Remove an empty folder; return whether there is none now. One that is not empty stays."""
        try:
            self._inside(str(path)).rmdir()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return True

    def lock_handle(self, path: str | Path) -> int:
        """Open (and make) a lock file and return its descriptor; the caller locks and closes it."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(self._inside(str(path)), flags, 0o600)
        except OSError as fault:
            raise failed_at(f"cannot open {path}", fault) from fault

    # --- processes ---------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
    ) -> Completed:
        """Run a program to its end in a session of its own; never raises for what the program does.

        ``LC_ALL=C``; nothing on its stdin but ``input``; ``env`` is added to our environment. After
        ``timeout_s`` the whole group is ended and ``returncode`` is None. 127: there is no such program.
        """
        grace_s = GRACE_S if self.ends_at is None else QUICK_GRACE_S
        limit_s = min(timeout_s, self.left_s())
        return run_process(argv, limit_s, self._environment(env), input, grace_s=grace_s)

    def start_daemon(self, argv: Sequence[str], timeout_s: float = DAEMON_START_S) -> Completed:
        """Run a program that starts a daemon and returns (``avahi-daemon --daemonize``, ``systemctl start``).

        What stays behind holds no pipe of ours, and none of the caller's locale or folder.
        """
        return run_process(argv, timeout_s, self._environment(None), None, leaves_children=True)

    def run_to_its_end(
        self, argv: Sequence[str], timeout_s: float, env: Mapping[str, str], tell: Callable[[], None]
    ) -> Completed:
        """Run what must not be cut off in the middle, as a package manager: it goes on where we are killed.

        Ctrl-C is handed on to it, told of by ``tell``, and raised once it has ended; a second one at once.
        """
        return run_process(argv, timeout_s, self._environment(env), None, leaves_children=True, tell=tell)

    def find_program(self, name: str) -> str | None:
        """Return the path of a program, administrators' folders included; None where there is none."""
        for folder in self._environment(None)["PATH"].split(":"):
            path = f"{folder}/{name}"
            if folder.startswith("/") and self._is_program(path):
                return path
        return None

    # --- paths -------------------------------------------------------------------------------------------

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LC_") and k != "LANGUAGE"}
        folders = [f for f in environment.get("PATH", "/usr/bin:/bin").split(":") if f]
        folders += [f for f in ADMIN_FOLDERS if f not in folders]
        return {**environment, "PATH": ":".join(folders), "LC_ALL": "C", **(more or {})}

    def _is_program(self, path: str) -> bool:
        try:
            real = self._locate(path)
        except OSError:
            return False
        return real.is_file() and os.access(real, os.X_OK)

    @property
    def is_whole(self) -> bool:
        """Whether this is the machine itself, whose links the kernel follows on its own."""
        return self.root == _TOP

    def _follow(self, path: str) -> str | Path:
        """Return what the kernel is to open for ``path``: to look at each folder ourselves takes long."""
        return path if self.is_whole and path.startswith("/") else self._locate(path)

    def _is_link(self, path: str) -> bool:
        return Path(path).is_symlink() if self.is_whole else self._inside(path).is_symlink()

    def _inside(self, path: str) -> Path:
        """Return where ``path`` lies, links in its folders followed within the root, the last one not."""
        folder, name = os.path.split(os.path.normpath(path))
        return self._locate(folder) / name if name else self.root

    def _outside(self, real: Path) -> str:
        return "/" + str(real.relative_to(self.root)) if self.root != Path("/") else str(real)

    def _locate(self, path: str) -> Path:
        return locate(self.root, path)

    def _writable(self, path: str) -> bool:
        try:
            real = Path(path) if self.is_whole and Path(path).exists() else self._locate(path)
            while not real.exists() and real != real.parent:
                real = real.parent
            if os.statvfs(real).f_flag & os.ST_RDONLY:
                return False
        except OSError:
            return False
        # for root this tells of immutable files alone; for others it would tell who they are
        return os.access(real, os.W_OK) if self.is_root else True

    def _unreadable(self, path: str, link_target: str | None, fault: OSError) -> FileState:
        error = fault.strerror or str(fault)
        try:
            status = self._locate(path).stat()
        except OSError:
            return FileState(path, None, link_target=link_target, writable=False, error=error)
        owner = (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
        return FileState(path, None, *owner, link_target, self._writable(path), error)


def _status(real: Path) -> os.stat_result | None:
    try:
        return real.stat()
    except FileNotFoundError:
        return None


__all__ = ["Completed", "System"]

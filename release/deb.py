"""Build the Debian package: avahi-gpu with the libraries that it needs, and the same bytes each time.

``make deb`` runs it and puts the package into dist/; ``ARCHITECTURE=arm64`` builds for another one. It takes
dpkg-deb, and the network for the libraries the first time. docs/adr/0010 tells why they are in it.
"""

from __future__ import annotations

import email
import gzip
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from release import dist, wheels
from release.dist import REPOSITORY, NotBuilt, run

PARTS = Path(__file__).with_name("debian")
PACKAGE = "avahi-gpu"
REVISION = 1
LIBRARY = "usr/lib/avahi-gpu"
DOC = "usr/share/doc/avahi-gpu"
# of a library's metadata: its name and version, and what it offers; the licences go into the copyright file
METADATA = ("METADATA", "entry_points.txt")
LICENCES = ("license", "licence", "copying", "notice", "authors")
COMMON = {  # what a licence is known by that every Debian has
    ("Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"): "Apache-2.0",
    ("GNU GENERAL PUBLIC LICENSE", "Version 2, June 1991", "END OF TERMS AND CONDITIONS"): "GPL-2",
}
# in the source tree -> where each shell looks for it
COMPLETIONS = {
    "completion/avahi-gpu.bash": "usr/share/bash-completion/completions/avahi-gpu",
    "completion/avahi-gpu.zsh": "usr/share/zsh/vendor-completions/_avahi-gpu",
    "completion/avahi-gpu.fish": "usr/share/fish/vendor_completions.d/avahi-gpu.fish",
}
NO_USE = ("example.py",)  # at the top of nvidia-ml-py's wheel
MAINTAINER_SCRIPTS = ("postinst", "prerm", "postrm")


def build(
    source: Path, libraries: Path, out: Path, architecture: str, epoch: int | None = None, effort: int = 9
) -> Path:
    """Build the package of a source tree and a folder of wheels; return its path. Raises NotBuilt.

    ``epoch``: the time that everything in it bears; ``effort``: xz's, 0 to 9.
    """
    when = dist.time_of(source) if epoch is None else epoch
    with tempfile.TemporaryDirectory(prefix="avahi-gpu-deb-") as scratch:
        dist.build(source, Path(scratch), ["wheel"], when)
        own = next(Path(scratch).glob("*.whl"))
        version = f"{own.name.split('-')[1]}-{REVISION}"
        root = Path(scratch, "root")
        stage(root, source, own, choose(sorted(libraries.glob("*.whl"))), version, when)
        describe(root, version, architecture)
        settle(root, when)
        path = out / f"{PACKAGE}_{version}_{architecture}.deb"
        out.mkdir(parents=True, exist_ok=True)
        run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{effort}", "--build", str(root), str(path)],
            # how many cores there are shows in what xz writes
            env={**os.environ, "SOURCE_DATE_EPOCH": str(when), "DPKG_DEB_THREADS_MAX": "1"},
        )
    return path


def stage(root: Path, source: Path, own: Path, others: list[Path], version: str, when: int) -> None:
    """Lay out the files as they are to be installed."""
    for wheel in (own, *others):
        unpack(wheel, root / LIBRARY)
    put(root / "usr/bin/avahi-gpu", (PARTS / "avahi-gpu").read_bytes(), 0o755)
    unit = (source / "templates/avahi-gpu-facts.service").read_text()
    unit = unit[unit.index("[Unit]") :]  # its head speaks of setup, which does not write this one
    unit = unit.replace("@CONDITION@", "/usr/bin/avahi-gpu")
    unit = unit.replace("@COMMAND@", "/usr/bin/avahi-gpu refresh")
    put(root / "usr/lib/systemd/system/avahi-gpu-facts.service", unit.encode())
    put(root / "usr/share/python3/runtime.d/avahi-gpu.rtupdate", (PARTS / "rtupdate").read_bytes(), 0o755)
    for page in sorted((source / "man").glob("man?/*.[15]")):
        put(root / f"usr/share/man/{page.parent.name}/{page.name}.gz", squeeze(page.read_bytes()))
    for script, target in COMPLETIONS.items():
        put(root / target, (source / script).read_bytes())
    role = source / "ansible/roles/avahi_gpu"
    for path in sorted(role.rglob("*")):
        if path.suffix in (".py", ".yml", ".j2", ".md"):
            put(root / "usr/share/ansible/roles/avahi_gpu" / path.relative_to(role), path.read_bytes())
    put(root / DOC / "copyright", copyright_of(others).encode())
    put(root / DOC / "changelog.gz", squeeze((source / "CHANGELOG.md").read_bytes()))
    put(root / DOC / "changelog.Debian.gz", squeeze(changelog(version, when).encode()))
    put(root / "usr/share/lintian/overrides/avahi-gpu", (PARTS / "lintian-overrides").read_bytes())


def describe(root: Path, version: str, architecture: str) -> None:
    """Write what dpkg is to know of the package."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    folders = sum(path.is_dir() for path in root.rglob("*"))
    size_kib = folders + sum(-(-path.stat().st_size // 1024) for path in files)
    control = (PARTS / "control").read_text()
    for name, value in (("VERSION", version), ("ARCHITECTURE", architecture), ("SIZE", str(size_kib))):
        control = control.replace(f"@{name}@", value)
    sums = "".join(f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(root)}\n" for p in files)
    put(root / "DEBIAN/control", control.encode())
    put(root / "DEBIAN/md5sums", sums.encode())
    for name in MAINTAINER_SCRIPTS:
        put(root / "DEBIAN" / name, (PARTS / name).read_bytes(), 0o755)


def choose(found: list[Path]) -> list[Path]:
    """Return the wheels to unpack: not those for one Python where the project has one for all."""
    pure = {path.name.partition("-")[0] for path in found if path.name.endswith("-py3-none-any.whl")}
    return [p for p in found if p.name.endswith("-py3-none-any.whl") or p.name.partition("-")[0] not in pure]


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack a wheel over others. Raises NotBuilt where another wheel has another file of the same name."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            first, _, rest = name.partition("/")
            if name.endswith("/") or first.endswith(".data") or name in NO_USE:
                continue
            if first.endswith(".dist-info") and rest not in METADATA:
                continue
            target, content = folder / name, archive.read(name)
            if ".." in PurePosixPath(name).parts or (target.exists() and target.read_bytes() != content):
                raise NotBuilt(f"{wheel.name}: {name} is another one than in another wheel")
            put(target, content)


def copyright_of(libraries: list[Path]) -> str:
    """Return the copyright file: our licence, and those of each library as its authors wrote them."""
    told: dict[str, str] = {}
    for wheel in libraries:
        with zipfile.ZipFile(wheel) as archive:
            info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            metadata = email.message_from_bytes(archive.read(info))
            name = f"{metadata['Name']} {metadata['Version']}"
            if name in told:
                continue
            texts = list(licences_of(archive, info.rpartition("/")[0]))
            if not texts:
                said = metadata["License-Expression"] or metadata["License"]
                if not said:
                    raise NotBuilt(f"{wheel.name} does not tell its licence")
                texts = [f"{said}; the text stands at the head of the files themselves."]
            tops = sorted({n.partition("/")[0] for n in archive.namelist()})
            tops = [t for t in tops if not t.endswith((".dist-info", ".data")) and t not in NO_USE]
        paths = " ".join(f"{LIBRARY}/{top}{'' if top.endswith('.py') else '/*'}" for top in tops)
        words = name.replace(" ", "-")
        told[name] = f"\nFiles: {paths}\nCopyright: the authors of {name}, as its licence names them\n"
        told[name] += f"License: {words}\n" + "".join(indent("\n".join(texts)))
    return (PARTS / "copyright").read_text() + "".join(told[name] for name in sorted(told, key=str.lower))


def licences_of(archive: zipfile.ZipFile, info: str) -> Iterator[str]:
    """Yield the texts of licences that a wheel carries."""
    for name in sorted(archive.namelist()):
        if name.startswith(f"{info}/") and PurePosixPath(name).name.lower().startswith(LICENCES):
            text = archive.read(name).decode("utf-8", "replace").strip()
            common = next((file for words, file in COMMON.items() if all(w in text for w in words)), None)
            yield f"On Debian systems its text is in /usr/share/common-licenses/{common}." if common else text


def indent(text: str) -> Iterator[str]:
    """Yield lines as a field of several lines holds them (deb822(5))."""
    for line in text.splitlines():
        yield f" {line.rstrip()}\n" if line.strip() else " .\n"


def changelog(version: str, when: int) -> str:
    """Return what Debian's tools read; what is new for people stands in changelog.gz."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(when))
    maintainer = next(
        line.partition(": ")[2]
        for line in (PARTS / "control").read_text().splitlines()
        if line.startswith("Maintainer: ")
    )
    what = "Release of the project itself; its changes are in changelog.gz."
    return f"{PACKAGE} ({version}) unstable; urgency=medium\n\n  * {what}\n\n -- {maintainer}  {date}\n"


def squeeze(content: bytes) -> bytes:
    """Return the content as gzip -9n makes it: without a name or a time."""
    return gzip.compress(content, 9, mtime=0)


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file with exactly this mode, whatever the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def settle(root: Path, when: int) -> None:
    """Give all folders their mode, and everything the same time."""
    for path in (root, *root.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (when, when))


def build_here() -> Path:
    """Build the package for this machine's architecture, or the one that is named, into dist/."""
    if shutil.which("dpkg-deb") is None:
        raise NotBuilt("there is no dpkg-deb here: Debian packages are built on a Debian or Ubuntu")
    architecture = os.environ.get("ARCHITECTURE") or run(["dpkg", "--print-architecture"]).strip()
    if architecture not in wheels.MACHINES:
        raise NotBuilt(f"no package for {architecture}: {', '.join(wheels.MACHINES)} are known")
    if not dist.is_as_committed(REPOSITORY):
        print("note: there are changes that are not committed: do not publish this", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="avahi-gpu-wheels-") as scratch:
        wheels.fetch(Path(scratch), architecture)
        return build(REPOSITORY, Path(scratch), REPOSITORY / "dist", architecture)


if __name__ == "__main__":
    try:
        print(build_here().relative_to(REPOSITORY))
    except NotBuilt as problem:
        sys.exit(str(problem))

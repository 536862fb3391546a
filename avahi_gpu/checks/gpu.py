"""4xx: the GPUs, and the torch that is to use them. Neither is needed for a node to be found."""

from __future__ import annotations

import re

from avahi_gpu.checks.outcome import Outcome, error, info, ok, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import TORCH_AT_LEAST, Facts

ENOUGH_KIB = 1 << 20  # a GiB: what NCCL registers for a few GPUs


@check("AG401", slug="gpus", area="gpu", says="the GPUs of this machine can be read")
def gpus(facts: Facts) -> Outcome:
    """A machine without a GPU is a node all the same: torch runs on its CPU."""
    if "mismatch" in facts.gpu_error:
        return error(
            "the NVIDIA driver was updated while the old one is still loaded, and torch sees no GPU",
            [facts.gpu_error],
            hint="restart the machine, or unload the module nvidia and load it again",
        )
    if facts.gpu_error:
        return warn(
            "the GPUs could not be read",
            [facts.gpu_error],
            hint="nvidia-smi tells more; after an update of the driver the machine needs a restart",
        )
    if facts.gpus is None:
        return unknown("nobody asked for the GPUs")
    if not facts.gpus:
        return info("this machine has no NVIDIA GPU; torch will run on its CPU")
    driver = [f"driver {facts.versions.driver}"] if facts.versions.driver else []
    return ok(*(f"{g.name}, {g.vram_mib} MiB" for g in facts.gpus), *driver)


@check("AG402", slug="torch", area="gpu", says="torch is there and knows the backend avahi")
def torch(facts: Facts) -> Outcome:
    """``launch`` needs torch beside avahi-gpu; ``setup``, ``doctor`` and ``peers`` do not."""
    version = facts.versions.torch
    if "versions" in facts.unread:
        return unread(facts, "versions", "the version of torch")
    if not version:
        return info(
            "torch is not installed in the Python that was asked",
            hint="launch needs it: pip install torch in the training environment, beside avahi-gpu",
        )
    number = re.match(r"(\d+)\.(\d+)", version)
    if number and (int(number[1]), int(number[2])) < TORCH_AT_LEAST:
        return warn(
            f"torch {version} is too old for the backend avahi",
            hint=f"launch needs torch {TORCH_AT_LEAST[0]}.{TORCH_AT_LEAST[1]} or newer",
        )
    cuda = f", CUDA {facts.versions.cuda}" if facts.versions.cuda else ", without CUDA"
    if facts.gpus and not facts.versions.cuda:
        return warn(
            "torch was built without CUDA and will not use the GPUs",
            [f"torch {version}"],
            hint="install a CUDA build of torch: https://pytorch.org/get-started/locally/",
        )
    return ok(f"torch {version}{cuda}")


@check("AG403", slug="gpu-driver", area="gpu", says="the driver of the GPUs is there", needs=("AG401",))
def gpu_driver(facts: Facts) -> Outcome:
    """A card without a driver, and a driver whose devices were not handed into the container."""
    found = facts.host.gpu_devices
    if found is None:
        return unread(facts, "host.gpu_devices", "the devices of this machine")
    if found.driver and not found.nodes:
        in_container = facts.host.surroundings is not None and facts.host.surroundings.container
        return error(
            "the NVIDIA driver is loaded, and its devices are not in /dev: torch sees no GPU",
            [f"driver {found.driver}, no /dev/nvidia0"],
            hint="start the container with --gpus all"
            if in_container
            else "run as root: nvidia-modprobe -c0 -u",
        )
    if found.nvidia and not found.driver:
        return warn(
            "this machine has an NVIDIA card, and no NVIDIA driver is loaded",
            [f"NVIDIA devices on the PCI bus: {found.nvidia}"],
            hint="install the driver of the distribution, or take this one as a machine without a GPU",
        )
    if found.others and not facts.gpus:
        makers = ", ".join(found.others)
        return info(f"GPUs of {makers} are not looked at: whether torch can use them is not known")
    return ok(*([f"driver {found.driver}"] if found.driver else []))


@check(
    "AG404",
    slug="cuda-for-driver",
    area="gpu",
    says="the driver is new enough for torch's CUDA",
    needs=("AG401", "AG403"),
)
def cuda_for_driver(facts: Facts) -> Outcome:
    """A driver runs every CUDA of its own major version (minor version compatibility), and no newer one."""
    wanted, given = _major(facts.versions.cuda), _major(facts.cuda_driver)
    if not facts.gpus or wanted is None or given is None:
        return ok()
    if wanted <= given:
        return ok(f"torch's CUDA {facts.versions.cuda}, the driver's {facts.cuda_driver}")
    says = f"torch was built for CUDA {facts.versions.cuda}, and the driver runs {facts.cuda_driver} at most"
    devices = facts.host.gpu_devices
    if devices is not None and devices.cuda_compat:
        return info(says, hint="a package for forward compatibility is here, and may bridge that")
    return error(
        says,
        [f"driver {facts.versions.driver}", f"torch {facts.versions.torch}"],
        hint="update the driver, or install a torch for an older CUDA: https://pytorch.org/get-started/locally/",
    )


@check("AG405", slug="gpus-alike", area="gpu", says="the GPUs of this machine are alike", needs=("AG401",))
def gpus_alike(facts: Facts) -> Outcome:
    """Ranks go at the pace of the slowest, and the smallest memory sets the batch."""
    kinds = dict.fromkeys(f"{g.name}, {g.vram_mib} MiB" for g in facts.gpus or ())
    if len(kinds) > 1:
        return info("this machine has different GPUs: a job goes at the pace of the slowest", kinds)
    return ok(*kinds)


@check("AG406", slug="locked-memory", area="gpu", says="memory may be locked for RDMA", needs=("AG401",))
def locked_memory(facts: Facts) -> Outcome:
    """NCCL registers its buffers with InfiniBand and RoCE cards; the usual limits are too small."""
    found = facts.host.gpu_devices
    if found is None:
        return unread(facts, "host.gpu_devices", "the devices of this machine")
    if not found.rdma or not facts.gpus or found.memlock_kib is None or found.memlock_kib >= ENOUGH_KIB:
        return ok(*found.rdma)
    return warn(
        f"this process may lock {found.memlock_kib} KiB of memory; NCCL over {found.rdma[0]} needs far more",
        hint="ulimit -l unlimited; in a container: docker run --ulimit memlock=-1",
    )


@check("AG407", slug="python-and-names", area="gpu", says="this Python looks names up by nsswitch.conf")
def python_and_names(facts: Facts) -> Outcome:
    """A C library of another kind, and a sandbox with files of its own, know nothing of nss-mdns."""
    found = facts.host.surroundings
    if found is None:
        return unread(facts, "host.surroundings", "what this Python is")
    if not found.c_library:
        return info(
            "this Python uses no glibc (musl, perhaps), and so never asks mDNS for a name",
            hint="avahi-gpu launch passes on addresses; for names take a Python with glibc",
        )
    if found.python in ("snap", "flatpak"):
        return info(
            f"this Python lives in a {found.python}, whose files are not this system's",
            hint="a .local name that `getent hosts` knows may be unknown in there",
        )
    return ok(found.c_library)


def _major(version: str) -> int | None:
    number = version.partition(".")[0]
    return int(number) if number.isdecimal() else None

"""4xx: the GPUs, and the torch that is to use them. Neither is needed for a node to be found."""

from __future__ import annotations

import re

from avahi_gpu.checks.outcome import Outcome, info, ok, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import TORCH_AT_LEAST, Facts


@check("AG401", slug="gpus", area="gpu", says="the GPUs of this machine can be read")
def gpus(facts: Facts) -> Outcome:
    """A machine without a GPU is a node all the same: torch runs on its CPU."""
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

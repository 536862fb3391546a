"""The figures of ``bench`` and how they are defined. Pure.

Algorithm and bus bandwidth are those of nccl-tests (its doc/PERFORMANCE.md): bytes of one rank's buffer
divided by the time, and that times 2(n-1)/n for an all-reduce of n ranks, which is what each link has to
carry whatever the number of ranks. GB/s are 10⁹ bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from avahi_gpu.errors import Misuse
from avahi_gpu.model.gauge import Estimate, GaugedLink, Measurement, Reduction

BYTES_OF = {"fp32": 4, "bf16": 2, "fp16": 2}  # of one gradient
SIZE_MIN = 8  # bytes; latency alone
SIZE_MAX = 256 << 20  # … and bandwidth alone; two buffers of it fit into the memory of any GPU
SIZE_QUICK = 8 << 20
STEP = 4
PARAMETERS_MAX = 10**15
USUAL_MODELS = (20_000_000, 1_000_000_000, 7_000_000_000)  # the weights of a LoRA, and two models whole

_MODEL = re.compile(r"(\d{1,16}(?:\.\d{1,6})?)([KMBT]?)", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def sizes(largest: int = SIZE_MAX) -> tuple[int, ...]:
    """Return the sizes of the all-reduce in bytes, each four times the one before, and the largest."""
    found = [SIZE_MIN]
    while found[-1] * STEP < largest:
        found.append(found[-1] * STEP)
    return (*found, largest)


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Return bytes per second of the operation as a program sees it."""
    return size / seconds


def bus_bandwidth(size: int, seconds: float, ranks: int) -> float:
    """Return bytes per second that an all-reduce moves over each rank's link."""
    return algorithm_bandwidth(size, seconds) * traffic(ranks)


def traffic(ranks: int) -> float:
    """Return how many times its buffer a rank has to send in an all-reduce at least: 2(n-1)/n."""
    return 2 * (ranks - 1) / ranks


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that ``share`` (0 to 1) of all do not exceed. Raises ValueError for none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """Return the middle value, the lower one of two. Raises ValueError for none."""
    return percentile(values, 0.5)


def reduction_seconds(size: int, curve: Sequence[Reduction]) -> float:
    """Return what an all-reduce of ``size`` bytes takes by the measured ``curve``, which is not empty.

    Between two sizes by the straight line; beyond the largest as long for each byte as there, which is by its
    bus bandwidth.
    """
    points = sorted(curve, key=lambda point: point.size)
    if size >= points[-1].size:
        return points[-1].seconds * size / points[-1].size
    if size <= points[0].size:
        return points[0].seconds
    upper = next(i for i, point in enumerate(points) if point.size >= size)
    low, high = points[upper - 1], points[upper]
    share = (size - low.size) / (high.size - low.size)
    return low.seconds * (1 - share) + high.seconds * share


def estimate(measured: Measurement, parameters: int, dtype: str) -> Estimate:
    """Return what exchanging the gradients of so many parameters takes.

    Where there was no all-reduce, or none to its end, a ring over the slowest link: 2(n-1)/n times the bytes
    at its rate.
    """
    size = parameters * BYTES_OF[dtype]
    if measured.reductions and not measured.failed:
        return Estimate(parameters, dtype, size, reduction_seconds(size, measured.reductions), measured=True)
    slow = slowest(measured.links)
    if slow is None or not slow.bits_per_s:
        return Estimate(parameters, dtype, size, None, measured=False)
    seconds = traffic(len(measured.nodes)) * size * 8 / slow.bits_per_s
    return Estimate(parameters, dtype, size, seconds, measured=False)


def slowest(links: Sequence[GaugedLink]) -> GaugedLink | None:
    """Return the link of the lowest rate, a failed one before all others; None without links."""
    return min(links, key=lambda link: link.bits_per_s or 0.0, default=None)


def parse_model(text: str) -> int:
    """Return the number of parameters of ``7B``, ``350M``, ``1.5b`` or ``125000000``. Raises Misuse."""
    found = _MODEL.fullmatch(text.strip())
    number = round(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if not 1 <= number <= PARAMETERS_MAX:
        raise Misuse(
            f"--model {text.strip() or repr(text)} is not a number of parameters", "write --model 7B, or 350M"
        )
    return number


def parse_dtype(text: str) -> str:
    """Return the type of the gradients. Raises Misuse."""
    word = text.strip().lower()
    if word not in BYTES_OF:
        raise Misuse(f"--dtype {text} is not a type of gradients", f"give one of {', '.join(BYTES_OF)}")
    return word

"""How people read rates, sizes and times. Pure."""

from __future__ import annotations


def show_speed(mbit: int) -> str:
    """Return a card's speed: ``100 Mbit/s``, ``2.5 Gbit/s``."""
    return f"{mbit} Mbit/s" if mbit < 1000 else f"{mbit / 1000:g} Gbit/s"


def show_rate(bits_per_s: float) -> str:
    """Return a measured rate in three digits: ``94.1 Mbit/s``, ``0.941 Gbit/s``, ``23.5 Gbit/s``."""
    if bits_per_s < 500e6:
        return f"{three_digits(bits_per_s / 1e6)} Mbit/s"
    return f"{three_digits(bits_per_s / 1e9)} Gbit/s"


def show_bandwidth(bytes_per_s: float) -> str:
    """Return bytes per second in decimal units, as nccl-tests counts them: ``1.18 GB/s``, ``64.2 kB/s``."""
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6)):
        if bytes_per_s >= size:
            return f"{three_digits(bytes_per_s / size)} {unit}"
    return f"{three_digits(bytes_per_s / 1e3)} kB/s"


def show_bytes(size: int) -> str:
    """Return a size in binary units: ``8 B``, ``32 KiB``, ``256 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def show_seconds(seconds: float) -> str:
    """Return a duration: ``87 µs``, ``4.2 ms``, ``1.32 s``, ``3 min 20 s``, ``2 h 46 min``, ``11.6 d``."""
    if seconds < 0.001:
        return f"{three_digits(seconds * 1e6)} µs"
    if seconds < 1:
        return f"{three_digits(seconds * 1e3)} ms"
    if seconds < 120:
        return f"{three_digits(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{seconds / 86400:,.1f} d"


def show_parameters(count: int) -> str:
    """Return a number of parameters as people name models by it: ``7B``, ``350M``, ``1.5B``."""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return str(count)


def three_digits(value: float) -> str:
    """Return a number of at most three digits that mean something: ``0.941``, ``9.41``, ``94.1``, ``941``."""
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return f"{value:.{digits}f}"

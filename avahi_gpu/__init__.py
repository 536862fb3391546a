"""avahi-gpu: machines with GPUs on one LAN become one PyTorch cluster, found by Avahi."""

__version__ = "0.1.0"
__released__ = "2026-11-30"  # the date of this version, which its manual pages bear

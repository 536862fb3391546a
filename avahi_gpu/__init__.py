"""avahi-gpu: machines with GPUs on one LAN become one PyTorch cluster, found by Avahi."""

__version__ = "0.1.0"

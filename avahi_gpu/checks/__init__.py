"""Pure questions about facts. Importing this package registers every check."""

from avahi_gpu.checks import cluster, gpu, host, names, network

__all__ = ["cluster", "gpu", "host", "names", "network"]

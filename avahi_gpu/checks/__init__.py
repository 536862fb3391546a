"""Pure questions about facts. Importing this package registers every check."""

from avahi_gpu.checks import cluster, gpu, host, hosts_line, names, network

__all__ = ["cluster", "gpu", "host", "hosts_line", "names", "network"]

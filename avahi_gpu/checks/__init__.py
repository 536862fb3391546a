"""Pure questions about facts. Importing this package registers every check."""

from avahi_gpu.checks import (
    cluster,
    daemon_config,
    firewall,
    gpu,
    host,
    hosts_line,
    likeness,
    mdns_modules,
    name_servers,
    names,
    network,
    own_name,
    service,
    survey,
    ways,
)

__all__ = [
    "cluster",
    "daemon_config",
    "firewall",
    "gpu",
    "host",
    "hosts_line",
    "likeness",
    "mdns_modules",
    "name_servers",
    "names",
    "network",
    "own_name",
    "service",
    "survey",
    "ways",
]

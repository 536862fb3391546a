"""The nodes as other launchers read them: hostfiles, a configuration, variables, names. Pure.

docs/how-to has a page for each. Nothing in here is printed that ``lineup`` has not made harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from avahi_gpu.model import DOMAIN
from avahi_gpu.render.lineup import Lineup
from avahi_gpu.render.shell import quote

FORMATS = ("deepspeed", "mpi", "accelerate", "env", "ssh", "hosts")
TRAINING = frozenset({"deepspeed", "mpi", "accelerate", "env"})  # these start processes
RANKED = frozenset({"accelerate", "env"})  # these differ from machine to machine: each has a rank of its own

PASSING = "With DHCP these addresses change: write it anew then."


def slots(lineup: Lineup) -> str:
    """Return the hostfile of DeepSpeed, which is Open MPI's too: ``address slots=N``."""
    return "".join(f"{e.address} slots={e.processes}\n" for e in lineup.entries)


def accelerate(lineup: Lineup) -> str:
    """Return this machine's configuration for ``accelerate launch --config_file``.

    accelerate divides ``num_processes`` by the number of machines: so many times this machine's own GPUs are
    the right number on each of them, equal or not. MULTI_GPU is what makes it start torchrun, GPUs or none.
    """
    first, own = lineup.entries[0], lineup.entries[lineup.own_rank or 0]
    machines = len(lineup.entries)
    processes = machines * own.processes
    return (
        "compute_environment: LOCAL_MACHINE\n"
        "debug: false\n"
        f"distributed_type: {'MULTI_GPU' if processes > 1 else 'NO'}\n"
        f"machine_rank: {lineup.own_rank or 0}\n"
        f"main_process_ip: {first.address}\n"
        f"main_process_port: {first.port}\n"
        "main_training_function: main\n"
        "mixed_precision: 'no'\n"
        f"num_machines: {machines}\n"
        f"num_processes: {processes}\n"
        "rdzv_backend: static\n"
        "same_network: true\n"
        f"use_cpu: {'false' if own.gpus else 'true'}\n"
    )


def env(lineup: Lineup, variables: Mapping[str, str]) -> str:
    """Return lines ``NAME=value`` for this machine, which every shell takes for nothing else.

    ``variables``: those that bind torch's transports to the interface. No RANK and no WORLD_SIZE: these are
    each process's own, and a script takes them for the sign that a launcher has started it.
    """
    first, own = lineup.entries[0], lineup.entries[lineup.own_rank or 0]
    found = {
        "MASTER_ADDR": first.address,
        "MASTER_PORT": str(first.port),
        "NNODES": str(len(lineup.entries)),
        "NODE_RANK": str(lineup.own_rank or 0),
        "NPROC_PER_NODE": str(own.processes),
        **variables,
    }
    return "".join(f"{name}={quote(value)}\n" for name, value in found.items())


def ssh(lineup: Lineup) -> str:
    """Return ``Host`` blocks for ssh_config(5); keys of hosts are known by the name, as addresses change."""
    blocks = [
        f"Host {e.name} {e.name}.{DOMAIN}\n"
        f"    HostName {e.address.replace('%', '%%')}\n"
        f"    HostKeyAlias {e.name}.{DOMAIN}\n"
        for e in lineup.entries
    ]
    return f"# by `avahi-gpu peers --format ssh`. {PASSING}\n" + "".join(blocks)


def hosts(lineup: Lineup) -> str:
    """Return lines for /etc/hosts; glibc takes no address with a zone there."""
    lines = [f"{e.address}\t{e.name}.{DOMAIN} {e.name}\n" for e in lineup.entries if "%" not in e.address]
    return (
        f"# by `avahi-gpu peers --format hosts`. {PASSING}\n"
        "# A wrong line in /etc/hosts wins over mDNS, which would know better.\n" + "".join(lines)
    )


WRITERS: Mapping[str, Callable[[Lineup], str]] = {
    "deepspeed": slots,
    "mpi": slots,
    "accelerate": accelerate,
    "ssh": ssh,
    "hosts": hosts,
}

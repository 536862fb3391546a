"""3xx: what DeepSpeed, accelerate and our launch go by on this machine: files that people write."""

from __future__ import annotations

from avahi_gpu.checks.outcome import Outcome, error, info, ok, unread, warn
from avahi_gpu.checks.own_name import lan_address
from avahi_gpu.checks.registry import check
from avahi_gpu.files import etc_hosts
from avahi_gpu.files.launcher_files import (
    number_of,
    parse_deepspeed_config,
    parse_flat,
    parse_hostfile,
)
from avahi_gpu.model import Endpoint, Facts, Fix, Interface

SHOWN = 4
NOT_SET = ("", "null", "none", "~")


@check(
    "AG336",
    slug="deepspeed-hosts",
    area="host",
    says="the hostfile is one that DeepSpeed can use",
    needs=("AG104", "AG201", "AG323"),
)
def deepspeed_hosts(facts: Facts) -> Outcome:
    """A host that only the launcher can look up, or a bad line, ends the run or makes it a local one."""
    found = facts.host.hostfile
    if found is None:
        return unread(facts, "host.hostfile", "DeepSpeed's hostfile")
    if not found.path:
        return ok()
    if found.error:
        return error(
            f"DeepSpeed cannot read {found.path} and would train on this machine alone",
            [found.error],
            hint="let the user who trains read it, or write it anew: `avahi-gpu peers --format deepspeed`",
        )
    hostfile = parse_hostfile(found.text)
    if hostfile.complaints:
        return error(
            f"DeepSpeed does not take {found.path}",
            [f"{found.path}:{c}" for c in hostfile.complaints[:SHOWN]],
            hint="each line is a host and its slots: `gpu-node-2.local slots=8`; "
            "`avahi-gpu peers --format deepspeed` writes one",
        )
    lost = [e for e in found.endpoints if not e.addresses]
    if lost:
        return error(
            f"{', '.join(e.host for e in lost[:SHOWN])} of {found.path} cannot be looked up",
            [f"{e.variable}: {e.host}: {e.error or 'no answer'}" for e in lost[:SHOWN]],
            hint="write names with .local, or addresses: `avahi-gpu peers --format deepspeed` does",
        )
    dead = [e for e in found.endpoints if e.alive is False]
    if dead:
        return error(
            f"{', '.join(e.host for e in dead[:SHOWN])} of {found.path} does not answer",
            [f"{e.variable}: {e.host} is {e.addresses[0]}, and nobody is there" for e in dead[:SHOWN]],
            hint="switch it on, or take it out: `avahi-gpu peers --format deepspeed` writes who is there",
        )
    return ok(f"{found.path}: {len(hostfile.hosts)} hosts")


@check(
    "AG339",
    slug="first-address",
    area="host",
    says="the first address of this machine is one of the LAN",
    needs=("AG201", "AG336"),
)
def first_address(facts: Facts) -> Outcome:
    """DeepSpeed makes the first word of `hostname -I` on its first host the master's address."""
    words = hostname_words(facts)
    lan = lan_address(facts)
    if not words or lan is None:
        return info("this machine has no address but loopback") if not words else ok(words[0][1])
    interface, first = words[0]
    best = next(i for i in facts.interfaces if any(a.ip == lan for a in i.addresses))
    others = {p.interface for p in facts.peers or () if p.alive}
    if interface.name == best.name or interface.name in others:
        return ok(first)
    if interface.link in ("wired", "wireless") and not others:
        return ok(first)
    says = f"`hostname -I` begins with {first} of {interface.name} ({interface.link}), not with {lan}"
    hint = "give DeepSpeed the address: deepspeed --master_addr " + lan
    found = facts.host.hostfile
    hosts = found.endpoints if found is not None else ()
    if len(hosts) > 1 and _is_here(facts, hosts[0]):
        return error(
            f"DeepSpeed would send the other nodes to {first}: {says}",
            [f"{e.variable}: {e.host}" for e in hosts[:SHOWN]],
            fix=Fix("name the master's address", commands=(f"deepspeed --master_addr {lan} …",)),
            hint="DeepSpeed takes the first word that `hostname -I` prints on the first host of the hostfile",
        )
    return info(says, hint=hint)


@check("AG337", slug="cluster-key", area="host", says="the cluster key, where there is one, can be used")
def cluster_key(facts: Facts) -> Outcome:
    """A key that cannot be used ends launch: going on without it would open the job to everybody."""
    found = facts.host.key
    if found is None:
        return unread(facts, "host.key", "the cluster key")
    if found.error:
        return error(f"launch would refuse to run: {found.error}", hint=found.hint)
    return ok(found.path or "there is none: every machine on the LAN may join a job")


@check(
    "AG338",
    slug="accelerate-config",
    area="host",
    says="accelerate's configuration fits this machine",
    needs=("AG104", "AG201", "AG323"),
)
def accelerate_config(facts: Facts) -> Outcome:
    """The file is copied from node to node, and its machine_rank with it."""
    found = facts.host.accelerate
    if found is None:
        return unread(facts, "host.accelerate", "accelerate's configuration")
    if not found.path:
        return ok()
    if found.error:
        return warn(
            f"{found.path} cannot be read: {found.error}", hint="write it anew by `accelerate config`"
        )
    values = parse_flat(found.text)
    machines, rank = number_of(values, "num_machines") or 1, number_of(values, "machine_rank") or 0
    if machines < 2 or values.get("rdzv_backend", "static") not in ("", "static", "c10d"):
        return ok(found.path)
    wrong = _accelerate_wrong(facts, values, machines, rank, found.endpoints)
    if wrong:
        return error(
            wrong,
            [
                f"{found.path}: {k}: {values[k]}"
                for k in ("num_machines", "machine_rank", "main_process_ip")
                if k in values
            ],
            hint="each node has a machine_rank of its own, 0 where main_process_ip is; "
            "`avahi-gpu peers --format accelerate` writes such files",
        )
    total = number_of(values, "num_processes")
    if total is not None and total % machines:
        return warn(
            f"accelerate cannot share {total} processes evenly among {machines} machines",
            [f"{found.path}: num_processes: {total}"],
            hint="num_processes is that of all machines together",
        )
    return ok(found.path)


@check(
    "AG340",
    slug="deepspeed-config",
    area="host",
    says="the given configuration of DeepSpeed tells nothing of how machines meet",
)
def deepspeed_config(facts: Facts) -> Outcome:
    """DeepSpeed takes any key; of addresses, ranks and numbers of nodes it reads none in this file."""
    found = facts.host.deepspeed_config
    if found is None:
        return unread(facts, "host.deepspeed_config", "DeepSpeed's configuration")
    if not found.path:
        return ok()
    if found.error:
        return error(
            f"{found.path} cannot be read: {found.error}",
            hint="name the file that the script gives to deepspeed.initialize",
        )
    config = parse_deepspeed_config(found.text)
    if config.complaint:
        return error(
            f"DeepSpeed does not take {found.path}: {config.complaint}",
            hint="DeepSpeed wants one object of JSON, and each key once",
        )
    if config.idle:
        names = " and ".join(name for name, _ in config.idle)
        return warn(
            f"{names} in {found.path} does nothing: DeepSpeed reads that nowhere",
            [f"{found.path}: {name}: {value}" for name, value in config.idle],
            hint="take it out. Workers meet where their launcher says: `avahi-gpu launch` knows it, "
            "for the deepspeed command it is --master_addr and --hostfile",
        )
    if not config.plain:
        return info(f"{found.path} is not plain JSON: DeepSpeed reads it as Hjson, as versions of old do not")
    return ok(found.path)


def hostname_words(facts: Facts) -> list[tuple[Interface, str]]:
    """Return what `hostname -I` prints: IPv4 first, by interface; no loopback, no link-local IPv6."""
    found = [
        (i, a)
        for i in sorted(facts.interfaces, key=lambda i: i.index)
        for a in i.addresses
        if i.up and i.link != "loopback" and not (a.family == 6 and a.scope != "global")
    ]
    return [(i, a.ip) for i, a in sorted(found, key=lambda pair: pair[1].family)]


def _accelerate_wrong(
    facts: Facts, values: dict[str, str], machines: int, rank: int, endpoints: tuple[Endpoint, ...]
) -> str:
    host = values.get("main_process_ip", "")
    if rank >= machines:
        return f"accelerate counts machines from 0: machine_rank {rank} of {machines} is none"
    if host.lower() in NOT_SET:
        return "accelerate is to use several machines, and main_process_ip is not set"
    if not endpoints or not endpoints[0].addresses:
        return f"accelerate's main_process_ip {host} cannot be looked up"
    here = _is_here(facts, endpoints[0])
    loopback = etc_hosts.is_loopback(endpoints[0].addresses[0])
    if here and rank != 0:
        return (
            f"accelerate's main_process_ip {host} is this machine, and machine_rank says that it is another"
        )
    if not here and rank == 0:
        return f"machine_rank is 0 here, and accelerate's main_process_ip {host} is another machine"
    if loopback and host != facts.hostname:
        return f"accelerate's main_process_ip {host} is loopback, and leads every machine to itself"
    if endpoints[0].alive is False and not here:
        return f"nobody is at accelerate's main_process_ip {host}"
    return ""


def _is_here(facts: Facts, endpoint: Endpoint) -> bool:
    own = {a.ip for i in facts.interfaces for a in i.addresses}
    label = facts.hostname.partition(".")[0].lower()
    names = {facts.hostname.lower(), label, f"{label}.local", f"{facts.daemon.host_name.lower()}.local"}
    return endpoint.host.lower().rstrip(".") in names or bool(own & set(endpoint.addresses))

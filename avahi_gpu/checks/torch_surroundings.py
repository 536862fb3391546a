"""3xx: the environment in which torch would be started here. What is not set is not judged."""

from __future__ import annotations

from avahi_gpu.checks.daemon_config import avahi_publishes
from avahi_gpu.checks.name_servers import dns_answers
from avahi_gpu.checks.network import usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unread, warn
from avahi_gpu.checks.own_name import lan_address
from avahi_gpu.checks.registry import check
from avahi_gpu.files import etc_hosts, socket_ifname, torch_environment
from avahi_gpu.files.launcher_files import parse_variables
from avahi_gpu.model import Endpoint, Facts, Fix, Interface

GLOO, TENSORPIPE, NCCL = "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
BACKEND = "--rdzv-backend=avahi needs no endpoint and passes on addresses"
TIMEOUT = "timeout"  # of ``Lookup.error``
RUNNING = 2  # Avahi's state of a server that has its name


@check(
    "AG325",
    slug="endpoint-found",
    area="host",
    says="the endpoints that the environment gives torch can be reached",
    needs=("AG104", "AG201", "AG320", "AG321", "AG323"),
)
def endpoint_found(facts: Facts) -> Outcome:
    """MASTER_ADDR, PET_RDZV_ENDPOINT: a name that this node does not know is a wait until the timeout."""
    found = facts.host.endpoints
    if found is None:
        return unread(facts, "host.endpoints", "the endpoints in the environment")
    if not found:
        return ok()
    wrong = [(e, why) for e in found if (why := _unusable(facts, e))]
    in_local = any(e.host.lower().rstrip(".").endswith(".local") for e, _ in wrong)
    if in_local and not (_avahi_runs(facts) and avahi_publishes(facts).verdict != "error"):
        return skip("avahi-daemon does not run, or says nothing, and the endpoint is one of its names")
    # a name server that is silent keeps every look-up longer than we wait: that is not the endpoint's fault
    late = dns_answers(facts).verdict == "error"
    if late and wrong and all(e.error == TIMEOUT for e, _ in wrong):
        return info("the endpoints were not looked up in time, as a name server does not answer")
    wrong = [(e, why) for e, why in wrong if not (late and e.error == TIMEOUT)]
    if wrong:
        endpoint, why = wrong[0]
        return error(
            f"{endpoint.variable} sends torch to {endpoint.host or 'nowhere'}: {why}",
            [f"{e.variable}: {e.host}: {reason}" for e, reason in wrong[1:]],
            hint=f"correct or unset {endpoint.variable}; {BACKEND}",
        )
    return ok(*(f"{e.variable}: {e.host} is {', '.join(e.addresses)}" for e in found))


@check(
    "AG326",
    slug="endpoint-has-a-host",
    area="host",
    says="torchrun sees whether the endpoint is this machine",
    needs=("AG325",),
)
def endpoint_has_a_host(facts: Facts) -> Outcome:
    """Where c10d's guess is no on every node, nobody opens the store and all wait for it."""
    environ, own = facts.host.environment, facts.host.own_name
    if environ is None or own is None:
        return unread(facts, "host.own_name", "the environment or the own name")
    endpoint = next((e for e in facts.host.endpoints or () if e.variable == "PET_RDZV_ENDPOINT"), None)
    backend = environ.get("PET_RDZV_BACKEND", "")
    if endpoint is None or backend == "static" or (not backend and "PET_NODE_RANK" in environ):
        return ok()
    told = torch_environment.is_host(environ)
    if not _is_here(facts, endpoint):
        if told:
            return error(
                f"PET_RDZV_CONF says that this machine hosts {endpoint.host}, and that is another machine",
                _shown(endpoint),
                hint="set is_host=1 on the node that has the address, is_host=0 on all others",
            )
        return ok(f"{endpoint.host} is another machine")
    guess = torch_environment.matches_machine(endpoint.host, endpoint.addresses, own.name, own.found)
    if told is False:
        return error(
            f"{endpoint.host} is this machine, and PET_RDZV_CONF says that it does not host the store",
            _shown(endpoint),
            hint="set is_host=1 on this node; else nobody opens the store and all wait for it",
        )
    address = lan_address(facts) or "ADDRESS"
    evidence = [*_shown(endpoint), f"the own name {own.name} is {', '.join(own.addresses)}"]
    commands = ["export PET_RDZV_CONF=is_host=1", f"export PET_LOCAL_ADDR={address}"]
    if told is None and not guess:
        return error(
            f"the endpoint {endpoint.host} is this machine, and torchrun does not see that",
            evidence,
            fix=Fix("tell torchrun that it hosts the store", commands=tuple(commands)),
            hint=f"nobody opens the store, and every node waits a minute and ends; {BACKEND}",
        )
    if "PET_LOCAL_ADDR" not in environ and all(etc_hosts.is_loopback(a) for a in own.addresses):
        return error(
            f"torchrun would tell the other nodes to find rank 0 at {own.fqdn}, which they do not know",
            evidence,
            fix=Fix("tell torchrun its address", commands=tuple(commands[1:])),
            hint=f"other nodes end with `The IPv6 network addresses of ({own.fqdn}, …) cannot be retrieved`; "
            f"{BACKEND}",
        )
    return ok(f"{endpoint.host} is this machine")


@check(
    "AG327",
    slug="gloo-address",
    area="host",
    says="gloo would offer other nodes an address that they can reach",
    needs=("AG320", "AG321", "AG322", "AG326"),
)
def gloo_address(facts: Facts) -> Outcome:
    """Without GLOO_SOCKET_IFNAME gloo binds what the own host name means; on Debian that is 127.0.1.1."""
    environ, own = facts.host.environment, facts.host.own_name
    if environ is None or own is None:
        return unread(facts, "host.own_name", "the environment or the own name")
    if environ.get(GLOO) or not torch_environment.is_by_hand(environ):
        return ok()
    # gloo takes the first that it can bind, and loopback can always be bound (ProcessGroupGloo.cpp of torch)
    loopback = [a for a in own.addresses if etc_hosts.is_loopback(a)]
    if not loopback:
        return ok(f"{own.name} is {', '.join(own.addresses)}")
    best = _best(facts)
    name = best.name if best else "INTERFACE"
    lines = etc_hosts.find(etc_hosts.parse(_text(facts)), facts.hostname)
    return error(
        f"gloo would offer the other nodes {loopback[0]}, which leads each to itself",
        [
            f"{GLOO} is not set",
            *(f"{etc_hosts.PATH}:{e.line}: {e.address} {' '.join(e.names)}" for e in lines[:3]),
        ],
        fix=Fix("tell gloo its interface", commands=(f"export {GLOO}={name}",)),
        hint="the line in /etc/hosts may stay: other programs count on it",
    )


@check(
    "AG328",
    slug="interface-variables",
    area="host",
    says="the interfaces that the environment names are there",
    needs=("AG201",),
)
def interface_variables(facts: Facts) -> Outcome:
    """gloo and tensorpipe take exact names, NCCL prefixes; neither takes an address."""
    environ = facts.host.environment
    if environ is None:
        return unread(facts, "host.environment", "the environment")
    shared = facts.host.deepspeed_env
    if shared is not None and shared.path:
        environ = {**parse_variables(shared.text), **environ}
    wrong = [w for w in (_gloo_wrong(facts, environ), _tensorpipe_wrong(facts, environ)) if w]
    wrong += _nccl_wrong(facts, environ)
    if wrong:
        best = _best(facts)
        name = best.name if best else "INTERFACE"
        return error(
            wrong[0],
            [*wrong, *([f"{shared.path} is read too"] if shared is not None and shared.path else [])],
            fix=Fix(
                "name the interface of the LAN",
                commands=tuple(_export(w.partition("=")[0], name) for w in wrong),
            ),
            hint="avahi-gpu launch and the backend avahi set them by themselves where they are not set",
        )
    named = [f"{v}={environ[v]}" for v in (GLOO, TENSORPIPE, NCCL) if environ.get(v)]
    return ok(*named)


@check(
    "AG329",
    slug="nccl-interface",
    area="host",
    says="by itself NCCL would talk over the LAN",
    needs=("AG328",),
)
def nccl_interface(facts: Facts) -> Outcome:
    """NCCL by itself leaves out lo, docker* and virbr* alone: br-*, veth* and VPNs may win over the LAN."""
    environ = facts.host.environment
    if environ is None:
        return unread(facts, "host.environment", "the environment")
    if environ.get("NCCL_COMM_ID"):
        return warn(
            "NCCL_COMM_ID is set: torch makes ids of its own, and one address for all of them hangs",
            [f"NCCL_COMM_ID={environ['NCCL_COMM_ID']}"],
            hint="unset NCCL_COMM_ID",
        )
    chosen = socket_ifname.nccl_choice(environ.get(NCCL, ""), facts.interfaces)
    if chosen is None or chosen.link in ("wired", "wireless"):
        return ok(*([f"{chosen.name}"] if chosen else []))
    best = _best(facts)
    if best is None or best.link not in ("wired", "wireless"):
        return ok(f"{chosen.name}: there is no other")
    says = f"NCCL would talk over {chosen.name} ({chosen.link}) and not over {best.name}"
    hint = "avahi-gpu launch and the backend avahi tell NCCL the LAN's interface"
    by_hand = bool(facts.gpus) and torch_environment.is_by_hand(environ)
    if not by_hand:
        return info(says, hint=hint)
    return error(
        says, [_addresses(chosen)], fix=Fix("tell NCCL", commands=(_export(NCCL, best.name),)), hint=hint
    )


def _unusable(facts: Facts, endpoint: Endpoint) -> str:
    if endpoint.malformed:
        return endpoint.malformed
    if not endpoint.addresses:
        return f"this machine cannot look it up ({endpoint.error or 'no answer'})"
    here = _is_here(facts, endpoint)
    if etc_hosts.is_loopback(endpoint.addresses[0]) and not here:
        if endpoint.host == "localhost" or etc_hosts.is_address(endpoint.host):
            return ""  # a run on this machine alone, as it was typed
        return f"it means {endpoint.addresses[0]} here, which is this machine"
    if endpoint.alive is False and not here:
        return f"nobody is at {endpoint.addresses[0]}"
    return ""


def _is_here(facts: Facts, endpoint: Endpoint) -> bool:
    own = {a.ip.partition("%")[0] for i in facts.interfaces for a in i.addresses if i.link != "loopback"}
    host = endpoint.host.lower().rstrip(".")
    label = facts.hostname.partition(".")[0].lower()
    names = {facts.hostname.lower(), label, f"{label}.local", f"{facts.daemon.host_name.lower()}.local"}
    if facts.host.own_name is not None:
        names.add(facts.host.own_name.fqdn.lower())
    return host in names or any(a.partition("%")[0] in own for a in endpoint.addresses)


def _avahi_runs(facts: Facts) -> bool:
    return facts.daemon.on_bus and facts.daemon.server_state == RUNNING


def _gloo_wrong(facts: Facts, environ: dict[str, str]) -> str:
    value = environ.get(GLOO, "")
    for name in socket_ifname.names_of(value) if value else ():
        if why := _no_interface(facts, name):
            return f"{GLOO}={value}: {why}"
        if name == "lo" and torch_environment.is_by_hand(environ):
            return f"{GLOO}={value}: other nodes cannot reach loopback"
    return ""


def _tensorpipe_wrong(facts: Facts, environ: dict[str, str]) -> str:
    value = environ.get(TENSORPIPE, "")
    why = _no_interface(facts, value) if value else ""
    return f"{TENSORPIPE}={value}: {why}" if why else ""


def _nccl_wrong(facts: Facts, environ: dict[str, str]) -> list[str]:
    value = environ.get(NCCL, "")
    chosen = socket_ifname.nccl_choice(value, facts.interfaces)
    found = []
    if value and chosen is None:
        found.append(f"{NCCL}={value}: no interface that is up fits, and NCCL gives up")
    elif value and chosen is not None and chosen.link == "loopback" and _best(facts) is not None:
        found.append(f"{NCCL}={value}: the first that fits is {chosen.name}, which no other node can reach")
    elif chosen is not None and environ.get("NCCL_SOCKET_FAMILY") == "AF_INET6" and not _has_ipv6(chosen):
        found.append(f"NCCL_SOCKET_FAMILY=AF_INET6: {chosen.name} has no global IPv6 address")
    return found


def _has_ipv6(interface: Interface) -> bool:
    return any(a.family == 6 and a.scope == "global" for a in interface.addresses)


def _no_interface(facts: Facts, name: str) -> str:
    found = next((i for i in facts.interfaces if i.name == name), None)
    if found is None:
        kind = (
            "an address is no interface's name"
            if etc_hosts.is_address(name)
            else "there is no such interface"
        )
        return kind
    if not found.up:
        return f"{name} is down"
    return "" if found.addresses else f"{name} has no address"


def _best(facts: Facts) -> Interface | None:
    address = lan_address(facts)
    return next((i for i in usable_interfaces(facts) if any(a.ip == address for a in i.addresses)), None)


def _export(variable: str, name: str) -> str:
    if variable == "NCCL_SOCKET_FAMILY":
        return "export NCCL_SOCKET_FAMILY=AF_INET"
    value = f"'={name}'" if variable == NCCL else name  # NCCL: = is exact; bare, zsh takes it for a program
    return f"export {variable}={value}"


def _shown(endpoint: Endpoint) -> list[str]:
    return [f"{endpoint.variable}: {endpoint.host} is {', '.join(endpoint.addresses)}"]


def _addresses(interface: Interface) -> str:
    return f"{interface.name} {' '.join(a.ip for a in interface.addresses)}"


def _text(facts: Facts) -> str:
    return (facts.etc_hosts.content or b"").decode("utf-8", "replace")

"""A healthy machine as facts; the tests break one thing of it at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.model import (
    Address,
    Announcement,
    BootUnit,
    Clock,
    ClusterKey,
    DaemonFacts,
    DaemonProcess,
    DaemonState,
    Ear,
    Facts,
    FileState,
    Firewall,
    Gpu,
    GpuDevices,
    HostFacts,
    Interface,
    KernelNet,
    LauncherFile,
    Lookup,
    MdnsSocket,
    ModuleAnswer,
    NameFacts,
    NameServer,
    NetworkFacts,
    OwnName,
    OwnRecords,
    PacketFate,
    PacketKind,
    PeerFacts,
    ResolvedMdns,
    Service,
    ServiceFile,
    SharedMemory,
    StartGround,
    Surroundings,
    UnitState,
    Versions,
    WayBack,
)

PACKET_KINDS: tuple[PacketKind, ...] = (
    "mdns-in",
    "mdns-unicast-in",
    "mdns-out",
    "tcp-in",
    "tcp-high-in",
    "tcp-out",
    "tcp-back",
)
TORCH = Versions(python="3.11.2", torch="2.13.0", cuda="12.8", nccl="2.27", driver="570.1")
SERVICE_XML = b"""<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group>
  <name replace-wildcards="yes">%h</name>
  <service>
    <type>_torch._tcp</type>
    <port>29500</port>
    <txt-record>txtvers=1</txt-record>
    <txt-record>id=0123456789ab</txt-record>
  </service>
</service-group>
"""


def file_of(path: str, content: bytes) -> FileState:
    """A readable file of root's."""
    return FileState(path, content, mode=0o644, uid=0, gid=0)


def peer(number: int, **changed: object) -> PeerFacts:
    """A peer in good health: gpu-node-<number>."""
    name, address = f"gpu-node-{number}", f"10.77.0.{number}"
    facts = PeerFacts(
        name=name,
        host=f"{name}.local",
        address=address,
        interface="eth0",
        glibc=Lookup(f"{name}.local", (address,), 0.004),
        alive=True,
        id=f"{number:012x}",
        versions=TORCH,
        gpus=1,
        calls_itself=name,
        speaks=True,
    )
    return replace(facts, **changed)  # type: ignore[arg-type]


@pytest.fixture
def healthy() -> Facts:
    """gpu-node-1 of three, all set up."""
    lan = Interface(
        "eth0",
        2,
        "wired",
        up=True,
        running=True,
        multicast=True,
        addresses=(Address("10.77.0.1", 24, 4, "global"),),
        in_mdns_group=True,
    )
    loopback = Interface(
        "lo",
        1,
        "loopback",
        up=True,
        running=True,
        multicast=False,
        addresses=(Address("127.0.0.1", 8, 4, "host"),),
    )
    return Facts(
        hostname="gpu-node-1",
        is_root=True,
        init="systemd",
        distribution="debian",
        package_manager="apt",
        packages={"dbus": True, "avahi-daemon": True, "libnss-mdns": True},
        machine_id="4f1c9c6f0b7d4bd09c0c1c6c5c7f2b11",
        interfaces=(loopback, lan),
        daemon=DaemonState(
            installed=True,
            bus_reachable=True,
            on_bus=True,
            enabled=True,
            pid=77,
            version="0.8",
            server_state=2,
            host_name="gpu-node-1",
            domain="local",
        ),
        nsswitch=file_of(
            "/etc/nsswitch.conf",
            b"passwd: files\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n",
        ),
        etc_hosts=file_of("/etc/hosts", b"127.0.0.1\tlocalhost\n10.77.0.1\tgpu-node-1\n"),
        resolv_conf=file_of("/etc/resolv.conf", b"nameserver 10.77.0.254\n"),
        avahi_conf=file_of("/etc/avahi/avahi-daemon.conf", b"[server]\nuse-ipv4=yes\n[publish]\n"),
        mdns_allow=FileState("/etc/mdns.allow", None),
        service_file=file_of("/etc/avahi/services/torch.service", SERVICE_XML),
        wanted_service_file=SERVICE_XML,
        nss_modules={"files": True, "mdns4_minimal": True, "dns": True},
        own_service=(
            Service("gpu-node-1", "_torch._tcp", 2, 4, "gpu-node-1.local", "10.77.0.1", 29500, own=True),
        ),
        own_name=Lookup("gpu-node-1.local", ("10.77.0.1",), 0.003),
        kernel_name=Lookup("gpu-node-1", ("10.77.0.1",), 0.001),
        peers=(peer(2), peer(3)),
        gpus=(Gpu("NVIDIA H200", 143771, "9.0"),),
        versions=TORCH,
        node_id=f"{1:012x}",
        network=NetworkFacts(
            mdns_sockets=(
                MdnsSocket(4, "0.0.0.0", 100, 105, 77, "avahi-daemon"),
                MdnsSocket(6, "::", 101, 105, 77, "avahi-daemon"),
            ),
            kernel=KernelNet((WayBack("eth0", "10.77.0.254", "10.77.0.1", strict=True),), 20),
            loopback=True,
            resolved_mdns=ResolvedMdns("no"),
            hearing=(
                Ear(
                    "eth0",
                    asked=("10.77.0.2",),
                    nodes=("10.77.0.2",),
                    answered=("10.77.0.2",),
                    sent=True,
                    replied=("10.77.0.2",),
                    seen=("10.77.0.2",),
                ),
            ),
            firewall=Firewall(tuple(PacketFate(kind, "eth0", 4, "pass") for kind in PACKET_KINDS)),
        ),
        cuda_driver="12.8",
        host=HostFacts(
            own_name=OwnName("gpu-node-1", "gpu-node-1", (("gpu-node-1", "10.77.0.1"),)),
            pinned_names=(),
            environment={},
            endpoints=(),
            listeners=(),
            leftovers=(),
            port_range=(32768, 60999),
            key=ClusterKey(),
            hostfile=LauncherFile("", ""),
            accelerate=LauncherFile("", ""),
            deepspeed_config=LauncherFile("", ""),
            surroundings=Surroundings(c_library="glibc 2.36"),
            clock=Clock(2026, synchronised=True),
            shared_memory=SharedMemory(8192, 8192),
            gpu_devices=GpuDevices(nvidia=1, driver="570.1", nodes=1),
            boot_unit=BootUnit(
                file_of("/etc/systemd/system/avahi-gpu-facts.service", b"[Service]\n"),
                b"[Service]\n",
                "/opt/avahi-gpu/bin/avahi-gpu",
                enabled=True,
                result="success",
            ),
        ),
        names=NameFacts(
            servers=(NameServer("10.77.0.254", "nxdomain", 0.002),),
            own_by_module=(ModuleAnswer("mdns4_minimal", "success", ("10.77.0.1",), 0.001, loaded=True),),
            caches=(),
        ),
        avahi=DaemonFacts(
            socket=FileState("/run/avahi-daemon/socket", None, mode=0o666, error="No such device or address"),
            unit=UnitState("loaded", "active", "enabled", "success"),
            processes=(DaemonProcess(77, "S", 102, started=1000.0, age_s=3600.0),),
            shared_user=2,
            service_files=(ServiceFile(file_of("/etc/avahi/services/torch.service", SERVICE_XML)),),
            own=OwnRecords(
                (Announcement(2, 4, "gpu-node-1", "_torch._tcp"),), ("_torch._tcp",), "10.77.0.1", 2
            ),
            log=("Server startup complete.",),
            start=StartGround(),
            static_hosts=FileState("/etc/avahi/hosts", None),
            bus_address="",
            bus_refuses="",
        ),
    )

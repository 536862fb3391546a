"""The facts of a machine before setup."""

from __future__ import annotations

from avahi_gpu.model import DaemonState, Facts, FileState, Versions


def bare_facts() -> Facts:
    """Return the facts of a Debian without avahi-daemon and without systemd."""
    return Facts(
        hostname="h",
        is_root=True,
        init="other",
        distribution="debian",
        package_manager="apt",
        packages={"dbus": True, "avahi-daemon": False, "libnss-mdns": False},
        machine_id="0" * 31 + "1",
        interfaces=(),
        daemon=DaemonState(installed=False, bus_reachable=True),
        nsswitch=FileState("/etc/nsswitch.conf", b"hosts: files dns\n", 0o644, 0, 0),
        etc_hosts=FileState("/etc/hosts", b""),
        resolv_conf=FileState("/etc/resolv.conf", b""),
        avahi_conf=FileState("/etc/avahi/avahi-daemon.conf", None),
        mdns_allow=FileState("/etc/mdns.allow", None),
        service_file=FileState("/etc/avahi/services/torch.service", None, error="No such file or directory"),
        wanted_service_file=b"<wanted/>\n",
        nss_modules={"mdns4_minimal": False, "files": True},
        own_service=None,
        own_name=None,
        kernel_name=None,
        peers=None,
        gpus=(),
        versions=Versions(),
    )

"""``avahi-gpu setup``: make this machine a node, and see with its own eyes that it is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import Misuse
from avahi_gpu.host.interruption import heard
from avahi_gpu.render.text import printable
from avahi_gpu.result import Result

if TYPE_CHECKING:
    from avahi_gpu.host.system import System


def command(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell what would change; exit 5 if anything.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the diffs of files.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="AREA", help="This area only: names, network, host or service; repeatable."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Cluster that this node belongs to.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python whose torch this node trains with.")
    ] = None,
    firewall: Annotated[
        bool,
        typer.Option("--firewall", help="Open the firewall for the LAN, and for it alone."),
    ] = False,
    mdns_allow: Annotated[
        bool,
        typer.Option(
            "--mdns-allow", help="Where a DNS server claims the domain local, let glibc ask mDNS first."
        ),
    ] = False,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Switch mDNS in systemd-resolved off.")
    ] = False,
    root: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Set up an image, the root file system under DIR."),
    ] = None,
    show_config: Annotated[
        bool,
        typer.Option("--show-config", help="Only show the settings that count, and where each comes from."),
    ] = False,
    config_folder: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="With --check: as if /etc/avahi-gpu held what DIR holds.", show_default=False
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="With --check: as if avahi-gpu were installed as PATH.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make this machine a node: packages, avahi-daemon, service file, hosts line. A second run is a no-op."""
    with guarded("setup", as_json=as_json), heard():
        from avahi_gpu.cli.provisioning import Order, set_up, setup_areas
        from avahi_gpu.host.image import Image, open_system
        from avahi_gpu.launch.command import check_cluster

        system = open_system(root)
        if firewall and (isinstance(system, Image) or (only and "network" not in only)):
            raise Misuse(
                "--firewall opens that of the machine that runs, and is of the area network",
                "leave --root out, and with --only add --only network",
            )
        if python is not None and isinstance(system, Image):
            raise Misuse(
                "--python is of the machine that runs, and nothing runs in an image",
                f'write python = "{python}" into {system.root}/etc/avahi-gpu/config.toml',
            )
        if cluster is not None:
            check_cluster(cluster)
        system = _as_if(system, config_folder, program, only_told=check)
        if show_config:
            if check or diff or yes or only:
                raise Misuse("--show-config only shows", "leave --check, --diff, --yes and --only out")
            show_settings(system, cluster, python, as_json=as_json)
        granted = {"mdns-allow": mdns_allow, "resolved": resolved}
        grants = frozenset(name for name, given in granted.items() if given)
        place = str(system.root) if isinstance(system, Image) else None
        order = Order(
            check, diff, yes, as_json, python, cluster, setup_areas(only or []), place, firewall, grants
        )
        finish(set_up(system, order), as_json=as_json, show=lambda _: None)


def show_settings(system: System, cluster: str | None, python: str | None, *, as_json: bool) -> NoReturn:
    """Tell what counts on this machine, and who says so. Changes nothing. Raises MalformedConfiguration."""
    import os

    from avahi_gpu.files.config import PATH
    from avahi_gpu.host.configuration import read_settings
    from avahi_gpu.render.settings import settings_data, show_lines

    environ = os.environ if system.is_whole else {}  # variables are of the machine that runs, not of an image
    flags = {"cluster": ("--cluster", cluster), "python": ("--python", python)}
    settings = read_settings(system, environ, flags)
    result = Result("setup", {"config": settings_data(settings), "path": PATH})
    lines = show_lines(settings, PATH, is_there=system.exists(PATH))
    finish(result, as_json=as_json, show=lambda _: typer.echo("\n".join(lines)))


def _as_if(system: System, config_folder: str | None, program: str | None, *, only_told: bool) -> System:
    """Return the machine as it would be with another /etc/avahi-gpu or place of ours. Raises Misuse."""
    if (config_folder is not None or program is not None) and not only_told:
        raise Misuse("--config-folder and --program go with --check alone", "add --check")
    if program is not None and not program.startswith("/"):
        raise Misuse(f"{printable(program, 4096)} is not a full path", "begin it with /")
    folder = Path(config_folder).absolute() if config_folder is not None else None
    if folder is not None and not folder.is_dir():
        raise Misuse(f"{printable(str(folder), 4096)} is not a folder", "name one as /etc/avahi-gpu would be")
    return replace(system, stand_in=folder, program=program or "")

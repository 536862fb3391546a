"""Unit files: ours filled in, and what [Install] of any says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.unit_file import Install, parse_install, render_boot_unit

TEMPLATE = Path(__file__).resolve().parents[3] / "templates" / "avahi-gpu-facts.service"


def test_the_template_is_filled_in_whole() -> None:
    made = render_boot_unit(TEMPLATE.read_text(), ("/opt/avahi-gpu/bin/avahi-gpu", "refresh")).decode()

    assert "\nExecStart=/opt/avahi-gpu/bin/avahi-gpu refresh\n" in made
    assert "\nConditionPathExists=/opt/avahi-gpu/bin/avahi-gpu\n" in made
    assert parse_install(made) == Install(wanted_by=("multi-user.target",))


def test_odd_paths_are_written_so_that_systemd_reads_them_back() -> None:
    made = render_boot_unit("@CONDITION@\n@COMMAND@", ("/o p/50%/a", '"$b\\c')).decode()

    assert made == '/o p/50%%/a\n"/o p/50%%/a" "\\"$$b\\\\c"'


@pytest.mark.parametrize(
    "path", ["/opt/a\nExecStartPre=/bin/evil", "", '/opt/"a"', "/opt/it's", "/opt/a\\b", "/opt/$a"]
)
def test_a_path_that_systemd_does_not_run_is_refused(path: str) -> None:
    """Tried on systemd 252: "Executable name contains special characters", and $$ in a path stays $$."""
    with pytest.raises(AvahiGpuError, match="no unit can run"):
        render_boot_unit("@COMMAND@", (path,))


def test_the_section_install_is_read_as_systemd_does() -> None:
    text = """[Unit]
WantedBy=not-here.target
[Install]
# WantedBy=nor-here.target
WantedBy=a.target \\
  b.target
WantedBy=
WantedBy=multi-user.target multi-user.target
RequiredBy=c.target
Also=avahi-daemon.socket ../../etc/passwd %i.service
Alias=dbus-org.freedesktop.Avahi.service
"""

    assert parse_install(text) == Install(
        ("multi-user.target",),
        ("c.target",),
        ("avahi-daemon.socket",),
        ("dbus-org.freedesktop.Avahi.service",),
    )


@given(st.text(max_size=300))
def test_no_text_leads_out_of_the_folder(text: str) -> None:
    found = parse_install("[Install]\n" + text)

    for name in (*found.wanted_by, *found.required_by, *found.also, *found.alias):
        assert "/" not in name and "%" not in name and not name.startswith(".")

"""The settings as people see them."""

from __future__ import annotations

from avahi_gpu.files.settings import settle
from avahi_gpu.render.settings import settings_data, show_lines


def test_a_line_has_name_source_and_value_and_nothing_that_steers_a_terminal() -> None:
    settings = settle({"cluster": ("a\x1b[1m", "/c\n.toml:1"), "interfaces": (("eth0", "ib0"), "x")})

    lines = show_lines(settings, "/c.toml", is_there=False)

    assert lines[0] == "/c.toml is not there"
    assert "cluster     /c\\n.toml:1  a\\x1b[1m" in lines
    assert "interfaces  x            eth0, ib0" in lines
    assert "interface   default      the best that all nodes share" in lines


def test_the_data_has_every_setting_as_json_can_say_it() -> None:
    data = settings_data(settle({"interfaces": (("eth0",), "x")}))

    assert data["interfaces"] == {"value": ["eth0"], "source": "x"}
    assert data["interface"] == {"value": None, "source": "default"}

"""``--help`` on terminals of any width, for any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.cli.pages import page_of
from avahi_gpu.render.help import show_first_steps, show_help, show_program
from avahi_gpu.render.manual import Example, Manual, Page, Parameter

OPTIONS = (
    Parameter(("-y", "--yes"), "", "Do not ask."),
    Parameter(("--only",), "AREA", "This area only.", default="all", many=True),
    Parameter(("--a-name-that-is-longer-than-a-column",), "VALUE", "Stands alone."),
    Parameter(("-h", "--help"), "", "Show this help and exit."),
)
MANUAL = Manual(
    "mend", ("Mend it.", "And more."), OPTIONS, Page("mend it", (Example("avahi-gpu mend", "all"),))
)


def test_options_stand_in_one_column_with_their_defaults() -> None:
    lines = show_help(MANUAL).splitlines()

    assert lines[0] == "Usage: avahi-gpu mend [OPTIONS]"
    assert "  -y, --yes    Do not ask." in lines
    assert "  --only AREA  This area only. [default: all]" in lines
    assert lines[lines.index("  --a-name-that-is-longer-than-a-column VALUE") + 1].strip() == "Stands alone."


def test_what_a_page_does_not_sort_comes_last_and_help_stays_in_the_last_group() -> None:
    page = Page("mend it", groups={"First": ("--only",), "Then": ("--yes",)})
    lines = show_help(Manual("mend", (), OPTIONS, page)).splitlines()

    headings = [line for line in lines if line and not line.startswith((" ", "Usage", "Exit"))]
    assert headings == ["First:", "Then:", "Options:"]
    assert lines.index("  -h, --help  Show this help and exit.") < lines.index("Options:")


def test_a_terminal_gets_bold_headings_and_a_pipe_plain_ones() -> None:
    assert "\x1b[1mOptions:\x1b[0m" in show_help(MANUAL, colour=True)
    assert "\x1b" not in show_help(MANUAL)


def test_whoever_has_set_up_the_machine_is_not_told_to_do_it() -> None:
    before = show_first_steps(page_of(""), is_node=False)
    after = show_first_steps(page_of(""), is_node=True)

    assert "not set up yet" in before and '"$(command -v avahi-gpu)" setup' in before
    assert "is set up" in after and "setup  " not in after
    assert "avahi-gpu launch" in before and "avahi-gpu launch" in after


@given(st.text(max_size=200), st.integers(min_value=0, max_value=300))
def test_any_text_fits_into_any_width(text: str, width: int) -> None:
    parameters = (Parameter(("--wild",), "", text), *OPTIONS[:2])
    manual = Manual("wild", (text,), parameters, Page("wild", (Example("avahi-gpu wild", text),)))

    shown = f"{show_help(manual, width=width)}\n" + show_program(manual, [("wild", manual.page)], width=width)

    assert max(map(len, shown.splitlines())) <= max(40, min(width, 80))

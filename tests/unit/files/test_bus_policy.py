"""Who may own a name on the system bus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.bus_policy import Rule, parse, who_refuses

NAME = "org.freedesktop.Avahi"
MAIN = b"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "busconfig.dtd">
<busconfig>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
  </policy>
</busconfig>
"""
AVAHI = b"""<busconfig>
  <policy user="avahi">
    <allow own="org.freedesktop.Avahi"/>
  </policy>
  <policy user="root"><allow own="org.freedesktop.Avahi"/></policy>
</busconfig>
"""


def rules(*files: bytes) -> list[Rule]:
    return [rule for n, content in enumerate(files) for rule in parse(content, f"f{n}") or []]


def test_the_policy_of_the_package_allows_it() -> None:
    assert who_refuses(rules(MAIN, AVAHI), NAME, "avahi") is None
    assert who_refuses(rules(MAIN, AVAHI), NAME, "nobody") == "f0:5"


def test_without_that_policy_the_bus_refuses() -> None:
    assert who_refuses(rules(MAIN), NAME, "avahi") == "f0:5"
    assert who_refuses([], NAME, "avahi") == ""


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ('<policy user="avahi"><deny own="org.freedesktop.Avahi"/></policy>', True),
        ('<policy context="mandatory"><deny own="org.freedesktop.Avahi"/></policy>', True),
        ('<policy context="mandatory"><deny own_prefix="org.freedesktop"/></policy>', True),
        # a user's own rule comes after those for all
        ('<policy context="default"><deny own="org.freedesktop.Avahi"/></policy>', False),
        ('<policy user="other"><deny own="org.freedesktop.Avahi"/></policy>', False),
        ('<policy user="avahi"><deny own="org.freedesktop.Avah"/></policy>', False),
    ],
)
def test_a_later_rule_can_refuse(policy: str, refused: bool) -> None:
    found = who_refuses(rules(MAIN, AVAHI, f"<busconfig>{policy}</busconfig>".encode()), NAME, "avahi")

    assert found == ("f2:1" if refused else None)


@given(st.binary(max_size=200))
def test_what_is_no_xml_is_no_policy(content: bytes) -> None:
    found = parse(content, "x")

    assert found is None or found == []

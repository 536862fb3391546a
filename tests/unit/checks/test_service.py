"""The checks of the service file and of what is really published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.checks.service import service_file_current, service_visible
from avahi_gpu.model import Facts, FileState, Finding

PATH = "/etc/avahi/services/torch.service"


def with_file(facts: Facts, **changed: object) -> Facts:
    return replace(facts, service_file=replace(facts.service_file, **changed))  # type: ignore[arg-type]


def failing(facts: Facts) -> list[Finding]:
    return [f for f in run_checks(facts) if f.verdict in ("warn", "error")]


def test_a_missing_file_is_written(healthy: Facts) -> None:
    facts = replace(healthy, service_file=FileState(PATH, None), own_service=())

    (found,) = failing(facts)

    assert found.id == "AG501" and found.fix is not None
    (change,) = found.fix.changes
    assert (change.path, change.content, change.mode, change.before) == (
        PATH,
        healthy.wanted_service_file,
        0o644,
        None,
    )


@pytest.mark.parametrize("content", [b"whatever", None])
def test_a_file_that_avahi_may_not_read_is_one_error(content: bytes | None, healthy: Facts) -> None:
    """Whether we may read it (root) or not."""
    (found,) = failing(with_file(healthy, mode=0o600, content=content, error="Permission denied"))

    assert found.id == "AG501" and found.evidence == ("mode 0600, wanted 0644",)
    assert found.fix and found.fix.changes[0].mode == 0o644


def test_a_link_out_of_the_daemons_sight_is_an_error(healthy: Facts) -> None:
    (found,) = failing(with_file(healthy, link_target="/opt/torch.service"))

    assert found.id == "AG501" and "/opt/torch.service" in found.says


def test_a_malformed_file_is_written_anew(healthy: Facts) -> None:
    (found,) = failing(with_file(healthy, content=b"<service-group><name>a & b</name></service-group>"))

    assert found.id == "AG502" and found.evidence and found.fix


def test_a_file_of_another_service_is_written_anew(healthy: Facts) -> None:
    content = (healthy.service_file.content or b"").replace(b"_torch._tcp", b"_http._tcp")

    (found,) = failing(with_file(healthy, content=content))

    assert found.id == "AG502" and "_http._tcp" in found.evidence[0]


def test_an_outdated_file_is_a_warning_that_says_what_is_new(healthy: Facts) -> None:
    wanted = (healthy.wanted_service_file or b"").replace(b"txtvers=1", b"gpus=2")

    (found,) = failing(replace(healthy, wanted_service_file=wanted))

    assert (found.id, found.verdict) == ("AG503", "warn")
    assert found.evidence == ("would say: <txt-record>gpus=2</txt-record>",)
    assert found.fix and found.fix.changes[0].content == wanted


def test_what_cannot_be_rendered_is_unknown(healthy: Facts) -> None:
    assert service_file_current(replace(healthy, wanted_service_file=None)).verdict == "unknown"


def test_a_service_that_is_not_published_is_an_error(healthy: Facts) -> None:
    (found,) = failing(replace(healthy, own_service=()))

    assert found.id == "AG504"


def test_a_service_on_loopback_only_is_an_error(healthy: Facts) -> None:
    assert healthy.own_service is not None
    facts = replace(healthy, own_service=(replace(healthy.own_service[0], interface=1),))

    found = service_visible(facts)

    assert found.verdict == "error" and found.evidence == ("it is published on loopback only",)


def test_other_services_of_a_file_written_by_hand_are_not_dropped_in_silence(healthy: Facts) -> None:
    wanted = healthy.wanted_service_file or b""
    by_hand = wanted.replace(
        b"</service-group>", b"<service><type>_ssh._tcp</type><port>22</port></service></service-group>"
    )

    (found,) = failing(with_file(healthy, content=by_hand))

    assert found.fix is not None
    assert "will no longer publish _ssh._tcp" in found.fix.changes[0].title

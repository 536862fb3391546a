"""How checks are registered, selected and run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from avahi_gpu.checks import registry
from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown
from avahi_gpu.errors import Misuse
from avahi_gpu.model import Facts, MdnsSocket, ResolvedMdns


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Outcome]]:
    """Three checks in a chain, AG101 <- AG202 <- AG303, and one apart, AG401: answers are the test's."""
    answers: dict[str, Outcome] = {}
    monkeypatch.setattr(registry, "_checks", {})
    for id, slug, area, needs in (
        ("AG303", "third", "host", ("AG202",)),
        ("AG202", "second", "network", ("AG101",)),
        ("AG101", "first", "names", ()),
        ("AG401", "apart", "gpu", ()),
    ):

        def judge(_: Facts, id: str = id) -> Outcome:
            return answers.get(id, ok())

        registry.check(id, slug=slug, area=area, says=f"{slug} is well", needs=needs)(judge)
    yield answers


def verdicts(facts: Facts, **selection: tuple[str, ...]) -> dict[str, str]:
    return {f.id: f.verdict for f in registry.run_checks(facts, **selection)}


def test_a_well_machine_gets_the_sentences_of_the_checks(bench: dict[str, Outcome], healthy: Facts) -> None:
    found = registry.run_checks(healthy)

    assert [(f.id, f.verdict, f.says) for f in found] == [
        ("AG101", "ok", "first is well"),
        ("AG202", "ok", "second is well"),
        ("AG303", "ok", "third is well"),
        ("AG401", "ok", "apart is well"),
    ]


@pytest.mark.parametrize("failure", [error("broken"), skip("no use"), unknown("dark")])
def test_one_cause_gives_one_failure_and_is_named_by_all_that_need_it(
    failure: Outcome, bench: dict[str, Outcome], healthy: Facts
) -> None:
    bench["AG101"] = failure
    bench["AG202"] = bench["AG303"] = error("never asked")

    found = {f.id: f for f in registry.run_checks(healthy)}

    assert {id: f.verdict for id, f in found.items()} == {
        "AG101": failure.verdict,
        "AG202": "skip",
        "AG303": "skip",
        "AG401": "ok",
    }
    assert found["AG303"].says == "not asked, because of AG101 (first)"


def test_info_and_warnings_do_not_stop_what_needs_them(bench: dict[str, Outcome], healthy: Facts) -> None:
    bench["AG101"] = Outcome("warn", "meh")
    bench["AG202"] = Outcome("info", "so")

    assert verdicts(healthy) == {"AG101": "warn", "AG202": "info", "AG303": "ok", "AG401": "ok"}


def test_only_reports_what_was_asked_and_the_cause_that_stopped_it(
    bench: dict[str, Outcome], healthy: Facts
) -> None:
    assert verdicts(healthy, only=("AG303",)) == {"AG303": "ok"}
    assert verdicts(healthy, only=("third", "ag401")) == {"AG303": "ok", "AG401": "ok"}
    assert verdicts(healthy, only=("network",)) == {"AG202": "ok"}

    bench["AG101"] = error("broken")

    assert verdicts(healthy, only=("AG303",)) == {"AG101": "error", "AG303": "skip"}


def test_what_is_ignored_is_no_cause(bench: dict[str, Outcome], healthy: Facts) -> None:
    bench["AG101"] = error("broken")

    assert verdicts(healthy, ignore=("first",)) == {"AG202": "ok", "AG303": "ok", "AG401": "ok"}


def test_unknown_names_are_a_mistake_of_usage(bench: dict[str, Outcome], healthy: Facts) -> None:
    with pytest.raises(Misuse, match="AG999"):
        registry.run_checks(healthy, only=("AG999",))
    with pytest.raises(Misuse, match="nonsense"):
        registry.run_checks(healthy, ignore=("nonsense",))


def test_a_check_that_breaks_hides_nothing_else(bench: dict[str, Outcome], healthy: Facts) -> None:
    def broken(_: Facts) -> Outcome:
        raise RuntimeError("oh")

    registry.check("AG501", slug="broken", area="service", says="x")(broken)

    found = {f.id: f for f in registry.run_checks(healthy)}

    assert found["AG501"].verdict == "unknown" and "RuntimeError: oh" in found["AG501"].says
    assert found["AG401"].verdict == "ok"


@pytest.mark.parametrize(
    ("id", "slug", "area"),
    [
        ("AG101", "new", "names"),  # id taken
        ("AG199", "first", "names"),  # slug taken
        ("AG299", "new", "names"),  # not of this area
        ("AG1", "new", "names"),
        ("AG199", "Not A Slug", "names"),
    ],
)
def test_a_wrong_registration_is_refused(id: str, slug: str, area: str, bench: dict[str, Outcome]) -> None:
    with pytest.raises(ValueError, match=slug):
        registry.check(id, slug=slug, area=area, says="x")  # type: ignore[arg-type]


def test_every_need_is_a_check_and_no_need_goes_in_circles() -> None:
    needs = {c.id: c.needs for c in registry.all_checks()}

    def visit(id: str, path: tuple[str, ...]) -> None:
        assert id in needs, f"{path[-1]} needs {id}, which is no check"
        assert id not in path, f"{' -> '.join((*path, id))}"
        for need in needs[id]:
            visit(need, (*path, id))

    for id in needs:
        visit(id, ())


def test_a_healthy_machine_has_no_finding_but_ok(healthy: Facts) -> None:
    assert {f.id: f.says for f in registry.run_checks(healthy) if f.verdict != "ok"} == {}


def test_nothing_is_guessed_where_nothing_could_be_read(healthy: Facts) -> None:
    """Without peers, look-ups, own service or GPUs read, no check calls anything broken."""
    dark = replace(healthy, own_service=None, own_name=None, kernel_name=None, peers=None, gpus=None)

    failed = [f for f in registry.run_checks(dark) if f.verdict == "error"]

    assert failed == []


def test_what_serves_others_too_is_mended_on_request_and_told_otherwise(healthy: Facts) -> None:
    """As AG209, where systemd-resolved does mDNS too: ``--yes`` is no word about that."""
    resolved = MdnsSocket(4, "0.0.0.0", 200, 101, 900, "systemd-resolve")
    network = replace(
        healthy.network,
        mdns_sockets=(*(healthy.network.mdns_sockets or ()), resolved),
        resolved_mdns=ResolvedMdns("yes", (("eth0", "yes"),)),
    )
    facts = replace(healthy, network=network)

    without = [f.id for f in registry.setup_findings(facts)]
    granted = [f.id for f in registry.setup_findings(facts, grants={"resolved"})]

    assert "AG209" not in without and "AG209" in granted
    assert [(f.id, option) for f, option in registry.told_findings(facts)] == [("AG209", "resolved")]
    assert registry.told_findings(facts, grants={"resolved"}) == []
    assert registry.told_findings(facts, areas={"names"}) == []


def test_what_only_its_owner_can_stop_is_told_whatever_was_granted(healthy: Facts) -> None:
    other = MdnsSocket(4, "0.0.0.0", 200, 0, 900, "responder")
    network = replace(healthy.network, mdns_sockets=(*(healthy.network.mdns_sockets or ()), other))
    facts = replace(healthy, network=network)

    assert "AG209" not in [f.id for f in registry.setup_findings(facts, grants={"resolved"})]
    assert [(f.id, o) for f, o in registry.told_findings(facts, grants={"resolved"})] == [("AG209", "")]

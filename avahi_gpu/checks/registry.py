"""The list of all checks, and how they are run.

A check is a pure function of ``Facts`` under ``@check``; its ``says`` is the sentence that is true when all
is well. Lists, ``explain`` and the tests derive from this registry: a new check needs nothing beside its
function and its page in ``docs/findings/``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from avahi_gpu.checks.outcome import Outcome, unknown
from avahi_gpu.errors import Misuse
from avahi_gpu.model import Area, Facts, Finding, Verdict

Judge = Callable[[Facts], Outcome]

AREAS: dict[str, Area] = {
    "1": "names",
    "2": "network",
    "3": "host",
    "4": "gpu",
    "5": "service",
    "6": "cluster",
}
FAILING: frozenset[Verdict] = frozenset({"error", "skip", "unknown"})  # what turns dependents into skip
UNASKED = "not asked, because of"
# within one area order by id; between areas the causes come first
_ID = re.compile(r"AG([1-6])\d\d")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Check:
    """One question about facts."""

    id: str
    slug: str
    area: Area
    says: str
    needs: tuple[str, ...]
    setup: bool  # part of what ``setup`` provides
    judge: Judge
    survey: bool = False  # asked where all nodes were asked, by ``doctor --cluster``
    follows: tuple[str, ...] = ()
    image: bool = False  # what the files of an image can answer
    grant: str = ""  # the option of ``setup`` without which it only tells what this check finds


_checks: dict[str, Check] = {}


def check(
    id: str,
    *,
    slug: str,
    area: Area,
    says: str,
    needs: tuple[str, ...] = (),
    follows: tuple[str, ...] = (),
    setup: bool = False,
    survey: bool = False,
    image: bool = False,
    grant: str = "",
) -> Callable[[Judge], Judge]:
    """Register the decorated function of ``Facts`` under ``id`` (``AG104``: the first digit is the area's).

    ``needs`` are ids of checks that must be ok, info or warn before this one's question makes sense.
    ``follows`` are ids of checks whose error would merely show here again; that they are unknown is no
    hindrance. ``image``: it can be asked of files alone.
    ``grant`` is for what serves others too: setup mends it only where ``--GRANT`` says so; ``--yes`` is no
    word about it.
    Raises ValueError for an id or slug that is malformed or taken: a mistake of ours, seen on import.
    """
    found = _ID.fullmatch(id)
    if found is None or AREAS[found.group(1)] != area or not _SLUG.fullmatch(slug):
        raise ValueError(f"{id} {slug}: not an id of area {area} and a slug")
    if id in _checks or any(slug == other.slug for other in _checks.values()):
        raise ValueError(f"{id} {slug}: taken")

    def register(judge: Judge) -> Judge:
        _checks[id] = Check(id, slug, area, says, needs, setup, judge, survey, follows, image, grant)
        return judge

    return register


def all_checks() -> tuple[Check, ...]:
    """Return every check in the order of ids."""
    return tuple(_checks[id] for id in sorted(_checks))


def find_check(name: str) -> Check | None:
    """Return the check with that id or slug, in any capitals."""
    wanted = name.strip().lower()
    return next((c for c in all_checks() if wanted in (c.id.lower(), c.slug)), None)


def select_checks(names: Iterable[str]) -> list[Check]:
    """Return the checks of these ids, slugs or areas. Raises Misuse for a name that is none of them."""
    chosen: list[Check] = []
    for name in names:
        area = [c for c in all_checks() if c.area == name.strip().lower()]
        one = find_check(name)
        if not area and one is None:
            raise Misuse(f"there is no check {name!r}", "avahi-gpu doctor --list shows all of them")
        chosen += area or ([one] if one else [])
    return chosen


def run_checks(facts: Facts, only: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Finding]:
    """Return one finding for each check, in the order of ids.

    A check whose need failed is skipped and names the cause, so that one cause gives one error. ``only``
    and ``ignore`` take ids, slugs or areas. With ``only``, what it needs is judged too, and reported where it
    fails. What is ignored is neither reported nor a cause. Without a view of all nodes, what is asked about
    it does not appear unless ``only`` names it.
    """
    ignored = {c.id for c in select_checks(ignore)}
    everything = [c for c in all_checks() if facts.view is not None or not c.survey]
    wanted = [c for c in select_checks(only) or everything if c.id not in ignored]
    findings: dict[str, Finding] = {}
    causes: dict[str, str] = {}  # id of a failed check -> id of the first cause
    for one in wanted:
        _judge(one, facts, ignored, findings, causes)
    asked = {c.id for c in wanted}
    shown = asked | {causes[id] for id in asked if id in causes}
    return [findings[id] for id in sorted(shown)]


def setup_findings(facts: Facts, areas: Collection[str] = (), grants: Collection[str] = ()) -> list[Finding]:
    """Return the findings of the checks tagged for setup, those of ``areas`` where any are named.

    Of a check that needs a grant its finding counts where that is given and there is something to mend by it.
    """
    findings = run_checks(facts)
    tagged = {c.id: c for c in all_checks() if c.setup and (not areas or c.area in areas)}
    return [f for f in findings if f.id in tagged and _is_granted(f, tagged[f.id], grants)]


def told_findings(
    facts: Facts, areas: Collection[str] = (), grants: Collection[str] = ()
) -> list[tuple[Finding, str]]:
    """Return what setup leaves as it is and tells: each finding with the option that would mend it, or ''."""
    asked = {c.id: c for c in all_checks() if c.grant and (not areas or c.area in areas)}
    return [
        (f, asked[f.id].grant if f.fix is not None and f.fix.changes else "")
        for f in run_checks(facts)
        if f.id in asked and f.verdict in ("warn", "error") and not _is_granted(f, asked[f.id], grants)
    ]


def is_unasked(finding: Finding) -> bool:
    """Whether a check was skipped because another one failed."""
    return finding.verdict == "skip" and finding.says.startswith(UNASKED)


def _is_granted(finding: Finding, of: Check, grants: Collection[str]) -> bool:
    return not of.grant or (of.grant in grants and finding.fix is not None and bool(finding.fix.changes))


def _judge(
    one: Check, facts: Facts, ignored: set[str], findings: dict[str, Finding], causes: dict[str, str]
) -> None:
    if one.id in findings:
        return
    if facts.image is not None and not one.image:  # no cause of anything: nobody expects an answer
        says = "not asked of an image: that takes a running machine"
        findings[one.id] = Finding(one.id, one.slug, one.area, "skip", says)
        return
    for need in (*one.needs, *one.follows):
        if need not in ignored:
            _judge(_checks[need], facts, ignored, findings, causes)
    failed = [causes[need] for need in one.needs if need in causes]
    failed += [id for id in one.follows if id in findings and findings[id].verdict == "error"]
    cause = failed[0] if failed else None
    if cause is not None:
        says = f"{UNASKED} {cause} ({_checks[cause].slug})"
        findings[one.id] = Finding(one.id, one.slug, one.area, "skip", says)
        causes[one.id] = cause
        return
    outcome = _ask(one, facts)
    findings[one.id] = Finding(
        one.id,
        one.slug,
        one.area,
        outcome.verdict,
        outcome.says or one.says,
        outcome.evidence,
        outcome.fix,
        outcome.hint,
    )
    if outcome.verdict in FAILING:
        causes[one.id] = one.id


def _ask(one: Check, facts: Facts) -> Outcome:
    try:
        return one.judge(facts)
    except Exception as fault:  # a fault of one check must not hide what the others found
        return unknown(f"this check itself failed ({type(fault).__name__}: {fault})", hint="please report it")

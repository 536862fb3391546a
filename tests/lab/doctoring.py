"""Run ``avahi-gpu doctor`` on a virtual host and read its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.lab.cluster import Cluster
from tests.lab.host import Host


@dataclass(frozen=True)
class Diagnosis:
    """One run of ``avahi-gpu doctor --json``."""

    exit_code: int
    findings: dict[str, dict[str, Any]]
    stderr: str

    def of(self, verdict: str) -> list[str]:
        return [id for id, f in self.findings.items() if f["verdict"] == verdict]

    @property
    def errors(self) -> list[str]:
        return self.of("error")

    def says(self, id: str) -> str:
        finding = self.findings[id]
        return " | ".join([finding["says"], *finding["evidence"]])

    def tell(self) -> str:
        """Everything that is not well, for the words of a failed test."""
        lines = [
            f"{f['verdict']} {id} {self.says(id)}"
            for id, f in self.findings.items()
            if f["verdict"] not in ("ok", "info", "skip")
        ]
        return "\n".join([f"exit code {self.exit_code}", *lines, self.stderr])


def doctor(host: Host, *arguments: str, before: Sequence[str] = (), **options: Any) -> Diagnosis:
    """Run the doctor, behind ``before``; a traceback or an envelope that is none fails the test."""
    done = host.run([*before, "avahi-gpu", "doctor", "--json", *arguments], timeout=90, **options)
    assert "Traceback" not in done.stderr, done.stderr
    envelope = json.loads(done.stdout)
    assert envelope["exit_code"] == done.returncode
    findings = {f["id"]: f for f in envelope["data"].get("findings", [])}
    return Diagnosis(done.returncode, findings, done.stderr)


def set_up(hosts: Cluster | list[Host], *, forget: bool = False) -> None:
    """Make nodes of the hosts, side by side; with ``forget`` ``undo`` will not know of it."""

    def one(host: Host) -> None:
        host.run(["avahi-gpu", "setup", "--yes"], check=True, timeout=90)
        if forget:
            host.run(["rm", "-r", "/var/lib/avahi-gpu"], check=True)

    together_on(list(hosts), one)


def together_on(hosts: list[Host], work: Callable[[Host], object]) -> None:
    """Do ``work`` on all hosts at once."""
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        list(pool.map(work, hosts))

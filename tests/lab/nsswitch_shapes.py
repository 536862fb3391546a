"""The shapes that nsswitch.conf comes in, and what becomes of each: the table of docs/reference/nsswitch.md.

``python -m tests.lab.nsswitch_shapes`` measures and writes it; for root, where Debian's libnss-mdns is
installed. A lab test fails where the page is out of date.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from avahi_gpu.files.nsswitch import decode, encode, repair
from tests.lab.nsswitch_debian import edit, find_script
from tests.lab.nsswitch_oracle import Answer, Oracle, consult

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/nsswitch.md"
BEGIN, END = "<!-- shapes: begin -->", "<!-- shapes: end -->"
USERS = "passwd: files\n"

# what is the matter -> the hosts lines of the file, as they stand in it
SHAPES: dict[str, str] = {
    "no mDNS module": "hosts: files dns\n",
    "tabs between the words": "hosts:\t\tfiles\tdns\n",
    "systemd-resolved before DNS": "hosts: files myhostname resolve [!UNAVAIL=return] dns\n",
    "more modules before and behind DNS": "hosts: db files mymachines dns myhostname\n",
    "right already": "hosts: files mdns4_minimal [NOTFOUND=return] dns\n",
    "right for both families": "hosts: files mdns_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] dns\n",
    "the module behind DNS": "hosts: files dns mdns4_minimal\n",
    "the module behind systemd-resolved": "hosts: files resolve [!UNAVAIL=return] mdns4_minimal "
    "[NOTFOUND=return] dns\n",
    "IPv6 alone": "hosts: files mdns6_minimal [NOTFOUND=return] dns\n",
    "wrong capitals": "hosts: files mDNS4_minimal [NOTFOUND=return] dns\n",
    "another module that ends the search": "hosts: files nis [NOTFOUND=return] dns\n",
    "no blank behind the colon": "hosts:files dns\n",
    "blanks before the word": "  hosts: files dns\n",
    "neither DNS nor systemd-resolved": "hosts: files\n",
    "a comment behind the services": "hosts: files dns # mdns4_minimal is not wanted\n",
    "two hosts lines, of which the last one counts": "hosts: files mdns4_minimal [NOTFOUND=return] dns\n"
    "hosts: files dns\n",
    "no hosts line": "",
    "no newline at the end": "hosts: files dns",
    "a slip in an action list": "hosts: files mdns4_minimal [NOT FOUND=return] dns\n",
    "lines that end as in DOS": "hosts: files dns\r\n",
}


@dataclass(frozen=True)
class Row:
    """What one file comes to."""

    shape: str
    lines: str
    debians: str  # the whole file after Debian's edit, and after ours
    ours: str
    before: Answer
    by_debian: Answer
    by_us: Answer


def text_of(lines: str) -> str:
    """Return the file with these hosts lines."""
    return USERS + lines


def repaired(text: str) -> str:
    """Return the file as setup leaves it; an offer that nobody has taken is not taken."""
    mended = repair(encode(text))
    return decode(mended.content) if mended.wanted and mended.content is not None else text


def measure(oracle: Oracle, script: str) -> list[Row]:
    """Try every shape: before any edit, after Debian's, after ours."""
    texts = [text_of(lines) for lines in SHAPES.values()]
    debians = edit(oracle.lab[0], script, texts)
    ours = [repaired(text) for text in texts]
    answers = oracle.ask_everywhere([*texts, *debians, *ours], dns=True)
    number = len(texts)
    return [
        Row(shape, lines, *files, *tried)
        for (shape, lines), *files, tried in zip(
            SHAPES.items(),
            debians,
            ours,
            zip(answers[:number], answers[number : 2 * number], answers[2 * number :], strict=True),
            strict=True,
        )
    ]


def make_table(rows: Sequence[Row]) -> str:
    """Return the Markdown table."""
    lines = [
        "| shape | the line as it was | finds peers | Debian's edit | finds peers | setup's edit | "
        "finds peers |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        before = text_of(row.lines)
        cells = (
            row.shape,
            show(before) or "none",
            _say(row.before),
            "left alone" if row.debians == before else show(row.debians),
            _say(row.by_debian),
            _offer(before) if row.ours == before else show(row.ours),
            _say(row.by_us),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(page: str, rows: Sequence[Row]) -> str:
    """Return the page with the table as it is to be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{make_table(rows)}\n{END}{after}"


def show(text: str) -> str:
    """Return the hosts lines with their comments, one after the other."""
    found = [line for line in text.split("\n") if re.search(r"hosts|mdns|#", line)]
    return "<br>".join(f"`{' '.join(line.split())}`" for line in found)


def _offer(text: str) -> str:
    """Say what setup leaves, and what it would write if it were told to."""
    offered = repair(encode(text)).content
    return "left alone" if offered is None else f"left alone; offered: {show(decode(offered))}"


def _say(answer: Answer) -> str:
    if not answer.users:
        return "no; no user either"
    return "yes" if answer.finds else "no"


def main() -> None:
    """Measure, and write the page anew."""
    script = find_script()
    if script is None:
        sys.exit("Debian's libnss-mdns is not installed here, or is too old to be run elsewhere")
    with tempfile.TemporaryDirectory() as folder, consult(Path(folder)) as oracle:
        rows = measure(oracle, script)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()

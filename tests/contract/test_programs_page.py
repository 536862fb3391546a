"""docs/reference/programs.md and records.md tell what the contract and the records really are."""

from __future__ import annotations

import json
import re

from avahi_gpu.errors import ExitCode
from avahi_gpu.files import job_txt, txt
from avahi_gpu.model import Gpu, JobPart, NodeFacts, Versions
from tests.contract.shape import mismatch
from tests.contract.test_commands import DATA, envelope_of
from tests.lab.host import REPOSITORY

PAGE = (REPOSITORY / "docs/reference/programs.md").read_text(encoding="utf-8")
RECORDS = (REPOSITORY / "docs/reference/records.md").read_text(encoding="utf-8")
SAMPLE = re.compile(r"^### `(.+?)`\n.*?^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_command_has_a_sample_of_its_own_shape() -> None:
    samples = {name: json.loads(text) for name, text in SAMPLE.findall(PAGE)}

    assert samples.keys() == DATA.keys()
    assert {n: w for n, sample in samples.items() if (w := mismatch(sample, DATA[n]))} == {}


def test_the_envelope_is_shown() -> None:
    (text,) = re.findall(r"^```json\n(\{\"version\".*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    assert mismatch(json.loads(text), envelope_of("peers", DATA["peers"])) == ""


def test_every_exit_code_is_told() -> None:
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == [str(int(code)) for code in ExitCode]


def test_every_key_of_the_records_is_told() -> None:
    gpu = Gpu("NVIDIA GeForce RTX 4090", 24564, "8.9")
    versions = Versions(python="3.11", torch="2.13", cuda="13.0", nccl="2.28", driver="580")
    node = NodeFacts(id="0123456789ab", gpus=(gpu,), versions=versions, calls_itself="gpu-node-1")
    keys = {item.partition(b"=")[0].decode() for item in txt.encode(node)}
    part = JobPart(
        True, 1, "gpu-node-1", "0" * 16, rank=0, size=3, since=2 * 10**9, began=2 * 10**9, restarts=1
    )
    keys |= job_txt.encode_part(part).keys() | {"txtvers", "proto", "id", "job", "cluster", "nodes", "procs"}

    told = {
        key
        for row in re.findall(r"^\| (`.*?) \|", RECORDS, re.MULTILINE)
        for key in row.strip("`").split("`, `")
    }
    assert keys == told

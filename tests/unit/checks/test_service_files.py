"""The checks of all service files and of what is really published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.checks.service_files import other_files, service_label, services_loaded
from avahi_gpu.model import Announcement, DaemonProcess, Facts, FileState, OwnRecords, ServiceFile

FOLDER = "/etc/avahi/services"
HTTP = (
    b"<service-group><name>web</name>"
    b"<service><type>_http._tcp</type><port>80</port></service></service-group>"
)
LONG = b"<txt-record>" + b"x" * 250 + b"</txt-record>"


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


def with_service(facts: Facts, old: bytes, new: bytes) -> Facts:
    content = (facts.service_file.content or b"").replace(old, new)
    assert content != facts.service_file.content
    return replace(facts, service_file=replace(facts.service_file, content=content))


def with_other(
    facts: Facts, name: str = "web.service", content: bytes | None = HTTP, **state: object
) -> Facts:
    fields: dict[str, object] = {"mode": 0o644, "uid": 0, "gid": 0, **state}
    file = ServiceFile(FileState(f"{FOLDER}/{name}", content, **fields))  # type: ignore[arg-type]
    ours = facts.avahi.service_files or ()
    own = OwnRecords(
        (Announcement(2, 4, "gpu-node-1", "_torch._tcp"), Announcement(2, 4, "web", "_http._tcp")),
        ("_torch._tcp", "_http._tcp"),
        "10.77.0.1",
        2,
    )
    return replace(facts, avahi=replace(facts.avahi, service_files=(*ours, file), own=own))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (b"<port>29500</port>", b"<port>$PORT</port>", {"AG506": "error"}),
        (b"<port>29500</port>", b"", {"AG506": "error"}),
        (b"<port>", b"<domain-name>lan</domain-name><port>", {"AG506": "error"}),
        (b"<port>", b"<host-name>gpu-node-9.local</host-name><port>", {"AG506": "error"}),
        (b'"yes"', b'"true"', {"AG503": "warn", "AG506": "warn"}),
        (b"<service>", b'<service protocol="ipv6">', {"AG503": "warn", "AG506": "warn"}),
    ],
)
def test_a_file_that_leads_peers_nowhere(
    old: bytes, new: bytes, found: dict[str, str], healthy: Facts
) -> None:
    facts = with_service(healthy, old, new)

    assert failing(facts) == found
    assert all(f.fix for f in run_checks(facts) if f.id in found)


def test_the_own_host_name_in_the_file_is_no_fault(healthy: Facts) -> None:
    facts = with_service(healthy, b"<port>", b"<host-name>GPU-Node-1.local</host-name><port>")

    assert failing(facts) == {"AG503": "warn"}


@pytest.mark.parametrize(("records", "found"), [(6, {}), (8, {"AG505": "warn"}), (12, {"AG505": "error"})])
def test_a_txt_that_no_packet_holds(records: int, found: dict[str, str], healthy: Facts) -> None:
    more = b"<txt-record>" + b"x" * 140 + b"</txt-record>"
    facts = with_service(healthy, b"<txt-record>txtvers=1", more * records + b"<txt-record>txtvers=1")

    assert {k: v for k, v in failing(facts).items() if k != "AG503"} == found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HTTP.replace(b"web", b"R&D"), "web.service:1"),
        (HTTP.replace(b"_http", b"http"), "not a service type"),
        (b"", "web.service:1"),
        (HTTP.replace(b"_http", b"_torch"), "second _torch._tcp"),
        (
            HTTP.replace(b"</port>", b"</port>" + LONG * 6),
            "no packet",
        ),
    ],
)
def test_a_foreign_file_that_is_wrong_is_a_warning(content: bytes, words: str, healthy: Facts) -> None:
    facts = with_other(healthy, content=content)

    assert "AG507" in failing(facts) and failing(facts)["AG507"] == "warn"
    assert words in other_files(facts).evidence[0]


def test_a_foreign_file_that_only_root_reads_is_a_warning(healthy: Facts) -> None:
    assert "mode 0600" in other_files(with_other(healthy, mode=0o600)).evidence[0]


def test_a_link_out_of_the_chroot_is_one_only_where_there_is_a_chroot(healthy: Facts) -> None:
    facts = with_other(healthy, link_target="/usr/share/web.service")
    bare = replace(facts.avahi, processes=(DaemonProcess(77, "S", 102, 1000.0, root="/"),))

    assert other_files(facts).verdict == "warn"
    assert other_files(replace(facts, avahi=bare)).verdict == "ok"


def test_a_foreign_file_in_good_order_is_fine(healthy: Facts) -> None:
    assert failing(with_other(healthy)) == {}


def test_a_name_that_is_passed_over_is_information(healthy: Facts) -> None:
    assert other_files(with_other(healthy, name="web.xml")).verdict == "info"


def test_what_is_not_published_is_a_warning(healthy: Facts) -> None:
    facts = with_other(healthy, content=HTTP.replace(b"web", b"shop"))

    found = services_loaded(facts)

    assert failing(facts) == {"AG508": "warn"}
    assert found.evidence == (f"{FOLDER}/web.service: “shop” _http._tcp",) and found.fix


def test_a_name_that_was_taken_counts_as_published(healthy: Facts) -> None:
    facts = with_other(healthy)
    assert facts.avahi.own is not None
    own = replace(facts.avahi.own, announcements=(Announcement(2, 4, "web #2", "_http._tcp"),))

    assert services_loaded(replace(facts, avahi=replace(facts.avahi, own=own))).verdict == "ok"


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        ("", "ok"),
        ("system_u:object_r:etc_t:s0", "ok"),
        ("unconfined_u:object_r:user_home_t:s0", "warn"),
        ("odd", "ok"),
    ],
)
def test_a_label_of_a_home_folder(label: str, verdict: str, healthy: Facts) -> None:
    file = replace((healthy.avahi.service_files or ())[0], label=label)

    found = service_label(replace(healthy, avahi=replace(healthy.avahi, service_files=(file,))))

    assert found.verdict == verdict
    assert ("restorecon" in found.hint) == (verdict == "warn")


def test_a_misnamed_file_is_named_beside_the_missing_one(healthy: Facts) -> None:
    facts = with_other(healthy, name="torch.xml", content=healthy.service_file.content)
    facts = replace(facts, service_file=FileState(healthy.service_file.path, None), own_service=())

    (found,) = [f for f in run_checks(facts) if f.verdict == "error"]

    assert found.id == "AG501" and "torch.xml" in found.evidence[0]


def test_a_folder_that_is_closed_is_opened_and_closed_again_by_undo(healthy: Facts) -> None:
    folder = FileState(FOLDER, None, mode=0o700, error="not a regular file")
    facts = replace(healthy, avahi=replace(healthy.avahi, services_folder=folder))

    (found,) = [f for f in run_checks(facts) if f.verdict == "error"]

    assert found.id == "AG501" and found.fix
    assert found.fix.changes[0].argv == ("chmod", "0755", FOLDER)
    assert found.fix.changes[0].undo == ("chmod", "0700", FOLDER)

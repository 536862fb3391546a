"""5xx: the unit that renders the service file anew at boot, so that what a machine tells stays true."""

from __future__ import annotations

from shlex import quote

from avahi_gpu.checks import fixes
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import BOOT_UNIT, SERVICE_FILE, BootUnit, Facts, Fix

NO_SYSTEMD = "there is no systemd here: run avahi-gpu setup again when the machine has changed"
NO_SYSTEMD_IN_IMAGE = "there is no systemd in the image: run avahi-gpu setup on each machine that boots it"
INSTALL_IT = "install it in a place of its own, a virtual environment in /opt, and run setup from there"
INSTALL_INTO_IMAGE = "install it into the image as /opt/avahi-gpu/bin/avahi-gpu, then run setup again"
ENDED_WELL = ("", "success")


@check(
    "AG511",
    slug="facts-unit",
    area="service",
    says=f"the unit that renders {SERVICE_FILE.name} anew at boot is as it should be",
    setup=True,
    image=True,
)
def facts_unit(facts: Facts) -> Outcome:
    """Without it a machine goes on telling of the GPU, driver or identity that it had at setup."""
    unit = facts.host.boot_unit
    if unit is None:
        return _not_known(facts)
    if unit.masked:
        return info(f"{BOOT_UNIT} is masked: {SERVICE_FILE.name} stays as setup wrote it")
    if unit.present_exposed:
        remove = (f"systemctl disable {BOOT_UNIT}", f"rm {quote(unit.file.path)}")
        return error(
            f"{BOOT_UNIT} lets root run at every boot what others may change: {unit.present_exposed}",
            [unit.file.path],
            fix=Fix("remove it", commands=remove) if unit.wanted is None else _write(unit),
            hint=INSTALL_IT if unit.wanted is None else "",
        )
    if unit.exposed:
        return warn(
            f"nothing renders {SERVICE_FILE.name} anew at boot: root would run what others may change, "
            f"{unit.exposed}",
            [unit.program],
            hint=INSTALL_IT if facts.image is None else INSTALL_INTO_IMAGE,
        )
    if unit.wanted is None:
        return warn(
            f"nothing renders {SERVICE_FILE.name} anew at boot: there is no avahi-gpu that could be run then",
            hint=INSTALL_IT if facts.image is None else INSTALL_INTO_IMAGE,
        )
    state = unit.file
    if state.content == unit.wanted:
        return ok(state.path)
    if state.content is None and state.exists:
        return unknown(f"{state.path} could not be read ({state.error})")
    says = "is not the one of this avahi-gpu" if state.exists else "is missing"
    return warn(
        f"{BOOT_UNIT}, which renders {SERVICE_FILE.name} anew at boot, {says}",
        [f"would run: {unit.program}"],
        fix=_write(unit),
    )


@check(
    "AG512",
    slug="facts-unit-enabled",
    area="service",
    says=f"{BOOT_UNIT} runs at boot",
    needs=("AG511",),
    setup=True,
    image=True,
)
def facts_unit_enabled(facts: Facts) -> Outcome:
    """A unit that nothing wants is never run."""
    unit = facts.host.boot_unit
    if unit is None:
        return _not_known(facts)
    if unit.masked:
        return skip("the unit is masked: see AG511")
    if unit.enabled is None:
        return unknown("systemd did not tell whether the unit is enabled")
    if unit.enabled:
        return ok()
    if unit.wanted is None:
        return skip("there is no unit: see AG511")
    return warn(f"{BOOT_UNIT} does not run at boot", fix=fixes.enable(BOOT_UNIT))


@check(
    "AG513",
    slug="facts-at-last-boot",
    area="service",
    says=f"{SERVICE_FILE.name} was rendered at the last boot",
    needs=("AG511", "AG512"),
)
def facts_at_last_boot(facts: Facts) -> Outcome:
    """Where it failed the file was left as it was before."""
    unit = facts.host.boot_unit
    if unit is None:
        return _not_known(facts)
    if unit.result in ENDED_WELL:
        return ok(unit.result)
    return warn(
        f"{SERVICE_FILE.name} was not rendered at the last boot: {BOOT_UNIT} failed ({unit.result})",
        hint=f"its log tells why: journalctl -b -u {BOOT_UNIT}",
    )


@check(
    "AG514",
    slug="facts-program",
    area="service",
    says=f"the avahi-gpu that {BOOT_UNIT} runs is there to stay",
    needs=("AG511",),
    setup=True,
    image=True,
)
def facts_program(facts: Facts) -> Outcome:
    """A unit of the system that runs what lies in a home, or in a checkout, does another thing one day."""
    unit = facts.host.boot_unit
    if unit is None:
        return _not_known(facts)
    if not unit.frail:
        return ok(unit.program)
    return info(
        f"the avahi-gpu that runs at boot may be gone one day: {unit.frail}",
        [unit.program],
        hint="install it in a place of its own, as in /opt/avahi-gpu, and run setup from there; where it is "
        "gone the unit does nothing",
    )


@check(
    "AG515",
    slug="image-machine-id",
    area="service",
    says="no image gives its machine id to every machine that boots it",
    setup=True,
    image=True,
)
def image_machine_id(facts: Facts) -> Outcome:
    """Nodes are known by a hash of the machine id; the first boot makes one where there is none."""
    if facts.image is None or not facts.machine_id:
        return ok()
    folder = facts.image.folder
    return warn(
        "the image holds a machine id: machines that boot copies of it would be taken for one node",
        [f"{folder}/etc/machine-id"],
        hint=f"where more than one machine boots it: truncate --size 0 {quote(folder)}/etc/machine-id; "
        f"rm -f {quote(folder)}/var/lib/dbus/machine-id",
    )


def _write(unit: BootUnit) -> Fix:
    change = fixes.write_file(f"write {unit.file.path}", unit.file, unit.wanted)
    return Fix(change.title, (change,))


def _not_known(facts: Facts) -> Outcome:
    if "host.boot_unit" in facts.unread:
        return unread(facts, "host.boot_unit", BOOT_UNIT)
    return skip(NO_SYSTEMD if facts.image is None else NO_SYSTEMD_IN_IMAGE)

"""A: the static service files."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.scenarios.daemon import restart
from tests.lab.scenarios.scenario import Scenario

SERVICE = "/etc/avahi/services/torch.service"


def replaced(old: str, new: str) -> Callable[[Cluster], None]:
    """Return what replaces text in the first host's service file, which restarts its daemon."""

    def break_it(lab: Cluster) -> None:
        text = lab[0].read(SERVICE)
        assert old in text
        lab[0].write(SERVICE, text.replace(old, new, 1))
        restart(lab[0])

    return break_it


def bytes_in_txt(lab: Cluster) -> None:
    """Write a byte that is no UTF-8."""
    raw = lab[0].path(SERVICE).read_bytes()
    lab[0].write(SERVICE, raw.replace(b"txtvers=1", b"txtvers=\xff", 1))
    restart(lab[0])


def large_txt(lab: Cluster) -> None:
    """Publish twelve records of 146 bytes."""
    more = "".join(f"<txt-record>k{n:02}={'x' * 142}</txt-record>" for n in range(12))
    replaced("<txt-record>txtvers=1</txt-record>", f"<txt-record>txtvers=1</txt-record>{more}")(lab)


def empty(lab: Cluster) -> None:
    """Leave an empty file, as a full disk does."""
    lab[0].write(SERVICE, b"")
    restart(lab[0])


def unreadable(lab: Cluster) -> None:
    """Let the owner alone read it, as mkstemp makes files."""
    lab[0].path(SERVICE).chmod(0o600)
    restart(lab[0])


def linked(lab: Cluster) -> None:
    """Move the file out of the daemon's sight and leave a link."""
    lab[0].run(["mv", SERVICE, "/etc/torch.service"], check=True)
    lab[0].run(["ln", "-s", "/etc/torch.service", SERVICE], check=True)
    restart(lab[0])


def misnamed(lab: Cluster) -> None:
    """Give the file a name that the daemon passes over."""
    lab[0].run(["mv", SERVICE, SERVICE.replace(".service", ".xml")], check=True)
    restart(lab[0])


def folder_closed(lab: Cluster) -> None:
    """Let root alone look into the folder."""
    lab[0].path(SERVICE).parent.chmod(0o700)
    restart(lab[0])


SCENARIOS = (
    Scenario(
        "A-20",
        "an-ampersand-in-the-txt",
        "`cluster=R&D`: no XML",
        "AG502",
        replaced("txtvers=1", "txtvers=1&2"),
        mends=True,
    ),
    Scenario("A-20", "an-empty-file", "the service file is empty", "AG502", empty, mends=True),
    Scenario("A-20", "no-utf-8", "a byte that is no UTF-8", "AG502", bytes_in_txt, mends=True),
    Scenario(
        "A-20",
        "capitals-in-protocol",
        '`<service protocol="IPv4">`',
        "AG502",
        replaced("<service>", '<service protocol="IPv4">'),
        mends=True,
    ),
    Scenario(
        "A-20",
        "no-name",
        "no `<name>`",
        "AG502",
        replaced('<name replace-wildcards="yes">%h</name>', ""),
        mends=True,
    ),
    Scenario(
        "A-20",
        "type-without-underscore",
        "`<type>torch._tcp</type>`",
        "AG502",
        replaced("_torch._tcp", "torch._tcp"),
        mends=True,
    ),
    Scenario(
        "A-20",
        "name-too-long",
        "a name of 64 bytes",
        "AG502",
        replaced("%h", "n" * 64),
        mends=True,
    ),
    Scenario(
        "A-20",
        "txt-record-too-long",
        "one txt-record of 256 bytes",
        "AG502",
        replaced("txtvers=1", "txtvers=1</txt-record><txt-record>k=" + "x" * 254),
        mends=True,
    ),
    Scenario(
        "A-20",
        "hexadecimal-port",
        "`<port>0x733c</port>` becomes port 0",
        "AG506",
        replaced("29500", "0x733c"),
        mends=True,
    ),
    Scenario(
        "A-20",
        "element-outside-the-group",
        "`<port>` outside `<service>`",
        "AG502",
        replaced("<service>", "<port>1</port><service>"),
        mends=True,
    ),
    Scenario(
        "A-21",
        "txt-too-large",
        "1.7 kB of TXT: established, and nobody can resolve it",
        "AG505",
        large_txt,
        mends=True,
    ),
    Scenario("A-23", "mode-0600", "the service file has mode 0600", "AG501", unreadable, mends=True),
    Scenario("A-23", "a-link-out-of-the-chroot", "a link out of /etc/avahi", "AG501", linked, mends=True),
    Scenario("A-23", "wrong-suffix", "the file is called torch.xml", "AG501", misnamed, mends=True),
    Scenario(
        "A-23", "folder-closed", "the folder of services has mode 0700", "AG501", folder_closed, mends=True
    ),
)

"""What was read of names: name servers, glibc's modules, and the way of one name through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from avahi_gpu.model.machine_file import FileState

# what a name server answers to "who is responsible for local?"; owner: some server claims the domain,
# which makes nss-mdns leave it alone. silent: nothing came in time. closed: nobody listens there.
ServerWord = Literal[
    "owner", "nxdomain", "nodata", "refused", "servfail", "odd", "silent", "closed", "unreachable"
]
Status = Literal["success", "notfound", "unavail", "tryagain"]


@dataclass(frozen=True)
class Lookup:
    """What glibc answered for a name, in a process of its own, and how long it took."""

    name: str
    addresses: tuple[str, ...]
    elapsed_s: float
    error: str = ""  # '' where it resolved; else glibc's words, or "timeout"


@dataclass(frozen=True)
class NameServer:
    """One name server that glibc asks, or one that a local one passes questions on to."""

    address: str
    says: ServerWord
    elapsed_s: float
    answers_others: bool | None = None  # silent for ``local``, but not for the root; None: not asked
    upstream: bool = False  # asked by systemd-resolved, not by glibc itself


@dataclass(frozen=True)
class ModuleAnswer:
    """What one of glibc's modules answered for a name, called alone in a process of its own.

    ``status`` None: it did not answer in time, or could not be called (``error``).
    """

    module: str
    status: Status | None
    addresses: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    error: str = ""
    loaded: bool | None = None  # False: glibc cannot load it; None: not known
    late: bool = False  # it did not answer in time


@dataclass(frozen=True)
class Step:
    """One service of the hosts line on the way of a name.

    ``answer`` None: it was not asked, since an earlier one had ended the search. ``action`` is what glibc
    does after such an answer: ``return`` ends the search, ``wait`` means that no answer came in time.
    """

    module: str
    actions: str = ""  # as written behind the service: [NOTFOUND=return]
    answer: ModuleAnswer | None = None
    action: str = ""

    @property
    def ends(self) -> bool:
        return self.answer is not None and self.action == "return"


@dataclass(frozen=True)
class AvahiAnswer:
    """What avahi-daemon says of a name by itself, over D-Bus. ``asked`` False: not a name of its domain."""

    asked: bool
    addresses: tuple[tuple[str, str], ...] = ()  # address, interface
    elapsed_s: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Trace:
    """The way of one name: through glibc's modules in their order, and beside them.

    ``asked`` is the name as the user wrote it, ``name`` what was looked up: a bare name is a node's first,
    ``gpu-node-2`` being ``gpu-node-2.local``. ``line`` 0: no hosts line is read, glibc's default counts.
    """

    asked: str
    name: str
    services: str  # of the hosts line, as written
    line: int
    steps: tuple[Step, ...]
    glibc: Lookup  # what a program is told that just asks
    avahi: AvahiAnswer
    answers: tuple[tuple[str, bool | None], ...] = ()  # address -> somebody is there; None: cannot be told
    bare: Lookup | None = None  # the name as written, where that is a bare one
    defect: str = ""  # why glibc reads nothing of nsswitch.conf

    @property
    def decided_by(self) -> Step | None:
        """The step that ended the search, else the last one asked."""
        asked = [step for step in self.steps if step.answer is not None]
        return asked[-1] if asked else None


@dataclass(frozen=True)
class StoryStep:
    """One step in words: what the module said, why, and what that did to the search."""

    module: str
    actions: str
    words: str  # '' where it was not asked
    why: str
    effect: str
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class Story:
    """A trace in words, as it is drawn; ``says`` is the one sentence on the whole."""

    trace: Trace
    steps: tuple[StoryStep, ...]
    says: str


@dataclass(frozen=True)
class Authselect:
    """authselect(8), where it writes nsswitch.conf. ``profile`` '' where it did not tell.

    ``edited``: files of its that somebody has edited since, which it would write anew; None: not known.
    ``present``: nsswitch.conf as it would write it now. ``generated``: as it would with mDNS, None where the
    profile has no feature for that.
    """

    installed: bool
    profile: str = ""
    features: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    edited: tuple[str, ...] | None = None
    present: bytes | None = None
    generated: bytes | None = None
    user_file: FileState | None = None  # /etc/authselect/user-nsswitch.conf, of versions before 1.3

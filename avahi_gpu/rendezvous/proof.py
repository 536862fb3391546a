"""How two nodes prove to each other that they hold the cluster key, before anything else is said. Pure.

Three lines, the third together with the first message, so that a proof costs one round trip:

    initiator → responder   prove    who it is, for which job, its nonce, and both ends as it sees them
    responder → initiator   answer   who it is, its nonce, its proof
    initiator → responder   confirm  its proof

A proof is an HMAC-SHA256 (RFC 2104) under the cluster key over everything that was said, and over who says
it: nobody can play one back, neither later nor to whom it came from, nor use it for another job or node or
from another address. From the same words both derive a key for each direction. Every later line begins with
its HMAC under that key and its number, so that none can be changed, left out, repeated or slipped in.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous.messages import Count, Id, Ip, Name, Priority

VERSION = 1
NONCE_BYTES = 32
PROOF_LINE_MAX = 16 * 1024  # bytes: a plain hello as well, so that whoever lacks the key is named
SEAL_DIGITS = 32  # 128 bits of a line's HMAC: more than anybody can guess at (RFC 2104 section 5)

Why = Literal["no-key", "key-wanted", "other-key", "other-job", "other-version", "other-address", "no-proof"]
REASONS: tuple[Why, ...] = ("no-key", "key-wanted", "other-key", "other-version", "other-address")
Hex = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Prove(msgspec.Struct, frozen=True, tag="prove"):
    """The initiator's first line. ``here`` and ``there``: its own address and the one that it has dialled."""

    version: Count
    id: Id
    host: Name
    job: Name
    cluster: Name
    here: Ip
    there: Ip
    nonce: Hex


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """The responder's line."""

    id: Id
    host: Name
    priority: Priority
    nonce: Hex
    proof: Hex


class Confirm(msgspec.Struct, frozen=True, tag="confirm"):
    """The initiator's second line."""

    proof: Hex


class Unproven(msgspec.Struct, frozen=True, tag="unproven"):
    """There will be no proof. Itself without one: for people to read, and nothing is decided by it."""

    why: Why
    host: Name


Said = Prove | Answer | Confirm | Unproven

_decoder: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)
_encoder = msgspec.json.Encoder()


class NotProven(Exception):
    """The other side does not prove the key. ``answer``: what it is to be told, b'' for nothing."""

    def __init__(self, why: Why, host: str = "", answer: bytes = b"") -> None:
        super().__init__(why)
        self.why: Why = why
        self.host = host
        self.answer = answer


@dataclass(frozen=True)
class Pass:
    """What a node proves itself with. ``key`` None: it has none, and asks nobody for one."""

    id: str
    host: str
    job: str
    cluster: str
    key: ClusterKey | None = None
    priority: int = 0


class Session:
    """A proven connection: seals the lines that go out and opens those that come in, in their order."""

    def __init__(self, out_key: bytes, in_key: bytes) -> None:
        self._out, self._in = out_key, in_key
        self._sent = self._heard = 0

    def seal(self, line: bytes) -> bytes:
        """Return the next line to send, of one that ends in a newline."""
        mark = _mark(self._out, self._sent, line)
        self._sent += 1
        return mark + b" " + line

    def open(self, line: bytes, sender: str) -> bytes:
        """Return what the next line that came says. Raises MalformedInput where it is not the one."""
        mark, _, rest = line.partition(b" ")
        if not hmac.compare_digest(mark, _mark(self._in, self._heard, rest)):
            raise MalformedInput(sender, "a line that is not from whoever has proved the cluster key")
        self._heard += 1
        return rest


class Handshake:
    """One side of a proof. ``here`` and ``there``: our own address and theirs; ``nonce``: fresh, 32 bytes."""

    def __init__(self, us: Pass, nonce: bytes, here: str, there: str) -> None:
        assert us.key is not None and len(nonce) == NONCE_BYTES
        self.us, self.key, self.nonce = us, us.key.secret, nonce.hex()
        self.here, self.there = plain_address(here), plain_address(there)
        self.host = ""  # theirs, as they say
        self.answered: Answer | None = None  # the responder's line, ours or theirs
        self.session: Session | None = None  # once it is proven
        self._begun = False  # we are the initiator
        self._asked: Prove | None = None  # the initiator's first line, whichever side we are

    def begin(self) -> bytes:
        """Return the first line of an initiator."""
        us, self._begun = self.us, True
        self._asked = Prove(VERSION, us.id, us.host, us.job, us.cluster, self.here, self.there, self.nonce)
        return encode(self._asked)

    def hear(self, line: bytes) -> bytes:
        """Take in a line of theirs and return our answer, b'' where nothing is left to say.

        ``session`` stands once theirs is proven. Raises NotProven.
        """
        match decode_or_none(line):
            case Unproven(why, host):
                raise NotProven(why, host)
            case Prove() as said if self._asked is None:
                return self._answer(said)
            case Answer() as said if self._begun and self._asked is not None and self.answered is None:
                return self._confirm(self._asked, said)
            case Confirm() as said if (
                not self._begun and self._asked is not None and self.answered is not None
            ):
                return self._end(self._asked, self.answered, said)
        raise NotProven("no-proof", self.host)

    # --- the responder -------------------------------------------------------------------------------------

    def _answer(self, said: Prove) -> bytes:
        us, self.host = self.us, said.host
        why: Why | None = None
        if said.version != VERSION:
            why = "other-version"
        elif (said.job, said.cluster) != (us.job, us.cluster):
            why = "other-job"
        elif (plain_address(said.here), plain_address(said.there)) != (self.there, self.here):
            why = "other-address"
        elif said.id == us.id:
            why = "no-proof"  # our own words, played back
        if why is not None:
            raise NotProven(why, said.host, refusal(why, us.host))
        self._asked = said
        unsigned = Answer(us.id, us.host, us.priority, self.nonce, "0" * 64)
        self.answered = msgspec.structs.replace(unsigned, proof=_proof(self.key, "responder", said, unsigned))
        return encode(self.answered)

    def _end(self, asked: Prove, answered: Answer, said: Confirm) -> bytes:
        if not hmac.compare_digest(said.proof, _proof(self.key, "initiator", asked, answered)):
            raise NotProven("other-key", self.host, refusal("other-key", self.us.host))
        ours, theirs = self._keys(asked, answered, "responder", "initiator")
        self.session = Session(ours, theirs)
        return b""

    # --- the initiator -------------------------------------------------------------------------------------

    def _confirm(self, asked: Prove, said: Answer) -> bytes:
        self.host = said.host
        self.answered = said
        if said.id == asked.id:
            raise NotProven("no-proof", said.host)  # our own words, played back
        if not hmac.compare_digest(said.proof, _proof(self.key, "responder", asked, said)):
            raise NotProven("other-key", said.host, refusal("other-key", self.us.host))
        ours, theirs = self._keys(asked, said, "initiator", "responder")
        self.session = Session(ours, theirs)
        return encode(Confirm(_proof(self.key, "initiator", asked, said)))

    def _keys(self, asked: Prove, answered: Answer, ours: str, theirs: str) -> tuple[bytes, bytes]:
        return tuple(  # type: ignore[return-value]  # two of them
            bytes.fromhex(_proof(self.key, f"lines of the {side}", asked, answered))
            for side in (ours, theirs)
        )


def _proof(key: bytes, role: str, asked: Prove, answered: Answer) -> str:
    """Return the HMAC over all that both have said, and over who proves it; no two wordings look alike."""
    words = [
        *("avahi-gpu", role, str(asked.version), asked.job, asked.cluster),
        *(asked.id, asked.host, plain_address(asked.here), plain_address(asked.there), asked.nonce),
        *(answered.id, answered.host, str(answered.priority), answered.nonce),
    ]
    code = hmac.new(key, digestmod=hashlib.sha256)
    for word in words:
        part = word.encode("utf-8", "surrogatepass")
        code.update(len(part).to_bytes(4, "big") + part)
    return code.hexdigest()


def _mark(key: bytes, number: int, line: bytes) -> bytes:
    code = hmac.new(key, number.to_bytes(8, "big") + line, hashlib.sha256)
    return code.hexdigest()[:SEAL_DIGITS].encode()


def encode(said: Said) -> bytes:
    """Return a line, its newline included."""
    return _encoder.encode(said) + b"\n"


def decode_or_none(line: bytes) -> Said | None:
    """Return what a line of a proof says, None for any other line."""
    try:
        return _decoder.decode(line) if len(line) <= PROOF_LINE_MAX else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def refusal(why: Why, host: str) -> bytes:
    """Return the line that says why there is no proof. ``host``: whoever says so."""
    return encode(Unproven(why, host))


def plain_address(address: str) -> str:
    """Return an address in its one form, without a scope, which means something on one host alone."""
    try:
        plain = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = getattr(plain, "ipv4_mapped", None)
    return str(mapped or plain)


def describe_unproven(why: Why, host: str, address: str) -> str:
    """Return what is wrong with a node, in one sentence for people, with what to do."""
    who = f"{host} ({address})" if host else address
    return f"{who} {_WORDS[why]}"


_WORDS: dict[Why, str] = {
    "no-key": "holds no cluster key and has no part in this job: bring the key there (`avahi-gpu key check`)",
    "key-wanted": "takes in only nodes that hold its cluster key, and this one has none: bring it here",
    "other-key": "holds another cluster key: compare `avahi-gpu key check` on both",
    "other-version": "proves the cluster key in another way: install the same avahi-gpu on both",
    "other-address": "is seen under another address than its own: no NAT or proxy may be in between",
    "other-job": "runs another job",
    "no-proof": "does not prove the cluster key and is ignored",
}

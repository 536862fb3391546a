"""The cluster key as text: one line of 64 hexadecimal digits. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from avahi_gpu.errors import MalformedInput
from avahi_gpu.model import CONFIG_FOLDER

PATH = str(CONFIG_FOLDER / "key")  # of the machine, root's
USER_PATH = ".config/avahi-gpu/key"  # of a user who trains without being root, below the home folder
PATH_VARIABLE = "AVAHI_GPU_KEY_FILE"
SECRET_BYTES = 32  # as many as SHA-256 has: nobody guesses it
FINGERPRINT_DIGITS = 12  # told apart by people; of a random key it gives nothing away

_DIGITS = re.compile(r"[0-9a-fA-F]+")


@dataclass(frozen=True)
class ClusterKey:
    """What the nodes of a cluster share. Its secret appears in no representation of it."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """What two keys can be compared by (``1f0c-77ab-3e52``) without showing them."""
        mark = hmac.new(self.secret, b"avahi-gpu fingerprint", hashlib.sha256).hexdigest()
        digits = mark[:FINGERPRINT_DIGITS]
        return "-".join(digits[i : i + 4] for i in range(0, FINGERPRINT_DIGITS, 4))


def encode_key(key: ClusterKey) -> bytes:
    """Return the content of a key file."""
    return key.secret.hex().encode() + b"\n"


def parse_key(content: bytes, where: str) -> ClusterKey:
    """Return the key of a file's content. Raises MalformedInput, which never shows what stands there."""
    hint = "make one with `avahi-gpu key new`, or bring the one of another node here"
    text = content.strip().decode("ascii", "replace")
    if not text:
        raise MalformedInput(where, "the key file is empty", hint)
    digits = _DIGITS.fullmatch(text) is not None
    if not digits or len(text) != 2 * SECRET_BYTES:
        short = digits and len(text) < 2 * SECRET_BYTES
        what = f"a key of {len(text)} digits, too short" if short else "not a cluster key"
        raise MalformedInput(where, f"{what}: one line of {2 * SECRET_BYTES} hexadecimal digits is", hint)
    return ClusterKey(bytes.fromhex(text))

"""What package managers complain of, and what to do about it."""

from __future__ import annotations

import re

UNREACHED = "see that this machine reaches its package archive (network, proxy, name server), then try again"
EPEL = (
    "on RHEL and its kin nss-mdns is in EPEL: run dnf install epel-release (on RHEL itself the package of "
    "that name from dl.fedoraproject.org/pub/epel), then try again"
)

# the first that is found tells best; in the words of apt 2.6, dpkg 1.21, dnf 4 and 5, zypper 1.14, pacman 6
_ADVICE: tuple[tuple[str, str], ...] = (
    (r"dpkg was interrupted", "run: dpkg --configure -a, then try again"),
    (
        r"dpkg: error processing (?:package|archive) \S+",
        "see what it says, mend that package, and run: dpkg --configure -a, then try again",
    ),
    (
        r"Unmet dependencies|fix-broken install|held broken packages",
        "run: apt-get --fix-broken install, then try again",
    ),
    (
        r"Unable to locate package|has no installation candidate",
        "the package is in main on Debian and in universe on Ubuntu: add that to apt's sources, run: apt-get "
        "update, then try again",
    ),
    (r"Unable to find a match|No match for argument", EPEL),
    (
        r"No provider of '|Package '\S+' not found",
        "add the repository that has it (zypper lr), then try again",
    ),
    (r"target not found", "the list of packages may be old: run pacman -Syu, then try again"),
    (r"[Nn]o space left|enough free (?:disk )?space", "free some space on the disk first"),
    (
        r"[Cc]ould not get lock|frontend lock|management is locked|unable to lock database",
        "another package manager is at work: let it end, then try again",
    ),
    (r"not valid yet|is expired", "see that the clock is right (timedatectl), then try again"),
    (
        r"NO_PUBKEY|GPG error|not signed|cannot be authenticated|signature is (?:invalid|unknown)",
        "the archive's key is not known here: install its keyring, then try again",
    ),
    (
        r"Failed to fetch|failure resolving|Could not resolve|[Cc]ould not connect|Curl error|"
        r"Failed to download|failed retrieving|Cannot download|index files failed to download",
        UNREACHED,
    ),
    (
        r"Read-only file system",
        "this system's /usr is read-only: add the packages to the image it starts from",
    ),
)
_ERRORS = re.compile(r"^(?:E:|[Ee]rror\b|dpkg: error|No match|Package '|No provider)")
BY_HAND = "run it by hand to see all it says, then try again"


def explain(output: str) -> tuple[str, str]:
    """Return the line of a failed installation's output that tells why, '' for none, and what to do."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern, advice in _ADVICE:
        hits = [line for line in lines if re.search(pattern, line)]
        if hits:
            return next((line for line in hits if _ERRORS.match(line)), hits[0]), advice
    return next((line for line in lines if _ERRORS.match(line)), ""), BY_HAND

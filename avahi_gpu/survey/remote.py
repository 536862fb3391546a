"""``doctor --cluster --ssh``: start the other nodes' doctors by ssh, and tell why one does not start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from avahi_gpu.model import Service

CONNECT_S = 5  # ssh's own limit for the connection
SERVE_S = 75  # longer than we wait and ask; the doctor there ends with the connection, sooner
END_S = 2.0  # for ssh to end when it is told to
OUTPUT_MAX = 4096  # bytes that are looked at
COMMAND_NOT_FOUND = 127  # as a shell says it
SSH_FAILED = 255  # ssh(1): its own faults

# what OpenSSH says in the C locale -> what that means; the first that fits
_SAYINGS = (
    ("identification has changed", "its host key is another than before: find out why, then ssh-keygen -R"),
    ("host key verification failed", "ssh does not know its host key: `ssh {host}` once, and compare it"),
    ("permission denied", "ssh is not let in without a password: `ssh-copy-id {host}`"),
    ("too many authentication failures", "ssh offers too many keys: name one in ~/.ssh/config"),
    ("connection refused", "no ssh server listens there"),
    ("timed out", "ssh gets no answer: it is off, or a firewall drops port 22"),
    ("no route to host", "there is no route to it"),
    ("network is unreachable", "there is no route to it"),
    ("could not resolve hostname", "ssh looks for a name: a HostName in ~/.ssh/config?"),
)


class Remote:
    """The doctors that we have started by ssh. ``faults``: address -> why there is none."""

    def __init__(self, python: str | None = None) -> None:
        self.faults: dict[str, str] = {}
        self._python = python
        self._started: dict[str, asyncio.Task[None]] = {}

    def start(self, services: Sequence[Service]) -> None:
        """Start a doctor on each of these nodes, once."""
        for service in services:
            if service.address not in self._started:
                task = asyncio.ensure_future(self._run(service))
                self._started[service.address] = task

    async def close(self) -> None:
        """End the connections, and the doctors there with them."""
        for task in self._started.values():
            task.cancel()
        await asyncio.gather(*self._started.values(), return_exceptions=True)

    async def _run(self, service: Service) -> None:
        code, said, printed = await self._ssh(service)
        if code == SSH_FAILED and "host key" in said.lower() and "changed" not in said.lower():
            # it may be known by its name: still the same key, and no name is looked up for it
            code, said, printed = await self._ssh(service, "-o", f"HostKeyAlias={service.host}")
        self.faults[service.address] = explain(code, said, printed, service.host)

    async def _ssh(self, service: Service, *more: str) -> tuple[int, str, str]:
        """Run ssh to its end; return its exit code, its own words, and the words of what it ran."""
        address = service.address
        options = ["-tt", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", *more]
        argv = ["ssh", *options, "--", address, remote_command(self._python)]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,  # Ctrl-C is ours; the connection is ended by us
            )
        except OSError:
            return COMMAND_NOT_FOUND, "", "ssh is not installed here"
        assert process.stdout is not None and process.stderr is not None
        try:
            printed, said = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            return await process.wait(), said, printed
        finally:
            await _end(process)


async def _read(stream: asyncio.StreamReader) -> str:
    """Read to the end and return its beginning."""
    kept = b""
    while part := await stream.read(OUTPUT_MAX):
        kept += part[: OUTPUT_MAX - len(kept)]
    return kept.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), END_S)
        return
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def remote_command(python: str | None) -> str:
    """Return the line that a shell there runs: our own folder of programs counts as well, as often it is
    the same everywhere."""
    folders = f'"$PATH:$HOME/.local/bin":{shlex.quote(str(Path(sys.argv[0]).absolute().parent))}'
    words = ["avahi-gpu", "doctor", "--serve", str(SERVE_S), *(["--python", python] if python else [])]
    return f"PATH={folders} exec {shlex.join(words)}"


def explain(code: int, said: str, printed: str, host: str) -> str:
    """Return why there is no doctor, from ssh's exit code, its words, and those of the command."""
    if code == COMMAND_NOT_FOUND and not said and printed.startswith("ssh is not"):
        return printed
    if code == COMMAND_NOT_FOUND:
        return "ssh works, but avahi-gpu is not found there: install it, or put it on PATH"
    words = said.lower()
    if code == SSH_FAILED:
        for saying, meaning in _SAYINGS:
            if saying in words:
                return meaning.format(host=host.rstrip(".") or "it")
    lines = [line.strip() for line in (printed if code != SSH_FAILED else said).splitlines() if line.strip()]
    return f"ssh ended with {code}: {lines[-1] if lines else 'no word of it'}"

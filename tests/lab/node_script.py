"""One node of a job without torch, for tests: settings as JSON in argv, commands on stdin, JSON lines out.

Commands: ``start [JOB]``, ``want``, ``stop OUTCOME``, ``close OUTCOME``, which ends the script too.
Lines: ``{"started"}``, ``{"notice"}``, ``{"round"}``, ``{"over"}``, ``{"ended"}``, ``{"failed"}``, each
with ``at``, the monotonic time since ``start`` was read.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous.dealings import JobEnded, Notice, Settings
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.node import Node
from avahi_gpu.rendezvous.terms import Terms

POLL_S = 0.005


class Script:
    def __init__(self) -> None:
        wanted = json.loads(sys.argv[1])
        skills = Skills(
            **{"min_nodes": wanted["nodes"][0], "max_nodes": wanted["nodes"][1], **wanted.get("skills", {})}
        )
        self.terms = Terms(
            wanted.get("job", "job"),
            min_nodes=wanted["nodes"][0],
            max_nodes=wanted["nodes"][1],
            skills=skills,
            **wanted.get("terms", {}),
        )
        self.priority = wanted.get("priority", 0)
        self.peers = tuple(wanted.get("peers", ()))
        self.key = ClusterKey(bytes.fromhex(wanted["key"])) if wanted.get("key") else None
        self.interface = wanted.get("interface")
        os.environ.update(wanted.get("env", {}))
        self.began = 0.0
        self.lock = threading.Lock()
        self.node: Node | None = None

    def say(self, **what: Any) -> None:
        with self.lock:
            print(json.dumps({**what, "at": round(time.monotonic() - self.began, 4)}), flush=True)

    def notice(self, notice: Notice) -> None:
        if not notice.ended:  # ``ended`` says it
            self.say(notice=notice.text, present=notice.present, waiting=notice.waiting)

    def start(self, job: str) -> None:
        self.began = time.monotonic()
        self.terms = replace(self.terms, job=job or self.terms.job)
        host = socket.gethostname()
        try:
            settings = Settings(
                self.terms,
                host,
                self.priority,
                interface=self.interface,
                peers=self.peers,
                key=self.key,
            )
            self.node = Node.start(settings, self.notice)
        except AvahiGpuError as error:
            self.say(failed=error.message, hint=error.hint)
            return
        self.node.want()
        self.say(started=host)
        threading.Thread(target=self.watch, args=(self.node,), daemon=True).start()

    def watch(self, node: Node) -> None:
        """Tell of every round, and of its end."""
        try:
            while node is self.node:
                formed = node.wait_for_round(1)
                if formed is None:
                    continue
                round = formed.round
                if formed.store is not None:
                    formed.store.close()
                self.say(
                    round=str(round.token),
                    epoch=round.token.epoch,
                    hosts=[s.host for s in round.seats],
                    rank=round.rank,
                    leader=round.leader.address,
                    own=round.own.address,
                    ports=[round.store_port, round.worker_port],
                    interface=formed.interface,
                )
                while not node.over:
                    time.sleep(POLL_S)
                    if node is not self.node:
                        return
                self.say(over=str(round.token))
                if node._ended is None:
                    node.want()
        except JobEnded as ended:
            self.say(ended=ended.message, hint=ended.hint, finished=ended.finished)


def shift_clock(seconds: float) -> None:
    """Have everything in this process believe another time of day."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)


def main() -> None:
    shift_clock(json.loads(sys.argv[1]).get("clock_s", 0))
    script = Script()
    print(json.dumps({"loaded": True}), flush=True)
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "start":
            script.start(rest)
        elif command == "want" and script.node:
            script.node.want(rest)
        elif command == "stop" and script.node:
            node, script.node = script.node, None
            node.close(rest or "left")
            script.say(closed=True)
        elif command == "close" and script.node:
            script.node.close(rest or "left")
            script.say(closed=True)
            return


if __name__ == "__main__":
    main()

"""One node of a job without torch, for measurements: commands on stdin, a line of JSON for each answer.

    start JOB SMALLEST LARGEST [KEY]    {"round": epoch, "at": …} once the round stands; KEY: hexadecimal
    cost                                {"cost": seconds of the rendezvous thread's CPU, "at": …}
    close                               {"closed": true, "at": …}; then ``start`` may come again

``at`` is time.monotonic(), which all virtual hosts of one machine share. Nothing polls here, so that what the
node costs is the node's own.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.node import JobEnded, Node, Notice, Settings
from avahi_gpu.rendezvous.terms import Terms

THREAD = "avahi-gpu"


def say(**what: object) -> None:
    sys.stdout.write(json.dumps({**what, "at": time.monotonic()}) + "\n")
    sys.stdout.flush()


def hear(_notice: Notice) -> None:
    """Nobody reads along."""


def begin(job: str, smallest: int, largest: int, key: ClusterKey | None) -> Node:
    """Start the node; a thread tells of its first round."""
    skills = Skills(min_nodes=smallest, max_nodes=largest)
    terms = Terms(job, min_nodes=smallest, max_nodes=largest, skills=skills)
    node = Node.start(Settings(terms, socket.gethostname(), key=key), hear)
    node.want()
    threading.Thread(target=await_round, args=(node,), daemon=True).start()
    return node


def await_round(node: Node) -> None:
    try:
        formed = node.wait_for_round(60)
    except JobEnded as ended:
        say(ended=ended.message)
        return
    if formed is not None:
        say(round=formed.round.token.epoch, rank=formed.round.rank)
        if formed.store is not None:
            formed.store.close()


def cost() -> float:
    """Return the seconds of CPU that the rendezvous thread has used."""
    thread = next(t for t in threading.enumerate() if t.name == THREAD)
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def main() -> None:
    node: Node | None = None
    say(loaded=True)
    for line in sys.stdin:
        match line.split():
            case ["start", job, smallest, largest, *secret]:
                key = ClusterKey(bytes.fromhex(secret[0])) if secret else None
                node = begin(job, int(smallest), int(largest), key)
            case ["cost"]:
                say(cost=cost())
            case ["close"]:
                if node is not None:
                    node.close("finished")
                say(closed=True)


if __name__ == "__main__":
    main()

"""Counts the mDNS of each node on a bridge, by a packet socket that sees nothing else.

    python -m bench.capture INTERFACE

Prints a line when it listens; then, for each line on stdin, one JSON object: source hardware address ->
bytes of IP packets sent to the group, bytes sent to single nodes, packets.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys

from avahi_gpu.host.tap import ETH_P_ALL, take_mdns_alone

BUFFER_BYTES = 8 << 20  # nothing may be lost while somebody else has the processor
PACKET_MAX = 9000
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1  # linux/if_packet.h
GROUPS = (socket.inet_pton(socket.AF_INET, "224.0.0.251"), socket.inet_pton(socket.AF_INET6, "ff02::fb"))


def listen(interface: str) -> None:
    """Count until stdin ends."""
    counts: dict[str, list[int]] = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        take_mdns_alone(sock)
        sock.bind((interface, ETH_P_ALL))
        index = socket.if_nametoindex(interface)
        # what one node sends to another alone passes a bridge unseen otherwise
        membership = struct.pack("iHH8s", index, PACKET_MR_PROMISC, 0, b"")
        sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
        print("listening", flush=True)
        while True:
            ready, _, _ = select.select([sock, sys.stdin], [], [])
            if sock in ready:
                count(*sock.recvfrom(PACKET_MAX), counts)
            elif not sys.stdin.readline():
                return
            else:
                print(json.dumps(counts), flush=True)


def count(packet: bytes, address: tuple[str, int, int, int, bytes], counts: dict[str, list[int]]) -> None:
    """Add a packet to what its sender has sent."""
    four = packet[0] >> 4 == 4
    target = packet[16:20] if four else packet[24:40]
    size = struct.unpack("!H", packet[2:4])[0] if four else 40 + struct.unpack("!H", packet[4:6])[0]
    sent = counts.setdefault(address[4].hex(":"), [0, 0, 0])
    sent[0 if target in GROUPS else 1] += size
    sent[2] += 1


if __name__ == "__main__":
    listen(sys.argv[1])

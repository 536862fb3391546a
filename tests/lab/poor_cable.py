"""A cable that loses frames and delays them. Run as a script of its own:

    poor_cable.py SWITCH HOST PORT TAP LOSS DELAY SEED

SWITCH and HOST are pids, LOSS is the share of frames that are lost (0 to 1), DELAY is in seconds, each way.
Frames go between the host's port, which is on no bridge meanwhile, and the tap interface, which is made here
and is put on the bridge in its place. Not every kernel has netem, the queue that does the same. Prints a line
once it works; ends when stdin is closed, and the tap with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import sys
import time

import syscalls

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4  # linux/if_packet.h: what the port itself sends, which is what we have sent to it
FRAME_MAX = 65536
SIOCETHTOOL = 0x8946  # linux/sockios.h
ETHTOOL_STXCSUM = 0x00000017  # linux/ethtool.h


def stop_offloading(name: str) -> None:
    """Have the kernel finish checksums and segments before frames leave ``name``: we carry bytes alone."""
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sP16x", name.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def open_tap(name: str) -> int:
    """Return the file descriptor of a fresh tap interface."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def open_port(name: str) -> socket.socket:
    """Return a socket that gets every frame that comes from the host, and sends frames to it."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    port.bind((name, 0))
    port.setblocking(False)
    return port


def relay(tap: int, port: socket.socket, loss: float, delay_s: float, chance: random.Random) -> None:
    """Carry frames both ways until stdin ends."""
    waiting: list[tuple[float, int, bool, bytes]] = []
    count = 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([0, tap, port], [], [], timeout)
        if 0 in readable:
            return
        arrived = []
        if tap in readable:
            arrived.append((True, os.read(tap, FRAME_MAX)))
        if port in readable:
            with contextlib.suppress(OSError):  # the port is down, or gone with its host
                frame, source = port.recvfrom(FRAME_MAX)
                if source[2] != PACKET_OUTGOING:
                    arrived.append((False, frame))
        for to_host, frame in arrived:
            if chance.random() >= loss:
                count += 1  # frames of one moment keep their order
                heapq.heappush(waiting, (time.monotonic() + delay_s, count, to_host, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to_host, frame = heapq.heappop(waiting)
            try:
                if to_host:
                    port.send(frame)
                else:
                    os.write(tap, frame)
            except (
                OSError
            ):  # a full queue, or an interface that is down: the frame is lost, as on a real cable
                continue


if __name__ == "__main__":
    switch_pid, host_pid, port_name, tap_name, loss_text, delay_text, seed = sys.argv[1:]
    syscalls.join(int(host_pid), ["net"])
    stop_offloading("eth0")
    syscalls.join(int(switch_pid), ["net"])
    tap_file, port_socket = open_tap(tap_name), open_port(port_name)
    print("ready", flush=True)
    relay(tap_file, port_socket, float(loss_text), float(delay_text), random.Random(seed))

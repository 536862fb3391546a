"""A DNS server of ours with a temper. Run in a host: ``name_server.py ADDRESS TEMPER``; prints ``ready``.

nxdomain: knows no ``local``. nodata: knows it and nothing in it. owner: is responsible for it, with an
address for nobody. company: the same, with addresses for a few names. hijack: has an answer for every A.
refused, servfail: says so. dead: reads and is silent. deaf-to-local: answers for everything but ``local``.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading

PORT = 53
FORGED = "198.51.100.66"  # for documentation (RFC 5737)
A, SOA, PTR = 1, 6, 12
COMPANY = {"intranet.local": "198.51.100.7", "www.example.org": "198.51.100.8"}


def question(message: bytes) -> tuple[str, int, bytes]:
    """Return the name in small letters, the type, and the question as it stands."""
    labels = []
    at = 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1").lower())
        at += message[at] + 1
    rtype, _ = struct.unpack(">2H", message[at + 1 : at + 5])
    return ".".join(labels), rtype, message[12 : at + 5]


def record(rtype: int, data: bytes) -> bytes:
    """Return a record for the name that was asked."""
    return b"\xc0\x0c" + struct.pack(">2HIH", rtype, 1, 60, len(data)) + data


def answer(message: bytes, temper: str) -> bytes | None:
    """Return the answer, None for silence."""
    name, rtype, asked = question(message)
    in_local = name == "local" or name.endswith(".local")
    code, records = 3, []
    if temper == "dead" or (temper == "deaf-to-local" and in_local):
        return None
    if temper in ("refused", "servfail"):
        code = {"refused": 5, "servfail": 2}[temper]
    elif temper == "hijack" and rtype == A:
        code, records = 0, [record(A, socket.inet_aton(FORGED))]
    elif in_local and temper == "nodata":
        code = 0
    elif name in COMPANY and temper == "company":
        code, records = 0, [record(A, socket.inet_aton(COMPANY[name]))] if rtype == A else []
    elif name == "local" and temper in ("owner", "company"):
        mname = b"\x02ns\x05local\x00\x04root\x05local\x00"
        code, records = 0, [record(SOA, mname + struct.pack(">5I", 1, 1, 1, 1, 1))] if rtype == SOA else []
    elif not name:
        code = 0
    number, flags = struct.unpack(">2H", message[:4])
    head = struct.pack(">6H", number, 0x8180 | flags & 0x0100 | code, 1, len(records), 0, 0)
    return head + asked + b"".join(records)


def serve_tcp(listener: socket.socket, temper: str) -> None:
    """Answer over TCP too, one connection after another; the dead one accepts and is silent."""
    silent = []
    while True:
        connection, _ = listener.accept()
        length = struct.unpack(">H", connection.recv(2))[0]
        reply = answer(connection.recv(length), temper)
        if reply is None:
            silent.append(connection)
            continue
        connection.sendall(struct.pack(">H", len(reply)) + reply)
        connection.close()


def main(address: str, temper: str) -> None:
    """Serve until somebody ends us."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        socket.create_server((address, PORT)) as tcp,
    ):
        sock.bind((address, PORT))
        threading.Thread(target=serve_tcp, args=(tcp, temper), daemon=True).start()
        print("ready", flush=True)
        while True:
            message, who = sock.recvfrom(4096)
            reply = answer(message, temper)
            if reply is not None:
                sock.sendto(reply, who)


if __name__ == "__main__":
    main(*sys.argv[1:3])

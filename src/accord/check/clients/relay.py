"""The program that a client starts as its server: it joins its stdin and stdout to the checker, and tells how it ends.

    python relay.py PORT TOKEN [STDERR]

What comes from the checker goes to stdout as it is. What goes to it is framed, a letter and a length before each part:
`d` what stood on stdin, `e` stdin has ended, `t` SIGTERM came, with `1` while the one that started us still lives. It
stays until the checker closes the connection or somebody ends it. STDERR is what it says on stderr. Only the standard
library: it starts in 20 ms.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import threading

DATA, END, TERM = b"d", b"e", b"t"
HEADER = struct.Struct("!cI")
"""Before each block: its kind, and its size in bytes."""

TERMINATED = 143
"""The exit code after SIGTERM, as shells have it."""

_SIZE = 65_536


def main(port: int, token: str, stderr: str = "") -> None:
    """Relay until the checker closes the connection."""
    os.write(2, stderr.encode())
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(token.encode() + b"\n")
    parent = os.getppid()

    def terminated(*_: object) -> None:
        _send(link, TERM, b"1" if os.getppid() == parent else b"0")
        os._exit(TERMINATED)

    signal.signal(signal.SIGTERM, terminated)
    threading.Thread(target=_read, args=(link,), daemon=True).start()
    while data := link.recv(_SIZE):
        _write(data)
    os._exit(0)  # the thread that reads may wait for ever


def _read(link: socket.socket) -> None:
    while data := os.read(0, _SIZE):
        _send(link, DATA, data)
    _send(link, END, b"")


def _send(link: socket.socket, kind: bytes, data: bytes) -> None:
    try:
        link.sendall(HEADER.pack(kind, len(data)) + data)
    except OSError:
        os._exit(0)  # the checker is gone


def _write(data: bytes) -> None:
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:  # the client does not read any more; what it says still counts
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

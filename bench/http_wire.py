"""The requests and responses of the load over HTTP: raw HTTP/1.1 on a persistent socket."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Sequence

import msgspec

from bench.measure import HERE, LIFE, SERVING, Child
from bench.wire import INITIALIZE, INITIALIZED, SHAKEN, STATELESS, Answer

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)")
_SESSION = re.compile(rb"\r\nmcp-session-id: (\S+)")
_MESSAGE = re.compile(rb"data: (\{.*\})\r?\n")

_decode = msgspec.json.Decoder(Answer).decode


class Site(Child):
    """A server over HTTP in a process of its own. `arguments` are those of its program before the port; `headers` are
    lines that each request has.
    """

    def __init__(
        self,
        program: str,
        *arguments: str,
        core: int = SERVING,
        life: float = LIFE,
        interpreter: str = sys.executable,
        headers: Sequence[str] = (),
    ) -> None:
        self.headers: Sequence[str] = headers
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        super().__init__(str(HERE / program), *arguments, str(self.port), core=core, life=life, interpreter=interpreter)
        self.connect().close()

    def __exit__(self, *exc: object) -> None:
        self.process.terminate()
        super().__exit__(None, None, None)

    def connect(self) -> socket.socket:
        """Return a connection as soon as the server accepts one."""
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise RuntimeError(f"{self.process.args!r} has ended") from None
                time.sleep(0.001)
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection


class Line:
    """One connection to a server, with one request at a time."""

    def __init__(self, site: Site, era: str) -> None:
        self.socket = site.connect()
        self.era = era
        self.session = b""
        self._port = site.port
        self._headers = site.headers
        self._data = b""

    def head(self, verb: str, length: int = 0, method: str = "", name: str = "") -> bytes:
        """Return the head of a request. Only in 2026-07-28 do headers describe the message."""
        lines = [
            f"{verb} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Accept: application/json, text/event-stream",
            *self._headers,
            *([f"Content-Type: application/json\r\nContent-Length: {length}"] if verb == "POST" else []),
            *([f"MCP-Protocol-Version: {self.era}"] if method != "initialize" else []),
            *([f"Mcp-Session-Id: {self.session.decode()}"] if self.session else []),
            *([f"Mcp-Method: {method}\r\nMcp-Name: {name}"] if self.era == STATELESS else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    def open(self) -> Line:
        """Complete the handshake, if the era has one."""
        if self.era == SHAKEN:
            self.session = _SESSION.search(self.ask(INITIALIZE, "initialize"))[1]  # type: ignore[index]
            self.ask(INITIALIZED, "notifications/initialized")
        return self

    def ask(self, message: bytes, method: str, name: str = "") -> bytes:
        """Post one message and return the response."""
        return self.pending(self.head("POST", len(message), method, name) + message)

    def pending(self, request: bytes) -> bytes:
        """Send a request and return the response."""
        self.socket.sendall(request)
        while not (response := self.take()):
            pass
        return response

    def take(self) -> bytes:
        """Return a complete response, or an empty one until then."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise RuntimeError("the server has closed a connection")
        self._data = data = self._data + data
        if not is_whole(data):
            return b""
        self._data = b""
        return data


def is_whole(data: bytes) -> bool:
    """Return whether a response is complete."""
    head, separator, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(separator) and (len(body) == int(length[1]) if length else body.endswith(b"0\r\n\r\n"))


def answer_in(response: bytes) -> Answer:
    """Return the message of a response: its body, or the last of its events."""
    if not response.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"a wrong answer: {response[:300]!r}")
    events: list[bytes] = _MESSAGE.findall(response)
    return _decode(events[-1] if events else response.partition(b"\r\n\r\n")[2])

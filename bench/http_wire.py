"""What the load sends over HTTP and what it reads: raw HTTP/1.1 on a socket that stays open."""

from __future__ import annotations

import re
import socket
import time

import msgspec

from bench.measure import HERE, LIFE, SERVING, Child
from bench.wire import INITIALIZE, INITIALIZED, SHAKEN, STATELESS, Answer

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)")
_SESSION = re.compile(rb"\r\nmcp-session-id: (\S+)")
_MESSAGE = re.compile(rb"data: (\{.*\})\r?\n")

_decode = msgspec.json.Decoder(Answer).decode


class Site(Child):
    """A server over HTTP, in a process of its own. `arguments` are its program and what goes before the port."""

    def __init__(self, program: str, *arguments: str, core: int = SERVING, life: float = LIFE) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port: int = taken.getsockname()[1]
        super().__init__(str(HERE / program), *arguments, str(self.port), core=core, life=life)
        self.connect().close()

    def __exit__(self, *exc: object) -> None:
        self.process.terminate()
        super().__exit__(None, None, None)

    def connect(self) -> socket.socket:
        """A connection, as soon as there is one to be had."""
        while True:
            try:
                made = socket.create_connection(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise RuntimeError(f"{self.process.args!r} has ended") from None
                time.sleep(0.001)
            else:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return made


class Line:
    """One connection to a site, with one request on it at a time."""

    def __init__(self, site: Site, era: str) -> None:
        self.socket = site.connect()
        self.era = era
        self.session = b""
        self._port = site.port
        self._data = b""

    def head(self, verb: str, length: int = 0, method: str = "", name: str = "") -> bytes:
        """The head of a request. What it says of the message goes into headers in 2026-07-28 only."""
        lines = [
            f"{verb} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Accept: application/json, text/event-stream",
            *([f"Content-Type: application/json\r\nContent-Length: {length}"] if verb == "POST" else []),
            *([f"MCP-Protocol-Version: {self.era}"] if method != "initialize" else []),
            *([f"Mcp-Session-Id: {self.session.decode()}"] if self.session else []),
            *([f"Mcp-Method: {method}\r\nMcp-Name: {name}"] if self.era == STATELESS else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    def open(self) -> Line:
        """Shake hands, where the era has an opening."""
        if self.era == SHAKEN:
            self.session = _SESSION.search(self.ask(INITIALIZE, "initialize"))[1]  # type: ignore[index]
            self.ask(INITIALIZED, "notifications/initialized")
        return self

    def ask(self, message: bytes, method: str, name: str = "") -> bytes:
        """Post one message; the response."""
        return self.exchange(self.head("POST", len(message), method, name) + message)

    def exchange(self, request: bytes) -> bytes:
        """Send a request; the response."""
        self.socket.sendall(request)
        while not (response := self.take()):
            pass
        return response

    def take(self) -> bytes:
        """What has come: a response, once it is there to its end."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise RuntimeError("the server has closed a connection")
        self._data = data = self._data + data
        if not is_whole(data):
            return b""
        self._data = b""
        return data


def is_whole(data: bytes) -> bool:
    """Whether a response is there to its end."""
    head, found, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(found) and (len(body) == int(length[1]) if length else body.endswith(b"0\r\n\r\n"))


def answer_in(response: bytes) -> Answer:
    """The answer in a response: its body, or the last of its events."""
    if not response.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"a wrong answer: {response[:300]!r}")
    events: list[bytes] = _MESSAGE.findall(response)
    return _decode(events[-1] if events else response.partition(b"\r\n\r\n")[2])

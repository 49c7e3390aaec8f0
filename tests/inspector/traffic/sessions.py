"""Session files for tests, written line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from accord.inspector.traffic.source import TrafficSource, open_source
from accord.transport.recording import new_header
from accord.wire.session_file import (
    ClosedEntry,
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LostEntry,
    MessageDirection,
    encode_line,
    message_entry,
)

LATEST = "2026-07-28"
META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": LATEST,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


class Script:
    """A session file under construction; `at` goes on by 10 ms for each entry."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.at = 0.0

    def add(self, kind: type[Any], **fields: Any) -> None:
        self.at = round(self.at + 0.01, 6)
        self.entries.append(kind(**{"at": self.at, "connection": 1, **fields}))

    def message(self, message: Any, direction: MessageDirection, *, connection: int = 1, **fields: Any) -> None:
        self.at = round(self.at + 0.01, 6)
        data = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self.entries.append(message_entry(data, direction, at=self.at, connection=connection, **fields))

    def request(self, id: int | str, method: str, *, wait: float = 0.0, connection: int = 1, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, **META}}
        self.message(message, "sent", request=id, connection=connection)
        self.at += wait

    def result(self, id: int | str, connection: int = 1, **result: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", **result}}
        self.message(message, "received", request=id, connection=connection)

    def error(self, id: int | str, code: int = -32602) -> None:
        message = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no such item"}}
        self.message(message, "received", request=id)

    def connected(self, connection: int = 1, name: str = "python shop.py") -> None:
        self.add(ConnectedEntry, connection=connection, name=name, transport="SubprocessTransport")

    def head(self, exchange: int, *, method: str = "", status: int = 0) -> None:
        if method:
            url = "http://127.0.0.1/mcp"
            self.add(HTTPEntry, direction="sent", exchange=exchange, method=method, url=url, headers={"accept": "*/*"})
        else:
            self.add(HTTPEntry, direction="received", exchange=exchange, status=status, headers={"x-test": "yes"})

    def closed(self) -> None:
        self.add(ClosedEntry)

    def lost(self, reason: str = "the process ended with 1") -> None:
        self.add(LostEntry, reason=reason)

    def content(self) -> bytes:
        return b"".join(encode_line(each) for each in (new_header("python shop.py"), *self.entries))

    async def open(self, folder: Path) -> TrafficSource:
        file = folder / "session.jsonl"
        file.write_bytes(self.content())
        return await open_source("session", file)


def usual() -> Script:
    """A tool call that works, one that fails, one without an answer, and a connection that is lost."""
    script = Script()
    script.connected()
    script.request(1, "tools/list")
    script.result(1, tools=[{"name": "price", "inputSchema": {"type": "object"}}], ttlMs=0, cacheScope="public")
    script.request(2, "tools/call", name="price", arguments={"item": "Crème brûlée"}, wait=0.6)
    script.result(2, content=[{"type": "text", "text": 'say "bread"'}])
    script.request(3, "tools/call", name="bake", arguments={})
    script.error(3)
    script.request(4, "tools/call", name="price", arguments={})
    script.lost()
    return script

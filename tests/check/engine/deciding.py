"""A server over stdio that decides by the first request after `server/discover` what the connection speaks.

It lists tools and has no faults in what it decides; a request without a revision makes it wait for `initialize`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

REVISION = "2026-07-28"
KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "deciding", "version": "1"}}
TOOL = {"name": "nothing", "description": "Do nothing.", "inputSchema": {"type": "object"}}
ABOUT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": INFO}


class Deciding:
    """One connection."""

    def __init__(self) -> None:
        self.era: str | None = None

    def answer(self, message: Any) -> Any:
        """The result, or an error."""
        method, params = message["method"], table(message.get("params"))
        meta = table(params.get("_meta"))
        if method != "server/discover" and self.era is None:
            self.era = "modern" if KEY in meta else "old"
        if self.era == "old":
            return error(-32600, "initialize comes first")
        if not isinstance(meta.get(KEY), str) or not isinstance(meta.get(CAPABILITIES), dict):
            return error(-32602, "the revision and the capabilities of the client are missing")
        if meta[KEY] != REVISION:
            return error(-32022, "this revision is not spoken", {"supported": [REVISION], "requested": meta[KEY]})
        return self.result(method, params)

    def result(self, method: str, params: Any) -> Any:
        """For a request that is in order."""
        if method == "server/discover":
            return {"result": {**ABOUT, "supportedVersions": [REVISION], "capabilities": {"tools": {}}}}
        if method == "tools/list":
            return {"result": {**ABOUT, "tools": [TOOL]}}
        if method == "tools/call":
            return error(-32602, "there is no such tool")
        return error(-32601, "there is no such method")


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def error(code: int, message: str, data: Any = None) -> Any:
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}


def main() -> None:
    connection = Deciding()
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message:
            said = {"jsonrpc": "2.0", "id": message["id"], **connection.answer(message)}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()

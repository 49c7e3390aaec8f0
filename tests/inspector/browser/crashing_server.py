"""A server that dies at the place that its first argument names, unless the file `healed` is in its folder, the second
argument; its process number is in the file `pid` there.

It speaks revision 2025-11-25 over stdio, and needs only the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PLACE, FOLDER = sys.argv[1], Path(sys.argv[2])
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "dying", "version": "1"},
}
CALLED = {"content": [{"type": "text", "text": "done"}]}
QUESTION = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}}}
RESULTS: dict[str, Any] = {
    "initialize": INITIALIZED,
    "tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]},
    "tools/call": CALLED,
}

is_healed = (FOLDER / "healed").exists()


def die_at(place: str) -> None:
    """End the process if this is the place."""
    if place == PLACE and not is_healed:
        os._exit(7)


def send(message: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    if PLACE == "in a response" and message.get("result") is CALLED and not is_healed:
        print(line[:40], end="", flush=True)
        os._exit(7)
    print(line, end="", flush=True)


(FOLDER / "pid").write_text(str(os.getpid()))
die_at("at the start")
for received in sys.stdin:
    message = json.loads(received)
    method = message.get("method")
    if "id" not in message or method is None:
        continue
    die_at(method)
    if method == "server/discover":
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    elif method == "tools/call" and PLACE == "while it asks" and not is_healed:
        send({"id": "question", "method": "elicitation/create", "params": QUESTION})
    else:
        send({"id": message["id"], "result": RESULTS.get(method, {})})
    die_at(f"after {method}")

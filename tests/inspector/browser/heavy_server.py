"""A server whose tools send much, over stdio in revision 2025-11-25. It writes its lines itself: a test then measures
the inspector.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from typing import Any

NUMBERS = {"type": "object", "properties": {"count": {"type": "integer"}, "size": {"type": "integer"}}}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "heavy", "version": "1"},
}
WORDS = "lorem ipsum dolor sit amet "
MOST = 5_000_000
"""The messages of a flood that nobody cancels: more than the test can wait for, on the fastest machine."""

cancelled = threading.Event()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if request["method"] == "initialize":
        return INITIALIZED
    if request["method"] == "tools/list":
        return {"tools": [{"name": name, "inputSchema": NUMBERS} for name in ("large", "flood")]}
    if request["method"] == "tools/call":
        return call(request["params"]["name"], **request["params"]["arguments"])
    return {}


def call(name: str, count: int = 0, size: int = 10) -> dict[str, Any]:
    """Call a tool: `large` returns a text of `size` characters; `flood` sends `count` log messages of that size,
    and then short ones until it is cancelled; the last message has their number.
    """
    text = (WORDS * (size // len(WORDS) + 1))[:size]
    if name == "large":
        return {"content": [{"type": "text", "text": text[:-7] + "the end"}]}
    long, short, sent = log_message(text), log_message("more"), 0
    while sent < count or not (cancelled.is_set() or sent == MOST):
        sys.stdout.buffer.write(long if sent < count else short)
        sent += 1
    sys.stdout.buffer.write(log_message(f"{sent} were sent"))
    sys.stdout.buffer.flush()
    return {}


def log_message(text: str) -> bytes:
    """Return the line of a log message."""
    params = {"level": "info", "data": text}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).encode() + b"\n"


def respond(request: dict[str, Any]) -> None:
    """Answer a request."""
    response = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}
    sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
    sys.stdout.buffer.flush()


# One thread writes everything, so that no line is in the middle of another; this one reads.
requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()


def work() -> None:
    while (request := requests.get()) is not None:
        respond(request)


worker = threading.Thread(target=work)
worker.start()
for received in sys.stdin.buffer:
    message = json.loads(received)
    if "id" in message:
        requests.put(message)
    elif message["method"] == "notifications/cancelled":
        cancelled.set()
cancelled.set()
requests.put(None)
worker.join()

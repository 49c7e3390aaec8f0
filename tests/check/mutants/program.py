"""A small right server over stdio, written by hand, with one fault: `python program.py FAULT`; none without."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
LOCK = Path(f"/tmp/accord-mutant-{os.getppid()}")
BUFFER = 64 << 10
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SUBSCRIBED: list[Any] = []
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "program", "version": "1"},
    },
    "ping": {},
    "server/discover": {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": True}},
        "ttlMs": 0,
        "cacheScope": "private",
    },
}


def tools(params: dict[str, Any]) -> dict[str, Any]:
    first = FAULT == "forgets cursors" and params.get("cursor") != f"second of {os.getpid()}"
    first = first or "cursor" not in params
    page: dict[str, Any] = {"tools": [{"name": f"tool-{int(first)}", "inputSchema": {"type": "object"}}]}
    return {**page, "nextCursor": f"second of {os.getpid()}"} if first else page


def answered(line: bytes) -> bytes | None:
    try:
        message = json.loads(line)
    except ValueError:
        if FAULT == "dies of noise":
            raise
        return json.dumps({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no JSON"}}).encode()
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return None
    method = message["method"]
    if method == "subscriptions/listen":
        return acknowledged(message)
    if method == "tools/list":
        result = tools(message.get("params", {}))
    elif method in RESULTS:
        result = RESULTS[method]
    else:
        error = {"code": -32601, "message": "Method not found"}
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def acknowledged(message: dict[str, Any]) -> bytes:
    SUBSCRIBED.append(message["id"])
    wish = message["params"]["notifications"]
    granted = {"toolsListChanged": True} if wish.get("toolsListChanged") else {}
    params = {"_meta": {SUBSCRIPTION: message["id"]}, "notifications": granted}
    method = "notifications/subscriptions/acknowledged"
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def end(number: int, frame: Any) -> None:
    """Answer what is open, and go."""
    for id in SUBSCRIBED:
        result = {"resultType": "complete", "_meta": {SUBSCRIPTION: id}}
        write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")
    os._exit(0)


def write(data: bytes) -> None:
    if FAULT == "drops what is not read":
        os.set_blocking(1, False)
        try:
            os.write(1, data)
        except BlockingIOError:
            return
        return
    while data:
        data = data[os.write(1, data) :]


def _has_ended() -> bool:
    time.sleep(0.05)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def serve() -> None:
    rest = b""
    while chunk := os.read(0, BUFFER):
        if FAULT == "takes a read for a message":
            lines, rest = chunk.split(b"\n"), b""
        else:
            *lines, rest = (rest + chunk).split(b"\n")
        if FAULT == "has a small buffer" and len(rest) > BUFFER:
            raise SystemExit(1)
        if FAULT == "forgets what is unanswered at the end" and _has_ended():
            return
        for line in lines:
            if FAULT == "keeps the CR" and line.endswith(b"\r"):
                continue
            answer = answered(line) if line.strip() else None
            if answer is not None:
                write(answer + b"\n")


if __name__ == "__main__":
    if FAULT != "leaves its subscriptions at SIGTERM":
        signal.signal(signal.SIGTERM, end)
    if FAULT in ("ignores SIGTERM", "ignores the end and SIGTERM"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if FAULT == "keeps a lock":
        LOCK.open("x").close()
    serve()
    if FAULT == "keeps a lock":
        LOCK.unlink()
    if FAULT in ("ignores the end", "ignores the end and SIGTERM"):
        while True:
            time.sleep(1)

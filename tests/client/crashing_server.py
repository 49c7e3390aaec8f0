"""A server that dies as planned: `python crashing_server.py FOLDER REVISION`. It imports nothing of accord.

FOLDER/plan.json: `dies` says for each method how many starts of the server die when it is asked for, `fails` which
starts (from 1) end at once, `mute` which never answer. FOLDER/starts holds the process id of each start, FOLDER/asked
what each was asked.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]

FOLDER, REVISION = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(), sys.argv[-1]
OFFERS = {"tools": {}, "logging": {}, "prompts": {}, "resources": {"subscribe": True}}
TOOLS = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {"name": "reads", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "repeats", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
]
HINTS = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}


def say(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result_of(method: str, start: int) -> Message:
    results: dict[str, Message] = {
        "initialize": {
            "protocolVersion": REVISION,
            "capabilities": OFFERS,
            "serverInfo": {"name": "m", "version": "1"},
        },
        "server/discover": {"supportedVersions": [REVISION], "capabilities": OFFERS, **HINTS},
        "tools/list": {"tools": TOOLS, **HINTS},
        "tools/call": {"content": [{"type": "text", "text": str(start)}], "resultType": "complete"},
        "prompts/list": {"prompts": [{"name": str(start)}], **HINTS},
    }
    return results.get(method, {"resultType": "complete"})


def answer(message: Message, start: int) -> None:
    method = message["method"]
    if method == ("server/discover" if REVISION < "2026" else "initialize"):
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    elif method == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        params = {"_meta": meta, "notifications": message["params"]["notifications"]}
        say({"method": "notifications/subscriptions/acknowledged", "params": params})
    elif "id" in message:
        say({"id": message["id"], "result": result_of(method, start)})


def main() -> None:
    with (FOLDER / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    start = len((FOLDER / "starts").read_text().split())
    plan = json.loads((FOLDER / "plan.json").read_text())
    if start in plan.get("fails", []):
        sys.exit("I fail to start, as planned")
    for line in sys.stdin:
        message = json.loads(line)
        with (FOLDER / "asked").open("a") as asked:
            asked.write(f"{start} {message['method']}\n")
        if start <= plan.get("dies", {}).get(message["method"], 0):
            sys.stderr.write(f"{message['method']} kills me\n")
            sys.stderr.flush()
            os._exit(3)
        if start not in plan.get("mute", []):
            answer(message, start)


if __name__ == "__main__":
    main()

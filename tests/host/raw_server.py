"""A minimal server that misbehaves at one step: `raw_server.py MODE STEP [FILE]`. It imports nothing of accord.

It dies at the step, never answers it, or answers with an error; FILE receives its process id. With the mode "gathers",
it waits until FILE has so many; with "sleeps", it waits for a second.
"""

import json
import os
import sys
import time

MODE, STEP = sys.argv[1:3]
if len(sys.argv) > 3:
    with open(sys.argv[3], "a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
reads = iter(range(1, 1_000_000))


def send(message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | dict(message)) + "\n")  # type: ignore[call-overload]
    sys.stdout.flush()


def result(method: str, params: dict) -> object:  # type: ignore[type-arg]
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "raw", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        text = f"version {next(reads)}" if MODE == "changes" else "A tool."
        return {"tools": [{"name": "tool", "description": text, "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done"}]}
    return {}


if MODE == "sleeps":
    time.sleep(1)
while MODE == "gathers":
    with open(sys.argv[3], encoding="utf-8") as pids:
        if pids.read().count("\n") >= int(STEP):
            break
    time.sleep(0.02)
if STEP == "start" and MODE != "sleeps":
    sys.exit(3) if MODE == "dies" else sys.stdin.read()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == STEP and MODE == "dies":
        print("I leave", file=sys.stderr, flush=True)
        os._exit(3)
    if method == STEP and MODE == "is silent":
        continue
    if method == "server/discover" or (method == STEP and MODE == "fails"):
        send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        continue
    if method == "tools/list" and MODE == "announces first":
        send({"method": "notifications/tools/list_changed"})
    send({"id": message["id"], "result": result(method, message.get("params", {}))})
    if method == "tools/list" and MODE in ("changes", "announces"):
        send({"method": "notifications/tools/list_changed"})

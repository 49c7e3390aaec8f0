"""A server that floods its host, and imports nothing of accord: `flooding_server.py MODE FILE`.

FILE receives its process id. The modes are `noise` (endless lines on stdout that are no messages), `line` (a line
without end), `stderr` (endless lines there), `pages` (a list of tools with always one more page), `notifications` and
`sampling` (endless messages after the list of tools), `progress` (endless during a call), `large` (a definition of
megabytes), and `names` (names that are hardly names).
"""

import itertools
import json
import os
import sys
import threading

MODE, FILE = sys.argv[1:3]
SCHEMA = {"type": "object"}
NAMES = ["tool", "a\nb", "\u202e", "", "\u00e9", "e\u0301", "Tool", "a b", "../../x", "__proto__"]
with open(FILE, "a", encoding="utf-8") as pids:
    pids.write(f"{os.getpid()}\n")


def send(message: dict) -> None:  # type: ignore[type-arg]
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def write(stream: int, data: bytes) -> None:
    while True:
        os.write(stream, data)


def tools(cursor: str) -> dict:  # type: ignore[type-arg]
    if MODE == "pages":
        return {"tools": [{"name": f"tool{cursor}", "inputSchema": SCHEMA}], "nextCursor": str(int(cursor or 0) + 1)}
    text = "long " * 1_000_000 if MODE == "large" else "A tool."
    names = NAMES if MODE == "names" else ["tool"]
    return {"tools": [{"name": name, "description": text, "inputSchema": SCHEMA} for name in names]}


if MODE == "noise":
    write(1, b"this is no message\n" * 100)
if MODE == "line":
    write(1, b"x" * 65536)
if MODE == "stderr":
    threading.Thread(target=write, args=(2, b"trouble\n" * 1000), daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, params, id = message["method"], message.get("params", {}), message["id"]
    if method == "server/discover":
        send({"id": id, "error": {"code": -32601, "message": "no"}})
    elif method == "initialize":
        about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
        send({"id": id, "result": about | {"serverInfo": {"name": "flood", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": tools(params.get("cursor", ""))})
        while MODE == "notifications":
            send({"method": "notifications/tools/list_changed"})
        for number in itertools.count() if MODE == "sampling" else ():
            asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * 1000}}], "maxTokens": 9}
            send({"id": f"r{number}", "method": "sampling/createMessage", "params": asked})
    elif method == "tools/call":
        for number in itertools.count() if MODE == "progress" else ():
            send({"method": "notifications/progress", "params": {"progressToken": 1, "progress": number}})
        send({"id": id, "result": {"content": [{"type": "text", "text": "done"}]}})
    else:
        send({"id": id, "result": {}})

"""A server over stdio of which every tool is wrong in its own way: `python wrong_server.py [NAME OF A TOOL]`.

It is written without any library, so that nothing saves it from itself.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "additionalProperties": False}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

made: list[str] = []
hoarded: list[bytearray] = []


class Refused(Exception):
    """A JSON-RPC error."""


def crash(arguments: dict[str, Any]) -> Any:
    if arguments["n"] > 100:
        print("out of numbers", file=sys.stderr, flush=True)
        raise SystemExit(3)


def hang(arguments: dict[str, Any]) -> Any:
    if arguments["n"] < 0:
        time.sleep(3600)


def forget(arguments: dict[str, Any]) -> Any:
    return Ellipsis if len(arguments.get("note", "")) > 2 else None


def drift(arguments: dict[str, Any]) -> Any:
    return {"sum": arguments["n"]} if not arguments.get("note") else {"total": arguments["n"]}


def refuse(arguments: dict[str, Any]) -> Any:
    if arguments["n"] >= 1_000:
        raise Refused("list index out of range")


def spill(arguments: dict[str, Any]) -> Any:
    if "'" in arguments.get("note", ""):
        raise ValueError('Traceback (most recent call last):\n  File "/srv/app.py", line 3, in spill\nKeyError')


def lie(arguments: dict[str, Any]) -> Any:
    made.append(f"made-{len(made)}")


def pile(arguments: dict[str, Any]) -> Any:
    made.append(f"piled-{len(made)}")


def blind(arguments: Any) -> Any:
    return None


def hoard(arguments: dict[str, Any]) -> Any:
    hoarded.append(bytearray(1 << 20))


def order(arguments: dict[str, Any]) -> Any:
    return {"order": {"id": "o-17"}}


def ship(arguments: dict[str, Any]) -> Any:
    if arguments.get("orderId") == "o-17":
        raise SystemExit(4)


ORDER = {"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}

TOOLS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "crash": (crash, {}),
    "hang": (hang, {}),
    "forget": (forget, {}),
    "drift": (drift, {"outputSchema": SUM}),
    "refuse": (refuse, {}),
    "spill": (spill, {}),
    "blind": (blind, {}),
    "hoard": (hoard, {}),
    "lie": (lie, {"inputSchema": NOTHING, "annotations": {"readOnlyHint": True}}),
    "pile": (pile, {"inputSchema": NOTHING, "annotations": {"idempotentHint": True}}),
    "order": (order, {"inputSchema": NOTHING}),
    "ship": (ship, {"inputSchema": ORDER}),
}


def tools() -> list[dict[str, Any]]:
    wanted = sys.argv[1].split(",") if len(sys.argv) > 1 else list(TOOLS)
    found = [{"name": name, "inputSchema": NUMBER, **TOOLS[name][1]} for name in wanted]
    return found + [{"name": name, "inputSchema": NOTHING} for name in made]


def checked(name: str, arguments: Any) -> bool:
    """Whether arguments fit; `blind` does not look."""
    if name in ("blind", "ship") or TOOLS[name][1].get("inputSchema") == NOTHING:
        return True
    n, note = arguments.get("n"), arguments.get("note", "")
    return type(n) is int and isinstance(note, str) and arguments.keys() <= {"n", "note"}


def called(params: dict[str, Any]) -> Any:
    name, arguments = params["name"], params.get("arguments", {})
    if not checked(name, arguments):
        return {"content": [{"type": "text", "text": "wrong arguments"}], "isError": True}
    try:
        value = TOOLS[name][0](arguments)
    except ValueError as exc:
        return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
    if value is Ellipsis:
        return value
    result: dict[str, Any] = {"content": [{"type": "text", "text": "fine"}]}
    return result if value is None else {**result, "structuredContent": value}


def answered(message: dict[str, Any]) -> Any:
    match message["method"]:
        case "initialize":
            info = {"name": "wrong", "version": "1"}
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": tools()}
        case "tools/call":
            return called(message["params"])
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = answered(message)
        except Refused as exc:
            answer["error"] = {"code": -32603, "message": str(exc)}
        if answer.get("result") is not Ellipsis:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

"""A server over stdio that fails only after other calls, or beside its tools: `python sequence_server.py NAME...`.

Its ids are new in every process, so that nobody can learn them by heart. It is written without any library.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

TEXT = {"type": "string"}
RUN = f"{os.getpid()}-{os.urandom(4).hex()}"
PAGES = 4

known: set[str] = set()
closed: list[bool] = []


class Refused(Exception):
    """A JSON-RPC error: its code, and what is wrong."""


def new(kind: str) -> str:
    id = f"{kind}-{RUN}-{len(known)}"
    known.add(id)
    return id


def is_known(id: Any) -> bool:
    return isinstance(id, str) and id in known


def order(arguments: dict[str, Any]) -> Any:
    return {"order": {"id": new("order")}}


def pay(arguments: dict[str, Any]) -> Any:
    if not is_known(arguments.get("orderId")):
        raise ValueError("no such order")
    return {"receipt": new("receipt")}


def refund(arguments: dict[str, Any]) -> Any:
    """Ends the server for a receipt that is right."""
    if is_known(arguments.get("receipt")):
        print("no money left", file=sys.stderr, flush=True)
        raise SystemExit(5)
    raise ValueError("no such receipt")


def complain(arguments: dict[str, Any]) -> Any:
    """The same, with an error of the protocol: the server goes on."""
    if is_known(arguments.get("receipt")):
        raise Refused(-32603, "nobody listens")
    raise ValueError("no such receipt")


def close(arguments: dict[str, Any]) -> Any:
    closed.append(True)
    return {"closed": True}


def use(arguments: dict[str, Any]) -> Any:
    if closed:
        raise SystemExit(6)
    return {"used": True}


def link(arguments: dict[str, Any]) -> Any:
    return {"page": "none", "uri": f"shop://shelf/{RUN}"}


NOTHING: dict[str, Any] = {"type": "object", "additionalProperties": False}
TOOLS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "order": (order, NOTHING),
    "pay": (pay, {"type": "object", "properties": {"orderId": TEXT}, "required": ["orderId"]}),
    "refund": (refund, {"type": "object", "properties": {"receipt": TEXT}, "required": ["receipt"]}),
    "complain": (complain, {"type": "object", "properties": {"receipt": TEXT}, "required": ["receipt"]}),
    "close": (close, NOTHING),
    "use": (use, NOTHING),
    "link": (link, NOTHING),
}


def greet(arguments: dict[str, Any]) -> str:
    """Takes what it gets."""
    return f"Greet {arguments.get('name')}"


def strict(arguments: dict[str, Any]) -> str:
    if not isinstance(arguments.get("name"), str):
        raise Refused(-32602, "name is no text")
    if len(arguments["name"]) > 5_000:
        raise SystemExit(7)
    return "Be strict"


def odd(arguments: dict[str, Any]) -> str:
    if arguments.get("name") != "a":
        raise Refused(-32600, "invalid request")
    return "Be odd"


PROMPTS: dict[str, Callable[[dict[str, Any]], str]] = {"greet": greet, "strict": strict, "odd": odd}


def shelf(uri: str) -> Any:
    if not uri.startswith(f"shop://shelf/{RUN}"):
        raise Refused(-32602, "no such resource")
    step = int(uri.partition("?")[2] or 0)
    if step == 2:
        raise SystemExit(8)
    return {"uri": f"shop://shelf/{RUN}?{step + 1}"}


def notes(uri: str) -> Any:
    try:
        return {"found": ["red", "green"].index(uri.removeprefix("note://"))}
    except ValueError:
        raise Refused(-32602, traceback.format_exc() if "%" in uri else "no such note") from None


def read(uri: str) -> Any:
    value = shelf(uri) if uri.startswith("shop:") else notes(uri)
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(value)}]}


def listed(cursor: str | None) -> Any:
    """Pages without end but for the last one, which ends the server."""
    if cursor is not None and cursor not in known:
        raise Refused(-32602, "no such cursor")
    page = 0 if cursor is None else int(cursor.partition(":")[2])
    if page == PAGES - 1:
        raise SystemExit(9)
    known.add(f"{RUN}:{page + 1}")
    return {"resources": [], "nextCursor": f"{RUN}:{page + 1}"}


def completed(argument: dict[str, Any]) -> Any:
    if not isinstance(argument.get("value"), str):
        raise Refused(-32602, "value is no text")
    if "\0" in argument["value"] and "strict" in sys.argv:
        raise SystemExit(10)
    return {"completion": {"values": ["red", "green"]}}


def called(params: dict[str, Any]) -> Any:
    try:
        value = TOOLS[params["name"]][0](params.get("arguments", {}))
    except ValueError as exc:
        return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
    return {"content": [{"type": "text", "text": "fine"}], "structuredContent": value}


def answered(message: dict[str, Any]) -> Any:
    wanted, params = sys.argv[1:], message.get("params", {})
    match message["method"]:
        case "initialize":
            parts: dict[str, Any] = {
                "tools": {},
                "prompts": {},
                **{part: {} for part, is_there in further().items() if is_there},
            }
            info = {"name": "flow", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": parts, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": TOOLS[name][1]} for name in wanted if name in TOOLS]}
        case "tools/call":
            return called(params)
        case "prompts/list":
            argument = {"name": "name", "required": True}
            return {"prompts": [{"name": name, "arguments": [argument]} for name in wanted if name in PROMPTS]}
        case "prompts/get":
            text = PROMPTS[params["name"]](params.get("arguments", {}))
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        case "resources/templates/list":
            templates = [{"name": "note", "uriTemplate": "note://{colour}"}] if "notes" in wanted else []
            return {"resourceTemplates": templates}
        case "resources/list":
            return listed(params.get("cursor")) if "pages" in wanted else {"resources": []}
        case "resources/read":
            return read(params["uri"])
        case "completion/complete":
            return completed(params["argument"])
    return {}


def further() -> dict[str, bool]:
    return {"resources": bool({"notes", "pages", "link"} & set(sys.argv)), "completions": "completed" in sys.argv}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = answered(message)
        except Refused as exc:
            answer["error"] = {"code": exc.args[0], "message": exc.args[1]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

"""A server that misbehaves on purpose: `python hostile.py OPENING [LISTING]`. It imports nothing of accord.

OPENING is how it begins, LISTING how it lists tools (or the output schema of the one that it
lists), and the name of a tool is how it answers that call. It writes raw bytes, and tells on stderr how openings go.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]

DISCOVERED = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private"}
DISCOVERED |= {"capabilities": {"tools": {}, "prompts": {}}}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "prompts": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
GARBAGE = [
    b"Listening on port 8000",
    b"\x1b[31mred\x1b[0m",
    b"{",
    b'{"jsonrpc":"2.0","id":1',
    b"[]",
    b"[1,2]",
    b"null",
    b"5",
    b'"text"',
    b"{}",
    b'{"jsonrpc":"2.0","method":5}',
    b'{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":5}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"what?"}}',
    b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"what?"}}',
    b"[" * 5_000,
    b'{"a":' * 5_000,
    b"NaN",
    b"",
    b" \t ",
]
INVALID_UTF8 = [b"\xff\xfe", b"\xc3\x28", b'{"jsonrpc":"2.0","method":"\xff"}', b'{"\xed\xa0\x80":1}', b"\x00" * 100]


def command(opening: str = "fine", listing: str = "one", *more: str) -> list[str]:
    """How to start it. Without `site`, which takes longer than the rest."""
    return [sys.executable, "-S", "-E", __file__, opening, listing, *more]


def write(*lines: bytes) -> None:
    data = b"".join(line + b"\n" for line in lines)
    while data:
        data = data[os.write(1, data) :]


def tell(text: str) -> None:
    os.write(2, text.encode() + b"\n")


def hear() -> Message:
    """The next message; the end of the input ends the program."""
    line = sys.stdin.buffer.readline()
    if not line:
        raise SystemExit(0)
    message: Message = json.loads(line)
    return message


def envelope(id: Any, **fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, **fields}).encode()


def said(text: str, **fields: Any) -> Message:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], **fields}


def answer(message: Message, text: str = "right", **fields: Any) -> bytes:
    """A good answer to a call."""
    return envelope(message["id"], result=said(text, **fields))


def refuse(message: Message) -> None:
    write(envelope(message["id"], error={"code": -32601, "message": "no such method"}))


def notification(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def sleep_for_ever() -> None:
    while True:
        time.sleep(1000)


# --- how it begins ---------------------------------------------------------------------------------------------------


def discovered() -> None:
    message = hear()
    assert message["method"] == "server/discover"
    write(envelope(message["id"], result=DISCOVERED))


def initialized(**changes: Any) -> None:
    """Refuse everything but the handshake."""
    while (message := hear())["method"] != "initialize":
        tell(f"heard {message['method']}")
        refuse(message)
    tell("heard initialize")
    write(envelope(message["id"], result={**INITIALIZED, **changes}))


def banner() -> None:
    write(b"hostile server 1.0", b"", b"ready!", *INVALID_UTF8)
    discovered()
    write(b"a client has come")


def exits_at_once() -> None:
    tell("cannot find my configuration")
    raise SystemExit(3)


def exits_on_discover() -> None:
    message = hear()
    tell(f"heard {message['method']}")
    if message["method"] == "server/discover":
        raise SystemExit(1)
    write(envelope(message["id"], result=INITIALIZED))


def exits_on_initialize() -> None:
    while (message := hear())["method"] != "initialize":
        refuse(message)
    tell("heard initialize")
    raise SystemExit(4)


def exits_after_initialize() -> None:
    initialized()
    tell(f"heard {hear()['method']}")
    raise SystemExit(5)


def silent_on_discover() -> None:
    message = hear()
    while message["method"] != "initialize":
        tell(f"heard {message['method']}")
        message = hear()
    write(envelope(message["id"], result=INITIALIZED))


def discovers_late() -> None:
    first = hear()
    tell(f"heard {hear()['method']}")
    write(envelope(first["id"], result=DISCOVERED))


def answers_everything() -> None:
    message = hear()
    while message["method"] != "initialize":
        write(envelope(message["id"], result={}))
        message = hear()
    write(envelope(message["id"], result=INITIALIZED))


def never_agrees() -> None:
    """The handshake is refused for lack of the probe, and the probe for lack of the handshake."""
    while True:
        message = hear()
        if message["method"] == "initialize":
            data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            write(envelope(message["id"], error={"code": -32022, "message": "too old", "data": data}))
        else:
            refuse(message)


def ignores_the_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    discovered()
    write(answer(hear()))
    sleep_for_ever()


def ignores_the_end_and_opens_never() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell("started")
    sleep_for_ever()


def closes_stdout_at_once() -> None:
    os.close(1)
    sleep_for_ever()


OPENINGS: dict[str, Callable[[], None]] = {
    "fine": discovered,
    "handshake": initialized,
    "banner": banner,
    "exits at once": exits_at_once,
    "exits on discover": exits_on_discover,
    "exits on initialize": exits_on_initialize,
    "exits after initialize": exits_after_initialize,
    "silent": sleep_for_ever,
    "silent on discover": silent_on_discover,
    "discovers late": discovers_late,
    "answers everything": answers_everything,
    "never agrees": never_agrees,
    "unheard revision": lambda: initialized(protocolVersion="2099-01-01"),
    "initialize is no result": lambda: initialized(serverInfo="me", capabilities=[]),
    "ignores the end": ignores_the_end,
    "ignores the end and never opens": ignores_the_end_and_opens_never,
    "closes stdout at once": closes_stdout_at_once,
}


# --- how it answers calls --------------------------------------------------------------------------------------------


def wrong_first(message: Message, id: Any) -> None:
    """An answer with another id, and then the right one."""
    write(envelope(id, result=said("wrong")), answer(message))


def twice(message: Message) -> None:
    write(answer(message), answer(message, "wrong"))


def too_late(message: Message) -> None:
    assert hear()["method"] == "notifications/cancelled"
    write(answer(message, "wrong"))


def reversed_answers(message: Message) -> None:
    messages = [message] + [hear() for _ in range(message["params"]["arguments"]["calls"] - 1)]
    write(*(answer(each, each["params"]["arguments"]["text"]) for each in reversed(messages)))


def large(message: Message) -> None:
    write(answer(message, "x" * message["params"]["arguments"]["bytes"]))


def too_large_first(message: Message) -> None:
    write(answer(message, "x" * message["params"]["arguments"]["bytes"]), answer(message))


def too_large_with_its_id_last(message: Message) -> None:
    text = b"x" * message["params"]["arguments"]["bytes"]
    write(b'{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"%b"}]},"id":%d}' % (text, message["id"]))


def endless(piece: bytes) -> None:
    while True:
        os.write(1, piece)


def flood(message: Message) -> None:
    kinds = [
        notification("notifications/message", level="info", data="x" * 50),
        notification("notifications/tools/list_changed"),
        notification("notifications/unheard/of", data="x" * 50),
        notification("notifications/progress", progressToken="nobody's", progress=1),
    ]
    for _ in range(message["params"]["arguments"]["times"] // 100):
        write(*kinds * 25)
    write(answer(message))


def asks(message: Message) -> None:
    """Sends requests of its own and says what was answered."""
    methods = message["params"]["arguments"]["methods"]
    write(*(json.dumps({"jsonrpc": "2.0", "id": f"s{n}", "method": each}).encode() for n, each in enumerate(methods)))
    answers = [hear() for _ in methods]
    write(answer(message, json.dumps([each.get("error", each.get("result")) for each in answers])))


def asks_and_never_reads(message: Message) -> None:
    while True:
        write(*[b'{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}'] * 100)


def asks_without_end(message: Message) -> None:
    """Reads each answer before it asks again, so that it never stops, and always has some requests in flight."""
    method = message["params"]["arguments"]["method"]
    params = {"messages": [], "maxTokens": 1} | {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    n = 0
    for _ in range(4):
        write(json.dumps({"jsonrpc": "2.0", "id": f"s{(n := n + 1)}", "method": method, "params": params}).encode())
    while True:
        hear()
        write(json.dumps({"jsonrpc": "2.0", "id": f"s{(n := n + 1)}", "method": method, "params": params}).encode())


def progress(message: Message, *steps: float, after: bool = False) -> None:
    token = message["params"]["_meta"].get("progressToken")
    reports = [notification("notifications/progress", progressToken=token, progress=step) for step in steps]
    write(*([answer(message), *reports] if after else [*reports, answer(message)]))


def progress_of_nobody(message: Message) -> None:
    for token in ("1", 1.5, 999, None, message["id"] + 1):
        write(notification("notifications/progress", progressToken=token, progress=1))
    progress(message, 1, 2)


def dies(message: Message) -> None:
    for _ in range(message["params"].get("arguments", {}).get("calls", 1) - 1):
        hear()
    tell("Traceback: out of luck")
    os._exit(7)


def closes(fd: int) -> None:
    os.close(fd)
    sleep_for_ever()


def leaves_a_grandchild(on_sigterm: str, last: str) -> None:
    """It holds all three descriptors, and ends when it is told to, or not even then."""
    up, say_up = os.pipe()
    begin = f"import os, signal, time; signal.signal(signal.SIGTERM, signal.{on_sigterm}); os.write({say_up}, b'.')"
    subprocess.Popen([sys.executable, "-S", "-E", "-c", f"{begin}; {last}", *sys.argv[3:]], pass_fds=[say_up])
    os.read(up, 1)
    os._exit(9)


def structured(message: Message) -> None:
    arguments = message["params"]["arguments"]
    write(answer(message, structuredContent=arguments["value"]))


def result(message: Message) -> None:
    """Answers with whatever it is given as the result."""
    write(envelope(message["id"], result=message["params"]["arguments"]["result"]))


def instead(message: Message) -> None:
    """Answers with the given text, in which ID stands for the id; in Latin-1, so that it may be any bytes."""
    write(message["params"]["arguments"]["text"].replace("ID", str(message["id"])).encode("latin-1"))


def raw(message: Message) -> None:
    """Answers with the given fields in the place of a result."""
    fields = message["params"]["arguments"]
    write(json.dumps({"id": message["id"], **fields}).encode())


TALK = "[(os.write(1, b'still here\\n'), time.sleep(0.05)) for _ in range(20_000)]"
CALLS: dict[str, Callable[[Message], Any]] = {
    "fine": lambda m: write(answer(m)),
    "garbage before": lambda m: write(*GARBAGE, answer(m)),
    "garbage after": lambda m: write(answer(m), *GARBAGE),
    "invalid UTF-8": lambda m: write(*INVALID_UTF8, answer(m), *INVALID_UTF8),
    "carriage returns": lambda m: write(answer(m) + b"\r"),
    "id as text": lambda m: wrong_first(m, str(m["id"])),
    "id as float": lambda m: wrong_first(m, float(m["id"])),
    "id null": lambda m: wrong_first(m, None),
    "id true": lambda m: wrong_first(m, True),
    "id a list": lambda m: wrong_first(m, [m["id"]]),
    "unknown id": lambda m: wrong_first(m, m["id"] + 1_000),
    "huge id": lambda m: wrong_first(m, 10**400),
    "twice": twice,
    "too late": too_late,
    "reversed": reversed_answers,
    "large": large,
    "too large first": too_large_first,
    "too large with its id last": too_large_with_its_id_last,
    "endless line": lambda m: endless(b"x" * 65_536),
    "endless garbage": lambda m: endless(b"what is this?\n" * 100),
    "flood": flood,
    "asks": asks,
    "asks and never reads": asks_and_never_reads,
    "asks without end": asks_without_end,
    "progress decreases": lambda m: progress(m, 1, 3, 2, 3, -1, 4),
    "progress of nobody": progress_of_nobody,
    "progress after": lambda m: progress(m, 1, 2, after=True),
    "dies": dies,
    "dies by a signal": lambda m: os.kill(os.getpid(), signal.SIGSEGV),
    "closes stdout": lambda m: closes(1),
    "closes stdin": lambda m: closes(0),
    "says nothing": lambda m: None,
    "leaves a grandchild": lambda m: leaves_a_grandchild("SIG_DFL", "time.sleep(1000)"),
    "leaves a stubborn grandchild": lambda m: leaves_a_grandchild("SIG_IGN", "time.sleep(1000)"),
    "leaves a talking grandchild": lambda m: leaves_a_grandchild("SIG_IGN", TALK),
    "structured": structured,
    "result": result,
    "raw": raw,
    "instead": instead,
}


# --- how it lists ----------------------------------------------------------------------------------------------------


def tools() -> list[Message]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in CALLS]


def list_schema(message: Message, schema: Any) -> None:
    page(message, [{"name": "structured", "inputSchema": {"type": "object"}, "outputSchema": schema}])


def page(message: Message, items: list[Message], **more: Any) -> None:
    write(envelope(message["id"], result={"resultType": "complete", "tools": items, **more}))


def list_new_cursors(message: Message) -> None:
    at = int(message["params"].get("cursor", "0"))
    page(message, tools()[:1], nextCursor=str(at + 1))


def list_empty_cursor(message: Message) -> None:
    if "cursor" in message["params"]:
        assert message["params"]["cursor"] == ""
        page(message, tools()[1:2])
    else:
        page(message, tools()[:1], nextCursor="")


LISTINGS: dict[str, Callable[[Message], Any]] = {
    "one": lambda m: page(m, tools()),
    "same cursor": lambda m: page(m, tools()[:1], nextCursor="again"),
    "same cursor, no items": lambda m: page(m, [], nextCursor="again"),
    "new cursors": list_new_cursors,
    "empty cursor": list_empty_cursor,
    "cursor is no text": lambda m: page(m, tools()[:1], nextCursor=5),
    "many": lambda m: page(m, [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(100_000)]),
    "full pages for ever": lambda m: page(m, tools() * 20, nextCursor="again"),
    "no list": lambda m: page(m, 5),  # type: ignore[arg-type]
    "refused": refuse,
    "silent": lambda m: None,
}


def main() -> None:
    opening, listing = sys.argv[1:3]
    OPENINGS[opening]()
    while True:
        message = hear()
        method = message.get("method")
        if method == "tools/call":
            CALLS[message["params"]["name"]](message)
        elif method == "tools/list" and listing.startswith("{"):
            list_schema(message, json.loads(listing))
        elif method == "tools/list":
            LISTINGS[listing](message)
        elif method == "prompts/get":
            result(message)
        elif "id" in message:
            refuse(message)


if __name__ == "__main__":
    main()

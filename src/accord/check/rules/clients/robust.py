"""Rough weather: answers that are wrong, foreign, huge or hostile. A client goes on, or ends with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.check.clients.ask import Ask, encoded
from accord.check.clients.offer import TOOLS, Offer, text
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Scene, Whole
from accord.check.rule import LINES, Rule
from accord.messages.base import JSONObject

_HUGE = 8 << 20
_DEEP = 20_000

ANSWERS = Rule(
    "client-robust/unknown-answers",
    "may",
    "Answers to what nobody asked, and answers that come twice, change nothing.",
    at="basic#responses",
    role="client",
    cause="The id is looked up without a thought that it may not be there, or '5' is taken for 5.",
)

RESULTS = Rule(
    "client-robust/bad-results",
    "may",
    "A result that is not what it should be is an error for whoever asked, at once.",
    at="basic/lifecycle#error-handling",
    role="client",
    cause="What cannot be read is logged, and the one who waits for it is told nothing.",
)

GARBAGE = Rule(
    "client-robust/garbage",
    "may",
    "What is no message on the server's stdout neither crashes the client nor keeps it waiting for long.",
    at=("basic/transports#stdio", "basic/transports/stdio#messages"),
    role="client",
    over=LINES,
    cause="An error of the reader ends it, and with it every call, without a word.",
)

HUGE = Rule(
    "client-robust/huge",
    "should",
    "A message that is very long neither crashes the client nor keeps it waiting.",
    at="basic/lifecycle#error-handling",
    role="client",
    cause="The buffer for a line is small, and its error is not handed on.",
)

HOSTILE = Rule(
    "client-robust/hostile-text",
    "should",
    "Control characters, markup and text that turns its direction are text.",
    at="server/tools#security-considerations",
    role="client",
    cause="Names and descriptions are used as they are, in terminals, pages, or paths.",
)

CONTENT = Rule(
    "client-robust/unknown-content",
    "may",
    "Content of a type that nobody knows neither crashes the client nor keeps it waiting for long.",
    at="server/tools#tool-result",
    role="client",
    cause="The types of content are taken for a closed list, and the error is not handed on.",
)


def _weather(
    rule: Rule, name: str, says: str, make: Callable[[Ask, JSONObject], Answer], *methods: str, **options: Any
) -> Scene:
    """A scene in which the first answer, or those to some methods, are made by a function of the good result."""
    scene = Scene(name, says, **options)

    @scene.on(*(methods or (FIRST,)))
    async def _(ask: Ask) -> Answer:
        return make(ask, await ask.usual())

    @scene.judges(rule, says)
    def _(run: Run) -> None:
        run.got_away()

    return scene


# --- answers that nobody asked for -------------------------------------------------------------------------------

FOREIGN = Scene("unknown-answers", "answers that nobody asked for")


@FOREIGN.on(FIRST)
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
    other = str(ask.id) if isinstance(ask.id, int) else 987_654_322
    for id in ("nobody", 987_654_321, other):
        await ask.say({"jsonrpc": "2.0", "id": id, "result": {}})
    await ask.say({"jsonrpc": "2.0", "id": "nobody", "error": {"code": -32603, "message": "nobody asked"}})
    await ask.say(ask.answer(result))
    return result


@FOREIGN.judges(ANSWERS, "answers that nobody asked for, and one that comes twice")
def _(run: Run) -> None:
    run.as_usual()


# --- results that are wrong --------------------------------------------------------------------------------------


def _result(name: str, says: str, result: Any) -> Scene:
    return _weather(RESULTS, f"bad-result-{name}", says, lambda ask, good: Whole(ask.answer(result)))


NULL = _result("null", "a result that is null", None)
LISTED = _result("list", "a result that is a list", [1, 2])
HOLLOW = _result("empty", "a result without any of its fields", {})
TYPES = _weather(
    RESULTS,
    "bad-result-types",
    "a result whose fields are of other types",
    lambda ask, good: {**good, **{name: 5 for name in good if not name.startswith("_") and name != "resultType"}},
)
BOTH = _weather(
    RESULTS,
    "result-and-error",
    "an answer with both result and error",
    lambda ask, good: Whole(ask.answer(good) | {"error": {"code": -32603, "message": "both"}}),
)
NEITHER = _weather(
    RESULTS,
    "no-result",
    "an answer with neither result nor error",
    lambda ask, good: Whole({"jsonrpc": "2.0", "id": ask.id}),
)
ERROR = _weather(
    RESULTS,
    "bad-error",
    "an error that is text",
    lambda ask, good: Whole({"jsonrpc": "2.0", "id": ask.id, "error": "it went wrong"}),
)
NO_VERSION = _weather(
    RESULTS,
    "no-jsonrpc",
    "an answer that does not say it is JSON-RPC",
    lambda ask, good: Whole({"id": ask.id, "result": good}),
)

# --- lines that are none -----------------------------------------------------------------------------------------


def _littered(name: str, says: str, *lines: bytes) -> Scene:
    """Lines that are no messages come before the first answer."""
    scene = Scene(name, says, over=LINES)

    @scene.on(FIRST)
    async def _(ask: Ask) -> Answer:
        result = await ask.usual()
        for line in lines:
            await ask.say(line)
        return result

    @scene.judges(GARBAGE, says)
    def _(run: Run) -> None:
        run.got_away()

    return scene


WORDS = _littered("garbage-words", "log lines on stdout", b"Listening on port 8000", b"\x1b[31mred\x1b[0m", b"")
HALVES = _littered(
    "garbage-json", "JSON that is cut off, or no message", b'{"jsonrpc":"2.0","id', b"[]", b"5", b"null", b"{}"
)
BYTES = _littered("garbage-bytes", "bytes that are no UTF-8", b"\xff\xfe\x00", b'{"jsonrpc":"2.0","method":"\xc3\x28"}')

# --- what is too much --------------------------------------------------------------------------------------------

LONG = _weather(
    HUGE,
    "huge-result",
    f"a message of {_HUGE >> 20} MB",
    lambda ask, good: {**good, "_meta": {**good.get("_meta", {}), "com.example/long": "x" * _HUGE}},
    patience=5.0,
)
DEEP = _weather(
    RESULTS,
    "deep-result",
    f"a message nested {_DEEP:,} deep",
    lambda ask, good: encoded(ask.answer(good))[:-2] + b',"x-deep":' + b"[" * _DEEP + b"]" * _DEEP + b"}}",
    patience=5.0,
)

_NASTY = "\x1b[2J\x07\u202etxt.exe\u2066\u200b<script>alert(1)</script>'\"; ../../etc/passwd $(id) \x00\ud83d\ude00"
_NASTY = _NASTY.encode("utf-16", "surrogatepass").decode("utf-16")

NASTY = Scene(
    "hostile-text",
    "names, titles and descriptions that want to do harm",
    offer=Offer(tools=[each | {"description": _NASTY, "title": _NASTY} for each in TOOLS]),
)


@NASTY.on("tools/list", "tools/call", FIRST)
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
    return result | {"content": [text(_NASTY)]} if "content" in result else result


@NASTY.judges(HOSTILE, "text that wants to do harm")
def _(run: Run) -> None:
    run.as_usual()


HOLOGRAM = _weather(
    CONTENT,
    "unknown-content",
    "a result with content of a type that nobody knows",
    lambda ask, good: {**good, "content": [{"type": "com.example/hologram", "beams": 3}, text("and a text")]},
    "tools/call",
)

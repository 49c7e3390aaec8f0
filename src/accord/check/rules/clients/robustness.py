"""Faults: invalid, unexpected, huge or hostile responses. A client continues, or ends with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.check.clients.conversation import encode_message
from accord.check.clients.features import TOOLS, ScriptedFeatures, text_block
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, RawMessage, Scenario, ScriptedAnswer
from accord.check.engine.rule import LINE_TRANSPORTS, Rule, client_rule
from accord.messages.base import JSONObject

_HUGE = 8 << 20
_DEEP = 20_000


@client_rule(
    "client-robust/bad-results",
    "may",
    at="basic/lifecycle#error-handling",
    cause="An invalid result is logged, but the caller gets no error.",
)
def client_robust_bad_results(run: ClientRun) -> None:
    """An invalid result is an immediate error for the caller."""
    run.require_progress()


@client_rule(
    "client-robust/garbage",
    "may",
    at=("basic/transports#stdio", "basic/transports/stdio#messages"),
    over=LINE_TRANSPORTS,
    cause="An exception ends the reader, and all pending calls hang.",
)
def client_robust_garbage(run: ClientRun) -> None:
    """A line on stdout that is not a message neither crashes nor blocks the client."""
    run.require_progress()


@client_rule(
    "client-robust/huge",
    "should",
    at="basic/lifecycle#error-handling",
    cause="The line buffer is small, and its error is not reported.",
)
def client_robust_huge(run: ClientRun) -> None:
    """A very long message neither crashes nor blocks the client."""
    run.require_progress()


@client_rule(
    "client-robust/unknown-content",
    "may",
    at="server/tools#tool-result",
    cause="The types of content are a closed list, and the error is not reported.",
)
def client_robust_unknown_content(run: ClientRun) -> None:
    """Content of an unknown type neither crashes nor blocks the client."""
    run.require_progress()


def _faulty_answer_scenario(
    rule: Rule,
    name: str,
    says: str,
    make: Callable[[IncomingRequest, JSONObject], ScriptedAnswer],
    *methods: str,
    **options: Any,
) -> Scenario:
    """Return a scenario in which a function changes the first response, or those to some methods."""
    scenario = Scenario(name, says, **options)

    @scenario.on(*(methods or (FIRST_REQUEST,)))
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        return make(request, await request.default_result())

    scenario.case(rule, says)(rule.check)
    return scenario


# --- answers that nobody asked for -------------------------------------------------------------------------------

UNKNOWN_ANSWERS_SCENARIO = Scenario("unknown-answers", "unexpected responses")


@UNKNOWN_ANSWERS_SCENARIO.on(FIRST_REQUEST)
async def answer_unknown_answers(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
    other = str(request.id) if isinstance(request.id, int) else 987_654_322
    for id in ("nobody", 987_654_321, other):
        await request.send({"jsonrpc": "2.0", "id": id, "result": {}})
    await request.send({"jsonrpc": "2.0", "id": "nobody", "error": {"code": -32603, "message": "nobody asked"}})
    await request.send(request.build_response(result))
    return result


@UNKNOWN_ANSWERS_SCENARIO.rule(
    "client-robust/unknown-answers",
    "may",
    case="unexpected responses, and a duplicate response",
    at="basic#responses",
    cause="A missing id is not handled, or '5' is taken for 5.",
)
def client_robust_unknown_answers(run: ClientRun) -> None:
    """A client ignores unexpected and duplicate responses."""
    run.require_ordinary_behavior()


# --- results that are wrong --------------------------------------------------------------------------------------


def _bad_result_scenario(name: str, says: str, result: Any) -> Scenario:
    return _faulty_answer_scenario(
        client_robust_bad_results,
        f"bad-result-{name}",
        says,
        lambda request, good: RawMessage(request.build_response(result)),
    )


BAD_RESULT_NULL_SCENARIO = _bad_result_scenario("null", "a result that is null", None)
BAD_RESULT_LIST_SCENARIO = _bad_result_scenario("list", "a result that is a list", [1, 2])
BAD_RESULT_EMPTY_SCENARIO = _bad_result_scenario("empty", "an empty result", {})
BAD_RESULT_TYPES_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "bad-result-types",
    "a result with fields of wrong types",
    lambda ask, good: {**good, **{name: 5 for name in good if not name.startswith("_") and name != "resultType"}},
)
RESULT_AND_ERROR_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "result-and-error",
    "a response with both result and error",
    lambda ask, good: RawMessage(ask.build_response(good) | {"error": {"code": -32603, "message": "both"}}),
)
NO_RESULT_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "no-result",
    "a response with neither result nor error",
    lambda ask, good: RawMessage({"jsonrpc": "2.0", "id": ask.id}),
)
BAD_ERROR_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "bad-error",
    "an error that is a string",
    lambda ask, good: RawMessage({"jsonrpc": "2.0", "id": ask.id, "error": "it went wrong"}),
)
NO_JSONRPC_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "no-jsonrpc",
    "a response without jsonrpc",
    lambda ask, good: RawMessage({"id": ask.id, "result": good}),
)

# --- lines that are none -----------------------------------------------------------------------------------------


def _garbage_lines_scenario(name: str, says: str, *lines: bytes) -> Scenario:
    """Return a scenario with invalid lines before the first response."""
    scenario = Scenario(name, says, over=LINE_TRANSPORTS)

    @scenario.on(FIRST_REQUEST)
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        result = await request.default_result()
        for line in lines:
            await request.send(line)
        return result

    scenario.case(client_robust_garbage, says)(client_robust_garbage.check)
    return scenario


GARBAGE_WORDS_SCENARIO = _garbage_lines_scenario(
    "garbage-words", "log lines on stdout", b"Listening on port 8000", b"\x1b[31mred\x1b[0m", b""
)
GARBAGE_JSON_SCENARIO = _garbage_lines_scenario(
    "garbage-json",
    "incomplete JSON, and JSON that is not a message",
    b'{"jsonrpc":"2.0","id',
    b"[]",
    b"5",
    b"null",
    b"{}",
)
GARBAGE_BYTES_SCENARIO = _garbage_lines_scenario(
    "garbage-bytes", "bytes that are not UTF-8", b"\xff\xfe\x00", b'{"jsonrpc":"2.0","method":"\xc3\x28"}'
)

# --- what is too much --------------------------------------------------------------------------------------------

HUGE_RESULT_SCENARIO = _faulty_answer_scenario(
    client_robust_huge,
    "huge-result",
    f"a message of {_HUGE >> 20} MB",
    lambda ask, good: {**good, "_meta": {**good.get("_meta", {}), "com.example/long": "x" * _HUGE}},
    patience=5.0,
)
DEEP_RESULT_SCENARIO = _faulty_answer_scenario(
    client_robust_bad_results,
    "deep-result",
    f"a message nested {_DEEP:,} deep",
    lambda ask, good: (
        encode_message(ask.build_response(good))[:-2] + b',"x-deep":' + b"[" * _DEEP + b"]" * _DEEP + b"}}"
    ),
    patience=5.0,
)

_HOSTILE_TEXT = (
    "\x1b[2J\x07\u202etxt.exe\u2066\u200b<script>alert(1)</script>'\"; ../../etc/passwd $(id) \x00\ud83d\ude00"
)
_HOSTILE_TEXT = _HOSTILE_TEXT.encode("utf-16", "surrogatepass").decode("utf-16")

HOSTILE_TEXT_SCENARIO = Scenario(
    "hostile-text",
    "names, titles and descriptions with hostile text",
    features=ScriptedFeatures(tools=[each | {"description": _HOSTILE_TEXT, "title": _HOSTILE_TEXT} for each in TOOLS]),
)


@HOSTILE_TEXT_SCENARIO.on("tools/list", "tools/call", FIRST_REQUEST)
async def answer_hostile_text(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
    return result | {"content": [text_block(_HOSTILE_TEXT)]} if "content" in result else result


@HOSTILE_TEXT_SCENARIO.rule(
    "client-robust/hostile-text",
    "should",
    case="hostile text",
    at="server/tools#security-considerations",
    cause="Names and descriptions are not escaped in terminals, pages or paths.",
)
def client_robust_hostile_text(run: ClientRun) -> None:
    """A client treats control characters, markup and bidirectional overrides as text."""
    run.require_ordinary_behavior()


UNKNOWN_CONTENT_SCENARIO = _faulty_answer_scenario(
    client_robust_unknown_content,
    "unknown-content",
    "a result with content of an unknown type",
    lambda ask, good: {**good, "content": [{"type": "com.example/hologram", "beams": 3}, text_block("and a text")]},
    "tools/call",
)

"""Rules that read what passed: right traffic passes, and each wrong message is seen, whatever order things came in."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord.check.engine.report import TransportName
from accord.check.engine.rule import Rule, Violation
from accord.check.probes.message_log import LoggedResponse, MessageLog
from accord.check.rules.cancellation import OWN_REQUESTS
from accord.check.rules.capabilities import ONLY_DECLARED, REVISION
from accord.check.rules.codes import ONE_SENTENCE
from accord.check.rules.envelope import ERROR_CODE, ERROR_FORM, JSON_RPC, MESSAGES, RESULT_OBJECT, RESULT_OR_ERROR
from accord.check.rules.ids import ONE_ANSWER, SAME, UNUSED
from accord.check.rules.meta import KEYS, REVERSE_DNS, TRACE_CONTEXT
from accord.check.rules.progress import ENDS, GROWS, KNOWN_TOKEN, OWN_TOKENS
from accord.check.rules.tools import DATA, SIZES, SOURCE
from accord.wire.transcript import RECEIVED, SENT

Say = tuple[str, Any]


def record(*said: Say, revision: str = "2025-11-25", transport: TransportName = "stdio") -> MessageLog:
    """A conversation: `→` and `←` with messages, or with bytes; `!` for what we say wrong on purpose."""
    made = MessageLog(revision, transport)
    for direction, message in said:
        raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
        if direction == "←":
            made.add(RECEIVED, raw)
        else:
            made.add(SENT, raw, misbehaved=direction == "!")
    return made


def reads(rule: Rule) -> Callable[[list[MessageLog]], int]:
    """Its case that reads."""
    (case,) = (case for case in rule.cases if case.kind == "reading")
    read: Callable[[list[MessageLog]], int] = case.run
    return read


def judged(rule: Rule, *said: Say, **more: Any) -> int:
    return reads(rule)([record(*said, **more)])


def broken(rule: Rule, *said: Say, **more: Any) -> str:
    with pytest.raises(Violation) as info:
        reads(rule)([record(*said, **more)])
    assert info.value.evidence
    return str(info.value)


def asks(id: Any, method: str = "ping", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})}


def answers(id: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def tells(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def progress(token: Any, at: float) -> dict[str, Any]:
    return tells("notifications/progress", progressToken=token, progress=at)


def called(id: Any, token: Any) -> dict[str, Any]:
    return asks(id, "tools/call", name="slow", _meta={"progressToken": token})


@pytest.mark.parametrize("rule", [JSON_RPC, RESULT_OR_ERROR, RESULT_OBJECT, SAME, ONE_ANSWER], ids=repr)
def test_plain_requests_and_answers_break_nothing(rule: Rule) -> None:
    assert judged(rule, ("→", asks(1)), ("←", answers(1)), ("→", asks("1")), ("←", answers("1"))) == 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (JSON_RPC, 7),
        (JSON_RPC, []),
        (JSON_RPC, {"jsonrpc": 2.0, "id": 1, "result": {}}),
        (JSON_RPC, {"jsonrpc": "2.0", "id": 1}),
        (JSON_RPC, {"jsonrpc": "2.0", "method": 7}),
        (RESULT_OR_ERROR, {"jsonrpc": "2.0", "id": 1}),
        (RESULT_OR_ERROR, {"jsonrpc": "2.0", "id": 1, "result": {}, "error": None}),
        (RESULT_OBJECT, {"jsonrpc": "2.0", "id": 1, "result": None}),
        (ERROR_FORM, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
        (ERROR_CODE, {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": "x"}}),
        (SAME, answers(2)),
        (SAME, answers("1")),
        (SAME, answers(1.0)),
        (SAME, answers(None)),
    ],
)
def test_a_wrong_message_is_seen(rule: Rule, message: Any) -> None:
    broken(rule, ("→", asks(1)), ("←", message))


def test_a_batch_belongs_to_one_revision() -> None:
    said = [("→", asks(1)), ("←", [answers(1)])]
    assert judged(JSON_RPC, *said, revision="2025-03-26") == 1
    broken(JSON_RPC, *said, revision="2025-06-18")


def test_an_error_without_an_id_is_right_only_after_something_unreadable() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}
    assert judged(SAME, ("!", b"{"), ("←", error), ("→", asks(1)), ("←", answers(1))) == 2
    broken(SAME, ("→", asks(1)), ("←", error))


@given(st.permutations(range(6)))
def test_answers_may_come_in_any_order_but_once(order: list[int]) -> None:
    said: list[Say] = [("→", asks(id)) for id in order] + [("←", answers(id)) for id in reversed(order)]
    assert judged(ONE_ANSWER, *said) == judged(SAME, *said) == 6
    broken(ONE_ANSWER, *said, ("←", answers(order[0])))


def test_an_id_of_the_server_is_used_once() -> None:
    assert judged(UNUSED, ("←", asks(1)), ("←", asks("1"))) == 2
    assert "before" in broken(UNUSED, ("←", asks(1)), ("→", answers(1)), ("←", asks(1)))


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=8, unique=True))
def test_progress_that_grows_is_right_and_any_other_is_not(steps: list[float]) -> None:
    told: list[Say] = [("→", called(1, "t")), *(("←", progress("t", step)) for step in sorted(steps))]
    assert judged(GROWS, *told, ("←", answers(1))) == len(steps) - 1
    assert judged(KNOWN_TOKEN, *told) == judged(ENDS, *told) == len(steps)
    broken(GROWS, *told, ("←", progress("t", min(steps))))
    broken(ENDS, *told, ("←", answers(1)), ("←", progress("t", 2e6)))


@pytest.mark.parametrize(("sent", "repeats"), [({"last-event-id": "1"}, True), ({}, False)])
def test_progress_that_a_resumed_stream_repeats_is_no_progress_after_the_answer(
    sent: dict[str, str], repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = record(("→", called(1, "t")), ("←", progress("t", 1)), ("←", answers(1)), transport="http")
    made.responses.append(LoggedResponse(stream=7, method="GET", request_headers=sent))
    later = time.monotonic() + 60
    monkeypatch.setattr("accord.check.probes.message_log.time", SimpleNamespace(monotonic=lambda: later))
    made.add(RECEIVED, msgspec.json.encode(progress("t", 1)), stream=7)
    if repeats:
        assert reads(ENDS)([made]) == 2
    else:
        with pytest.raises(Violation, match="was answered before"):
            reads(ENDS)([made])


def test_a_token_keeps_its_type() -> None:
    broken(KNOWN_TOKEN, ("→", called(1, 0)), ("←", progress("0", 1)))
    assert judged(KNOWN_TOKEN, ("→", called(1, 0)), ("←", progress(0, 1))) == 1


def test_the_token_of_a_task_lives_as_long_as_the_task() -> None:
    task = {"taskId": "a", "status": "working"}
    begun: list[Say] = [("→", called(1, "t")), ("←", answers(1, task=task)), ("←", progress("t", 1))]
    assert judged(ENDS, *begun) == 1
    ended = tells("notifications/tasks/status", **{**task, "status": "completed"})
    broken(ENDS, *begun, ("←", ended), ("←", progress("t", 2)))


def test_two_calls_with_one_token_are_over_when_both_are() -> None:
    both: list[Say] = [("→", called(1, "t")), ("→", called(2, "t")), ("←", answers(1)), ("←", progress("t", 1))]
    assert judged(ENDS, *both) == 1
    broken(ENDS, *both, ("←", answers(2)), ("←", progress("t", 2)))


def test_a_token_of_the_server_is_for_one_request() -> None:
    first, second = asks(1, _meta={"progressToken": "t"}), asks(2, _meta={"progressToken": "t"})
    assert judged(OWN_TOKENS, ("←", first), ("→", answers(1)), ("←", second)) == 2
    broken(OWN_TOKENS, ("←", first), ("←", second))


def test_a_server_cancels_its_own_requests_only() -> None:
    cancel = tells("notifications/cancelled", requestId=1)
    assert judged(OWN_REQUESTS, ("←", asks(1)), ("→", answers(1)), ("←", cancel)) == 1
    broken(OWN_REQUESTS, ("→", asks(1)), ("←", cancel))
    assert "tasks/cancel" in broken(OWN_REQUESTS, ("←", asks(1, task={})), ("←", cancel))


def opened(server: dict[str, Any], client: dict[str, Any]) -> list[Say]:
    hello = asks(1, "initialize", protocolVersion="2025-11-25", capabilities=client)
    return [("→", hello), ("←", answers(1, protocolVersion="2025-11-25", capabilities=server))]


def test_what_is_sent_was_declared() -> None:
    changed = tells("notifications/tools/list_changed")
    assert judged(ONLY_DECLARED, *opened({"tools": {"listChanged": True}}, {}), ("←", changed)) == 1
    assert "tools.listChanged" in broken(ONLY_DECLARED, *opened({"tools": {}}, {}), ("←", changed))
    assert "roots" in broken(ONLY_DECLARED, *opened({}, {"sampling": {}}), ("←", asks(2, "roots/list")))


def test_a_method_of_another_revision_is_not_sent() -> None:
    asked = asks(1, "elicitation/create", message="?")
    assert judged(REVISION, ("←", asked)) == 1
    broken(REVISION, ("←", asked), revision="2024-11-05")


@pytest.mark.parametrize(
    ("rule", "name", "value", "is_right"),
    [
        (KEYS, "progress", 1, True),
        (KEYS, "", 1, True),
        (KEYS, "com.example/a.b_c-d", 1, True),
        (KEYS, "com.example/", 1, True),
        (KEYS, "a/b/c", 1, False),
        (KEYS, "/a", 1, False),
        (KEYS, "7.example/a", 1, False),
        (KEYS, "com.example-/a", 1, False),
        (KEYS, "a b", 1, False),
        (KEYS, "-a", 1, False),
        (REVERSE_DNS, "com.example/a", 1, True),
        (REVERSE_DNS, "io.modelcontextprotocol/a", 1, True),
        (REVERSE_DNS, "example.com/a", 1, False),
        (TRACE_CONTEXT, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", True),
        (TRACE_CONTEXT, "traceparent", "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", False),
        (TRACE_CONTEXT, "traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        (TRACE_CONTEXT, "tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", True),
        (TRACE_CONTEXT, "tracestate", "Rojo", False),
        (TRACE_CONTEXT, "baggage", "userId=alice,server=DF%2028;k=v", True),
        (TRACE_CONTEXT, "baggage", "alice", False),
        (TRACE_CONTEXT, "baggage", 7, False),
    ],
)
def test_keys_and_traces_in_meta(rule: Rule, name: str, value: Any, is_right: bool) -> None:
    said = ("←", answers(1, tools=[{"name": "a", "_meta": {name: value}}]))
    if is_right:
        assert judged(rule, said) == 1
    else:
        broken(rule, said)


def test_meta_in_what_belongs_to_the_author_is_not_judged() -> None:
    assert judged(KEYS, ("←", answers(1, structuredContent={"_meta": {"a b": 1}}))) == 0


@pytest.mark.parametrize(
    ("rule", "icon", "is_right"),
    [
        (SOURCE, {"src": "https://example.com/a.png"}, True),
        (SOURCE, {"src": "a.png"}, False),
        (SOURCE, {"src": "javascript:alert(1)"}, False),
        (DATA, {"src": "data:image/png;base64,iVBORw0KGgo="}, True),
        (DATA, {"src": "data:text/html;base64,iVBORw0KGgo="}, False),
        (DATA, {"src": "data:image/png;base64,?"}, False),
        (SIZES, {"src": "https://example.com/a.png", "sizes": ["48x48", "any"]}, True),
        (SIZES, {"src": "https://example.com/a.png", "sizes": "48x48"}, False),
        (SIZES, {"src": "https://example.com/a.png", "sizes": ["0x1"]}, False),
    ],
)
def test_icons(rule: Rule, icon: dict[str, Any], is_right: bool) -> None:
    said = ("←", answers(1, tools=[{"name": "a", "icons": [icon]}]))
    if is_right:
        assert judged(rule, said) == 1
    else:
        broken(rule, said)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "_meta", "code"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_message_breaks_the_reader(message: Any) -> None:
    for rule in (
        JSON_RPC,
        RESULT_OR_ERROR,
        RESULT_OBJECT,
        ERROR_FORM,
        ERROR_CODE,
        SAME,
        ONE_ANSWER,
        UNUSED,
        KEYS,
        GROWS,
        ENDS,
        OWN_REQUESTS,
        ONLY_DECLARED,
        REVISION,
    ):
        try:
            judged(rule, ("→", asks(1)), ("←", message), ("!", message))
        except Violation:
            continue


def test_messages_that_are_wrong_in_two_ways_are_two_findings() -> None:
    tools = {"tools": [{"name": name} for name in "ab"]}
    wrong = ("→", asks(1, "tools/list")), ("←", answers(1, **tools)), ("→", asks(2, "prompts/list")), ("←", answers(2))
    with pytest.raises(Violation) as info:
        judged(MESSAGES, *wrong)
    first, (second,) = info.value, info.value.more
    assert "inputSchema" in str(first)
    assert "prompts" in str(second)
    assert first.symptom != second.symptom
    assert len(second.evidence) == 2


LONG_URI = f"file:///{'a' * 5_000}"


def fails(id: Any, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": message}}


def test_a_long_text_of_ours_that_an_error_repeats_does_not_make_its_message_long() -> None:
    read_of_it = asks(1, "resources/read", uri=LONG_URI)
    assert judged(ONE_SENTENCE, ("→", read_of_it), ("←", fails(1, f"Resource not found: {LONG_URI}"))) == 1


def test_a_long_text_that_is_not_ours_makes_the_message_of_an_error_long() -> None:
    told = broken(ONE_SENTENCE, ("→", asks(1, "tools/list")), ("←", fails(1, f"Resource not found: {LONG_URI}")))
    assert told == "a message of 1 line and 5,028 characters"


@pytest.mark.parametrize(("text", "counted"), [("x" * 501, "1 line"), ("first\nsecond", "2 lines")])
def test_the_lines_of_a_long_message_are_counted_in_words(text: str, counted: str) -> None:
    assert broken(ONE_SENTENCE, ("→", asks(1)), ("←", fails(1, text))).startswith(f"a message of {counted} and ")


def test_a_second_answer_to_a_cancelled_request_is_left_to_the_rule_about_cancellation() -> None:
    cancel = tells("notifications/cancelled", requestId=1)
    assert (
        judged(ONE_ANSWER, ("→", asks(1)), ("→", cancel), ("←", answers(1)), ("←", fails(1, "Request cancelled"))) == 2
    )
    told = broken(ONE_ANSWER, ("→", asks(1)), ("→", asks(2)), ("→", cancel), ("←", answers(2)), ("←", answers(2)))
    assert told == "2 was answered before"

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
from accord.check.rules.cancellation import cancel_own_requests
from accord.check.rules.capabilities import capabilities_only_declared, capabilities_revision
from accord.check.rules.codes import codes_one_sentence
from accord.check.rules.envelope import (
    envelope_error_code,
    envelope_error_form,
    envelope_json_rpc,
    envelope_result_object,
    envelope_result_or_error,
    shapes_messages,
)
from accord.check.rules.ids import ids_one_answer, ids_same, ids_unused
from accord.check.rules.meta import meta_keys, meta_reverse_dns, meta_trace_context
from accord.check.rules.progress import progress_ends, progress_grows, progress_known_token, progress_own_tokens
from accord.check.rules.tools import icons_data, icons_sizes, icons_source
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


@pytest.mark.parametrize(
    "rule", [envelope_json_rpc, envelope_result_or_error, envelope_result_object, ids_same, ids_one_answer], ids=repr
)
def test_plain_requests_and_answers_break_nothing(rule: Rule) -> None:
    assert judged(rule, ("→", asks(1)), ("←", answers(1)), ("→", asks("1")), ("←", answers("1"))) == 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (envelope_json_rpc, 7),
        (envelope_json_rpc, []),
        (envelope_json_rpc, {"jsonrpc": 2.0, "id": 1, "result": {}}),
        (envelope_json_rpc, {"jsonrpc": "2.0", "id": 1}),
        (envelope_json_rpc, {"jsonrpc": "2.0", "method": 7}),
        (envelope_result_or_error, {"jsonrpc": "2.0", "id": 1}),
        (envelope_result_or_error, {"jsonrpc": "2.0", "id": 1, "result": {}, "error": None}),
        (envelope_result_object, {"jsonrpc": "2.0", "id": 1, "result": None}),
        (envelope_error_form, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
        (envelope_error_code, {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": "x"}}),
        (ids_same, answers(2)),
        (ids_same, answers("1")),
        (ids_same, answers(1.0)),
        (ids_same, answers(None)),
    ],
)
def test_a_wrong_message_is_seen(rule: Rule, message: Any) -> None:
    broken(rule, ("→", asks(1)), ("←", message))


def test_a_batch_belongs_to_one_revision() -> None:
    said = [("→", asks(1)), ("←", [answers(1)])]
    assert judged(envelope_json_rpc, *said, revision="2025-03-26") == 1
    broken(envelope_json_rpc, *said, revision="2025-06-18")


def test_an_error_without_an_id_is_right_only_after_something_unreadable() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}
    assert judged(ids_same, ("!", b"{"), ("←", error), ("→", asks(1)), ("←", answers(1))) == 2
    broken(ids_same, ("→", asks(1)), ("←", error))


@given(st.permutations(range(6)))
def test_answers_may_come_in_any_order_but_once(order: list[int]) -> None:
    said: list[Say] = [("→", asks(id)) for id in order] + [("←", answers(id)) for id in reversed(order)]
    assert judged(ids_one_answer, *said) == judged(ids_same, *said) == 6
    broken(ids_one_answer, *said, ("←", answers(order[0])))


def test_an_id_of_the_server_is_used_once() -> None:
    assert judged(ids_unused, ("←", asks(1)), ("←", asks("1"))) == 2
    assert "earlier request" in broken(ids_unused, ("←", asks(1)), ("→", answers(1)), ("←", asks(1)))


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=8, unique=True))
def test_progress_that_grows_is_right_and_any_other_is_not(steps: list[float]) -> None:
    told: list[Say] = [("→", called(1, "t")), *(("←", progress("t", step)) for step in sorted(steps))]
    assert judged(progress_grows, *told, ("←", answers(1))) == len(steps) - 1
    assert judged(progress_known_token, *told) == judged(progress_ends, *told) == len(steps)
    broken(progress_grows, *told, ("←", progress("t", min(steps))))
    broken(progress_ends, *told, ("←", answers(1)), ("←", progress("t", 2e6)))


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
        assert reads(progress_ends)([made]) == 2
    else:
        with pytest.raises(Violation, match="was answered before"):
            reads(progress_ends)([made])


def test_a_token_keeps_its_type() -> None:
    broken(progress_known_token, ("→", called(1, 0)), ("←", progress("0", 1)))
    assert judged(progress_known_token, ("→", called(1, 0)), ("←", progress(0, 1))) == 1


def test_the_token_of_a_task_lives_as_long_as_the_task() -> None:
    task = {"taskId": "a", "status": "working"}
    begun: list[Say] = [("→", called(1, "t")), ("←", answers(1, task=task)), ("←", progress("t", 1))]
    assert judged(progress_ends, *begun) == 1
    ended = tells("notifications/tasks/status", **{**task, "status": "completed"})
    broken(progress_ends, *begun, ("←", ended), ("←", progress("t", 2)))


def test_two_calls_with_one_token_are_over_when_both_are() -> None:
    both: list[Say] = [("→", called(1, "t")), ("→", called(2, "t")), ("←", answers(1)), ("←", progress("t", 1))]
    assert judged(progress_ends, *both) == 1
    broken(progress_ends, *both, ("←", answers(2)), ("←", progress("t", 2)))


def test_a_token_of_the_server_is_for_one_request() -> None:
    first, second = asks(1, _meta={"progressToken": "t"}), asks(2, _meta={"progressToken": "t"})
    assert judged(progress_own_tokens, ("←", first), ("→", answers(1)), ("←", second)) == 2
    broken(progress_own_tokens, ("←", first), ("←", second))


def test_a_server_cancels_its_own_requests_only() -> None:
    cancel = tells("notifications/cancelled", requestId=1)
    assert judged(cancel_own_requests, ("←", asks(1)), ("→", answers(1)), ("←", cancel)) == 1
    broken(cancel_own_requests, ("→", asks(1)), ("←", cancel))
    assert "tasks/cancel" in broken(cancel_own_requests, ("←", asks(1, task={})), ("←", cancel))


def opened(server: dict[str, Any], client: dict[str, Any]) -> list[Say]:
    hello = asks(1, "initialize", protocolVersion="2025-11-25", capabilities=client)
    return [("→", hello), ("←", answers(1, protocolVersion="2025-11-25", capabilities=server))]


def test_what_is_sent_was_declared() -> None:
    changed = tells("notifications/tools/list_changed")
    assert judged(capabilities_only_declared, *opened({"tools": {"listChanged": True}}, {}), ("←", changed)) == 1
    assert "tools.listChanged" in broken(capabilities_only_declared, *opened({"tools": {}}, {}), ("←", changed))
    assert "roots" in broken(capabilities_only_declared, *opened({}, {"sampling": {}}), ("←", asks(2, "roots/list")))


def test_a_method_of_another_revision_is_not_sent() -> None:
    asked = asks(1, "elicitation/create", message="?")
    assert judged(capabilities_revision, ("←", asked)) == 1
    broken(capabilities_revision, ("←", asked), revision="2024-11-05")


@pytest.mark.parametrize(
    ("rule", "name", "value", "is_right"),
    [
        (meta_keys, "progress", 1, True),
        (meta_keys, "", 1, True),
        (meta_keys, "com.example/a.b_c-d", 1, True),
        (meta_keys, "com.example/", 1, True),
        (meta_keys, "a/b/c", 1, False),
        (meta_keys, "/a", 1, False),
        (meta_keys, "7.example/a", 1, False),
        (meta_keys, "com.example-/a", 1, False),
        (meta_keys, "a b", 1, False),
        (meta_keys, "-a", 1, False),
        (meta_reverse_dns, "com.example/a", 1, True),
        (meta_reverse_dns, "io.modelcontextprotocol/a", 1, True),
        (meta_reverse_dns, "example.com/a", 1, False),
        (meta_trace_context, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", True),
        (meta_trace_context, "traceparent", "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", False),
        (meta_trace_context, "traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        (meta_trace_context, "tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", True),
        (meta_trace_context, "tracestate", "Rojo", False),
        (meta_trace_context, "baggage", "userId=alice,server=DF%2028;k=v", True),
        (meta_trace_context, "baggage", "alice", False),
        (meta_trace_context, "baggage", 7, False),
    ],
)
def test_keys_and_traces_in_meta(rule: Rule, name: str, value: Any, is_right: bool) -> None:
    said = ("←", answers(1, tools=[{"name": "a", "_meta": {name: value}}]))
    if is_right:
        assert judged(rule, said) == 1
    else:
        broken(rule, said)


def test_meta_in_what_belongs_to_the_author_is_not_judged() -> None:
    assert judged(meta_keys, ("←", answers(1, structuredContent={"_meta": {"a b": 1}}))) == 0


@pytest.mark.parametrize(
    ("rule", "icon", "is_right"),
    [
        (icons_source, {"src": "https://example.com/a.png"}, True),
        (icons_source, {"src": "a.png"}, False),
        (icons_source, {"src": "javascript:alert(1)"}, False),
        (icons_data, {"src": "data:image/png;base64,iVBORw0KGgo="}, True),
        (icons_data, {"src": "data:text/html;base64,iVBORw0KGgo="}, False),
        (icons_data, {"src": "data:image/png;base64,?"}, False),
        (icons_sizes, {"src": "https://example.com/a.png", "sizes": ["48x48", "any"]}, True),
        (icons_sizes, {"src": "https://example.com/a.png", "sizes": "48x48"}, False),
        (icons_sizes, {"src": "https://example.com/a.png", "sizes": ["0x1"]}, False),
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
        envelope_json_rpc,
        envelope_result_or_error,
        envelope_result_object,
        envelope_error_form,
        envelope_error_code,
        ids_same,
        ids_one_answer,
        ids_unused,
        meta_keys,
        progress_grows,
        progress_ends,
        cancel_own_requests,
        capabilities_only_declared,
        capabilities_revision,
    ):
        try:
            judged(rule, ("→", asks(1)), ("←", message), ("!", message))
        except Violation:
            continue


def test_messages_that_are_wrong_in_two_ways_are_two_findings() -> None:
    tools = {"tools": [{"name": name} for name in "ab"]}
    wrong = ("→", asks(1, "tools/list")), ("←", answers(1, **tools)), ("→", asks(2, "prompts/list")), ("←", answers(2))
    with pytest.raises(Violation) as info:
        judged(shapes_messages, *wrong)
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
    assert judged(codes_one_sentence, ("→", read_of_it), ("←", fails(1, f"Resource not found: {LONG_URI}"))) == 1


def test_a_long_text_that_is_not_ours_makes_the_message_of_an_error_long() -> None:
    told = broken(codes_one_sentence, ("→", asks(1, "tools/list")), ("←", fails(1, f"Resource not found: {LONG_URI}")))
    assert told == "the message has 1 line and 5,028 characters"


@pytest.mark.parametrize(("text", "counted"), [("x" * 501, "1 line"), ("first\nsecond", "2 lines")])
def test_the_lines_of_a_long_message_are_counted_in_words(text: str, counted: str) -> None:
    assert broken(codes_one_sentence, ("→", asks(1)), ("←", fails(1, text))).startswith(
        f"the message has {counted} and "
    )


def test_a_second_answer_to_a_cancelled_request_is_left_to_the_rule_about_cancellation() -> None:
    cancel = tells("notifications/cancelled", requestId=1)
    assert (
        judged(ids_one_answer, ("→", asks(1)), ("→", cancel), ("←", answers(1)), ("←", fails(1, "Request cancelled")))
        == 2
    )
    told = broken(ids_one_answer, ("→", asks(1)), ("→", asks(2)), ("→", cancel), ("←", answers(2)), ("←", answers(2)))
    assert told == "the server answered 2 before"

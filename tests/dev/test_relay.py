"""The relay of `accord dev`, message by message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord.dev.actions import Action, CallEnded, Finished, Restart, StartFailed, ToHost, TookOver, ToProcess
from accord.dev.relay import Relay
from accord.messages.revision import HANDSHAKE, PER_REQUEST

TOOLS = {"tools": [{"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}]}
MORE_TOOLS = {"tools": [*TOOLS["tools"], {"name": "subtract", "inputSchema": {"type": "object"}}]}
META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST[-1],
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def encoded(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def to_host(actions: list[Action]) -> list[Any]:
    return [json.loads(each.message) for each in actions if isinstance(each, ToHost)]


def to_process(actions: list[Action], generation: int) -> list[Any]:
    found = (each for each in actions if isinstance(each, ToProcess) and each.generation == generation)
    return [json.loads(each.message) for each in found]


def of_type(actions: list[Action], kind: type[Any]) -> list[Any]:
    return [each for each in actions if isinstance(each, kind)]


def handshake_result(revision: str, **capabilities: Any) -> dict[str, Any]:
    offered = {"tools": {}, **capabilities}
    return {"protocolVersion": revision, "capabilities": offered, "serverInfo": {"name": "s", "version": "1"}}


def answer(
    relay: Relay, generation: int, request: dict[str, Any], revision: str, tools: dict[str, Any]
) -> list[Action]:
    """Answer a request of the relay as a process does."""
    results = {
        "initialize": handshake_result(revision, logging={}, resources={"subscribe": True}),
        "server/discover": {"supportedVersions": [revision], "capabilities": {"tools": {}}},
        "tools/list": tools,
        "resources/list": {"resources": []},
        "resources/templates/list": {"resourceTemplates": []},
    }
    result = results.get(request["method"], {})
    return relay.receive_process(generation, encoded(id=request["id"], result=result))


def serve(relay: Relay, generation: int, actions: list[Action], revision: str, tools: Any = TOOLS) -> list[Action]:
    """Answer all requests to a process, as long as new ones come; return all actions."""
    everything, queue = list(actions), to_process(actions, generation)
    while queue:
        request = queue.pop(0)
        if "id" in request and "method" in request:
            following = answer(relay, generation, request, revision, tools)
            everything += following
            queue += to_process(following, generation)
    return everything


def opened(revision: str = "2025-11-25") -> Relay:
    """Return a relay with one process and a session of a host."""
    relay = Relay("weather.py")
    serve(relay, 1, relay.start(1), revision)
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
    actions = relay.receive_host(encoded(id=0, method="initialize", params=params))
    assert to_host(serve(relay, 1, actions, revision))[0]["id"] == 0
    serve(relay, 1, relay.receive_host(encoded(method="notifications/initialized")), revision)
    assert relay.surface is not None
    return relay


def test_a_message_keeps_its_bytes_in_both_directions() -> None:
    relay = opened()
    call = b'{"method": "tools/call","id":7, "jsonrpc":"2.0","params":{"name" : "add", "arguments":{"a": 1.50}}}'
    result = b'{"id":7,"result" : {"content":[], "x": 1e3},"jsonrpc":"2.0"}'
    assert ToProcess(1, call) in relay.receive_host(call)
    assert ToHost(result) in relay.receive_process(1, result)


def test_the_declaration_says_that_lists_change() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    relay.receive_host(encoded(id=0, method="initialize", params={"protocolVersion": "2025-06-18"}))
    actions = relay.receive_process(1, encoded(id=0, result=handshake_result("2025-06-18")))
    assert to_host(actions)[0]["result"]["capabilities"] == {"tools": {"listChanged": True}}


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_new_process_receives_the_session_before_it_takes_over(revision: str) -> None:
    relay = opened(revision)
    for id, method, params in (
        (1, "logging/setLevel", {"level": "error"}),
        (2, "resources/subscribe", {"uri": "a://1"}),
        (3, "resources/subscribe", {"uri": "a://2"}),
        (4, "resources/unsubscribe", {"uri": "a://1"}),
    ):
        serve(relay, 1, relay.receive_host(encoded(id=id, method=method, params=params)), revision)
    actions = serve(relay, 2, relay.start(2), revision)
    sent = [(each["method"], each.get("params")) for each in to_process(actions, 2)]
    assert [method for method, _ in sent[:2]] == ["initialize", "notifications/initialized"]
    assert ("logging/setLevel", {"level": "error"}) in sent
    assert [params for method, params in sent if method == "resources/subscribe"] == [{"uri": "a://2"}]
    assert of_type(actions, TookOver) == [TookOver(2, 1)]
    assert to_host(actions) == []  # nothing has changed
    assert of_type(actions, Finished) == [Finished(1)]


def test_state_that_changes_during_the_start_reaches_the_new_process() -> None:
    relay = opened()
    starting = relay.start(2)
    serve(relay, 1, relay.receive_host(encoded(id=1, method="resources/subscribe", params={"uri": "a://1"})), "x")
    actions = serve(relay, 2, starting, "2025-11-25")
    assert [each["params"] for each in to_process(actions, 2) if each["method"] == "resources/subscribe"] == [
        {"uri": "a://1"}
    ]


def test_a_process_that_starts_during_the_handshake_takes_over_after_it() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
    relay.receive_host(encoded(id=0, method="initialize", params=params))
    assert relay.start(2) == []
    actions = relay.receive_process(1, encoded(id=0, result=handshake_result("2025-06-18")))
    assert to_host(actions)[0]["id"] == 0
    actions = serve(relay, 2, actions, "2025-06-18")
    assert [each.generation for each in of_type(actions, TookOver)] == [2]


def test_a_process_that_starts_before_the_first_message_of_the_host_takes_over_when_it_has_answered_a_ping() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    actions = relay.start(2)
    (ping,) = to_process(actions, 2)
    assert ping["method"] == "ping"
    assert not of_type(actions, TookOver)
    actions = relay.receive_process(2, encoded(id=ping["id"], result={}))
    assert of_type(actions, TookOver) == [TookOver(2, 1)]
    assert to_host(actions) == []


def test_a_broken_version_before_the_first_message_of_the_host_leaves_the_one_that_runs() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    relay.start(2)
    assert relay.process_ended(2, "invalid syntax") == [StartFailed(2, "invalid syntax")]
    call = encoded(id=1, method="ping")
    assert relay.receive_host(call) == [ToProcess(1, call)]


def test_a_process_that_waits_for_a_handshake_that_fails_answers_a_ping_after_it() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    relay.receive_host(encoded(id=0, method="initialize", params={"protocolVersion": "2025-06-18"}))
    assert relay.start(2) == []
    actions = relay.receive_process(1, encoded(id=0, error={"code": -32602, "message": "no"}))
    (ping,) = to_process(actions, 2)
    assert ping["method"] == "ping"


def test_a_host_that_speaks_during_the_ping_is_continued_by_the_new_process() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    (ping,) = to_process(relay.start(2), 2)
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
    relay.receive_host(encoded(id=0, method="initialize", params=params))
    assert relay.receive_process(2, encoded(id=ping["id"], result={})) == []
    actions = relay.receive_process(1, encoded(id=0, result=handshake_result("2025-06-18")))
    assert to_host(actions)[0]["id"] == 0
    actions = serve(relay, 2, actions, "2025-06-18")
    assert [each.generation for each in of_type(actions, TookOver)] == [2]


def test_only_what_really_changed_is_announced() -> None:
    relay = opened()
    actions = serve(relay, 2, relay.start(2), "2025-11-25", MORE_TOOLS)
    assert to_host(actions) == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    (took_over,) = of_type(actions, TookOver)
    assert [each.place for each in took_over.changes] == ["tools.subtract"]
    assert took_over.announced == ("tools",)


def test_a_call_in_flight_is_finished_by_the_old_process_and_new_ones_go_to_the_new_one() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    actions = serve(relay, 2, relay.start(2), "2025-11-25")
    assert not of_type(actions, Finished)
    call = encoded(id=2, method="tools/call", params={"name": "add"})
    assert ToProcess(2, call) in relay.receive_host(call)
    actions = relay.receive_process(1, encoded(id=1, result={"content": []}))
    assert to_host(actions)[0]["id"] == 1
    assert of_type(actions, Finished) == [Finished(1)]


def test_a_call_that_outlives_the_grace_fails_with_the_reason() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    relay.receive_host(encoded(id=2, method="tools/list"))
    serve(relay, 2, relay.start(2), "2025-11-25")
    actions = relay.expire(1)
    (failed,) = to_host(actions)
    assert failed["id"] == 1
    assert failed["result"]["isError"]
    assert failed["result"]["content"][0]["text"].startswith("reloaded: ")
    assert [each["id"] for each in to_process(actions, 2)] == [2]  # a list is safe to repeat
    assert relay.receive_process(1, encoded(id=1, result={})) == []


def test_a_cancelled_call_has_ended_even_if_the_process_answers_it() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    actions = relay.receive_host(encoded(method="notifications/cancelled", params={"requestId": 1}))
    assert of_type(actions, CallEnded) == [CallEnded(1, "cancelled", b"")]
    assert not of_type(relay.receive_process(1, encoded(id=1, result={"content": []})), CallEnded)


def test_questions_of_two_processes_have_distinct_ids() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    serve(relay, 2, relay.start(2), "2025-11-25")
    relay.receive_host(encoded(id=2, method="tools/call", params={"name": "add"}))
    asked = []
    for generation in (1, 2):
        params = {"message": f"from {generation}", "_meta": {"progressToken": 5}}
        asked += to_host(relay.receive_process(generation, encoded(id=5, method="elicitation/create", params=params)))
    assert asked[0]["id"] != asked[1]["id"]
    for generation, question in ((2, asked[1]), (1, asked[0])):
        token = question["params"]["_meta"]["progressToken"]
        progress = encoded(method="notifications/progress", params={"progressToken": token, "progress": 1})
        (received,) = to_process(relay.receive_host(progress), generation)
        assert received["params"]["progressToken"] == 5
        (received,) = to_process(
            relay.receive_host(encoded(id=question["id"], result={"action": "accept"})), generation
        )
        assert received == {"jsonrpc": "2.0", "id": 5, "result": {"action": "accept"}}
    assert relay.receive_host(encoded(id=asked[0]["id"], result={})) == []


def test_a_question_of_a_process_that_is_gone_is_cancelled() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    (asked,) = to_host(relay.receive_process(1, encoded(id=5, method="roots/list")))
    cancelled = to_host(relay.process_ended(1, "killed"))[0]
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == asked["id"]


def test_a_broken_version_leaves_the_last_good_one() -> None:
    relay = opened()
    relay.start(2)
    actions = relay.process_ended(2, "weather.py:3: invalid syntax")
    assert actions == [StartFailed(2, "weather.py:3: invalid syntax")]
    call = encoded(id=1, method="tools/call", params={"name": "add"})
    assert ToProcess(1, call) in relay.receive_host(call)


def test_a_broken_first_version_gives_the_host_a_connection_whose_calls_fail_with_the_reason() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    relay.receive_host(encoded(id=0, method="initialize", params={"protocolVersion": "2025-06-18"}))
    actions = relay.process_ended(1, "weather.py:3: invalid syntax")
    assert to_host(actions)[0]["result"]["protocolVersion"] == "2025-06-18"
    assert relay.receive_host(encoded(method="notifications/initialized")) == []
    assert to_host(relay.receive_host(encoded(id=1, method="tools/list")))[0]["result"] == {"tools": []}
    (failed,) = to_host(relay.receive_host(encoded(id=2, method="tools/call", params={"name": "add"})))
    assert failed["result"]["isError"]
    assert "weather.py:3: invalid syntax" in failed["result"]["content"][0]["text"]
    actions = serve(relay, 2, relay.start(2), "2025-06-18")
    assert {each["method"] for each in to_host(actions)} == {
        f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
    }


def test_a_process_that_crashes_is_started_again_and_requests_wait_for_it() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    actions = relay.process_ended(1, "exited with code 3")
    assert of_type(actions, Restart) == [Restart("exited with code 3")]
    (failed,) = to_host(actions)
    assert "whether it took effect is unknown" in failed["result"]["content"][0]["text"]
    call = encoded(id=2, method="tools/call", params={"name": "add"})
    assert not to_host(relay.receive_host(call))
    actions = serve(relay, 2, relay.start(2), "2025-11-25")
    assert 2 in [each.get("id") for each in to_process(actions, 2)]


def test_a_process_that_ends_before_it_has_answered_anything_is_not_started_again() -> None:
    relay = opened()
    relay.process_ended(1, "exited with code 3")
    serve(relay, 2, relay.start(2), "2025-11-25")
    actions = relay.process_ended(2, "exited with code 3")
    assert not of_type(actions, Restart)
    assert of_type(actions, StartFailed)


def test_another_revision_cannot_continue_the_session() -> None:
    relay = opened("2025-11-25")
    actions = serve(relay, 2, relay.start(2), "2025-06-18")
    (failed,) = of_type(actions, StartFailed)
    assert "reconnect the host" in failed.reason


def test_requests_wait_while_the_old_process_stops_first() -> None:
    relay = opened()
    assert of_type(relay.retire(), Finished) == [Finished(1)]
    call = encoded(id=1, method="tools/call", params={"name": "add"})
    assert not to_host(relay.receive_host(call))
    relay.process_ended(1, "ended")
    actions = serve(relay, 2, relay.start(2), "2025-11-25")
    assert ToProcess(2, call) in actions


def listening(relay: Relay, id: Any) -> list[Action]:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a://1"]}
    return relay.receive_host(
        encoded(id=id, method="subscriptions/listen", params={"notifications": wanted, "_meta": META})
    )


def acknowledgement(id: Any) -> bytes:
    params = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"resourceSubscriptions": []}}
    return encoded(method="notifications/subscriptions/acknowledged", params=params)


def test_a_subscription_moves_to_the_new_process_and_is_acknowledged_once() -> None:
    revision = PER_REQUEST[-1]
    relay = Relay("weather.py")
    relay.start(1)
    discovered = relay.receive_host(encoded(id=0, method="server/discover", params={"_meta": META}))
    serve(relay, 1, discovered, revision)
    listening(relay, "L")
    (acknowledged,) = to_host(relay.receive_process(1, acknowledgement("L")))
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [], "toolsListChanged": True}
    starting = relay.start(2)
    queue, actions = to_process(starting, 2), []
    while queue:
        request = queue.pop(0)
        if request["method"] != "subscriptions/listen":
            following = answer(relay, 2, request, revision, MORE_TOOLS)
            actions += following
            queue += to_process(following, 2)
    assert [each["method"] for each in to_process(actions, 1)] == ["notifications/cancelled"]
    assert "L" in [each.get("id") for each in to_process(actions, 2)]
    assert to_host(actions) == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "L"}},
        }
    ]
    assert to_host(relay.receive_process(2, acknowledgement("L"))) == []
    assert to_host(relay.receive_process(1, encoded(id="L", result={}))) == []
    assert to_host(relay.receive_process(2, encoded(id="L", result={})))[0]["id"] == "L"


def test_lists_are_never_cached() -> None:
    relay = Relay("weather.py")
    relay.start(1)
    relay.receive_host(encoded(id=1, method="tools/list", params={"_meta": META}))
    result = {**TOOLS, "ttlMs": 60000, "cacheScope": "public", "resultType": "complete"}
    (listed,) = to_host(relay.receive_process(1, encoded(id=1, result=result)))
    assert listed["result"] == {**result, "ttlMs": 0}


@pytest.mark.parametrize("revision", [*HANDSHAKE, *PER_REQUEST])
def test_a_request_with_an_id_in_flight_is_refused_without_that_id(revision: str) -> None:
    relay = opened(revision) if revision in HANDSHAKE else Relay("weather.py")
    if revision in PER_REQUEST:
        relay.start(1)
    call = encoded(id=1, method="tools/call", params={"name": "add", "_meta": META if revision in PER_REQUEST else {}})
    relay.receive_host(call)
    (refusal,) = to_host(relay.receive_host(call))
    assert refusal["error"]["code"] == -32600
    assert refusal.get("id", "none") == (None if revision < "2025-11-25" else "none")
    (result,) = to_host(relay.receive_process(1, encoded(id=1, result={"content": []})))
    assert result["id"] == 1


def test_a_batch_is_answered_as_one_batch() -> None:
    relay = opened("2025-03-26")
    batch = b"[%b,%b]" % (
        encoded(id=1, method="tools/call", params={"name": "add"}),
        encoded(id=2, method="tools/list"),
    )
    assert len(to_process(relay.receive_host(batch), 1)) == 2
    assert to_host(relay.receive_process(1, encoded(id=2, result=TOOLS))) == []
    (answers,) = to_host(relay.receive_process(1, encoded(id=1, result={"content": []})))
    assert [each["id"] for each in answers] == [2, 1]


def test_a_batch_does_not_wait_for_a_cancelled_request() -> None:
    relay = opened("2025-03-26")
    call = {"method": "tools/call", "params": {"name": "add"}}
    relay.receive_host(b"[%b,%b]" % (encoded(id=1, **call), encoded(id=2, **call)))
    assert to_host(relay.receive_process(1, encoded(id=1, result={"content": []}))) == []
    (answers,) = to_host(relay.receive_host(encoded(method="notifications/cancelled", params={"requestId": 2})))
    assert [each["id"] for each in answers] == [1]


def test_a_line_that_is_no_message_is_reported_and_does_not_reach_the_host() -> None:
    relay = opened()
    (report,) = relay.receive_process(1, b"hello from print")
    assert "hello from print" in report.text  # type: ignore[union-attr]


def test_calls_are_reported_with_their_outcome() -> None:
    relay = opened()
    relay.receive_host(encoded(id=1, method="tools/call", params={"name": "add"}))
    actions = relay.receive_process(1, encoded(id=1, result={"content": [], "isError": True}))
    assert [each.outcome for each in of_type(actions, CallEnded)] == ["tool error"]


def test_search_reaches_tools_that_the_host_has_not_listed() -> None:
    relay = Relay("weather.py", search=True)
    relay.start(1)
    relay.receive_host(encoded(id=0, method="initialize", params={"protocolVersion": "2025-06-18"}))
    relay.receive_process(1, encoded(id=0, result=handshake_result("2025-06-18")))
    serve(relay, 1, relay.receive_host(encoded(method="notifications/initialized")), "2025-06-18")
    relay.receive_host(encoded(id=1, method="tools/list"))
    (listed,) = to_host(relay.receive_process(1, encoded(id=1, result=TOOLS)))
    assert [each["name"] for each in listed["result"]["tools"]] == ["add", "search_tools", "call_tool"]
    serve(relay, 2, relay.start(2), "2025-06-18", MORE_TOOLS)
    params = {"name": "search_tools", "arguments": {"query": "subtract"}}
    (found,) = to_host(relay.receive_host(encoded(id=2, method="tools/call", params=params)))
    assert [each["name"] for each in json.loads(found["result"]["content"][0]["text"])] == ["subtract"]
    arguments = {"name": "subtract", "arguments": {"a": 1}}
    params = {"name": "call_tool", "arguments": arguments, "_meta": {"progressToken": 3}}
    (call,) = to_process(relay.receive_host(encoded(id=3, method="tools/call", params=params)), 2)
    assert call["id"] == 3
    assert call["params"] == {**arguments, "_meta": {"progressToken": 3}}

"""Servers whose messages are no good JSON-RPC, or whose ids are not those of the requests."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant


@mutant("envelope/json-rpc", revision="2025-06-18")
def a_list_of_tools_without_jsonrpc(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        del answer["jsonrpc"]
        return answer


@mutant("envelope/json-rpc", revision="2025-06-18")
def a_notification_in_an_array(change: Change) -> None:
    change.before("resources/list")(lambda request: [{"jsonrpc": "2.0", "method": "notifications/x"}])

    @change.every
    def _(message: Any) -> Any:
        return b'[{"jsonrpc":"2.0","method":"x"}]' if message.get("method") == "notifications/x" else message


@mutant("envelope/params", revision="2024-11-05")
def params_by_position(change: Change) -> None:
    @change.notifications("notifications/message")
    def _(message: Any) -> Any:
        return {**message, "params": [message["params"]["level"], message["params"]["data"]]}


@mutant("envelope/result-or-error", revision="2025-03-26")
def null_for_the_error_that_is_none(change: Change) -> None:
    change.answers("tools/call")(lambda request, answer: {**answer, "error": None})


@mutant("envelope/result-object", revision="2025-11-25")
def a_result_that_is_a_text(change: Change) -> None:
    change.answers("resources/read")(lambda request, answer: {**answer, "result": "text"})


@mutant("envelope/error-form")
def an_error_that_is_a_text(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        return {**message, "error": "it failed"} if "error" in message else message


@mutant("envelope/error-code", revision="2025-06-18")
def a_code_that_is_a_name(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        return {**message, "error": {"code": "NOT_FOUND", "message": "x"}} if "error" in message else message


@mutant("envelope/notification-without-id", revision="2025-06-18")
def a_notification_with_an_id(change: Change) -> None:
    change.notifications("notifications/progress")(lambda message: {**message, "id": 7_001})


@mutant("envelope/no-server-requests")
def a_ping_of_the_server(change: Change) -> None:
    change.before("tools/list")(lambda request: [{"jsonrpc": "2.0", "id": "s1", "method": "ping"}])


@mutant("ids/same", revision="2025-11-25")
def null_for_an_id_that_is_zero(change: Change) -> None:
    change.answers("ping")(lambda request, answer: {**answer, "id": answer["id"] or None})


@mutant("ids/same")
def texts_for_small_numbers(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        return {**answer, "id": str(answer["id"])}


@mutant("ids/same", revision="2024-11-05", over="sse")
def numbers_for_texts_of_digits(change: Change) -> None:
    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        id = answer["id"]
        return {**answer, "id": int(id) if isinstance(id, str) and id.isdecimal() else id}


@mutant("ids/one-answer", revision="2025-03-26")
def two_answers(change: Change) -> None:
    change.answers("tools/list")(lambda request, answer: [answer, answer])


@mutant("ids/of-requests", revision="2025-11-25")
def a_request_whose_id_is_null(change: Change) -> None:
    change.before("tools/list")(lambda request: [{"jsonrpc": "2.0", "id": None, "method": "ping"}])


@mutant("ids/unused", revision="2025-06-18")
def one_id_for_all_requests(change: Change) -> None:
    change.before("tools/call")(lambda request: [{"jsonrpc": "2.0", "id": "only", "method": "ping"}])


@mutant("ids/again")
def an_id_that_is_remembered_for_ever(change: Change) -> None:
    seen: set[Any] = set()

    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        id = request["id"]
        if id not in seen or isinstance(id, int):
            seen.add(id)
            return answer
        return {"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": "used before"}}

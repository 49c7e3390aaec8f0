"""Servers that refuse what is right, or serve what is wrong, or say why in a wrong way."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant


def recoded(change: Change, code: int, other: int, **more: Any) -> None:
    """Errors with one code get another."""

    @change.every
    def _(message: Any) -> Any:
        error = message.get("error")
        return {**message, "error": {**error, "code": other, **more}} if error and error["code"] == code else message


def unheard(change: Change, is_wrong: Any, method: str = "accord-check-nobody") -> None:
    """Requests that are wrong in the eyes of the server are unknown to it."""
    change.heard(
        lambda message: {**message, "method": method} if isinstance(message, dict) and is_wrong(message) else message
    )


@mutant("errors/unknown-method", revision="2025-06-18")
def an_empty_result_for_what_nobody_knows(change: Change) -> None:
    change.answers("toString")(lambda request, answer: {"jsonrpc": "2.0", "id": answer["id"], "result": {}})


@mutant("errors/method-not-found", revision="2025-11-25")
def wrong_params_for_an_unknown_method(change: Change) -> None:
    recoded(change, -32601, -32602)


@mutant("errors/invalid-request", revision="2025-06-18")
def silence_for_what_is_no_request(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        is_fine = not isinstance(message, dict) or isinstance(message.get("method", "x"), str)
        return message if is_fine and (not isinstance(message, dict) or message.get("jsonrpc") == "2.0") else None


@mutant("errors/parse-error", revision="2025-03-26")
def silence_for_what_is_no_json(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        return None if message.get("error", {}).get("code") == -32700 else message


@mutant("errors/unreadable-id", revision="2025-11-25")
def a_placeholder_for_an_id(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        return {**message, "id": "server-error"} if "error" in message and message.get("id") is None else message


@mutant("errors/notification-answered", revision="2024-11-05")
def an_error_for_an_unknown_notification(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        is_strange = isinstance(message, dict) and "id" not in message and "accord-check" in str(message.get("method"))
        return {**message, "id": "made up"} if is_strange else message

    @change.every
    def _(message: Any) -> Any:
        return {**message, "id": None} if message.get("id") == "made up" else message


@mutant("codes/reserved")
def a_code_of_its_own_in_the_range_of_the_specification(change: Change) -> None:
    recoded(change, -32602, -32050)


@mutant("codes/retired")
def the_code_of_earlier_revisions_for_a_missing_resource(change: Change) -> None:
    recoded(change, -32602, -32002)


@mutant("codes/closed-range")
def a_code_from_the_closed_range(change: Change) -> None:
    recoded(change, -32601, -32001)


@mutant("codes/own", revision="2025-06-18")
def a_code_from_the_range_of_json_rpc(change: Change) -> None:
    recoded(change, -32602, -32500)


@mutant("codes/defined-data")
def an_unsupported_version_without_those_that_are(change: Change) -> None:
    recoded(change, -32022, -32022, data={"versions": ["2026-07-28"]})


@mutant("codes/one-sentence", revision="2025-11-25")
def a_traceback_for_a_message(change: Change) -> None:
    recoded(change, -32601, -32601, message='Traceback:\n  File "server.py", line 7\nKeyError')


@mutant("meta/keys", revision="2025-06-18")
def a_key_with_a_blank(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["_meta"] = {"made by": "hand"}
        return answer


@mutant("meta/keys", revision="2025-11-25")
def a_label_that_begins_with_a_digit(change: Change) -> None:
    @change.notifications("notifications/progress")
    def _(message: Any) -> Any:
        return {**message, "params": {**message["params"], "_meta": {"7.example/step": 1}}}


@mutant("meta/reverse-dns")
def a_domain_as_in_a_url(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["_meta"] = {"example.com/rank": 1}
        return answer


@mutant("meta/trace-context")
def a_trace_of_its_own_form(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        answer["result"].setdefault("_meta", {})["traceparent"] = "0af7651916cd43dd8448eb211c80319c"
        return answer


@mutant("meta/unknown-keys", revision="2025-11-25")
def a_closed_meta(change: Change) -> None:
    unheard(change, lambda message: "com.example/accord-check" in str(message.get("params")))


@mutant("meta/result-type")
def a_list_without_a_result_type(change: Change) -> None:
    @change.answers("prompts/list")
    def _(request: Any, answer: Any) -> Any:
        del answer["result"]["resultType"]
        return answer


@mutant("meta/known-result-type")
def a_result_type_of_its_own(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            answer["result"]["resultType"] = "partial"
        return answer


@mutant("meta/server-info")
def a_server_that_does_not_say_who_it_is(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        del answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
        return answer

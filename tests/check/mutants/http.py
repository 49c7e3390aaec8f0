"""Servers that are wrong over Streamable HTTP."""

from __future__ import annotations

import itertools
from typing import Any

from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.table import mutant

LAST = "2025-11-25"


@mutant("http/content-type", revision=LAST, over="http")
def answers_in_plain_text(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 200 and "json" in reply.headers.get("content-type", ""):
            reply.headers["content-type"] = "text/plain"


@mutant("http/accepted", revision=LAST, over="http")
def a_notification_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 202:
            reply.status = 200


@mutant("http/bad-body", revision=LAST, over="http")
def no_json_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 400 and reply.request is None:
            reply.status = 200


@mutant("http/get", revision=LAST, over="http")
def a_get_gets_a_page(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.method == "GET":
            reply.headers["content-type"] = "text/html"


@mutant("http/unknown-method", over="http")
def an_unknown_method_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 404:
            reply.status = 200


@mutant("http/no-posted-answers", over="http")
def a_posted_answer_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if isinstance(reply.request, dict) and "method" not in reply.request:
            reply.status = 200


@mutant("http/get-gone", over="http")
def a_get_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.method == "GET" and reply.sent.get("mcp-protocol-version") == "2026-07-28":
            reply.status = 200


@mutant("http/error-status", over="http")
def a_request_without_mcp_method_gets_status_422(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 400 and "mcp-method" not in reply.sent:
            reply.status = 422


@mutant("http/session-id", revision=LAST, over="http")
def the_id_of_a_session_has_a_blank(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if "mcp-session-id" in reply.headers:
            reply.headers["mcp-session-id"] += " and more"

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if "mcp-session-id" in headers:
            headers["mcp-session-id"] = headers["mcp-session-id"].removesuffix(" and more")


@mutant("http/session-unguessable", revision=LAST, over="http")
def the_ids_of_sessions_are_short(change: Change) -> None:
    names: dict[str, str] = {}

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        own = {short: whole for whole, short in names.items()}
        if headers.get("mcp-session-id") in own:
            headers["mcp-session-id"] = own[headers["mcp-session-id"]]

    @change.reply
    def _(reply: HTTPReply) -> None:
        whole = reply.headers.get("mcp-session-id")
        if whole:
            reply.headers["mcp-session-id"] = names.setdefault(whole, f"s{len(names)}")


@mutant("http/session-required", revision=LAST, over="http")
def a_request_without_a_session_gets_status_404(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if "mcp-session-id" not in reply.sent and reply.status == 400:
            reply.status = 404


@mutant("http/session-ended", revision=LAST, over="http")
def a_session_that_has_ended_gets_status_400(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 404:
            reply.status = 400


@mutant("http/session-unknown", revision=LAST, over="http")
def an_unknown_session_is_taken_for_the_last_one(change: Change) -> None:
    last: list[str] = []

    @change.reply
    def _(reply: HTTPReply) -> None:
        if "mcp-session-id" in reply.headers:
            last[:] = [reply.headers["mcp-session-id"]]

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("mcp-session-id", "").startswith("accord-check") and last:
            headers["mcp-session-id"] = last[0]


@mutant("http/session-unknown", revision=LAST, over="http")
def a_session_that_nobody_has_gets_status_400(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.sent.get("mcp-session-id", "").startswith("accord-check"):
            reply.status = 400


@mutant("http/session-ignored", over="http")
def a_session_is_given_again(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.headers["mcp-session-id"] = "a-new-session"


@mutant("http/origin", revision=LAST, over="http")
def any_page_is_let_in(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        headers.pop("origin", None)


@mutant("http/origin-forms", revision=LAST, over="http")
def what_begins_like_its_own_origin_is_let_in(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("origin", "").startswith("http://localhost"):
            headers.pop("origin")


@mutant("http/origin-status", revision=LAST, over="http")
def a_foreign_page_gets_status_400(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 403:
            reply.status = 400


@mutant("http/host", revision=LAST, over="http")
def any_name_is_its_own(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        headers["host"] = "localhost"


@mutant("http/version-unsupported", revision="2025-06-18", over="http")
def any_revision_is_taken(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        headers.pop("mcp-protocol-version", None)


@mutant("http/version-unsupported", over="http")
def an_unknown_revision_gets_status_200(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 400 and reply.sent.get("mcp-protocol-version") == "2099-12-31":
            reply.status = 200


@mutant("http/version-absent", revision="2025-06-18", over="http")
def the_header_is_demanded(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if "mcp-session-id" in headers:
            headers.setdefault("mcp-protocol-version", "none")


@mutant("http/version-mismatch", over="http")
def the_revision_in_the_header_is_not_compared(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("mcp-protocol-version") == "2025-11-25":
            headers["mcp-protocol-version"] = "2026-07-28"


@mutant("http/method-header", over="http")
def the_method_in_the_header_is_not_compared(change: Change) -> None:
    _header_follows_the_body(change, "mcp-method", lambda message: message.get("method"))


@mutant("http/name-header", over="http")
def the_name_in_the_header_is_not_compared(change: Change) -> None:
    def name(message: Any) -> Any:
        params = message.get("params") or {}
        return params.get("name") or params.get("uri")

    _header_follows_the_body(change, "mcp-name", name)


@mutant("http/name-encoded", over="http")
def base64_in_the_header_is_not_decoded(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("mcp-name", "").startswith("=?base64?"):
            headers["mcp-name"] = headers["mcp-name"].strip("=?")


@mutant("http/param-header", over="http")
def the_argument_in_the_header_is_not_compared(change: Change) -> None:
    _header_follows_the_body(change, "mcp-param-region", _argument("region"))


@mutant("http/param-absent", over="http")
def the_header_of_an_optional_argument_is_demanded(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        params = request["params"]
        if params["name"] == "regional" and "zone" not in params["arguments"]:
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32020, "message": "no Mcp-Param-Zone"}}
        return answer


@mutant("http/param-numbers", over="http")
def numbers_in_headers_are_compared_as_texts(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("mcp-param-count", "").endswith(".0"):
            headers["mcp-param-count"] = "another"


@mutant("http/primed", revision=LAST, over="http")
def a_stream_begins_with_its_first_message(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        return b"" if event.startswith(b"id:") and b"\ndata: \n" in event + b"\n" else event


@mutant("http/event-ids", revision=LAST, over="http")
def events_are_counted_from_one(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        lines = [b"id: 1" if line.startswith(b"id:") else line for line in event.split(b"\n")]
        return b"\n".join(lines)


@mutant("http/no-requests", over="http")
def it_asks_on_a_stream(change: Change) -> None:
    numbers = itertools.count(1)

    @change.before("tools/call")
    def _(request: Any) -> list[Any]:
        asked = {"jsonrpc": "2.0", "id": f"s-{next(numbers)}", "method": "roots/list"}
        return [asked] if request["params"]["name"] == "slow" else []


@mutant("http/no-buffering", over="http")
def proxies_may_hold_its_events_back(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.headers.pop("x-accel-buffering", None)


@mutant("http/answered", revision=LAST, over="http")
def a_stream_ends_without_an_answer(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        return b"" if b'"result"' in event or event.startswith(b"id:") else event


@mutant("http/session-ends-alone", revision=LAST, over="http")
def the_end_of_a_session_is_the_end_of_all(change: Change) -> None:
    calling: set[str | None] = set()
    ended: list[str] = []

    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            calling.add(headers.get("mcp-session-id"))

    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.method == "DELETE" and reply.sent.get("mcp-session-id") in calling:
            ended.append("by a call that was under way")

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32603, "message": "The server has ended"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error} if ended else answer


@mutant("http/last-event-id", over="http")
def streams_are_taken_up(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if "last-event-id" in headers:
            headers["mcp-method"] = "none"


@mutant("http/get-no-answers", revision=LAST, over="http")
def answers_come_on_the_stream_of_a_get(change: Change) -> None:
    @change.greeting
    def _(reply: HTTPReply) -> bytes:
        return b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n' if reply.method == "GET" else b""


@mutant("http/one-stream", revision=LAST, over="http")
def a_request_comes_on_every_stream(change: Change) -> None:
    @change.greeting
    def _(reply: HTTPReply) -> bytes:
        return b'data: {"jsonrpc":"2.0","id":"s-1","method":"ping"}\n\n'


@mutant("http/replay", revision=LAST, over="http")
def what_others_were_told_is_told_again(change: Change) -> None:
    @change.greeting
    def _(reply: HTTPReply) -> bytes:
        other = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"other"}}\n\n'
        return other if "last-event-id" in reply.sent else b""


@mutant("http/sessions-apart", revision=LAST, over="http")
def answers_are_found_by_their_id_alone(change: Change) -> None:
    answered: set[str] = set()

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        id = str(request["id"])
        if id in answered and id.startswith("same-"):
            return None
        answered.add(id)
        return answer


@mutant("http/version-missing", over="http")
def a_request_without_a_revision_is_served(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        headers.setdefault("mcp-protocol-version", "2026-07-28")


def _header_follows_the_body(change: Change, name: str, value: Any) -> None:
    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        found = value(message) if isinstance(message, dict) else None
        if isinstance(found, str) and headers.get("mcp-protocol-version") == "2026-07-28":
            headers[name] = found


def _argument(name: str) -> Any:
    return lambda message: ((message.get("params") or {}).get("arguments") or {}).get(name)

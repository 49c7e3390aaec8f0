"""Servers that are wrong over HTTP+SSE."""

from __future__ import annotations

from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.table import mutant

OLD = "2024-11-05"


@mutant("sse/events", revision=OLD, over="sse")
def its_messages_are_events_of_another_name(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        return event + b"\nevent: note" if b'"tools":[' in event else event


@mutant("sse/bad-body", revision=OLD, over="sse")
def no_json_is_accepted(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 400:
            reply.status = 202

    @change.every
    def _(message: object) -> object:
        is_refusal = isinstance(message, dict) and "error" in message and message.get("id") is None
        return None if is_refusal else message


@mutant("sse/same-origin", revision=OLD, over="sse")
def the_endpoint_is_elsewhere(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        if b"event: endpoint" not in event:
            return event
        port = change.port
        return event.replace(b"data: /", b"data: http://localhost:%d/" % port)


@mutant("sse/endpoint", revision=OLD, over="sse")
def the_first_event_has_another_name(change: Change) -> None:
    @change.events
    def _(event: bytes) -> bytes:
        return event.replace(b"event: endpoint", b"event: url")


@mutant("sse/posted", revision=OLD, over="sse")
def what_is_posted_gets_status_500(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if isinstance(reply.request, dict) and reply.request.get("method") == "ping":
            reply.status = 500


@mutant("sse/apart", revision=OLD, over="sse")
def every_connection_has_the_same_endpoint(change: Change) -> None:
    first: list[bytes] = []

    @change.events
    def _(event: bytes) -> bytes:
        if b"event: endpoint" in event:
            first.append(event)
            return first[0]
        return event

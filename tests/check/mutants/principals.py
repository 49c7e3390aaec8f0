"""Servers that let one principal have what belongs to another."""

from __future__ import annotations

import asyncio
from typing import Any

from accord import APIKeys, Context, Server

from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.correct_server import Form
from tests.check.mutants.guarded import KEYS, Wrapped, guarded_ext_tasks, guarded_tasks, with_keys
from tests.check.mutants.table import mutant

LAST, LATEST = "2025-11-25", "2026-07-28"
ANN, BEN = (f"Bearer {key}" for key in KEYS)
SESSION = "mcp-session-id"


class Owners:
    """The sessions of the first principal."""

    def __init__(self, change: Change) -> None:
        self.sessions: list[str] = []
        change.reply(self._learn)

    def _learn(self, reply: HTTPReply) -> None:
        if SESSION in reply.headers and reply.sent.get("authorization") == ANN:
            self.sessions.append(reply.headers[SESSION])

    def acts_as_owner(self, headers: dict[str, str]) -> None:
        """Take whoever has the session id for its owner."""
        if headers.get(SESSION) in self.sessions and headers.get("authorization") == BEN:
            headers["authorization"] = ANN


@mutant("principals/session", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def a_session_id_is_all_that_counts(change: Change) -> None:
    change.request_headers(Owners(change).acts_as_owner)


@mutant("principals/session-hidden", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def a_session_of_another_is_forbidden(change: Change) -> None:
    owners = Owners(change)

    def reply_to(reply: HTTPReply) -> None:
        owners._learn(reply)
        if reply.sent.get(SESSION) in owners.sessions and reply.sent.get("authorization") == BEN:
            reply.status = 403

    change.reply(reply_to)


@mutant("principals/session-end", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def anybody_ends_a_session(change: Change) -> None:
    owners = Owners(change)

    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if message is None and headers.get("accept") != "text/event-stream":
            owners.acts_as_owner(headers)


@mutant("principals/event-stream", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def anybody_listens_to_a_session(change: Change) -> None:
    owners = Owners(change)

    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if message is None and headers.get("accept") == "text/event-stream" and "last-event-id" not in headers:
            owners.acts_as_owner(headers)


@mutant("principals/replay", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def anybody_gets_events_again(change: Change) -> None:
    owners = Owners(change)

    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if "last-event-id" in headers:
            owners.acts_as_owner(headers)


@mutant("principals/tasks", revision=LAST, over="http", server=guarded_tasks, tokens=KEYS)
def the_id_of_a_task_is_all_that_counts(change: Change) -> None:
    owner: dict[str, str] = {}

    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        method = message.get("method", "") if isinstance(message, dict) else ""
        if method == "tools/call" and "task" in message["params"]:
            owner[SESSION] = headers[SESSION]
        elif method.startswith("tasks/") and headers.get("authorization") == BEN:
            headers |= {SESSION: owner[SESSION], "authorization": ANN}


@mutant("principals/ext-tasks", over="http", server=guarded_ext_tasks, tokens=KEYS)
def the_id_of_a_task_of_the_extension_is_all_that_counts(change: Change) -> None:
    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if isinstance(message, dict) and message.get("method", "").startswith("tasks/"):
            headers["authorization"] = ANN


@mutant("principals/request-state", over="http", server=with_keys, tokens=KEYS)
def a_state_is_for_everybody(change: Change) -> None:
    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if isinstance(message, dict) and "requestState" in message.get("params", {}):
            headers["authorization"] = ANN


def _asks_everybody() -> Wrapped:
    """A server whose elicitation is over with the first response of anybody."""
    server = Server("asks", "1", auth=APIKeys(dict(zip(KEYS, ("ann", "ben"), strict=True))))
    responded = asyncio.Event()

    @server.tool
    async def ask(ctx: Context) -> str:
        """Asks a person."""
        waiting = [asyncio.ensure_future(ctx.elicit("Who?", Form)), asyncio.ensure_future(responded.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        return "done"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def listen() -> Any:
            event = await receive()
            if b'"result"' in event.get("body", b"") and dict(scope["headers"]).get(b"authorization") == BEN.encode():
                responded.set()
            return event

        await server.app(scope, listen, send)

    return Wrapped(app)


@mutant("principals/responses", revision=LAST, over="http", server=_asks_everybody, tokens=KEYS)
def anybody_answers_an_elicitation(change: Change) -> None:
    pass


@mutant("principals/cancellation", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def anybody_cancels_a_request_by_its_id(change: Change) -> None:
    calls: dict[Any, str] = {}

    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        method = message.get("method") if isinstance(message, dict) else None
        if method == "tools/call" and headers.get("authorization") == ANN:
            calls[message["id"]] = headers.get(SESSION, "")
        elif method == "notifications/cancelled" and headers.get("authorization") == BEN:
            headers |= {SESSION: calls[message["params"]["requestId"]], "authorization": ANN}


def _ends_subscriptions() -> Wrapped:
    """A server that ends the subscriptions of everybody when somebody cancels one."""
    server = with_keys()
    cancelled = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        began = False

        async def listen() -> Any:
            nonlocal began
            if began:
                waiting = [asyncio.ensure_future(receive()), asyncio.ensure_future(cancelled.wait())]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for each in waiting:
                    each.cancel()
                return {"type": "http.disconnect"}
            event = await receive()
            began = b"subscriptions/listen" in event.get("body", b"")
            if b"notifications/cancelled" in event.get("body", b""):
                cancelled.set()
            return event

        await server.app(scope, listen, send)

    return Wrapped(app)


@mutant("principals/cancellation", over="http", server=_ends_subscriptions, tokens=KEYS)
def anybody_ends_a_subscription(change: Change) -> None:
    pass

"""The HTTP side of live reload: an application that passes each request to the process that must answer it.

- New requests go to the current process. Those in progress stay with theirs, until its grace is over.
- Streams that stay open (GET, `subscriptions/listen`) move to the process that takes over (`http_response`).
- An answer to a question, and a retry with answers, go to the process that asked.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from accord.dev import search as search_tools
from accord.dev.http_processes import HTTPProcess, HTTPProcesses
from accord.dev.http_response import RETRY_LATER, ProxiedResponse, Stopped, send_failure
from accord.dev.http_upstream import UpstreamLost, UpstreamResponse, open_request
from accord.dev.outcome import outcome
from accord.dev.proxied_request import ProxiedRequest, wait_disconnect
from accord.dev.reporter import Reporter
from accord.dev.rewriting import LIST_METHODS, members, response
from accord.dev.unavailable import answer_without_process, typed_result
from accord.limits import DEFAULT_LIMITS, Limits
from accord.server.http.quotas import BodyBudget, BodyCharge, account_of
from accord.transport.asgi.request import (
    ASGIRequest,
    ClientDisconnected,
    Receive,
    RequestRejected,
    Scope,
    Send,
    send_json,
    send_text,
)
from accord.wire.hosts import HostCheck

_END_SECONDS = 1.0
"""How long the end of a process may take after its connections were closed."""
_BOTH = ("notifications/cancelled", "notifications/progress")


class ReloadingProxy:
    """The ASGI application. `reporter` receives each call. With `search`, clients get the tools for searching."""

    def __init__(
        self, processes: HTTPProcesses, reporter: Reporter, *, search: bool, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.list_requests: int = 0
        """The number of lists that clients have requested."""
        self._processes = processes
        self._reporter = reporter
        self._search = search
        self._requests: set[ProxiedRequest] = set()
        self._ended_request = asyncio.Event()
        self._hosts = HostCheck()
        self._limits = limits
        self._bodies = BodyBudget(limits)

    async def drain(self, seconds: float) -> bool:
        """End the streams, and wait for the calls."""
        for request in list(self._requests):
            if request.is_stream:
                request.stop(b"")
        try:
            async with asyncio.timeout(seconds):
                while self._requests:
                    self._ended_request.clear()
                    await self._ended_request.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End all responses."""
        for request in list(self._requests):
            request.stop(b"")

    # --- requests -------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. Hosts and origins are checked here as well, because the proxy answers on its own while no
        process runs, with errors of the program."""
        if (refusal := self._refusal(scope)) is not None:
            await send_text(send, 403, refusal)
            return
        incoming = ASGIRequest(scope, receive, send)
        charge = BodyCharge(self._bodies, partial(account_of, proxied=False), incoming)
        try:
            body = await incoming.body(self._limits, charge)
            await self._handle(ProxiedRequest(scope, body), receive, send)
        except RequestRejected as exc:
            await send_text(send, exc.status, exc.message, exc.headers)
        except ClientDisconnected:
            pass
        finally:
            charge.release()

    async def _handle(self, request: ProxiedRequest, receive: Receive, send: Send) -> None:
        self._requests.add(request)
        disconnected = asyncio.ensure_future(wait_disconnect(receive))
        exchange = request.exchange
        if exchange is not None and exchange.is_call:
            self._reporter.call_started(request, exchange.title, request.body)
        if exchange is not None and exchange.method in LIST_METHODS:
            self.list_requests += 1
        try:
            await self._serve(request, send, disconnected)
        finally:
            disconnected.cancel()
            self._requests.discard(request)
            self._ended_request.set()
            self._reporter.call_ended(request, _outcome_of(request), request.answer)

    def _refusal(self, scope: Scope) -> str | None:
        found = {name: value for name, value in scope["headers"] if name in (b"host", b"origin")}
        return self._hosts.refusal(found.get(b"host"), found.get(b"origin"))

    async def _serve(self, request: ProxiedRequest, send: Send, disconnected: asyncio.Future[None]) -> None:
        older = self._processes.retired[-1] if self._processes.retired else None
        accepted = None
        process = self._processes.owner_of(request)
        if process is None and older is not None and request.is_answer:
            accepted = await _accepted(older, request)
            process = older if accepted is not None else None
        elif process is None and older is not None and request.notification in _BOTH:
            await _post_quietly(older, request)
        process = process or await self._processes.wait()
        if process is None:
            await self._answer_alone(request, send)
        elif not (self._search and await self._answer_search(request, process, send)):
            await self._respond(request, process, accepted, send, disconnected)

    async def _answer_search(self, request: ProxiedRequest, process: HTTPProcess, send: Send) -> bool:
        """Answer `search_tools`, and turn `call_tool` into the call that it asks for. Return whether it is answered."""
        exchange = request.exchange
        if exchange is None or exchange.method != "tools/call":
            return False
        params = members(exchange.params)
        tools = {} if process.surface is None else process.surface["tools"]
        if (found := search_tools.answer(params, tools)) is not None:
            request.answer = response(exchange.id, typed_result(exchange, found))
            await send_json(send, 200, request.answer)
            return True
        if (inner := search_tools.called(params)) is not None:
            request.call(inner, tools.get(inner["name"], {}).get("inputSchema"))
        return False

    async def _answer_alone(self, request: ProxiedRequest, send: Send) -> None:
        processes = self._processes
        if request.exchange is not None and request.exchange.method == "tools/call":
            request.answer = answer_without_process(request.exchange, processes.failure, processes.target)
            await send_json(send, 200, request.answer)
        else:
            request.status = 503
            await send_text(send, 503, processes.failure, RETRY_LATER)

    async def _respond(
        self,
        request: ProxiedRequest,
        process: HTTPProcess,
        upstream: UpstreamResponse | None,
        send: Send,
        disconnected: asyncio.Future[None],
    ) -> None:
        proxied = ProxiedResponse(self._processes, request, send, disconnected, search=self._search)
        process.begin(request)
        try:
            if upstream is None:
                upstream = await proxied.open(process)
            if upstream is not None:
                process.answered = True
                await proxied.send(process, upstream)
            return
        except UpstreamLost as exc:
            failure = exc
        finally:
            process.finish(request)
        if not isinstance(failure, Stopped):
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.ended.wait()  # so that the next request goes to the next process
            if request.may_repeat(failure):
                await self._serve(request, send, disconnected)
                return
        await send_failure(request, send, failure)


def _outcome_of(request: ProxiedRequest) -> str:
    if request.is_accepted:
        return "accepted"
    if request.status < 400:
        return outcome(request.answer) if request.answer else "cancelled"
    found = outcome(request.answer)
    return f"HTTP {request.status}" if found == "ok" else found


async def _accepted(process: HTTPProcess, request: ProxiedRequest) -> UpstreamResponse | None:
    """Return the response of an older process, or None if the message is not for it."""
    try:
        response = await open_request(process.port, request.method, request.target, request.headers, request.body)
    except UpstreamLost:
        return None
    if response.status >= 400:
        response.close()
        return None
    return response


async def _post_quietly(process: HTTPProcess, request: ProxiedRequest) -> None:
    """Send a notification that may be for an older process."""
    if (response := await _accepted(process, request)) is not None:
        response.close()

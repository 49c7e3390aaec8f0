"""The response to a POST: one JSON body, or an event stream if messages precede the response.

A POST has one request or a batch: "Receivers MUST support receiving JSON-RPC batches" (2025-03-26). Two facts of the
request's revision decide what happens when a handler waits:

- `disconnect_cancels` (2026-07-28): "Closing the SSE response stream MUST be treated by the server as cancellation of
  that request" (Streamable HTTP, Cancellation); so is a disconnect while a JSON response is pending.
- `primes_streams` (2025-11-25): a slow call becomes a stream, whose first event id lets the client reconnect.

The stream is one of a session, which the client can resume, if the POST has a session. Otherwise its events have no
ids: "Resumable SSE streams via `Last-Event-ID` are not supported".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from accord.errors import InternalError
from accord.server.http.event_stream import EventStream
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import ASGIRequest, ClientDisconnected, Headers, send_json
from accord.transport.asgi.sse_response import SSEResponse, wait_for_disconnect
from accord.transport.deadlines import resume
from accord.transport.session_driver import SessionDriver
from accord.wire.request_headers import status_of


class PostResponse:
    """The response to the requests of one POST, and the sink for their messages.

    `make_stream` returns a stream of the session for their messages, if they belong to a session.
    """

    __slots__ = ("_headers", "_http_request", "_make_stream", "_requests", "_writing", "driver", "stream")

    name = "HTTP"

    def __init__(
        self,
        requests: Sequence[PendingRequest],
        driver: SessionDriver,
        request: ASGIRequest,
        headers: Headers = (),
        make_stream: Callable[[Sequence[PendingRequest]], EventStream] | None = None,
    ) -> None:
        self.driver: SessionDriver = driver
        self.stream: EventStream | SSEResponse | None = None
        """The stream, once a message has opened it."""
        self._requests = requests
        self._http_request = request
        self._headers = headers
        self._make_stream = make_stream

    # --- handling the requests ---------------------------------------------------------------------------------

    async def answer(self) -> None:
        """Handle the requests, and send their response. Raises `ClientDisconnected`."""
        message = await self.serve()
        request = self._requests[0]
        if not request.rules.disconnect_cancels:
            return await self.finish(message)
        if message is None and self.stream is None:
            raise ClientDisconnected
        return await self.finish(message, status_of(request.code))

    def serve(self) -> Coroutine[Any, Any, bytes | None]:
        """Handle the requests, and return their response.

        None if the request was cancelled, or the last one of a batch: then its other responses are on the stream.
        """
        return self._serve_one(self._requests[0]) if len(self._requests) == 1 else self._serve_batch()

    async def _serve_batch(self) -> bytes | None:
        """Handle the requests concurrently; the last one to end returns the responses of all."""
        try:
            ends = await asyncio.gather(*map(self._serve_one, self._requests))
        finally:  # a task that is cancelled before its first step does not serve its request
            for pending in self._requests:
                if pending.stage == "active":
                    self.driver.session.fail(pending, InternalError("the request was cancelled"))
        return next((responses for responses in ends if responses is not None), None)

    async def _serve_one(self, pending: PendingRequest) -> bytes | None:
        """Handle a request in this task, and return its response, or None if it was cancelled."""
        pending.sink = self
        response = self.driver.serve(pending)
        try:
            waits_for = response.send(None)
        except StopIteration as done:  # most handlers never wait, and so need no cancellation
            message: bytes | None = done.value
            return message
        else:
            return await self._wait(pending, response, waits_for)
        finally:
            pending.sink = None

    async def _wait(
        self, pending: PendingRequest, response: Coroutine[Any, Any, bytes | None], waits_for: Any
    ) -> bytes | None:
        """Continue a handler that waits, which from now on can be cancelled."""
        pending.driver = asyncio.current_task()
        watch = self._watch(pending)
        try:
            return await resume(response, waits_for)
        except asyncio.CancelledError:
            if pending.stage == "active":  # the task itself is cancelled, not the request
                raise
            pending.driver.uncancel()
            return None
        finally:
            pending.driver = None
            if watch is not None:
                watch.cancel()

    def _watch(self, pending: PendingRequest) -> asyncio.Task[None] | asyncio.TimerHandle | None:
        """Start what happens while a handler waits: see the head of this module."""
        loop = asyncio.get_running_loop()
        if pending.rules.disconnect_cancels:
            return loop.create_task(wait_for_disconnect(self._http_request.receive, partial(self.cancel, pending)))
        if pending.rules.primes_streams:
            return loop.call_later(self.driver.limits.http.patience_seconds, self._prime, pending)
        return None

    def cancel(self, pending: PendingRequest) -> None:
        """Cancel a request whose client has disconnected, or whose token has expired."""
        self.driver.session.incoming_requests.abandon(pending)
        if pending.driver is not None:
            pending.driver.cancel()

    def _prime(self, pending: PendingRequest) -> None:
        if pending.stage == "active":
            self._open_stream()

    # --- message sink ------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        self._open_stream().send(message)

    def flush(self) -> None:
        """Do nothing: messages are not buffered."""

    async def drain(self) -> None:
        if self.stream is not None:
            await self.stream.drain()

    def close_stream(self, retry: int | None) -> None:
        """End the response now; the client reconnects for the rest, after `retry` milliseconds."""
        stream = self._open_stream()
        if isinstance(stream, EventStream):
            stream.close_response(retry)

    def _open_stream(self) -> EventStream | SSEResponse:
        """Return the stream, opened on first use, with a task that writes it."""
        if self.stream is None:
            response = SSEResponse(self._http_request.send, self.driver.limits, self._headers, self.driver.on_unsent)
            if self._make_stream is None:
                self.stream, writing = response, response.run()
            else:
                self.stream = event_stream = self._make_stream(self._requests)
                event_stream.attach(response)
                writing = event_stream.write(response, self._http_request.receive)
            self._writing = asyncio.get_running_loop().create_task(writing)
            self._writing.add_done_callback(self._on_written)
        return self.stream

    def _on_written(self, _: asyncio.Task[None]) -> None:
        """Cancel a request that is still active: its client does not read, and was disconnected."""
        for pending in self._requests:
            if pending.rules.disconnect_cancels and pending.stage == "active":
                self.cancel(pending)

    async def finish(self, message: bytes | None, status: int = 200) -> None:
        """Send the last message, and end the response."""
        if self.stream is None and message is not None:
            return await send_json(self._http_request.send, status, message, self._headers)
        self._open_stream().end(message)  # an empty stream, without a message
        return await self._writing

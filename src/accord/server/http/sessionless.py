"""2025-03-26 to 2025-11-25 without sessions (`HTTPOptions(stateless=True)`): each POST alone.

`initialize` is answered without storing anything; a request uses the revision in its header, or 2025-03-26 without one.
So any process may answer any POST. Features that need state are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from accord.errors import METHOD_NOT_FOUND, InvalidRequest, ProtocolError
from accord.messages import envelope
from accord.messages.envelope import Incoming, MalformedMessage
from accord.messages.revision import NO_SESSIONS, SESSIONLESS, Rules
from accord.server.http.response import PostResponse
from accord.server.http.stateless import StatelessClient, StatelessClients
from accord.session import peek
from accord.session.events import ConnectionOpened, ReplyReady, RequestReceived
from accord.session.incoming import error_bytes
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import ASGIRequest, send_json, send_text
from accord.wire.headers import PROTOCOL_VERSION
from accord.wire.request_headers import check_version, status_of_refusal

if TYPE_CHECKING:
    from accord.server.http.http_context import HTTPContext

_WITHOUT_HEADER = "2025-03-26"
""" "If the server does not receive an `MCP-Protocol-Version` header [...] the server SHOULD assume" this revision
(Streamable HTTP, Protocol Version Header).
"""


class SessionlessHandler:
    """The handler of all POSTs of older revisions on a server without sessions."""

    def __init__(self, context: HTTPContext, clients: StatelessClients) -> None:
        self._context = context
        self._clients = clients
        older = [revision for revision in SESSIONLESS if revision in context.server.revisions]
        self._rules = {revision.encode(): SESSIONLESS[revision] for revision in older}
        if older:
            self._assumed: Rules = SESSIONLESS[_WITHOUT_HEADER if _WITHOUT_HEADER in older else older[0]]

    async def post(self, body: bytes, request: ASGIRequest) -> None:
        """Answer one POST whose header is validated. Raises `MalformedMessage`."""
        rules = self._rules_of(request.headers)
        if rules.batches and envelope.is_array(body):
            return await self._batch(body, rules, request)
        incoming = envelope.read(body)
        if incoming.method is UNSET:
            reason = f"a response needs a request of the server, and none was sent: {NO_SESSIONS}"
            raise MalformedMessage(InvalidRequest(reason), None if incoming.id is UNSET else incoming.id)
        if incoming.method == "initialize" and incoming.id is not UNSET:
            return await self._initialize(body, request)
        client = self._clients.get(request, rules)
        if incoming.id is UNSET:  # only notifications of extensions have an effect without a session
            event = client.session.receive_standalone_notification(incoming, rules)
            client.driver.event_handlers[type(event)](event)
            return await send_text(request.send, 202, "")
        return await self._serve(incoming, client, request)

    def _rules_of(self, headers: Mapping[bytes, bytes]) -> Rules:
        return self._rules.get(headers.get(PROTOCOL_VERSION, b""), self._assumed)

    async def _initialize(self, body: bytes, request: ASGIRequest) -> None:
        """Answer `initialize` without storing anything: the next request names its revision in a header."""
        (event,) = self._context.session(lasts=False).receive(body)
        if isinstance(event, ConnectionOpened):
            return await send_json(request.send, 200, event.reply or b"")
        assert isinstance(event, ReplyReady), "initialize is answered at once in a new session"
        return await send_json(request.send, status_of_refusal(event.code), event.message)

    async def _serve(self, incoming: Incoming, client: StatelessClient, request: ASGIRequest) -> None:
        try:
            meta = peek.request_meta(incoming.params, client.session.incoming_requests.last_meta)
            if meta is not None and meta.protocol_version is not None:
                check_version(request.headers, meta.protocol_version, self._context.server.revisions)
        except ProtocolError as error:
            id: Any = incoming.id
            refused = error_bytes(id, error, client.session.rules)
            return await send_json(request.send, status_of_refusal(error.code), refused)
        event = client.receive(incoming, meta, request)
        if isinstance(event, ReplyReady):
            return await send_json(request.send, _status(event.code), event.message)
        assert isinstance(event, RequestReceived)  # a request is answered at once, or is for a handler
        self._context.check_scopes([event.pending], request.principal, client.driver, client.peer)
        return await PostResponse([event.pending], client.driver, request).answer()

    async def _batch(self, body: bytes, rules: Rules, request: ASGIRequest) -> None:
        """Answer a batch; the ids of its messages belong to it alone."""
        requests: list[PendingRequest] = []
        with self._clients.for_batch(request, rules) as client:
            for event in client.session.receive(body):
                if isinstance(event, ReplyReady):
                    return await send_json(request.send, _status(event.code), event.message)
                if isinstance(event, RequestReceived):
                    event.pending.principal, event.pending.headers = request.principal, request.headers
                    requests.append(event.pending)
                else:
                    client.driver.event_handlers[type(event)](event)
            if not requests:
                return await send_text(request.send, 202, "")
            self._context.check_scopes(requests, request.principal, client.driver, client.peer)
            return await PostResponse(requests, client.driver, request).answer()


def _status(code: int) -> int:
    """Return the HTTP status of an error: never 404, which would mean that a session has ended."""
    return 200 if code == METHOD_NOT_FOUND else status_of_refusal(code)

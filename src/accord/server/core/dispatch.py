"""Dispatch of requests: the one module where a handler is called and its exceptions are caught."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from msgspec import Raw

from accord.errors import (
    AccordError,
    AnswerError,
    InternalError,
    InvalidArguments,
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ToolError,
)
from accord.limits import Limits
from accord.messages import codec
from accord.messages.bounds import MEMBERS, Name, State
from accord.messages.lifecycle import InitializeResult
from accord.messages.meta import EmptyResult
from accord.messages.notifications import SetLevelParams
from accord.messages.prompts import GetPromptParams
from accord.messages.resources import ReadResourceParams
from accord.redaction import describe_redacted, redact_record
from accord.server.compose.access import missing_scopes_text, viewer_of
from accord.server.core.content import NO_CACHE
from accord.server.core.context import RunningServer
from accord.server.core.invoker import Invoker
from accord.server.core.lists import ListHandler
from accord.server.core.peer import Peer
from accord.server.core.registration import CallRewriter, Registration
from accord.server.core.resolver import Resolver
from accord.server.core.results import ResultEncoder
from accord.server.input.attempt import Attempt
from accord.server.middleware.chain import NO_SCOPES
from accord.server.notify.subscription_index import SubscriptionIndex
from accord.server.notify.subscriptions import FilterGrant, SubscriptionHandler
from accord.session.events import NotificationReceived
from accord.session.handshake import ServerHandshake
from accord.session.pending_request import PendingRequest
from accord.session.rate import RateLimiter
from accord.transport.deadlines import OutOfTime, is_cancelled

if TYPE_CHECKING:
    from accord.messages.completion import CompleteResult
    from accord.server.input.call import HandlerCall
    from accord.server.input.multi_round_trip import MultiRoundTrip

log: logging.Logger = logging.getLogger("accord.server")
log.addFilter(redact_record)

EXPECTED_ERRORS = (InvalidArguments, ToolError, OutOfTime, NotSupported, AnswerError, RequestTimeout)
"""Errors of a call that are no defect of its handler: their text is complete, and no traceback is logged."""

RequestHandler = Callable[[PendingRequest, Peer], Coroutine[Any, Any, Any]]


NO_ARGUMENTS = Raw(b"{}")


class RawToolCall(msgspec.Struct, rename="camel"):
    """`CallToolParams` as the server reads them: the arguments stay raw until the tool's own decoder takes them."""

    name: Name
    arguments: Raw = NO_ARGUMENTS
    input_responses: Annotated[dict[Name, Raw], msgspec.Meta(max_length=MEMBERS)] | None = None
    request_state: State | None = None
    task: Raw = Raw()
    meta: Raw = msgspec.field(default=Raw(), name="_meta")


_decode_sent = msgspec.json.Decoder(RawToolCall).decode


class TaskCalls(Protocol):
    """The tasks of a server, as its dispatcher uses them; see `TaskService`."""

    def methods(self, dispatcher: Dispatcher, encoder: ResultEncoder, limits: Limits) -> TaskHandlers:
        """Return the handlers of the methods about tasks."""
        ...

    def check_request(self, tool: str, registration: Registration, pending: PendingRequest, peer: Peer) -> None:
        """Raise `MethodNotFound` for a call that asks to run a tool without `task=` as a task."""

    async def run(
        self,
        sent: RawToolCall,
        attempt: Attempt,
        pending: PendingRequest,
        peer: Peer,
        encoder: ResultEncoder,
        work: Callable[[HandlerCall], Awaitable[Any]],
    ) -> Any:
        """Return the result of a tool with `task=`, or the task that its call becomes. Raises `ProtocolError`."""


class TaskHandlers(Protocol):
    """The handlers of the methods about tasks."""

    handlers: Mapping[str, RequestHandler]

    async def grant(self, pending: PendingRequest, peer: Peer) -> FilterGrant | None:
        """Return the tasks of a subscription, see `FilterExtension`."""
        ...


class DispatchedServer(RunningServer, Protocol):
    """A server as its dispatcher uses it."""

    @property
    def task_service(self) -> TaskCalls | None:
        """The tasks of the server, if a tool has `task=`."""

    @property
    def round_trips(self) -> MultiRoundTrip:
        """The calls that wait for input from the client."""


class Dispatcher:
    """The request handlers of one running server, by method."""

    def __init__(
        self, server: DispatchedServer, encoder: ResultEncoder, limits: Limits, subscription_index: SubscriptionIndex
    ) -> None:
        self._server = server
        self._registry = server.registry
        self._encoder = encoder
        self._limits = limits
        self._invoker = self.make_invoker(server, encoder, limits)
        self._resolver = Resolver(server.registry, limits)
        self._kinds = server.extension_methods.result_types
        run_middleware = self._invoker.run_middleware
        subscriptions = SubscriptionHandler(self._resolver, subscription_index, run_middleware)
        lists = ListHandler(self._registry, self._resolver, self._invoker)
        self._subscription_index = subscription_index
        self._handlers: dict[str, RequestHandler] = {
            "initialize": self._initialize,
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            "resources/subscribe": subscriptions.subscribe,
            "resources/unsubscribe": subscriptions.unsubscribe,
            "subscriptions/listen": subscriptions.listen,
            **dict.fromkeys(self._registry.lists, lists.list),
        }
        self._tasks = server.task_service
        if self._tasks is not None:
            task_methods = self._tasks.methods(self, encoder, limits)
            self._handlers |= task_methods.handlers
            subscriptions.filter_extensions.append(task_methods.grant)

    def make_invoker(self, server: RunningServer, encoder: ResultEncoder, limits: Limits) -> Invoker:
        """Return the invoker of the handlers."""
        return Invoker(server, encoder, limits)

    def close(self) -> None:
        """Stop the worker threads."""
        self._invoker.close()

    async def handle(self, pending: PendingRequest, peer: Peer) -> Any:
        """Serve one request. Raises only `ProtocolError`, or `CancelledError` when the request was cancelled."""
        verb = self._handlers.get(pending.method.name) or self._call_extension
        try:
            return await verb(pending, peer)
        except ProtocolError:
            raise
        except BaseException as exc:
            if is_cancelled(exc):
                raise
            trace = None if isinstance(exc, EXPECTED_ERRORS) else exc
            text = describe_redacted(exc)
            log.error("accord: %s failed: %s", pending.method.name, text, exc_info=trace)
            raise InternalError(f"{pending.method.name} failed: {text}") from exc

    async def _initialize(self, pending: PendingRequest, peer: Peer) -> InitializeResult:
        """Initialize the session. A repeated `initialize` resets it after its running requests have ended. Raises
        `ProtocolError`.
        """
        opening = peer.channel.session.handshake
        assert isinstance(opening, ServerHandshake)
        params = opening.read_params(pending)
        await peer.channel.restart(pending)
        self._subscription_index.restart(peer)
        peer.restart()
        return opening.accept(pending, params)

    async def _set_level(self, pending: PendingRequest, peer: Peer) -> EmptyResult:
        peer.log_level = codec.decode_params(SetLevelParams, pending.params).level
        return EmptyResult()

    async def _complete(self, pending: PendingRequest, peer: Peer) -> CompleteResult:
        from accord.server.core.completion import CompletionHandler

        handler = CompletionHandler(
            self._registry, self._resolver, self._limits, self._call_function, self._invoker.run_middleware
        )
        return await handler.complete(pending, peer)

    # --- tools -------------------------------------------------------------------------------------------------

    def _call_tool(self, pending: PendingRequest, peer: Peer) -> Coroutine[Any, Any, Any]:
        sent = read_tool_call(pending.params)
        if peer.call_limiter is not None:
            self._check_rate(peer.call_limiter)
        registration = self._registry.view.tools.get(sent.name)
        if registration is None or not registration.is_public or peer.visibility is not None:
            return self._call_resolved_tool(sent, pending, peer)
        if sent.task and self._tasks is not None:
            self._tasks.check_request(sent.name, registration, pending, peer)
        if registration.may_request_input:
            return self._call_tool_with_input(sent, registration, pending, peer)
        return self._run_tool(sent, registration, pending, peer, None)

    async def _call_resolved_tool(self, sent: RawToolCall, pending: PendingRequest, peer: Peer) -> Any:
        """Call a tool that is not public, or that a provider has. Raises `ProtocolError`."""
        registration = await self._resolver.resolve_call(sent.name, sent.arguments, pending, peer)
        if registration.rewrite_call is not None:
            try:
                sent, registration = await self._rewrite_call(
                    sent, registration, registration.rewrite_call, pending, peer
                )
            except InvalidParams as error:  # the model wrote the name and the arguments, and can correct them
                return self._encoder.encode_text(error.message, pending.rules, is_error=True)
        needs = registration.metadata.needs
        if needs and not viewer_of(peer, pending).has_scopes(needs):
            return self._encoder.encode_text(missing_scopes_text(needs), pending.rules, is_error=True)
        if sent.task and self._tasks is not None:
            self._tasks.check_request(sent.name, registration, pending, peer)
        if registration.may_request_input:
            return await self._call_tool_with_input(sent, registration, pending, peer)
        return await self._run_tool(sent, registration, pending, peer, None)

    def missing_scopes(self, pending: PendingRequest, peer: Peer) -> frozenset[str]:
        """Return all scopes that a call of a tool needs, if its principal lacks one of them; else none. Nothing of the
        call has run yet, so that the client can request the scopes and send it again.
        """
        if pending.method.name != "tools/call":
            return NO_SCOPES
        try:
            sent = read_tool_call(pending.params)
            registration = self._resolver.declared_tool(sent.name, pending, peer)
            if registration.rewrite_call is not None:
                name, _ = registration.rewrite_call(registration, sent.arguments)
                registration = self._resolver.declared_tool(name, pending, peer)
        except (InvalidParams, InvalidArguments):  # which the call itself will report
            return NO_SCOPES
        marks = registration.metadata
        return NO_SCOPES if viewer_of(peer, pending).has_scopes(marks.needs) else marks.needs | marks.scopes

    async def _rewrite_call(
        self,
        sent: RawToolCall,
        registration: Registration,
        rewrite: CallRewriter,
        pending: PendingRequest,
        peer: Peer,
    ) -> tuple[RawToolCall, Registration]:
        """Return the rewritten call, and its tool. Raises `InvalidParams`."""
        name, arguments = rewrite(registration, sent.arguments)
        target = await self._resolver.resolve_tool(name, pending, peer)
        if target.rewrite_call is not None:
            raise InvalidParams(f"{name!r} cannot call itself")
        return msgspec.structs.replace(sent, name=name, arguments=arguments), target

    async def _call_tool_with_input(
        self, sent: RawToolCall, registration: Registration, pending: PendingRequest, peer: Peer
    ) -> Any:
        """Call a tool that may request input from the client, or become a task. Raises `ProtocolError`."""
        attempt = Attempt(registration, sent.name, sent.arguments, sent.request_state, sent.input_responses)
        work = self.tool_work(sent, registration)
        try:
            if registration.task is not None and self._tasks is not None:
                return await self._tasks.run(sent, attempt, pending, peer, self._encoder, work)
            return await self._server.round_trips.run(attempt, pending, peer, self._encoder.encode_input_required, work)
        except EXPECTED_ERRORS as error:
            return self._encoder.encode_text(error_text(error), pending.rules, is_error=True)

    def tool_work(self, sent: RawToolCall, registration: Registration) -> Callable[[HandlerCall], Awaitable[Any]]:
        """Return the function that runs a tool for a call, and returns its encoded result."""
        return lambda call: self._run_tool(sent, registration, call.pending, call.peer, call)

    def _check_rate(self, rate: RateLimiter) -> None:
        """Raise `RateLimited` for too many calls: "Servers MUST [...] Rate limit tool invocations" (Tools,
        Security).
        """
        now = asyncio.get_running_loop().time()
        if not rate.allow(now):
            most = self._limits.tool_calls_per_second
            what = (
                f"too many tool calls: the limit is {most:g} a second for one principal (Limits.tool_calls_per_second)"
            )
            raise rate.refusal(now, what)

    async def _run_tool(
        self,
        sent: RawToolCall,
        registration: Registration,
        pending: PendingRequest,
        peer: Peer,
        call: HandlerCall | None,
    ) -> Any:
        """Return the result of a tool, also for a tool that fails. Raises `ProtocolError`."""
        rules = pending.rules
        try:
            if registration.chain is None:
                value = await self._invoker.invoke_registration(registration, sent.arguments, call)
            else:
                value = await self._invoker.invoke_with_middleware(
                    registration, sent.name, sent.arguments, pending, peer, call
                )
            if self._kinds and isinstance(value, self._kinds):
                self._server.extension_methods.check(value, pending, peer.channel.session)
                return self._encoder.encode(value, rules)
            return self._encoder.encode_tool(value, registration.output, rules)
        except EXPECTED_ERRORS as error:
            text = error_text(error)
        except MissingClientCapability as error:
            if not rules.server_requests:  # "MUST be -32021", there
                raise
            text = error.message
        except ProtocolError:
            raise
        except BaseException as exc:
            if is_cancelled(exc) or (call is not None and call.input.is_interrupted):
                raise
            log.warning("accord: tool %r failed", sent.name, exc_info=exc)
            text = describe_redacted(exc)
        return self._encoder.encode_text(text, rules, is_error=True)

    # --- resources ---------------------------------------------------------------------------------------------

    async def _read_resource(self, pending: PendingRequest, peer: Peer) -> Any:
        params = codec.decode_params(ReadResourceParams, pending.params)
        registration, variables = await self._resolver.resolve_resource(params.uri, pending, peer)
        attempt = Attempt(registration, params.uri, variables, params.request_state, params.input_responses)
        # "Results produced by retrying a request [...] depend on inputs that are not part of the cache key"
        cache = registration.cache if params.request_state is None and params.input_responses is None else NO_CACHE

        async def work(call: HandlerCall | None) -> Raw:
            try:
                value = await self._invoker.invoke_with_middleware(
                    registration, params.uri, variables, pending, peer, call
                )
            except ResourceNotFound as error:  # without a URI it means the requested one
                raise error if error.uri else ResourceNotFound(error.message, uri=params.uri) from error
            about, personal = registration.define(pending.rules), call is not None and call.is_personal
            public = not personal and self._resolver.is_public(registration, params.uri)
            return self._encoder.encode_resource(value, params.uri, about, cache, pending.rules, public=public)

        return await self._run_with_input(attempt, pending, peer, work)

    # --- prompts -----------------------------------------------------------------------------------------------

    async def _get_prompt(self, pending: PendingRequest, peer: Peer) -> Any:
        params = codec.decode_params(GetPromptParams, pending.params)
        registration = await self._resolver.resolve_prompt(params.name, pending, peer)
        attempt = Attempt(registration, params.name, params.arguments, params.request_state, params.input_responses)

        async def work(call: HandlerCall | None) -> Raw:
            value = await self._invoker.invoke_with_middleware(
                registration, params.name, params.arguments, pending, peer, call
            )
            return self._encoder.encode_prompt(value, registration.define(pending.rules).description, pending.rules)

        return await self._run_with_input(attempt, pending, peer, work)

    # --- extensions --------------------------------------------------------------------------------------------

    async def _call_extension(self, pending: PendingRequest, peer: Peer) -> Any:
        name = pending.method.name
        registration = self._server.extension_methods.registrations.get(name)
        if registration is None:
            raise MethodNotFound(f"{name} is not offered by this server")
        params = codec.decode_params(pending.method.params, pending.params)

        async def work(call: HandlerCall | None) -> Raw:
            return self._encoder.encode_extension(
                await self._invoker.invoke_registration(registration, params, call), pending.rules
            )

        return await self._run_with_input(Attempt(registration, name, pending.params), pending, peer, work)

    def receive_notification(self, event: NotificationReceived, peer: Peer) -> Any:
        """Handle a notification that belongs to no request; return None or an awaitable.

        Raises `InvalidParams` for invalid params.
        """
        registration = self._server.extension_methods.registrations.get(event.method.name)
        if registration is None:
            return peer.receive_notification(event)
        bound = registration.bind(codec.decode_params(event.method.params, event.params), None)
        return self._invoker.invoke_bound(registration, *bound, None)

    # --- calling -----------------------------------------------------------------------------------------------

    async def _run_with_input(
        self,
        attempt: Attempt,
        pending: PendingRequest,
        peer: Peer,
        work: Callable[[HandlerCall | None], Awaitable[Any]],
    ) -> Any:
        """Return the result of `work`; it receives a `HandlerCall` only if the handler may request input."""
        if not attempt.registration.may_request_input:
            return await work(None)
        return await self._server.round_trips.run(attempt, pending, peer, self._encoder.encode_input_required, work)

    async def _call_function(
        self, registration: Registration, subject: str, arguments: Any, pending: PendingRequest, peer: Peer
    ) -> Any:
        """Return the value of a function, not encoded."""
        attempt = Attempt(registration, subject, None)
        return await self._run_with_input(
            attempt, pending, peer, lambda call: self._invoker.invoke_registration(registration, arguments, call)
        )


_ROOM = len(b'{"name":"","arguments":}') + len(b',"name":""')
"""Bytes of params beside the values of their members, if another member has room."""
_ROOM_BESIDE_META = _ROOM + len(b',"_meta":')


def read_tool_call(params: Any) -> RawToolCall:
    """Decode the name of a call, and keep its arguments raw. Raises `InvalidParams`, also for a duplicate member of the
    params; the decoders of the arguments and of `_meta` check theirs.
    """
    try:
        call = _decode_sent(params)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return codec.decode_params(RawToolCall, params)
    meta, arguments = call.meta, call.arguments
    rest = len(params) - len(call.name) - len(arguments) - len(meta)
    if rest >= (_ROOM_BESIDE_META if meta else _ROOM) or arguments is NO_ARGUMENTS:  # room for a duplicate member
        codec.check_duplicate_members(bytes(params), "params")
    return call


def error_text(error: AccordError) -> str:
    """Return the error text shown to the model."""
    return error.message if isinstance(error, InvalidArguments) else str(error)

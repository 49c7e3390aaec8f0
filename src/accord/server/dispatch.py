"""From a request to its result: the one place where a handler is called, and where what it raises is caught."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

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
    RateLimited,
    RequestTimeout,
    ResourceNotFound,
    ToolError,
)
from accord.limits import Limits
from accord.messages import codec
from accord.messages.bounds import MEMBERS, Name, State
from accord.messages.lifecycle import InitializeResult
from accord.messages.logging import SetLevelParams
from accord.messages.meta import EmptyResult
from accord.messages.prompts import GetPromptParams
from accord.messages.resources import ReadResourceParams
from accord.server.asking.turn import Turn
from accord.server.audience import Audience
from accord.server.cache import DO_NOT_KEEP
from accord.server.calling import Calling
from accord.server.completion import Completions
from accord.server.finding import Finding
from accord.server.listing import Listing
from accord.server.offer import Offer, StandsFor
from accord.server.peer import Peer
from accord.server.redact import describe_redacted, redact_record
from accord.server.results import Packer
from accord.server.subscriptions import Subscriptions
from accord.session.events import NotificationReceived
from accord.session.exchange import Exchange
from accord.session.opening import ServerOpening
from accord.session.rate import Rate
from accord.transport.patience import OutOfTime

if TYPE_CHECKING:
    from accord.server.asking.call import Call
    from accord.server.server import Server

log: logging.Logger = logging.getLogger("accord.server")
log.addFilter(redact_record)

FAILURES = (InvalidArguments, ToolError, OutOfTime, NotSupported, AnswerError, RequestTimeout)
"""What a call may end with that is no defect of its handler: the text says all, and no traceback is logged."""

Verb = Callable[[Exchange, Peer], Coroutine[Any, Any, Any]]


NO_ARGUMENTS = Raw(b"{}")


class Sent(msgspec.Struct, rename="camel"):
    """`CallToolParams` as the server reads them: the arguments stay raw until the tool's own decoder takes them."""

    name: Name
    arguments: Raw = NO_ARGUMENTS
    input_responses: Annotated[dict[Name, Raw], msgspec.Meta(max_length=MEMBERS)] | None = None
    request_state: State | None = None
    meta: Raw = msgspec.field(default=Raw(), name="_meta")


_decode_sent = msgspec.json.Decoder(Sent).decode


class Dispatch:
    """The verbs of one running server."""

    caller: ClassVar[type[Calling]] = Calling
    """What calls the functions."""

    def __init__(self, server: Server, packer: Packer, limits: Limits, audience: Audience) -> None:
        self._server = server
        self._registry = server.registry
        self._packer = packer
        self._limits = limits
        self._calling = self.caller(server, packer, limits)
        self._finding = Finding(server.registry, limits)
        self._kinds = server.extended.kinds
        surround = self._calling.surround
        subscriptions = Subscriptions(self._finding, audience, surround)
        lists = Listing(self._registry, self._finding, self._calling)
        self._audience = audience
        self._verbs: dict[str, Verb] = {
            "initialize": self._initialize,
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": Completions(self._registry, self._finding, limits, self._call, surround).complete,
            "logging/setLevel": self._set_level,
            "resources/subscribe": subscriptions.subscribe,
            "resources/unsubscribe": subscriptions.unsubscribe,
            "subscriptions/listen": subscriptions.listen,
            **dict.fromkeys(self._registry.lists, lists.list),
        }

    def close(self) -> None:
        """Let the worker threads go."""
        self._calling.close()

    async def handle(self, exchange: Exchange, peer: Peer) -> Any:
        """Serve one request. Raises `ProtocolError`, or CancelledError when it was cancelled, and nothing else."""
        verb = self._verbs.get(exchange.method.name) or self._extended
        try:
            return await verb(exchange, peer)
        except ProtocolError:
            raise
        except BaseException as exc:
            if cancelled(exc):
                raise
            trace = None if isinstance(exc, FAILURES) else exc
            text = describe_redacted(exc)
            log.error("accord: %s failed: %s", exchange.method.name, text, exc_info=trace)
            raise InternalError(f"{exchange.method.name} failed: {text}") from exc

    async def _initialize(self, exchange: Exchange, peer: Peer) -> InitializeResult:
        """A repeated `initialize` resets the session, once what ran in it has ended. Raises `ProtocolError`."""
        opening = peer.line.session.opening
        assert isinstance(opening, ServerOpening)
        params = opening.read(exchange)
        await peer.line.restart(exchange)
        self._audience.restart(peer)
        peer.restart()
        return opening.agree(exchange, params)

    async def _set_level(self, exchange: Exchange, peer: Peer) -> EmptyResult:
        peer.log_level = codec.decode_params(SetLevelParams, exchange.params).level
        return EmptyResult()

    # --- tools -------------------------------------------------------------------------------------------------

    def _call_tool(self, exchange: Exchange, peer: Peer) -> Coroutine[Any, Any, Any]:
        sent = read_call(exchange.params)
        if peer.calls is not None:
            self._check_rate(peer.calls)
        offer = self._registry.tools.get(sent.name)
        if offer is None or not offer.open or peer.view is not None:
            return self._found_tool(sent, exchange, peer)
        if offer.asks:
            return self._asking_tool(sent, offer, exchange, peer)
        return self._tool(sent, offer, exchange, peer, None)

    async def _found_tool(self, sent: Sent, exchange: Exchange, peer: Peer) -> Any:
        """A tool that not everybody sees, or that has to be asked for. Raises `ProtocolError`."""
        offer = await self._finding.tool(sent.name, exchange, peer)
        if offer.stands_for is not None:
            try:
                sent, offer = await self._meant(sent, offer, offer.stands_for, exchange, peer)
            except InvalidParams as error:  # the name and the arguments are those of a model, which may correct itself
                return self._packer.text(error.message, exchange.rules, is_error=True)
        if offer.asks:
            return await self._asking_tool(sent, offer, exchange, peer)
        return await self._tool(sent, offer, exchange, peer, None)

    async def _meant(
        self, sent: Sent, offer: Offer, stands_for: StandsFor, exchange: Exchange, peer: Peer
    ) -> tuple[Sent, Offer]:
        """The call that another stands for, as if it had been sent. Raises `InvalidParams`."""
        name, arguments = stands_for(offer, sent.arguments)
        meant = await self._finding.tool(name, exchange, peer)
        if meant.stands_for is not None:
            raise InvalidParams(f"{name!r} calls other tools, not itself")
        return msgspec.structs.replace(sent, name=name, arguments=arguments), meant

    async def _asking_tool(self, sent: Sent, offer: Offer, exchange: Exchange, peer: Peer) -> Any:
        """A tool that may ask the client. Raises `ProtocolError`."""
        try:
            return await self._server.rounds.answer(
                Turn(offer, sent.name, sent.arguments, sent.request_state, sent.input_responses),
                exchange,
                peer,
                self._packer.question,
                lambda call: self._tool(sent, offer, call.exchange, call.peer, call),
            )
        except FAILURES as error:
            return self._packer.text(said(error), exchange.rules, is_error=True)

    def _check_rate(self, rate: Rate) -> None:
        """ "Servers MUST [...] Rate limit tool invocations" (Tools, Security). Raises `RateLimited`."""
        now = asyncio.get_running_loop().time()
        if not rate.take(now):
            most, wait = self._limits.tool_calls_per_second, rate.wait(now)
            what = f"too many tool calls: the limit is {most:g} a second for one principal"
            if wait == inf:
                raise RateLimited(what)
            raise RateLimited(f"{what}; try again in {wait:.2g} s", retry_after=wait)

    async def _tool(self, sent: Sent, offer: Offer, exchange: Exchange, peer: Peer, call: Call | None) -> Any:
        """A tool's result, its failures included. Raises `ProtocolError`."""
        rules = exchange.rules
        try:
            if offer.chain is None:
                value = await self._calling.run(offer, sent.arguments, call)
            else:
                value = await self._calling.reach(offer, sent.name, sent.arguments, exchange, peer, call)
            if self._kinds and isinstance(value, self._kinds):
                self._server.extended.check(value, exchange, peer.line.session)
                return self._packer.raw(value, rules)
            return self._packer.tool(value, offer.returns, rules)
        except FAILURES as error:
            text = said(error)
        except MissingClientCapability as error:
            if not rules.server_requests:  # "MUST be -32021", there
                raise
            text = error.message
        except ProtocolError:
            raise
        except BaseException as exc:
            if cancelled(exc) or (call is not None and call.asker.over):
                raise
            log.warning("accord: tool %r failed", sent.name, exc_info=exc)
            text = describe_redacted(exc)
        return self._packer.text(text, rules, is_error=True)

    # --- resources ---------------------------------------------------------------------------------------------

    async def _read_resource(self, exchange: Exchange, peer: Peer) -> Any:
        params = codec.decode_params(ReadResourceParams, exchange.params)
        offer, variables = await self._finding.resource(params.uri, exchange, peer)
        turn = Turn(offer, params.uri, variables, params.request_state, params.input_responses)
        # "Results produced by retrying a request [...] depend on inputs that are not part of the cache key"
        cache = offer.cache if params.request_state is None and params.input_responses is None else DO_NOT_KEEP

        async def work(call: Call | None) -> Raw:
            try:
                value = await self._calling.reach(offer, params.uri, variables, exchange, peer, call)
            except ResourceNotFound as error:  # by a handler that did not say which: then it is the one asked for
                raise error if error.uri else ResourceNotFound(error.message, uri=params.uri) from error
            about, public = offer.define(exchange.rules), self._finding.is_public(offer, params.uri)
            return self._packer.resource(value, params.uri, about, cache, exchange.rules, public=public)

        return await self._answer(turn, exchange, peer, work)

    # --- prompts -----------------------------------------------------------------------------------------------

    async def _get_prompt(self, exchange: Exchange, peer: Peer) -> Any:
        params = codec.decode_params(GetPromptParams, exchange.params)
        offer = await self._finding.prompt(params.name, exchange, peer)
        turn = Turn(offer, params.name, params.arguments, params.request_state, params.input_responses)

        async def work(call: Call | None) -> Raw:
            value = await self._calling.reach(offer, params.name, params.arguments, exchange, peer, call)
            return self._packer.prompt(value, offer.define(exchange.rules).description, exchange.rules)

        return await self._answer(turn, exchange, peer, work)

    # --- extensions --------------------------------------------------------------------------------------------

    async def _extended(self, exchange: Exchange, peer: Peer) -> Any:
        name = exchange.method.name
        offer = self._server.extended.offers.get(name)
        if offer is None:
            raise MethodNotFound(f"{name} is not offered by this server")
        params = codec.decode_params(exchange.method.params, exchange.params)

        async def work(call: Call | None) -> Raw:
            return self._packer.extended(await self._calling.run(offer, params, call), exchange.rules)

        return await self._answer(Turn(offer, name, exchange.params), exchange, peer, work)

    def hear(self, event: NotificationReceived, peer: Peer) -> Any:
        """The client tells something that belongs to no request; what is returned is still to be awaited.

        Raises `InvalidParams` for params that do not fit.
        """
        offer = self._server.extended.offers.get(event.method.name)
        if offer is None:
            return peer.hear(event)
        bound = offer.bind(codec.decode_params(event.method.params, event.params), None)
        return self._calling.begin(offer, *bound, None)

    # --- calling -----------------------------------------------------------------------------------------------

    async def _answer(
        self, turn: Turn, exchange: Exchange, peer: Peer, work: Callable[[Call | None], Awaitable[Any]]
    ) -> Any:
        """What the work makes of a call; only a handler that may ask is given one."""
        if not turn.offer.asks:
            return await work(None)
        return await self._server.rounds.answer(turn, exchange, peer, self._packer.question, work)

    async def _call(self, offer: Offer, subject: str, arguments: Any, exchange: Exchange, peer: Peer) -> Any:
        """What a function returns, as it is."""
        turn = Turn(offer, subject, None)
        return await self._answer(turn, exchange, peer, lambda call: self._calling.run(offer, arguments, call))


_BARE = len(b'{"name":"","arguments":}')
_SHORTEST_MEMBER = len(b',"name":""')


def read_call(params: Any) -> Sent:
    """The name and the raw arguments of a call. Raises `InvalidParams`, also where a member of the params occurs twice;
    those of the arguments are checked by whoever takes them.
    """
    try:
        call = _decode_sent(params)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return codec.decode_params(Sent, params)
    carried = len(call.meta)
    spare = len(params) - len(call.name) - len(call.arguments) - _BARE - (carried + 9 if carried else 0)
    if spare >= _SHORTEST_MEMBER or call.arguments is NO_ARGUMENTS:  # no room for another member: none occurs twice
        codec.check_members(bytes(params), "params")
    elif carried:
        codec.check_meta_members(bytes(call.meta))
    return call


def said(error: AccordError) -> str:
    """What a model is told of a call that failed as it may."""
    return error.message if isinstance(error, InvalidArguments) else str(error)


def cancelled(exc: BaseException) -> bool:
    """Whether this is the end of our own task, rather than an error that a handler made up."""
    task = asyncio.current_task()
    return isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling() > 0

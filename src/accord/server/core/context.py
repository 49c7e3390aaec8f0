"""What a handler may know, tell and ask while it serves a request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, overload

import msgspec

from accord.messages import codec
from accord.messages.meta import TRACE, Params
from accord.server.compose.access import Viewer, outer_names, outer_names_of_all, viewer_of
from accord.server.core.types import LivingServer
from accord.session.pending_request import headers_of

if TYPE_CHECKING:
    import asyncio
    import os

    from accord.messages.base import JSONObject, LoggingLevel
    from accord.messages.capabilities import ClientCapabilities
    from accord.messages.content import ResourceContents
    from accord.messages.envelope import RequestId
    from accord.messages.identity import Implementation
    from accord.messages.sampling import ModelPreferences
    from accord.messages.tools import Tool
    from accord.server.core.extension_methods import ExtensionMethods
    from accord.server.core.lifetime import Lifetimes
    from accord.server.core.principal import Principal
    from accord.server.input.call import HandlerCall
    from accord.server.input.question import InputQuestion
    from accord.server.input.questions import Accepted, Cancelled, Declined, Messages, Sampled
    from accord.server.input.roots import RootList
    from accord.server.notify.subscription_index import ChangeBus

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class NoOpAwaitable:
    """Something that has happened already; awaiting it changes nothing."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NO_OP = NoOpAwaitable()


class RunningServer(LivingServer, Protocol):
    """A server, as its handlers and its middleware have it: `ctx.server`, `request.server`."""

    context_type: ClassVar[type[Context]]
    """What handlers are given for a parameter annotated `Context`."""
    info: Implementation
    """What clients are told of it."""
    instructions: str | None
    """How a model should use it."""
    change_bus: ChangeBus
    """Who is connected, to be told of changes."""
    overrides: Mapping[Callable[..., Any], Callable[..., Any]]
    """What fills parameters in place of what; see `Server.override`."""
    extension_methods: ExtensionMethods

    @property
    def lifetimes(self) -> Lifetimes:
        """As long as it runs, by event loop."""

    def resource_updated(self, uri: str) -> None:
        """Tell who subscribed to a resource that it has changed. As `Server.resource_updated`."""

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Tell the client that its person is done at the page of `ElicitUrl`. As `Server.complete_elicitation`."""

    def add_tool(self, tool: Tool, handler: Callable[..., Any] | None = None, *, timeout: float | None = None) -> None:
        """Offer a tool with a schema by hand. As `Server.add_tool`."""

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer. As `Server.remove_tool`."""

    def remove_resource(self, uri: str) -> None:
        """Offer a resource no longer. As `Server.remove_resource`."""

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer. As `Server.remove_prompt`."""

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources and templates. As `Server.enable`."""

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide tools, prompts, resources and templates. As `Server.disable`."""


class ContextInvoker(Protocol):
    """What calls the functions of a server, as the context of a call uses it."""

    server: RunningServer
    """The server that is asked; where that is mounted, the one that it is mounted in."""
    loop: asyncio.AbstractEventLoop

    async def read_resource(self, server: RunningServer, uri: str, call: HandlerCall) -> list[ResourceContents]:
        """Read a resource inside another call. Raises `ResourceNotFound`, and what its function raises."""


class Context:
    """Filled in for a parameter annotated with it: `async def forecast(city: str, ctx: Context)`.

    It is good for one call; it is never part of the tool's schema.
    """

    __slots__ = ("_call", "_invoker", "server")

    def __init__(self, server: RunningServer, calling: ContextInvoker, call: HandlerCall) -> None:
        self.server: RunningServer = server
        """The server that the handler was declared on."""
        self._invoker = calling
        self._call = call

    # --- who asks ----------------------------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The id of the request, with its JSON type."""
        return self._call.exchange.id

    @property
    def revision(self) -> str:
        """The revision this request is served in: "2025-11-25"."""
        return self._call.exchange.rules.revision

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, as it came."""
        self._call.record("meta")
        return codec.decode_params(Params, self._call.exchange.params).meta or {}

    @property
    def principal(self) -> Principal | None:
        """Who asks, as `Server(auth=...)` found out. None where nobody was asked: over stdio, and without `auth`."""
        self._call.record("principal")
        return self._call.exchange.principal  # type: ignore[no-any-return]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request that brought this call, by their names in small letters; none over stdio.

        They are what the client says: who asks is found out by `Server(auth=...)`, and stands in `principal`.
        """
        self._call.record("headers")
        return headers_of(self._call.exchange)

    @property
    def client(self) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        self._call.record("client")
        return self._call.peer.info(self._call.exchange)

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client says it can do."""
        self._call.record("client")
        return self._call.peer.capabilities(self._call.exchange)

    @property
    def trace(self) -> dict[str, str]:
        """The trace context that came with the request (W3C: `traceparent`, `tracestate`, `baggage`), to pass on."""
        meta = self.meta
        return {key: value for key in TRACE if isinstance(value := meta.get(key), str)}

    # --- what the server has -----------------------------------------------------------------------------------

    @property
    def lifespan(self) -> Any:
        """What the lifespan of the server yielded: `Server(lifespan=...)`; None where there is none."""
        server = self.server
        return None if server.lifespan is None else server.lifetimes.for_loop(self._invoker.loop).value

    @property
    def state(self) -> dict[str, Any]:
        """Whatever middleware, dependencies and handler of this one call have to tell each other."""
        return self._call.state

    @property
    def viewer(self) -> Viewer:
        """Who looks at what the server has: the scopes of the principal, and what the session hides."""
        self._call.record("principal")
        self._call.is_personal = True
        if self._call.peer.visibility is not None:
            self._call.record("session")
        return viewer_of(self._call.peer, self._call.exchange)

    def sees(self, tool: str) -> bool:
        """Whether a tool of this server is there for the client: nothing hides it, and `principal` has its scopes."""
        return self._can_see("tool", tool)

    def sees_resource(self, uri: str) -> bool:
        """Return whether a URI of this server is there for the client, as `sees` does; there need be nothing at it."""
        return self._can_see("resource", uri)

    def _can_see(self, kind: str, name: str) -> bool:
        outer, inner = self._invoker.server.registry, self.server.registry
        if self._call.peer.visibility is None and not outer.view.requires_scopes and not outer.view.has_rules:
            return True
        who = self.viewer
        if outer is not inner:
            names = list(outer_names(outer, inner, kind, name))
            if names and not any(who.may_know(outer, kind, each) for each in names):
                return False
        return who.may_know(inner, kind, name)

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources (by URI) and templates (by text) to this session again; see `disable`."""
        self._set_visibility(True, names, tags, only)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide tools, prompts, resources (by URI) and templates (by text) from this session, which is told.

        Through 2025-11-25. Raises `NotSupported` in 2026-07-28, which knows no session: "the list of tools [...] MUST
        NOT vary per-connection"; there, hide by authorization: `@server.tool(scopes={...})`.
        """
        self._set_visibility(False, names, tags, False)

    def _set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        """The names are those of this server, and a session knows those of the server that it is connected to."""
        outer, inner = self._invoker.server.registry, self.server.registry
        self._call.set_visibility(shown, outer_names_of_all(outer, inner, names), tags, only)

    # --- telling -----------------------------------------------------------------------------------------------

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> NoOpAwaitable:
        """Tell the client how far this is (basic, Progress). Nothing happens where it did not ask to be told.

        `progress` must grow from call to call; reports that come faster than the limit allows are coalesced. Works
        from a plain `def` handler too. It never waits: `await` on it is allowed, not needed. Once the call has ended
        nothing can be sent, and one warning per call in the log of the server says so.
        """
        call = self._call
        if call.has_ended:
            call.warn_ended()
        call.peer.channel.report(call.exchange, progress, total, message)
        return _NO_OP

    def log(self, level: LoggingLevel, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Tell the client what happens here (server, Logging), if it wants to know of this level.

        `data` is anything JSON can hold; what looks like a secret is taken out. Never waits and never fails; messages
        beyond `Limits.logs_per_second` are dropped, and the client is told how many. Raises `ValueError` for a level
        that does not exist. Once the call has ended nothing can be sent, as for `report_progress`; only over stdio,
        through 2025-11-25, messages belong to the connection. Deprecated by 2026-07-28: what is not for the client, log
        to stderr or OpenTelemetry.
        """
        if self._call.has_ended and self._call.logs_end:
            self._call.warn_ended()
        self._call.logs.log(self._call.exchange, level, data, logger)
        return _NO_OP

    def debug(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for the details of a fault."""
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for what goes on."""
        return self.log("info", data, logger)

    def notice(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for what is normal, and significant."""
        return self.log("notice", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for what should not be."""
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for what failed."""
        return self.log("error", data, logger)

    def critical(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for a part of the system that failed."""
        return self.log("critical", data, logger)

    def alert(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for what somebody must see to at once."""
        return self.log("alert", data, logger)

    def emergency(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """`log` for a system that cannot be used."""
        return self.log("emergency", data, logger)

    def close_sse_stream(self, retry_seconds: float | None = None) -> NoOpAwaitable:
        """End the HTTP stream of this call, which the client takes up again after `retry_seconds` (2025-11-25,
        Streamable HTTP, polling): a call that takes long need not hold a connection. Nothing is lost, and the call
        goes on; where there is no such stream, nothing happens.
        """
        retry = None if retry_seconds is None else max(0, round(retry_seconds * 1000))
        self._call.peer.channel.close_stream(self._call.exchange, retry)
        return _NO_OP

    async def read_resource(self, uri: str) -> list[ResourceContents]:
        """Read a resource of this server. Raises `ResourceNotFound`, also for what the client may not see, and what its
        function raises. Middleware is not asked.
        """
        return await self._invoker.read_resource(self.server, uri, self._call)

    # --- asking ------------------------------------------------------------------------------------------------

    @overload
    async def ask(self, a: InputQuestion[A], /) -> tuple[A]: ...

    @overload
    async def ask(self, a: InputQuestion[A], b: InputQuestion[B], /) -> tuple[A, B]: ...

    @overload
    async def ask(self, a: InputQuestion[A], b: InputQuestion[B], c: InputQuestion[C], /) -> tuple[A, B, C]: ...

    @overload
    async def ask(
        self, a: InputQuestion[A], b: InputQuestion[B], c: InputQuestion[C], d: InputQuestion[D], /
    ) -> tuple[A, B, C, D]: ...

    @overload
    async def ask(self, /, *questions: InputQuestion[Any]) -> tuple[Any, ...]: ...

    async def ask(self, /, *questions: InputQuestion[Any]) -> tuple[Any, ...]:
        """Ask several things at once; the answers, in order: `name, roots = await ctx.ask(Elicit("?", str), Roots())`.

        Through 2025-11-25 each is a request to the client. In 2026-07-28 this request is answered with the questions,
        and the client sends it again with the answers. Then a prompt, a resource, or a tool marked `readOnlyHint` or
        `idempotentHint` **runs again from the top**, up to here; keep what must not be done twice in `ctx.once`. Any
        other tool waits here, and runs once.

        Raises `MissingClientCapability` for what the client did not declare, `NotSupported` for what the revision or
        the method does not have, `AnswerError` for an error that the client answers, and `RequestTimeout` when there is
        no answer in `Limits.answer_seconds`; in 2026-07-28 a tool that waits is cancelled then.
        """
        return tuple(await self._call.request_input(questions))

    @overload
    async def elicit(self, message: str, type: None = None) -> Accepted[None] | Declined | Cancelled: ...

    @overload
    async def elicit(self, message: str, type: type[T]) -> Accepted[T] | Declined | Cancelled: ...

    @overload
    async def elicit(self, message: str, type: Any) -> Accepted[Any] | Declined | Cancelled: ...

    async def elicit(self, message: str, type: Any = None) -> Accepted[Any] | Declined | Cancelled:
        """Ask the person to fill in a form (from 2025-06-18 on); `.action` says what they did, `.data` is a `type`.

        `type` as for `Elicit`. Raises what `ask` raises.
        """
        return await self._call.elicit(message, type)  # type: ignore[no-any-return]

    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None
    ) -> Accepted[None] | Declined | Cancelled:
        """Ask the person to visit a page (from 2025-11-25 on). Accepted means that they agreed to. As `ElicitUrl`."""
        return await self._call.elicit_url(message, url, elicitation_id)  # type: ignore[no-any-return]

    async def sample(
        self,
        messages: Messages,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        model: str | Sequence[str] | ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
        metadata: JSONObject | None = None,
    ) -> Sampled:
        """Ask the client's model; `.text` is what it said. Arguments as for `Sample`. Raises what `ask` raises."""
        return await self._call.sample(
            messages,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model=model,
            temperature=temperature,
            stop_sequences=stop_sequences,
            include_context=include_context,
            tools=tools,
            tool_choice=tool_choice,
            metadata=metadata,
        )

    async def list_roots(self) -> RootList:
        """The folders that the client lets us work in. Raises what `ask` raises."""
        return await self._call.roots()

    @property
    def roots(self) -> CallRoots:
        """The same, to check a path against: `await ctx.roots.contains(path)`."""
        return CallRoots(self._call)

    @overload
    async def once(self, key: str, make: Callable[[], Any]) -> Any: ...

    @overload
    async def once(self, key: str, make: Callable[[], Any], type: type[T]) -> T: ...

    async def once(self, key: str, make: Callable[[], Any], type: Any = Any) -> Any:
        """What `make()` returned (plain or async), made once for the call even where its handler runs again.

        It travels with the question, so it must be JSON, small, and nothing that the client may not read. Given a
        `type`, it is read back as that. Raises what `make` raises, and `ValueError` for what JSON cannot hold.
        """
        return msgspec.json.decode(await self._call.input.once_cache.once(key, make), type=type)


class CallRoots:
    """The roots of the client that a call is served for."""

    __slots__ = ("_call",)

    def __init__(self, call: HandlerCall) -> None:
        self._call = call

    async def contains(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path or `file:` URI lies in one of them, with links resolved. Raises what `ctx.ask` raises."""
        return (await self._call.roots()).contains(path)

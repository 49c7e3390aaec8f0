"""The context of a call: what a handler can read, send and request while it serves a request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, overload

import msgspec

from accord.errors import NotSupported, ToolError
from accord.messages import codec
from accord.messages.meta import TRACE, Params
from accord.server.compose.access import Viewer, missing_scopes_text, outer_names, outer_names_of_all, viewer_of
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
    from accord.server.core.principal import Principal, Upstream
    from accord.server.input.call import HandlerCall
    from accord.server.input.question import InputQuestion
    from accord.server.input.questions import Accepted, Cancelled, Declined, Messages, Sampled
    from accord.server.input.roots import RootList
    from accord.server.notify.change_bus import ChangeBus

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class NoOpAwaitable:
    """The result of a method that has already completed; awaiting it does nothing."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NO_OP = NoOpAwaitable()


def _progress_text(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"


class RunningServer(LivingServer, Protocol):
    """A server as handlers and middleware see it: `ctx.server`, `request.server`."""

    context_type: ClassVar[type[Context]]
    """The class of the value passed to a parameter annotated `Context`."""
    info: Implementation
    """The name, version and other metadata that clients receive."""
    instructions: str | None
    """Instructions for the model about how to use the server."""
    change_bus: ChangeBus
    """The connected clients, to notify them of changes."""
    overrides: Mapping[Callable[..., Any], Callable[..., Any]]
    """The functions that replace dependencies; see `Server.override`."""
    extension_methods: ExtensionMethods

    @property
    def lifetimes(self) -> Lifetimes:
        """The lifetimes of the server, by event loop."""

    def resource_updated(self, uri: str) -> None:
        """Notify the subscribers of a resource that it has changed. As `Server.resource_updated`."""

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Notify the client that the user has finished at the page of `ElicitUrl`. As `Server.complete_elicitation`."""

    def add_tool(self, tool: Tool, handler: Callable[..., Any] | None = None, *, timeout: float | None = None) -> None:
        """Register a tool with a hand-written schema. As `Server.add_tool`."""

    def remove_tool(self, name: str) -> None:
        """Remove a tool. As `Server.remove_tool`."""

    def remove_resource(self, uri: str) -> None:
        """Remove a resource. As `Server.remove_resource`."""

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. As `Server.remove_prompt`."""

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources and templates. As `Server.enable`."""

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide tools, prompts, resources and templates. As `Server.disable`."""


class ContextInvoker(Protocol):
    """The invoker of a server, as the context of a call uses it."""

    server: RunningServer
    """The server that received the request; a mounted server's outer server."""
    loop: asyncio.AbstractEventLoop

    async def read_resource(self, server: RunningServer, uri: str, call: HandlerCall) -> list[ResourceContents]:
        """Read a resource within another call. Raises `ResourceNotFound`, and what the resource's function raises."""


class Context:
    """The context of one call, passed to a parameter annotated with it: `async def forecast(city: str, ctx: Context)`.

    It is valid for one call, and is never part of the tool's schema.
    """

    __slots__ = ("_call", "_invoker", "server")

    def __init__(self, server: RunningServer, invoker: ContextInvoker, call: HandlerCall) -> None:
        self.server: RunningServer = server
        """The server that declares the handler."""
        self._invoker = invoker
        self._call = call

    # --- the request -------------------------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The id of the request, with its JSON type."""
        return self._call.pending.id

    @property
    def revision(self) -> str:
        """The protocol revision of the request, such as "2025-11-25"."""
        return self._call.pending.rules.revision

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, unchanged."""
        self._call.record("meta")
        return codec.decode_params(Params, self._call.pending.params).meta or {}

    @property
    def principal(self) -> Principal | None:
        """The authenticated sender of the request. None over stdio and without `Server(auth=...)`."""
        self._call.record("principal")
        return self._call.pending.principal  # type: ignore[no-any-return]

    @property
    def upstream(self) -> Upstream:
        """The user's access at the provider where they logged in: `await ctx.upstream.token()`, to call its API.

        Raises `NotSupported` unless `OAuthProxy` authenticated the request. The token never goes to the client.
        """
        principal = self.principal
        if principal is None or principal.upstream is None:
            raise NotSupported(
                "ctx.upstream needs a request that OAuthProxy authenticated: Server(auth=OAuthProxy(...))"
            )
        self._call.is_personal = True
        return principal.upstream

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request, by lower-case name; empty over stdio.

        The client controls them. To authenticate the client use `Server(auth=...)` and `principal`.
        """
        self._call.record("headers")
        return headers_of(self._call.pending)

    @property
    def client(self) -> Implementation | None:
        """The name and version that the client sent. For display and logs, never for decisions."""
        self._call.record("client")
        return self._call.peer.info(self._call.pending)

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """The capabilities that the client declared."""
        self._call.record("client")
        return codec.copy(self._call.peer.capabilities(self._call.pending))  # the requests of a client share the value

    @property
    def trace(self) -> dict[str, str]:
        """The trace context of the request (W3C: `traceparent`, `tracestate`, `baggage`), to pass on."""
        meta = self.meta
        return {key: value for key in TRACE if isinstance(value := meta.get(key), str)}

    # --- the server --------------------------------------------------------------------------------------------

    @property
    def lifespan(self) -> Any:
        """The value that `Server(lifespan=...)` yielded; None without a lifespan."""
        server = self.server
        return None if server.lifespan is None else server.lifetimes.for_loop(self._invoker.loop).value

    @property
    def state(self) -> dict[str, Any]:
        """Values that middleware, dependencies and the handler of this call share."""
        return self._call.state

    @property
    def viewer(self) -> Viewer:
        """The access of this client: the scopes of its principal, and the visibility rules of its session."""
        self._call.record("principal")
        self._call.is_personal = True
        if self._call.peer.visibility is not None:
            self._call.record("session")
        return viewer_of(self._call.peer, self._call.pending)

    def need(self, *scopes: str) -> None:
        """Raise `ToolError` unless the principal has these scopes: `ctx.need("write")`. Clients over stdio have all.

        The error does not lead the client to request them, since its response may have begun; `needs=` of a tool does.
        """
        if not self.viewer.has_scopes(frozenset(scopes)):
            raise ToolError(missing_scopes_text(scopes))

    def sees(self, tool: str) -> bool:
        """Return whether the client may see a tool of this server: no rule hides it, and `principal` has its scopes."""
        return self._can_see("tool", tool)

    def sees_resource(self, uri: str) -> bool:
        """Return whether the client may see a URI of this server, as `sees` does; the resource need not exist."""
        return self._can_see("resource", uri)

    def _can_see(self, kind: str, name: str) -> bool:
        outer, inner = self._invoker.server.registry, self.server.registry
        if self._call.peer.visibility is None and not outer.view.requires_scopes and not outer.view.has_rules:
            return True
        viewer = self.viewer
        if outer is not inner:
            names = list(outer_names(outer, inner, kind, name))
            if names and not any(viewer.may_know(outer, kind, each) for each in names):
                return False
        return viewer.may_know(inner, kind, name)

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources (by URI) and templates (by text) to this session again; see `disable`."""
        self._set_visibility(True, names, tags, only)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide tools, prompts, resources (by URI) and templates (by text) from this session, and notify its client.

        Through 2025-11-25. Raises `NotSupported` in 2026-07-28, which has no sessions: "the list of tools [...] MUST
        NOT vary per-connection"; there, hide by authorization: `@server.tool(scopes={...})`.
        """
        self._set_visibility(False, names, tags, False)

    def _set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        """Set the visibility by the names of this server, translated to those of the server that the client is
        connected to.
        """
        outer, inner = self._invoker.server.registry, self.server.registry
        self._call.set_visibility(shown, outer_names_of_all(outer, inner, names), tags, only)

    # --- notifications -----------------------------------------------------------------------------------------

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> NoOpAwaitable:
        """Send a progress notification (basic, Progress). Does nothing if the client did not request progress.

        `progress` must grow from call to call; reports that exceed the rate limit are coalesced. Plain `def` handlers
        can use it too. It never waits: `await` on it is allowed, not needed. After the call has ended nothing is sent,
        and the server logs one warning per call.
        """
        call = self._call
        if call.has_ended:
            call.warn_ended()
        if call.task is not None:
            call.task.set_status(message or _progress_text(progress, total))
        call.peer.channel.report(call.pending, progress, total, message)
        return _NO_OP

    # --- tasks -------------------------------------------------------------------------------------------------

    def status(self, message: str) -> NoOpAwaitable:
        """Set the status message of the task that this call is, or becomes. Does nothing for other calls."""
        if self._call.task is not None:
            self._call.task.set_status(message)
        return _NO_OP

    async def run_as_task(self) -> bool:
        """Make this call a task now, so that the client need not wait; return whether it is one.

        It is none if the client does not support tasks, if the tool has no `task=`, or if the task cannot be stored.
        """
        return self._call.task is not None and await self._call.task.try_create()

    def log(self, level: LoggingLevel, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Send a log message to the client (server, Logging), if the client's log level includes it.

        `data` is any JSON value; secrets in it are redacted. Never waits and never fails. Messages beyond
        `Limits.logs_per_second` are dropped, and the client is notified how many. Raises `ValueError` for an unknown
        level. After the call has ended nothing is sent, as for `report_progress`; only over stdio, through 2025-11-25,
        messages belong to the connection. Deprecated by 2026-07-28: log to stderr or OpenTelemetry what is not for the
        client.
        """
        if self._call.has_ended and self._call.logs_end:
            self._call.warn_ended()
        self._call.logs.log(self._call.pending, level, data, logger)
        return _NO_OP

    def debug(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for detailed debugging information."""
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for general information."""
        return self.log("info", data, logger)

    def notice(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for normal but significant events."""
        return self.log("notice", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for warning conditions."""
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for error conditions."""
        return self.log("error", data, logger)

    def critical(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for a component that failed."""
        return self.log("critical", data, logger)

    def alert(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for a condition that needs immediate action."""
        return self.log("alert", data, logger)

    def emergency(self, data: Any, logger: str | None = None) -> NoOpAwaitable:
        """Call `log` for a system that is unusable."""
        return self.log("emergency", data, logger)

    def close_sse_stream(self, retry_seconds: float | None = None) -> NoOpAwaitable:
        """Close the SSE stream of this call; the client reconnects after `retry_seconds` (2025-11-25, Streamable HTTP,
        polling), so that a long call need not hold a connection. No message is lost, and the call goes on. Does nothing
        if the call has no such stream.
        """
        retry = None if retry_seconds is None else max(0, round(retry_seconds * 1000))
        self._call.peer.channel.close_stream(self._call.pending, retry)
        return _NO_OP

    async def read_resource(self, uri: str) -> list[ResourceContents]:
        """Read a resource of this server, without its middleware. Raises `ResourceNotFound`, also for a resource that
        the client may not see, and what the resource's function raises.
        """
        return await self._invoker.read_resource(self.server, uri, self._call)

    # --- client input ---------------------------------------------------------------------------------------------

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
        """Request several inputs at once, and return the answers in order: `name, roots = await ctx.ask(Elicit("?",
        str), Roots())`.

        Through 2025-11-25 each question is a request to the client. In 2026-07-28 the response to this request carries
        the questions, and the client sends the request again with the answers. Then a prompt, a resource, or a tool
        marked `readOnlyHint` or `idempotentHint` **runs again from the top**, up to here; use `ctx.once` for work that
        must not run twice. Any other tool is suspended here, and runs once.

        Raises `MissingClientCapability` for a capability that the client did not declare, `NotSupported` for an input
        that the revision or the method does not support, `AnswerError` if the client answers with an error, and
        `RequestTimeout` without an answer within `Limits.answer_seconds`; in 2026-07-28 a suspended tool is then
        cancelled.
        """
        return tuple(await self._call.request_input(questions))

    @overload
    async def elicit(self, message: str, type: None = None) -> Accepted[None] | Declined | Cancelled: ...

    @overload
    async def elicit(self, message: str, type: type[T]) -> Accepted[T] | Declined | Cancelled: ...

    @overload
    async def elicit(self, message: str, type: Any) -> Accepted[Any] | Declined | Cancelled: ...

    async def elicit(self, message: str, type: Any = None) -> Accepted[Any] | Declined | Cancelled:
        """Request a form from the user (from 2025-06-18 on). `.action` is the user's decision, `.data` is a `type`.

        `type` as for `Elicit`. Raises what `ask` raises.
        """
        return await self._call.elicit(message, type)  # type: ignore[no-any-return]

    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None
    ) -> Accepted[None] | Declined | Cancelled:
        """Request that the user visit a page (from 2025-11-25 on); see `ElicitUrl`. Accepted means that the user agreed
        to.
        """
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
        """Request a completion from the client's model; `.text` is its text. Arguments as for `Sample`. Raises what
        `ask` raises.
        """
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
        """Return the roots of the client. Raises what `ask` raises."""
        return await self._call.roots()

    @property
    def roots(self) -> CallRoots:
        """The roots of the client, to check a path: `await ctx.roots.contains(path)`."""
        return CallRoots(self._call)

    @overload
    async def once(self, key: str, make: Callable[[], Any]) -> Any: ...

    @overload
    async def once(self, key: str, make: Callable[[], Any], type: type[T]) -> T: ...

    async def once(self, key: str, make: Callable[[], Any], type: Any = Any) -> Any:
        """Return the result of `make()` (plain or async), which is called once per call even if the handler runs again.

        The result travels with the question to the client, so it must be JSON, small, and not secret. With `type`, it
        is decoded as that type. Raises what `make` raises, and `ValueError` for a result that is not JSON.
        """
        return msgspec.json.decode(await self._call.input.once_cache.once(key, make), type=type)


class CallRoots:
    """The roots of the client whose call is served."""

    __slots__ = ("_call",)

    def __init__(self, call: HandlerCall) -> None:
        self._call = call

    async def contains(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a path or `file:` URI lies in one of the roots, with links resolved. Raises what `ctx.ask`
        raises.
        """
        return (await self._call.roots()).contains(path)

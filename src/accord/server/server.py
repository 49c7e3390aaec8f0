"""`Server`: declares tools, resources and prompts, and serves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, Self, TypeVar, Unpack

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.extension import Extension, settings_of
from accord.messages.identity import Icon, Implementation
from accord.messages.revision import REVISIONS, Rules
from accord.server.compose.composition_mixin import CompositionMixin
from accord.server.core.content import NO_CACHE, CacheHint
from accord.server.core.context import Context
from accord.server.core.extension_methods import ExtensionMethods
from accord.server.core.registry import Registry
from accord.server.declare.declaration_mixin import DeclarationMixin
from accord.server.middleware.chain import middleware_steps
from accord.server.notify.change_bus import ChangeBus
from accord.session.negotiation import check_revisions
from accord.session.peer_info import PeerInfo

if TYPE_CHECKING:
    from accord.server.auth.authentication import Auth
    from accord.server.core.instrumentation import ServerInstrumentation
    from accord.server.core.principal import Principal
    from accord.server.core.types import Lifespan
    from accord.server.http.app import HTTPApp
    from accord.server.http.options import HTTPOptions
    from accord.server.input.multi_round_trip import MultiRoundTrip
    from accord.server.input.request_state import Keyring
    from accord.server.middleware.request import Middleware
    from accord.server.openapi.document import Source
    from accord.server.openapi.importer import OpenAPIOptions
    from accord.server.tasks.options import Task, TaskSupport
    from accord.server.tasks.service import TaskService
    from accord.store.tasks import Tasks
    from accord.telemetry.base import Telemetry
    from accord.transport.base import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Server(DeclarationMixin, CompositionMixin):
    """A Model Context Protocol server: declare tools, resources and prompts on it, then `run()`.

    One program serves all revisions at once. `name` and `version` are shown by clients; `instructions` tell a model how
    to use the server. `revisions` restricts the supported revisions; `limits` are the bounds that protect the server.
    `cache` is how long clients may cache its lists (2026-07-28); clients are notified of changes nevertheless.
    `state_keys` seal the state that a question leaves with the client (2026-07-28): secrets of at least 16 bytes, the
    first seals and all open; by default one that lives as long as the process. `extensions` and `experimental` are
    declared as capabilities; see `method` for the methods of extensions. `auth` authenticates clients over HTTP: one
    method, or a list of alternatives. `telemetry` records requests: `OpenTelemetry()`. `middleware` wraps all requests,
    see `add_middleware`. `lifespan` is an async context manager, or an async generator, that takes the server: it is
    entered when the server starts, once for any number of clients, and exited when it stops; the value that it yields
    is `ctx.lifespan`. `strict_arguments` rejects arguments that need a conversion, see `ToolOptions.strict`. `tasks`
    stores the tasks of tools with `task=`: `SQLiteTasks(path)`; in memory by default. Raises `DeclarationError` for
    invalid keys, and for an invalid `auth` or `lifespan`.
    """

    context_type: ClassVar[type[Context]] = Context
    """The class of the value passed to a parameter annotated `Context`."""

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = REVISIONS,
        limits: Limits = DEFAULT_LIMITS,
        cache: CacheHint = NO_CACHE,
        state_keys: Sequence[bytes] | None = None,
        extensions: Sequence[Extension] = (),
        experimental: Mapping[str, JSONObject] | None = None,
        auth: Auth | Sequence[Auth] | None = None,
        telemetry: Telemetry | None = None,
        middleware: Sequence[Middleware] = (),
        lifespan: Lifespan | None = None,
        strict_arguments: bool = False,
        tasks: Tasks | None = None,
    ) -> None:
        super().__init__()
        self.strict_arguments = strict_arguments
        self.info: Implementation = Implementation(
            name=name,
            version=version,
            title=title,
            description=description,
            website_url=website_url,
            icons=list(icons) if icons else None,
        )
        self.instructions = instructions
        self.limits = limits
        self.revisions: tuple[str, ...] = check_revisions(revisions)
        self.extension_methods: ExtensionMethods = ExtensionMethods(extensions)
        self._experimental = dict(experimental) if experimental else None
        self.active_round_trips: MultiRoundTrip | None = None
        """`round_trips`, once a call may have requested input; None on a server that never needed them."""
        self._keyring: Keyring | None = None if state_keys is None else _keyring(state_keys)
        self.cache = cache
        if isinstance(auth, Sequence) and not isinstance(auth, str):
            auth = _alternatives(auth)
        if auth is not None and not hasattr(auth, "authenticate"):
            raise DeclarationError(
                f"{type(auth).__name__} is not an authentication method: write auth=APIKeys({{...}})"
            )
        if lifespan is not None and not callable(lifespan):
            raise DeclarationError("lifespan= must be a function that takes the server and yields once")
        self.auth: Auth | None = auth
        """Authenticates clients over HTTP."""
        self.instrumentation: ServerInstrumentation | None = None if telemetry is None else _instrumentation(telemetry)
        """The instrumented parts for the telemetry; None without telemetry."""
        self.task_service: TaskService | None = None
        """The tasks of the server, once a tool has `task=`."""
        self._task_store = tasks
        self._app: HTTPApp | None = None
        self._mount_listeners: dict[int, Callable[[str, str], None]] = {}
        self.change_bus: ChangeBus = ChangeBus()
        """Notifies connected clients of changes."""
        self.registry: Registry = Registry(self._pack_list, limits.page_size, self.change_bus.list_changed)
        self.lifespan = lifespan
        self.registry.middleware = middleware_steps(middleware)

    def __repr__(self) -> str:
        registry = self.registry
        return f"<Server {self.info.name!r}: {len(registry.tools)} tools, {len(registry.prompts)} prompts>"

    @property
    def round_trips(self) -> MultiRoundTrip:
        """The calls that wait for input from the client."""
        if self.active_round_trips is None:
            from accord.server.input.multi_round_trip import MultiRoundTrip
            from accord.server.input.request_state import Keyring

            self.active_round_trips = MultiRoundTrip(self.name, self._keyring or Keyring(), self.limits)
        return self.active_round_trips

    @classmethod
    def from_openapi(cls, document: Source, *, name: str | None = None, **options: Unpack[OpenAPIOptions]) -> Self:
        """Return a server of an HTTP API, with its name and version; see `add_openapi`."""
        from accord.server.openapi.importer import server_of

        return server_of(cls, document, name, options)

    @classmethod
    def from_fastapi(
        cls, app: Any, *, name: str | None = None, lifespan: bool = True, **options: Unpack[OpenAPIOptions]
    ) -> Self:
        """Return a server of a FastAPI application, with its name and version; see `add_fastapi`."""
        from accord.server.openapi.importer import server_of_application

        return server_of_application(cls, app, name, lifespan, options)

    def method(self, name: str) -> Callable[[F], F]:
        """Register the handler of a request or notification that an extension of this server declares.

        The function takes the decoded params and, optionally, a `Context`; it returns the result. Raises
        `DeclarationError`.
        """

        def declare(function: F) -> F:
            self.extension_methods.add(name, function, Context)
            return function

        return declare

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Notify the client that the user has finished at the page of `ElicitUrl`
        (`notifications/elicitation/complete`).

        Callable from any thread. Return whether it was sent: only 2025-11-25 has it, and only for the client that was
        asked.
        """
        return self.active_round_trips is not None and self.active_round_trips.url_elicitations.complete(elicitation_id)

    def serve_tasks(self, support: TaskSupport) -> Task | None:
        """Serve tasks from now on; return the options that `support` stands for. Raises `DeclarationError`."""
        from accord.server.tasks.options import task_options
        from accord.server.tasks.service import TaskService

        options = task_options(support)
        if options is not None and self.task_service is None:
            self.task_service = TaskService(self, self._task_store)
        return options

    # --- other servers -----------------------------------------------------------------------------------------

    def mount(self, other: Server, prefix: str = "") -> None:
        """Serve the registrations of another server, as they are at any time: `forecast` as `prefix_forecast`,
        `weather://oslo` as `weather://prefix/oslo`. Its middleware, its lifespan and its dependencies stay its own. Of
        two registrations with one name, the server's own precedes, then the one that was mounted first.

        Raises `DeclarationError` for a value that is not a `Server`, an invalid prefix, and a cycle of servers.
        """
        from accord.server.compose.mount import Mount, check_no_cycle

        if not isinstance(other, Server):
            raise DeclarationError(f"{other!r:.200} is not a server: mount(server, prefix) takes a Server object")
        mount = Mount(other, prefix, self)
        check_no_cycle(self, other)
        if other.task_service is not None:
            self.serve_tasks(True)
        self.registry.mounts = (*self.registry.mounts, mount)
        self._mount_listeners[id(mount)] = listener = self._change_listener(mount.names.uri)
        other.change_bus.add_listener(listener)
        self.registry.invalidate()

    def unmount(self, other: Server) -> None:
        """Remove a mounted server; its running calls go on. Raises `DeclarationError` if it is not mounted."""
        gone = [mount for mount in self.registry.mounts if mount.registry is other.registry]
        if not gone:
            raise DeclarationError(f"{other.name!r} is not mounted here")
        self.registry.mounts = tuple(mount for mount in self.registry.mounts if mount.registry is not other.registry)
        for mount in gone:
            other.change_bus.remove_listener(self._mount_listeners.pop(id(mount)))
        self.registry.invalidate()

    # --- serving -----------------------------------------------------------------------------------------------

    def profile(self) -> PeerInfo:
        """Return the server info: its name, version, capabilities and instructions."""
        capabilities = msgspec.structs.replace(
            self.registry.capabilities(
                may_log=any(registration.context for registration in self.extension_methods.registrations.values())
            ),
            extensions=settings_of(self.extension_methods.extensions),
            experimental=self._experimental,
            tasks=None if self.task_service is None else self.task_service.capability(lists=self.auth is not None),
        )
        return PeerInfo(self.info, capabilities, self.instructions)

    def _pack_list(self, result: Any, rules: Rules) -> Raw:
        scope = result.cache_scope or self.cache.scope
        hinted = msgspec.structs.replace(result, ttl_ms=self.cache.ttl_ms, cache_scope=scope)
        return Raw(codec.encode(codec.finish_result(hinted, rules, codec.raw(self.info))))

    async def serve(self, transport: Transport, *, principal: Principal | None = None) -> None:
        """Serve one connection until it ends; running calls are answered first, within the grace period.

        With a `principal` every request is that principal's, which needs the scopes of registrations; without one the
        client counts as the owner of the server, which needs none.
        """
        from accord.server.run import serve

        await serve(self, transport, principal=principal)

    @property
    def app(self) -> HTTPApp:
        """This server as an ASGI application, to be mounted or run by any ASGI server; see `asgi`."""
        if self._app is None:
            self._app = self.asgi()
        return self._app

    def asgi(self, options: HTTPOptions | None = None) -> HTTPApp:
        """Return an ASGI application that serves all revisions, with options of its own. Its lifespan need not be
        run.
        """
        from accord.server.http.app import HTTPApp
        from accord.server.http.options import HTTPOptions

        return HTTPApp(self, options or HTTPOptions())

    def run(
        self,
        transport: Literal["stdio"] = "stdio",
        *,
        http: str | None = None,
        options: HTTPOptions | None = None,
        **unknown: Never,
    ) -> None:
        """Serve until SIGTERM or Ctrl-C; running calls are finished first.

        Over stdin and stdout, until the client closes them; or with `http` at that address: "127.0.0.1:8000",
        "[::1]:8000", ":8000" (127.0.0.1 too), "0.0.0.0:8000" for other machines. Raises `DeclarationError` for an
        invalid address, for type hints with unknown names, on a running event loop and for other options, and
        `SystemExit` if the address is not available.
        """
        from accord.server.run import check_no_running_loop, check_transport, run_stdio

        check_transport(transport, unknown)
        check_no_running_loop()
        self.registry.resolve()
        if http is None:
            run_stdio(self)
        else:
            from accord.server.http.serving.serve import run_http

            run_http(self, http, options)

    async def run_async(
        self,
        transport: Literal["stdio"] = "stdio",
        *,
        http: str | None = None,
        options: HTTPOptions | None = None,
        **unknown: Never,
    ) -> None:
        """Serve on a running event loop. As `run`. Raises `OSError` for an address that is not available, and
        `DeclarationError`.
        """
        from accord.server.run import check_transport, serve_stdio

        check_transport(transport, unknown)
        self.registry.resolve()
        if http is None:
            await serve_stdio(self)
        else:
            from accord.server.http.serving.serve import serve_http

            await serve_http(self, http, options)

    async def run_stdio_async(self) -> None:
        """Serve stdin and stdout. As `run_async`, under the name that other libraries use."""
        await self.run_async()


def _keyring(keys: Sequence[bytes]) -> Keyring:
    """Return the keyring, checked when the server is created rather than at its first question."""
    from accord.server.input.request_state import Keyring

    return Keyring(keys)


def _alternatives(parts: Sequence[Auth]) -> Auth:
    from accord.server.auth.alternatives import Alternatives

    return Alternatives(parts)


def _instrumentation(telemetry: Telemetry) -> ServerInstrumentation:
    from accord.server.core.instrumentation import ServerInstrumentation

    return ServerInstrumentation(telemetry)

"""`Server`: what a program declares, and where it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Unpack

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
from accord.server.notify.subscription_index import ChangeBus
from accord.session.negotiation import check_revisions
from accord.session.peer_info import PeerInfo

if TYPE_CHECKING:
    from accord.server.core.instrumentation import ServerInstrumentation
    from accord.server.core.principal import Principal
    from accord.server.core.types import Lifespan
    from accord.server.http.app import HTTPApp
    from accord.server.http.auth import Auth
    from accord.server.http.options import HTTPOptions
    from accord.server.input.multi_round_trip import MultiRoundTrip
    from accord.server.input.request_state import Keyring
    from accord.server.middleware.request import Middleware
    from accord.server.openapi.document import Source
    from accord.server.openapi.importer import OpenAPIOptions
    from accord.telemetry.base import Telemetry
    from accord.transport.base import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Server(DeclarationMixin, CompositionMixin):
    """A Model Context Protocol server: declare tools, resources and prompts on it, then `run()`.

    One program serves all revisions at once. `name` and `version` are what clients show; `instructions` tell a
    model how to use the server. `revisions` restricts what is spoken; `limits` are the bounds that protect it.
    `cache` is how long clients may keep its lists (2026-07-28); they are told when these change all the same.
    `state_keys` seal what a question leaves with the client (2026-07-28): secrets of at least 16 bytes, the first seals
    and all open; one that lives as long as the process if none are given. `extensions` and `experimental` are declared
    as capabilities; see `method` for what extensions add. `auth` finds out who asks, over HTTP. `telemetry` is told of
    requests: `OpenTelemetry()`. `middleware` stands around all that it does for its clients, see `add_middleware`.
    `lifespan` is an async context manager, or an async generator, that takes the server: it is entered when the server
    starts, once however many clients there are, and left when it ends; what it yields is `ctx.lifespan`.
    `strict_arguments` has all its tools take an argument only as what it is, see `ToolOptions.strict`.
    Raises `DeclarationError` for keys that cannot seal, for an `auth` or a `lifespan` that is none.
    """

    context_type: ClassVar[type[Context]] = Context
    """What handlers are given for a parameter annotated `Context`."""

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
        auth: Auth | None = None,
        telemetry: Telemetry | None = None,
        middleware: Sequence[Middleware] = (),
        lifespan: Lifespan | None = None,
        strict_arguments: bool = False,
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
        """`round_trips`, once a call may have asked; None on a server that never needed them."""
        self._keyring: Keyring | None = None if state_keys is None else _keyring(state_keys)
        self.cache = cache
        if auth is not None and not hasattr(auth, "authenticate"):
            raise DeclarationError(
                f"{type(auth).__name__} is not an authentication method: write auth=APIKeys({{...}})"
            )
        if lifespan is not None and not callable(lifespan):
            raise DeclarationError("lifespan= must be a function that takes the server and yields once")
        self.auth: Auth | None = auth
        """Who finds out who asks, over HTTP."""
        self.instrumentation: ServerInstrumentation | None = None if telemetry is None else _instrumentation(telemetry)
        """What tells the telemetry; None where there is none."""
        self._app: HTTPApp | None = None
        self._mount_listeners: dict[int, Callable[[str, str], None]] = {}
        self.change_bus: ChangeBus = ChangeBus()
        """Who is connected, to be told of changes."""
        self.registry: Registry = Registry(self._pack_list, limits.page_size, self.change_bus.list_changed)
        self.lifespan = lifespan
        self.registry.middleware = middleware_steps(middleware)

    def __repr__(self) -> str:
        held = self.registry
        return f"<Server {self.info.name!r}: {len(held.tools)} tools, {len(held.prompts)} prompts>"

    @property
    def round_trips(self) -> MultiRoundTrip:
        """The calls that ask the client, and wait for its answers."""
        if self.active_round_trips is None:
            from accord.server.input.multi_round_trip import MultiRoundTrip
            from accord.server.input.request_state import Keyring

            self.active_round_trips = MultiRoundTrip(self.name, self._keyring or Keyring(), self.limits)
        return self.active_round_trips

    @classmethod
    def from_openapi(cls, document: Source, *, name: str | None = None, **options: Unpack[OpenAPIOptions]) -> Self:
        """A server of nothing but an HTTP API, with its name and version; see `add_openapi`."""
        from accord.server.openapi.importer import server_of

        return server_of(cls, document, name, options)

    @classmethod
    def from_fastapi(
        cls, app: Any, *, name: str | None = None, lifespan: bool = True, **options: Unpack[OpenAPIOptions]
    ) -> Self:
        """A server of nothing but a FastAPI application, with its name and version; see `add_fastapi`."""
        from accord.server.openapi.importer import server_of_application

        return server_of_application(cls, app, name, lifespan, options)

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a request, or hear a notification, that an extension of this server lists.

        The function takes the params as their type, and a `Context` if it wants one; what it returns is the result.
        Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            self.extension_methods.add(name, function, Context)
            return function

        return declare

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Tell the client that its person is done at the page of `ElicitUrl` (`notifications/elicitation/complete`).

        From any thread. Whether it was told: only 2025-11-25 has words for it, and only the client that was asked.
        """
        return self.active_round_trips is not None and self.active_round_trips.url_elicitations.complete(elicitation_id)

    # --- other servers -----------------------------------------------------------------------------------------

    def mount(self, other: Server, prefix: str = "") -> None:
        """Offer what another server offers, as it is at any time: `forecast` as `prefix_forecast`, `weather://oslo` as
        `weather://prefix/oslo`. Its middleware, its lifespan and its dependencies stay its own. Where two things have
        one name, the server's own goes first, then what was mounted first.

        Raises `DeclarationError` for what is no `Server`, a prefix that cannot be one, and servers in a circle.
        """
        from accord.server.compose.mount import Mount, check_no_cycle

        if not isinstance(other, Server):
            raise DeclarationError(f"{other!r:.200} is not a server: mount(server, prefix) takes a Server object")
        mount = Mount(other, prefix)
        check_no_cycle(self, other)
        self.registry.mounts = (*self.registry.mounts, mount)
        self._mount_listeners[id(mount)] = follow = self._change_listener(mount.names.uri)
        other.change_bus.add_listener(follow)
        self.registry.invalidate()

    def unmount(self, other: Server) -> None:
        """Offer it no longer; calls that run go on. Raises `DeclarationError` where it is not mounted."""
        gone = [mount for mount in self.registry.mounts if mount.registry is other.registry]
        if not gone:
            raise DeclarationError(f"{other.name!r} is not mounted here")
        self.registry.mounts = tuple(mount for mount in self.registry.mounts if mount.registry is not other.registry)
        for mount in gone:
            other.change_bus.remove_listener(self._mount_listeners.pop(id(mount)))
        self.registry.invalidate()

    # --- serving -----------------------------------------------------------------------------------------------

    def profile(self) -> PeerInfo:
        """What this server says of itself."""
        capabilities = msgspec.structs.replace(
            self.registry.capabilities(
                may_log=any(offer.context for offer in self.extension_methods.registrations.values())
            ),
            extensions=settings_of(self.extension_methods.extensions),
            experimental=self._experimental,
        )
        return PeerInfo(self.info, capabilities, self.instructions)

    def _pack_list(self, result: Any, rules: Rules) -> Raw:
        scope = result.cache_scope or self.cache.scope
        hinted = msgspec.structs.replace(result, ttl_ms=self.cache.ttl_ms, cache_scope=scope)
        return Raw(codec.encode(codec.finish_result(hinted, rules, codec.raw(self.info))))

    async def serve(self, transport: Transport, *, principal: Principal | None = None) -> None:
        """Serve one connection until it ends; calls in flight are answered first, within the grace period.

        With a `principal` every request is that principal's, which needs the scopes that things ask for; without one
        the client is taken for whoever started this server, which needs none.
        """
        from accord.server.run import serve

        await serve(self, transport, principal=principal)

    @property
    def app(self) -> HTTPApp:
        """This server as an ASGI application, to be mounted or to be run by any ASGI server; see `asgi`."""
        if self._app is None:
            self._app = self.asgi()
        return self._app

    def asgi(self, options: HTTPOptions | None = None) -> HTTPApp:
        """An ASGI application that serves all revisions, with options of its own. Nobody need run its lifespan."""
        from accord.server.http.app import HTTPApp
        from accord.server.http.options import HTTPOptions

        return HTTPApp(self, options or HTTPOptions())

    def run(
        self, transport: Literal["stdio"] = "stdio", *, http: str | None = None, options: HTTPOptions | None = None
    ) -> None:
        """Serve until SIGTERM or Ctrl-C, what runs is finished, and return.

        Over stdin and stdout, where the client that closes them ends it as well; or with `http` at that address:
        "127.0.0.1:8000", "[::1]:8000", ":8000" (127.0.0.1 too), "0.0.0.0:8000" for other machines. Raises
        `DeclarationError` for what is no address and for type hints that name what does not exist, and `SystemExit`
        where the address cannot be had.
        """
        from accord.server.run import check_transport, run_stdio

        check_transport(transport)
        self.registry.resolve()
        if http is None:
            run_stdio(self)
        else:
            from accord.server.http.serving.serve import run_http

            run_http(self, http, options)

    async def run_async(
        self, transport: Literal["stdio"] = "stdio", *, http: str | None = None, options: HTTPOptions | None = None
    ) -> None:
        """As `run`, on an event loop that runs already. Raises `OSError` for an address that cannot be had, and
        `DeclarationError`.
        """
        from accord.server.run import check_transport, serve_stdio

        check_transport(transport)
        self.registry.resolve()
        if http is None:
            await serve_stdio(self)
        else:
            from accord.server.http.serving.serve import serve_http

            await serve_http(self, http, options)

    async def run_stdio_async(self) -> None:
        """As `run_async`; the name that other libraries have for it."""
        await self.run_async()


def _keyring(keys: Sequence[bytes]) -> Keyring:
    """Checked when a server is made, rather than at its first question."""
    from accord.server.input.request_state import Keyring

    return Keyring(keys)


def _instrumentation(telemetry: Telemetry) -> ServerInstrumentation:
    from accord.server.core.instrumentation import ServerInstrumentation

    return ServerInstrumentation(telemetry)

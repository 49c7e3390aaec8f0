"""`Server`: what a program declares, and where it is served."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec
from msgspec import Raw

from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec
from accord.messages.base import JSONObject, Meta
from accord.messages.content import Annotations
from accord.messages.extension import Extension, settings_of
from accord.messages.identity import Icon, Implementation
from accord.messages.revision import REVISIONS, Rules
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.cache import DO_NOT_KEEP, CacheHint
from accord.server.completable import Completable
from accord.server.composed import Composed
from accord.server.context import Context
from accord.server.declaring import complete_by_name, declare_prompt, declare_resource, declare_tool, listed
from accord.server.extended import Extended
from accord.server.hub import Hub
from accord.server.registry import Registry
from accord.session.negotiate import check_spoken
from accord.session.profile import Profile

if TYPE_CHECKING:
    from types import ModuleType

    from accord.server.asking.rounds import Rounds
    from accord.server.asking.seal import Keyring
    from accord.server.files.directory import Directory
    from accord.server.http.app import HTTPApp
    from accord.server.http.auth import Auth
    from accord.server.http.options import HTTPOptions
    from accord.server.lifetime import Lifespan
    from accord.server.middleware.request import Middleware
    from accord.server.modules import Added
    from accord.server.observed import Watched
    from accord.server.openapi.document import Source
    from accord.server.openapi.importing import Imported, OpenAPIOptions
    from accord.telemetry.base import Telemetry
    from accord.transport.base import Transport

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Server(Composed):
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
    Raises `DeclarationError` for keys that cannot seal.
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
        cache: CacheHint = DO_NOT_KEEP,
        state_keys: Sequence[bytes] | None = None,
        extensions: Sequence[Extension] = (),
        experimental: Mapping[str, JSONObject] | None = None,
        auth: Auth | None = None,
        telemetry: Telemetry | None = None,
        middleware: Sequence[Middleware] = (),
        lifespan: Lifespan | None = None,
    ) -> None:
        super().__init__()
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
        self.revisions: tuple[str, ...] = check_spoken(revisions)
        self.extended: Extended = Extended(extensions)
        self._experimental = dict(experimental) if experimental else None
        self.asked: Rounds | None = None
        """`rounds`, once a call may have asked; None on a server that never needed them."""
        self._keyring: Keyring | None = None if state_keys is None else _keyring(state_keys)
        self.cache = cache
        self.auth: Auth | None = auth
        """Who finds out who asks, over HTTP."""
        self.watched: Watched | None = None if telemetry is None else _watched(telemetry)
        """What tells the telemetry; None where there is none."""
        self._app: HTTPApp | None = None
        self.hub: Hub = Hub()
        """Who is connected, to be told of changes."""
        self.registry: Registry = Registry(self._pack_list, limits.page_size, self.hub.changed)
        self.lifespan = lifespan
        for each in middleware:
            self.add_middleware(each)

    def __repr__(self) -> str:
        held = self.registry
        return f"<Server {self.info.name!r}: {len(held.tools)} tools, {len(held.prompts)} prompts>"

    @property
    def name(self) -> str:
        """The name that clients are told."""
        return self.info.name

    @property
    def rounds(self) -> Rounds:
        """The calls that ask the client, and wait for its answers."""
        if self.asked is None:
            from accord.server.asking.rounds import Rounds
            from accord.server.asking.seal import Keyring

            self.asked = Rounds(self.name, self._keyring or Keyring(), self.limits)
        return self.asked

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a request, or hear a notification, that an extension of this server lists.

        The function takes the params as their type, and a `Context` if it wants one; what it returns is the result.
        Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            self.extended.add(name, function, Context)
            return function

        return declare

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Tell the client that its person is done at the page of `ElicitUrl` (`notifications/elicitation/complete`).

        From any thread. Whether it was told: only 2025-11-25 has words for it, and only the client that was asked.
        """
        return self.asked is not None and self.asked.visits.complete(elicitation_id)

    # --- tools -------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        strict: bool = False,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        version: str | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[F], F]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Offer a function as a tool; the function stays what it was.

        Name, description and parameters are read from the function: type hints give the schema, the docstring the
        descriptions, the return type the structured output. `timeout` is in seconds. `strict` refuses JSON in a
        string where something else is asked for. `tags` are words to show and hide tools by; `scopes` are what a
        principal must have been granted, or it does not exist for them; of several with one name and a `version` each,
        the newest is called unless a request asks for another; `middleware` stands around this tool alone. Raises
        `DeclarationError`.
        """

        def declare(function: F, **options: Any) -> F:
            declare_tool(self.registry, function, **options)
            return function

        return partial(declare, name=name, **options) if name is None or isinstance(name, str) else declare(name)

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, timeout: float | None = None) -> None:
        """Offer a tool with a schema by hand. `handler(arguments)` gets a dict, checked against `input_schema`; a
        second parameter without a default, or one annotated so, gets the `Context` as well.

        What it returns is taken as for other tools; structured output is checked against `output_schema`. Raises
        `DeclarationError`.
        """
        from accord.server.handmade import handmade_offer

        self.registry.add("tool", tool.name, handmade_offer(tool, handler, timeout, self.limits))

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer. From any thread; clients are told. Raises `DeclarationError` where there is none."""
        self.registry.remove("tool", name)

    # --- resources ---------------------------------------------------------------------------------------------

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        cache: CacheHint = DO_NOT_KEEP,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[Callable[P, R]], Completable[P, R]]:
        """Offer a function as the resource at `uri`; with `{variables}` (RFC 6570) as a template of resources,
        whose variables are the function's parameters, each of which may be completed (see `Completable`). `cache`
        says how long what it returns may be kept. Raises `DeclarationError`.
        """
        about = listed(
            {"title": title, "mime_type": mime_type, "annotations": annotations, "icons": icons, "meta": meta}
        )
        options: dict[str, Any] = {"name": name, "description": description, "size": size, "cache": cache, **about}
        options |= {"tags": tags, "scopes": scopes, "middleware": middleware}

        def declare(function: Callable[P, R]) -> Completable[P, R]:
            return declare_resource(self.registry, function, uri, **options)

        return declare

    def remove_resource(self, uri: str) -> None:
        """Offer a resource, or the template of that text, no longer. As `remove_tool`."""
        self.registry.remove("resource template" if "{" in uri else "resource", uri)

    def resource_updated(self, uri: str) -> None:
        """A resource has changed: tell those who subscribed to it, or to what it is a part of. From any thread."""
        self.hub.updated(uri)

    # --- prompts -----------------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: Callable[P, R], /) -> Completable[P, R]: ...

    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        version: str | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Callable[[Callable[P, R]], Completable[P, R]]: ...

    def prompt(self, name: Any = None, **options: Any) -> Any:
        """Offer a function as a prompt; its parameters are the arguments, each of which may be completed (see
        `Completable`). Raises `DeclarationError`.
        """
        if name is None or isinstance(name, str):
            return partial(declare_prompt, self.registry, name=name, **options)
        return declare_prompt(self.registry, name)

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer. As `remove_tool`."""
        self.registry.remove("prompt", name)

    def complete(self, ref: str, argument: str) -> Callable[[F], F]:
        """Complete an argument of the prompt, or of the resource template, that `ref` names; the same as `complete`
        of what `prompt` and `resource` give. Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            complete_by_name(self.registry, ref, argument, function)
            return function

        return declare

    # --- modules and objects -----------------------------------------------------------------------------------

    def add_module(
        self,
        module: ModuleType,
        *,
        prefix: str | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] = (),
        tags: Collection[str] = (),
        annotations: ToolAnnotations | None = None,
    ) -> Added:
        """Offer the public functions of a module as tools: those of `__all__`, else those it defines itself. What
        cannot be a tool is left out, and told; in `include` it raises `DeclarationError`, as a taken name does.
        """
        from accord.server.modules import add_found, in_module

        found = in_module(module, include)
        return add_found(self, found, prefix, include, exclude, tags=tags, annotations=annotations)

    def add_object(
        self,
        thing: object,
        *,
        prefix: str | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] = (),
        tags: Collection[str] = (),
        annotations: ToolAnnotations | None = None,
    ) -> Added:
        """Offer the public methods of an object as tools, those of its bases included; of a class, its static and
        class methods. As `add_module`.
        """
        from accord.server.modules import add_found, in_object

        found = in_object(thing)
        return add_found(self, found, prefix, include, exclude, tags=tags, annotations=annotations)

    # --- files -------------------------------------------------------------------------------------------------

    def add_directory(
        self,
        path: str | os.PathLike[str],
        *,
        uri: str | None = None,
        name: str | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        hidden: bool = False,
        max_bytes: int = 8 << 20,
        most: int = 10_000,
        mime_types: Mapping[str, str] | None = None,
        watch: bool = True,
        poll_seconds: float = 2,
    ) -> Directory:
        """Serve the files below a folder as resources below `uri` (`docs://`; its own `file:` URI by default).

        `include` and `exclude` are patterns (`*.md`, `guide/**`). At most `most` files are listed, and `max_bytes` read
        of each; `mime_types` go by suffix. While the server runs, clients are told what changes if `watch`, which
        takes `watchfiles` or a look every `poll_seconds`. Links are not followed. Raises `DeclarationError`.
        """
        from accord.server.files.directory import add_directory
        from accord.server.files.names import Choice

        chosen = Choice(include, exclude, hidden=hidden)
        poll = poll_seconds if watch else None
        return add_directory(self, path, chosen, uri, name, max_bytes, most, mime_types, poll)

    # --- HTTP APIs ---------------------------------------------------------------------------------------------

    @classmethod
    def from_openapi(cls, document: Source, *, name: str | None = None, **options: Unpack[OpenAPIOptions]) -> Self:
        """A server of nothing but an HTTP API, with its name and version; see `add_openapi`."""
        from accord.server.openapi.importing import server_of

        return server_of(cls, document, name, options)

    def add_openapi(self, document: Source, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer an HTTP API by its OpenAPI document (3.0 or 3.1): a dict, JSON, or the path of a file.

        Every operation becomes a tool, unless `routes` say otherwise. What cannot be offered is left out, and told.
        Raises `DeclarationError`, and then nothing is added, for what is wrong with all of it.
        """
        from accord.server.openapi.importing import add_openapi

        return add_openapi(self, document, options)

    @classmethod
    def from_fastapi(
        cls, app: Any, *, name: str | None = None, lifespan: bool = True, **options: Unpack[OpenAPIOptions]
    ) -> Self:
        """A server of nothing but a FastAPI application, with its name and version; see `add_fastapi`."""
        from accord.server.openapi.importing import server_of_application

        return server_of_application(cls, app, name, lifespan, options)

    def add_fastapi(self, app: Any, *, lifespan: bool = True, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer a FastAPI application, or any ASGI application with an `openapi()`, called in this process.

        Its lifespan begins before its first request and ends with this server, unless somebody else runs it
        (`lifespan=False`). Otherwise as `add_openapi`.
        """
        from accord.server.openapi.importing import add_application

        return add_application(self, app, lifespan, options)

    # --- serving -----------------------------------------------------------------------------------------------

    def profile(self) -> Profile:
        """What this server says of itself."""
        capabilities = msgspec.structs.replace(
            self.registry.capabilities(may_log=any(offer.context for offer in self.extended.offers.values())),
            extensions=settings_of(self.extended.extensions),
            experimental=self._experimental,
        )
        return Profile(self.info, capabilities, self.instructions)

    def _pack_list(self, result: Any, rules: Rules) -> Raw:
        scope = result.cache_scope or self.cache.scope
        hinted = msgspec.structs.replace(result, ttl_ms=self.cache.ttl_ms, cache_scope=scope)
        return Raw(codec.encode(codec.finish(hinted, rules, codec.raw(self.info))))

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends; calls in flight are answered first, within the grace period."""
        from accord.server.run import serve

        await serve(self, transport)

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
        `DeclarationError` for what is no address, and `SystemExit` where it cannot be had.
        """
        from accord.server.run import check_transport, run_stdio

        check_transport(transport)
        if http is None:
            run_stdio(self)
        else:
            from accord.server.http.serving.serve import run_http

            run_http(self, http, options)

    async def run_async(
        self, transport: Literal["stdio"] = "stdio", *, http: str | None = None, options: HTTPOptions | None = None
    ) -> None:
        """As `run`, on an event loop that runs already. Raises `OSError` for an address that cannot be had."""
        from accord.server.run import check_transport, serve_stdio

        check_transport(transport)
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
    from accord.server.asking.seal import Keyring

    return Keyring(keys)


def _watched(telemetry: Telemetry) -> Watched:
    from accord.server.observed import Watched

    return Watched(telemetry)

"""What a server is made of beside its own functions: middleware, lifespans, providers, modules and objects, folders,
HTTP APIs, and who sees what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from accord.errors import DeclarationError
from accord.server.core.registry import Registry
from accord.server.core.visibility import Visibility, words
from accord.server.middleware.chain import middleware_step

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Unpack

    from accord.limits import Limits
    from accord.messages.identity import Implementation
    from accord.server.compose.change import ToolChange
    from accord.server.compose.provider import Provider
    from accord.server.core.lifetime import Lifetimes
    from accord.server.core.types import Lifespan
    from accord.server.declare.imported import Imported
    from accord.server.declare.modules import FunctionOptions
    from accord.server.files.directory import Directory
    from accord.server.middleware.request import Middleware
    from accord.server.notify.subscription_index import ChangeBus
    from accord.server.openapi.document import Source
    from accord.server.openapi.importer import OpenAPIOptions

M = TypeVar("M", bound="Middleware")


class CompositionMixin:
    """The part of `Server` that puts things together. What is said here holds at once, also while it serves."""

    info: Implementation
    registry: Registry
    change_bus: ChangeBus
    limits: Limits

    def __init__(self) -> None:
        self.lifespan: Lifespan | None = None
        """What `Server(lifespan=...)` was given."""
        self.lifespans: tuple[Lifespan, ...] = ()
        """Those of what was added to it."""
        self.overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
        """What fills parameters in place of what; see `override`."""
        self._lifetimes: Lifetimes | None = None

    @property
    def name(self) -> str:
        """The name that clients are told."""
        return self.info.name

    @property
    def lifetimes(self) -> Lifetimes:
        """As long as it runs, by event loop."""
        if self._lifetimes is None:
            from accord.server.core.lifetime import Lifetimes

            self._lifetimes = Lifetimes(self)
        return self._lifetimes

    @property
    def needs_lifespan(self) -> bool:
        """Whether anything has to be started before its functions are called."""
        return bool(self.lifespan or self.lifespans) or any(mount.needs_lifespan for mount in self.registry.mounts)

    def add_lifespan(self, lifespan: Lifespan) -> None:
        """Have something run as long as the server: an async context manager that takes the server. It is entered after
        the lifespan of the server. Where the server runs already, it is entered the next time.
        """
        self.lifespans = (*self.lifespans, lifespan)

    @contextmanager
    def override(self, make: Callable[..., Any], instead: Callable[..., Any]) -> Iterator[None]:
        """Fill `Depends(make)` by another function, as long as this is entered: for tests.

        with server.override(get_db, FakeDb):
            ...

        In mounted servers as well. Raises `DeclarationError` for what cannot be called.
        """
        if not callable(instead):
            raise DeclarationError(f"{instead!r} cannot be called: give a function, such as `lambda: fake`")
        before = self.overrides
        self.overrides = {**before, make: instead}
        try:
            yield
        finally:
            self.overrides = before

    # --- middleware --------------------------------------------------------------------------------------------

    def middleware(self, function: M) -> M:
        """Put a function around everything that this server does for its clients; see `add_middleware`."""
        self.add_middleware(function)
        return function

    def add_middleware(self, middleware: Middleware) -> None:
        """Put `async def (request, call_next)` around everything that this server does for its clients, inside of what
        is there already. `request` is a `Request`; `await call_next(request)` is what the handler returned, or raises
        what it raised; what the middleware returns is taken for that. A third parameter annotated `Context` gets the
        context. Raises `DeclarationError` for what is no middleware.
        """
        self.registry.middleware = (*self.registry.middleware, middleware_step(middleware))
        self.registry.invalidate()

    # --- providers ---------------------------------------------------------------------------------------------

    def _change_listener(self, outside: Callable[[str], str] = str) -> Callable[[str, str], None]:
        """Hears what changes elsewhere; `outside` gives a URI as it is here."""

        def follow(what: str, uri: str) -> None:
            if what:
                self.registry.invalidate(what)
            else:
                self.change_bus.resource_updated(outside(uri))

        return follow

    def add_provider(self, provider: Provider) -> None:
        """Offer what a `Provider` has. It runs as long as the server: see `Provider.lifespan`."""
        provider.attach(self._change_listener())
        self.registry.providers = (*self.registry.providers, provider)
        self.add_lifespan(lambda server: provider.lifespan())
        self.registry.invalidate()

    # --- modules and objects -----------------------------------------------------------------------------------

    def add_module(self, module: ModuleType, **options: Unpack[FunctionOptions]) -> Imported:
        """Offer the public functions of a module as tools: those of `__all__`, else those it defines itself. What
        cannot be a tool is left out, and told; in `include` it raises `DeclarationError`, as a taken name does.
        """
        from accord.server.declare.modules import add_functions, module_functions

        return add_functions(self.registry, module_functions(module, options.get("include")), **options)

    def add_object(self, thing: object, **options: Unpack[FunctionOptions]) -> Imported:
        """Offer the public methods of an object as tools, those of its bases included; of a class, its static and
        class methods. As `add_module`.
        """
        from accord.server.declare.modules import add_functions, object_methods

        return add_functions(self.registry, object_methods(thing), **options)

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
        from accord.server.files.directory import open_directory
        from accord.server.files.names import PathFilter

        chosen = PathFilter(include, exclude, hidden=hidden)
        poll = poll_seconds if watch else None
        made = open_directory(self.registry.providers, path, chosen, uri, name, max_bytes, most, mime_types, poll)
        self.add_provider(made)
        return made

    # --- HTTP APIs ---------------------------------------------------------------------------------------------

    def add_openapi(self, document: Source, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer an HTTP API by its OpenAPI document (3.0 or 3.1): a dict, JSON, or the path of a file.

        Every operation becomes a tool, unless `routes` say otherwise. What cannot be offered is left out, and told.
        Raises `DeclarationError`, and then nothing is added, for what is wrong with all of it.
        """
        from accord.server.openapi.importer import add_openapi

        return add_openapi(self, document, options)

    def add_fastapi(self, app: Any, *, lifespan: bool = True, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Offer a FastAPI application, or any ASGI application with an `openapi()`, called in this process.

        Its lifespan begins before its first request and ends with this server, unless somebody else runs it
        (`lifespan=False`). Otherwise as `add_openapi`.
        """
        from accord.server.openapi.importer import add_application

        return add_application(self, app, lifespan, options)

    # --- who sees what -----------------------------------------------------------------------------------------

    def change_tool(self, name: str, change: ToolChange) -> None:
        """Offer a tool with another name, text or arguments; its own, or one that is mounted, by its name here.

        A second change takes the place of the first. Raises `DeclarationError` for what is no `ToolChange`, and where
        the tool is there, and has no such argument.
        """
        from accord.server.compose.change import ToolChange

        if not isinstance(change, ToolChange):
            raise DeclarationError(f"{change!r:.200} is not a ToolChange: write ToolChange(name=..., ...)")
        offer = self.registry.unchanged_tool(name)
        if offer is not None:
            change.check(offer)
        self.registry.tool_changes = {**self.registry.tool_changes, name: change}
        self.registry.invalidate("tools")

    def search_tools(self, budget: int = 4000, *, always: Iterable[str] = (), limit: int = 20) -> None:
        """List no more tools than a model can take: where the definitions of all take more than `budget` tokens (a
        quarter of the bytes of their JSON), `tools/list` has `search_tools`, `call_tool`, and those in `always`.

        A search finds at most `limit` tools, within the budget. All tools can be called by their names as ever. Raises
        `DeclarationError` where one of the two names is taken.
        """
        from accord.server.compose.search import Search, check_free

        check_free(self.registry)
        self.registry.search = Search(self.registry, self.limits, budget, words("always", always), limit)
        self.registry.invalidate("tools")

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources (by URI) and templates (by text), by name or by tag; `only` these, of all.

        Clients are told. What was said last holds. Raises `DeclarationError` where nothing is named.
        """
        self._set_visibility(True, names, tags, only)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide what `enable` shows: for every client it does not exist. As `enable`."""
        self._set_visibility(False, names, tags, False)

    def _set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        self.registry.visibility = self.registry.visibility or Visibility()
        self.registry.visibility.set(shown, names, tags, only=only)
        self.registry.invalidate()

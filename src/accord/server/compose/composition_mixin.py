"""The composition of a server: middleware, lifespans, providers, modules and objects, folders, HTTP APIs, and
visibility.
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
    from pathlib import Path
    from types import ModuleType
    from typing import Unpack

    from accord.limits import Limits
    from accord.messages.apps import CSP, Permission
    from accord.messages.identity import Implementation
    from accord.server.apps.declaration import PageSource
    from accord.server.apps.page import AppPage
    from accord.server.compose.change import ToolChange
    from accord.server.compose.provider import Provider
    from accord.server.core.content import CacheHint
    from accord.server.core.extension_methods import ExtensionMethods
    from accord.server.core.lifetime import Lifetimes
    from accord.server.core.types import Lifespan
    from accord.server.declare.imported import Imported
    from accord.server.declare.modules import FunctionOptions
    from accord.server.files.directory import Directory
    from accord.server.middleware.request import Middleware
    from accord.server.notify.change_bus import ChangeBus
    from accord.server.openapi.document import Source
    from accord.server.openapi.importer import OpenAPIOptions
    from accord.server.skills.folder import SkillFolder

M = TypeVar("M", bound="Middleware")


class CompositionMixin:
    """The part of `Server` that composes it. Changes take effect immediately, also while the server runs."""

    info: Implementation
    registry: Registry
    change_bus: ChangeBus
    limits: Limits
    cache: CacheHint
    extension_methods: ExtensionMethods

    def __init__(self) -> None:
        self.lifespan: Lifespan | None = None
        """The `lifespan` of `Server(lifespan=...)`."""
        self.lifespans: tuple[Lifespan, ...] = ()
        """The lifespans of added components."""
        self.overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}
        """Overrides of dependencies; see `override`."""
        self._lifetimes: Lifetimes | None = None

    @property
    def name(self) -> str:
        """The name that clients see."""
        return self.info.name

    @property
    def lifetimes(self) -> Lifetimes:
        """The lifetimes of the running server, by event loop."""
        if self._lifetimes is None:
            from accord.server.core.lifetime import Lifetimes

            self._lifetimes = Lifetimes(self)
        return self._lifetimes

    @property
    def needs_lifespan(self) -> bool:
        """Whether a lifespan has to start before handlers are called."""
        return bool(self.lifespan or self.lifespans) or any(mount.needs_lifespan for mount in self.registry.mounts)

    def add_lifespan(self, lifespan: Lifespan) -> None:
        """Add a lifespan: an async context manager that takes the server. It is entered after the server's own
        lifespan; if the server already runs, at the next start.
        """
        self.lifespans = (*self.lifespans, lifespan)

    @contextmanager
    def override(self, make: Callable[..., Any], instead: Callable[..., Any]) -> Iterator[None]:
        """Replace `Depends(make)` by another function inside a `with` block, for tests.

            with server.override(get_db, FakeDb):
                ...

        Applies to mounted servers too. Raises `DeclarationError` if `instead` is not callable.
        """
        if not callable(instead):
            raise DeclarationError(f"{instead!r} cannot be called: give a function, such as `lambda: fake`")
        previous = self.overrides
        self.overrides = {**previous, make: instead}
        try:
            yield
        finally:
            self.overrides = previous

    # --- middleware --------------------------------------------------------------------------------------------

    def middleware(self, function: M) -> M:
        """Register a middleware; see `add_middleware`."""
        self.add_middleware(function)
        return function

    def add_middleware(self, middleware: Middleware) -> None:
        """Register a middleware, `async def (request, call_next)`, inside those already registered.

        It wraps every call of a handler. `request` is a `Request`; `await call_next(request)` returns or raises what
        the handler does; the middleware's return value replaces the result. A third parameter annotated `Context`
        receives the context. Raises `DeclarationError` if `middleware` has another signature.
        """
        self.registry.middleware = (*self.registry.middleware, middleware_step(middleware))
        self.registry.invalidate()

    # --- providers ---------------------------------------------------------------------------------------------

    def _change_listener(self, outside: Callable[[str], str] = str) -> Callable[[str, str], None]:
        """Return a listener for changes of a provider or mounted server; `outside` maps its URIs to those of this
        server.
        """

        def on_change(what: str, uri: str) -> None:
            if what:
                self.registry.invalidate(what)
            else:
                self.change_bus.resource_updated(outside(uri))

        return on_change

    def add_provider(self, provider: Provider) -> None:
        """Offer the items of a `Provider`. Its lifespan is that of the server: see `Provider.lifespan`."""
        provider.attach(self._change_listener())
        self.registry.providers = (*self.registry.providers, provider)
        self.add_lifespan(lambda server: provider.lifespan())
        self.registry.invalidate()

    # --- modules and objects -----------------------------------------------------------------------------------

    def add_module(self, module: ModuleType, **options: Unpack[FunctionOptions]) -> Imported:
        """Register the public functions of a module as tools: those in `__all__`, or else those that it defines.

        Functions that cannot be tools are skipped, and reported in the result. Raises `DeclarationError` if one of them
        is in `include`, or a name is taken.
        """
        from accord.server.declare.modules import add_functions, module_functions

        return add_functions(self.registry, module_functions(module, options.get("include")), **options)

    def add_object(self, thing: object, **options: Unpack[FunctionOptions]) -> Imported:
        """Register the public methods of an object as tools, including inherited ones; for a class, its static and
        class methods. Otherwise as `add_module`.
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
        """Serve the files in a folder as resources below `uri` (`docs://`; the folder's `file:` URI by default).

        `include` and `exclude` are patterns (`*.md`, `guide/**`). At most `most` files are listed, and at most
        `max_bytes` bytes of each are read; `mime_types` is keyed by suffix. If `watch`, clients are notified of changes
        while the server runs, by `watchfiles` or by polling every `poll_seconds`. Links are not followed. Raises
        `DeclarationError`.
        """
        from accord.server.files.directory import open_directory
        from accord.server.files.names import PathFilter

        path_filter = PathFilter(include, exclude, hidden=hidden)
        poll = poll_seconds if watch else None
        directory = open_directory(
            self.registry.providers, path, path_filter, uri, name, max_bytes, most, mime_types, poll
        )
        self.add_provider(directory)
        return directory

    def add_skills(
        self, path: str | os.PathLike[str], *, uri: str = "skill://", watch: bool = True, poll_seconds: float = 2
    ) -> SkillFolder:
        """Serve each folder with a `SKILL.md` below a folder as a skill (extension Skills, 2026-07-28): its files as
        resources below `uri`, and its entry with the digests of all files.

        If `watch`, clients are notified of changes, see `add_directory`. Needs PyYAML: `pip install 'accord[skills]'`.
        Raises `DeclarationError`, with file and line, for a skill that hosts would refuse.
        """
        from accord.server.skills.methods import serve_skills

        return serve_skills(self, path, uri, poll_seconds if watch else None)

    # --- pages -------------------------------------------------------------------------------------------------

    def add_ui(
        self,
        uri: str,
        page: Path | str | PageSource,
        *,
        csp: CSP | None = None,
        permissions: Sequence[Permission] = (),
        domain: str | None = None,
        border: bool | None = None,
        title: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] = (),
    ) -> AppPage:
        """Declare a page that hosts show inside the conversation (extension MCP Apps): HTML of a file or a text, or a
        `Chart`, `Table` or `Form`. Tools show their results in it with `ui=page`.

        `<script data-accord></script>` becomes the script that connects the page with its host. `csp` are the origins
        that the page may use, none by default; `permissions` what it requests of the browser; `domain` the origin that
        the host gives it, in the format of that host; `border` whether the host draws a border. The file is read once.
        Raises `DeclarationError` for all that hosts would refuse.
        """
        from accord.server.apps.declaration import declare_page

        about = {"title": title, "description": description, "scopes": scopes}
        return declare_page(
            self, uri, page, csp=csp, permissions=permissions, domain=domain, border=border, about=about
        )

    # --- HTTP APIs ---------------------------------------------------------------------------------------------

    def add_openapi(self, document: Source, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Import an HTTP API from its OpenAPI document (3.0 or 3.1): a dict, JSON, or the path of a file.

        Every operation becomes a tool, unless `routes` decides otherwise. An operation that cannot be imported is
        skipped, and reported in the result. Raises `DeclarationError` if the document is invalid; then nothing is
        imported.
        """
        from accord.server.openapi.importer import add_openapi

        return add_openapi(self, document, options)

    def add_fastapi(self, app: Any, *, lifespan: bool = True, **options: Unpack[OpenAPIOptions]) -> Imported:
        """Import a FastAPI application, or any ASGI application with an `openapi()` method, called in this process.

        Its lifespan starts before its first request and ends with this server, unless another server runs it
        (`lifespan=False`). Otherwise as `add_openapi`.
        """
        from accord.server.openapi.importer import add_application

        return add_application(self, app, lifespan, options)

    # --- visibility --------------------------------------------------------------------------------------------

    def change_tool(self, name: str, change: ToolChange) -> None:
        """Change the name, texts or arguments of a tool, own or mounted, by its name on this server.

        A later change of the same tool replaces an earlier one. Raises `DeclarationError` if `change` is no
        `ToolChange`, or names an argument that a registered tool does not have.
        """
        from accord.server.compose.change import ToolChange

        if not isinstance(change, ToolChange):
            raise DeclarationError(f"{change!r:.200} is not a ToolChange: write ToolChange(name=..., ...)")
        registration = self.registry.unchanged_tool(name)
        if registration is not None:
            change.check(registration)
        if change.hidden:
            self.disable(name)
        self.registry.tool_changes = {**self.registry.tool_changes, name: change}
        self.registry.invalidate("tools")

    def search_tools(self, budget: int = 4000, *, always: Iterable[str] = (), limit: int = 20) -> None:
        """Shorten `tools/list` if the definitions of all tools exceed `budget` tokens (estimated as a quarter of the
        bytes of their JSON): then it contains `search_tools`, `call_tool`, and the tools in `always`.

        A search returns at most `limit` tools, within the budget. All tools can still be called by name. Raises
        `DeclarationError` if one of the two names is taken.
        """
        from accord.server.compose.search import Search, check_free

        check_free(self.registry)
        self.registry.search = Search(self.registry, self.limits, budget, words("always", always), limit)
        self.registry.invalidate("tools")

    def enable(self, *names: str, tags: Iterable[str] = (), only: bool = False) -> None:
        """Show tools, prompts, resources (by URI) and templates (by text), selected by name or tag; with `only`, hide
        all others.

        Clients are notified. The last call that matches an item applies. Raises `DeclarationError` if nothing is
        selected.
        """
        self._set_visibility(True, names, tags, only)

    def disable(self, *names: str, tags: Iterable[str] = ()) -> None:
        """Hide tools, prompts, resources and templates from every client; selection as in `enable`."""
        self._set_visibility(False, names, tags, False)

    def _set_visibility(self, shown: bool, names: Iterable[str], tags: Iterable[str], only: bool) -> None:
        self.registry.visibility = self.registry.visibility or Visibility()
        self.registry.visibility.set(shown, names, tags, only=only)
        self.registry.invalidate()

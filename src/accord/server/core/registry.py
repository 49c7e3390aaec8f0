"""The registry of a server: its declared and mounted registrations, by name, as far as they are shown.

Registrations may be added and removed at any time and from any thread: the view is built anew on the next access, and
callers iterate over a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, overload

from msgspec import Raw

from accord.errors import DeclarationError, InvalidParams, ResourceNotFound
from accord.messages.capabilities import ListCapability, ResourcesCapability, ServerCapabilities
from accord.messages.completion import PromptReference, Reference
from accord.messages.prompts import ListPromptsResult
from accord.messages.resources import ListResourcesResult, ListResourceTemplatesResult
from accord.messages.revision import Rules
from accord.messages.tools import ListToolsResult
from accord.server.compose.versions import with_version
from accord.server.core.pages import Pages
from accord.server.core.registration import Registration
from accord.server.core.registry_view import Declarations, MountedView, RegistryView, ToolSearch
from accord.server.declare.parameters import check_name, location
from accord.server.middleware.chain import guards_in

if TYPE_CHECKING:
    from accord.server.compose.change import ToolChange
    from accord.server.compose.provider import Provider
    from accord.server.core.visibility import Visibility
    from accord.server.declare.templates import Template
    from accord.server.middleware.chain import Guard, MiddlewareStep

EncodeList = Callable[[Any, Rules], Raw]
"""Encodes the result of a list."""

_LISTS = {
    "tool": "tools/list",
    "prompt": "prompts/list",
    "resource": "resources/list",
    "resource template": "resources/templates/list",
}
"""The list method of each kind; the part before the first slash names the list that changes."""

KINDS: dict[str, str] = {method: kind for kind, method in _LISTS.items()}
"""The kind of each list method."""

RESULTS: dict[str, tuple[type, str]] = {
    "tools/list": (ListToolsResult, "tools"),
    "prompts/list": (ListPromptsResult, "prompts"),
    "resources/list": (ListResourcesResult, "resources"),
    "resources/templates/list": (ListResourceTemplatesResult, "resource_templates"),
}
"""The result type of each list method, and the field that holds the items."""


class MountedRegistry(MountedView, Protocol):
    """A mounted server as the registry, its access control and its providers use it; see `compose.mount`."""

    @property
    def registry(self) -> Registry:
        """The registry of the mounted server."""

    @property
    def needs_lifespan(self) -> bool:
        """Whether the mounted server must be started before its functions are called."""

    @property
    def capabilities(self) -> set[str]:
        """The capabilities of the mounted server."""

    async def start(self) -> None:
        """Start the mounted server, unless it runs. Raises `LifespanError` and `DeclarationError`."""

    def has(self, kind: str, name: str) -> bool:
        """Return whether the mounted server has a registration of this outer name, shown or hidden."""

    def outer(self, key: str, name: str, registration: Registration) -> tuple[str, Registration]:
        """Return the outer name and the outer registration; `key` is the field with the name."""

    def tool(self, registration: Registration) -> Registration:
        """Return the outer registration of a tool or a prompt."""

    def resource(self, registration: Registration) -> Registration:
        """Return the outer registration of a resource."""


class ViewProperty:
    """The property `Registry.view`. The registry stores the view in its `__dict__`, where it is read without a call; a
    property of Python would be called each time.
    """

    @overload
    def __get__(self, registry: None, owner: type) -> Self: ...

    @overload
    def __get__(self, registry: Registry, owner: type) -> RegistryView: ...

    def __get__(self, registry: Registry | None, owner: type) -> Self | RegistryView:
        return self if registry is None else registry.build_view()


class Registry:
    """All registrations of one server by name, in the order of declaration.

    `changed` is called with "tools", "prompts" or "resources" after these have changed.
    """

    def __init__(self, pack: EncodeList, page_size: int, changed: Callable[[str], None] = lambda what: None) -> None:
        self.mounts: tuple[MountedRegistry, ...] = ()
        self.providers: tuple[Provider, ...] = ()
        self.middleware: tuple[MiddlewareStep, ...] = ()
        """The middleware of the server, the outermost first."""
        self.tool_changes: dict[str, ToolChange] = {}
        """Changes to tools, by the unchanged name."""
        self.search: ToolSearch | None = None
        """The search that replaces most of the tools in the list of a large server."""
        self.visibility: Visibility | None = None
        """The visibility rules; None while there never were any."""
        self.provider_registrations: dict[tuple[int, str], tuple[list[Any], dict[str, Registration]]] = {}
        """The last items of each provider, by its index and the method, and the registrations made from them."""
        self._on_change = changed
        self._announced: set[str] = set()
        self._declarations = Declarations()
        self._unresolved: list[Registration] = []
        self._version = 0
        self.encode_list: EncodeList = pack
        self.page_size: int = page_size
        self.lists: dict[str, Pages] = {method: self._pages(method) for method in RESULTS}

    # --- contents ----------------------------------------------------------------------------------------------

    view: ViewProperty = ViewProperty()
    """The current view of the registry."""

    def build_view(self) -> RegistryView:
        """Build the view, and store it until the next change."""
        version = self._version
        self._resolve_hints()
        view = self.__dict__["view"] = RegistryView(self, self._declarations)
        if version != self._version:  # changed by another thread meanwhile; checked last
            self.__dict__.pop("view", None)
        return view

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The access rules of the server's middleware."""
        return guards_in(self.middleware) if self.middleware else ()

    @property
    def tools(self) -> dict[str, Registration]:
        """The tools, by name."""
        return self.view.tools

    @property
    def prompts(self) -> dict[str, Registration]:
        """The prompts, by name."""
        return self.view.prompts

    @property
    def resources(self) -> dict[str, Registration]:
        """The resources, by URI."""
        return self.view.resources

    @property
    def templates(self) -> dict[str, tuple[Template, Registration]]:
        """The resource templates, by their text."""
        return self.view.templates

    def add(self, kind: str, name: str, registration: Any) -> None:
        """Add a registration ("tool", "prompt", "resource", "resource template"). Raises `DeclarationError` for a
        duplicate name, and for an invalid name of a tool or prompt.
        """
        declared = self._declarations.of(kind)
        added = _registration_in(registration)
        if kind in ("tool", "prompt"):
            check_name(kind, name, added.function)
        if name in declared:
            registration = with_version(kind, name, declared[name], registration)
        declared[name] = registration
        if added.resolve_hints is not None:
            self._unresolved.append(added)
        self.invalidate(_LISTS[kind].partition("/")[0])

    def remove(self, kind: str, name: str) -> None:
        """Remove a registration; its running calls go on. Raises `DeclarationError` if it does not exist."""
        declared = self._declarations.of(kind).pop(name, None)
        if declared is None:
            raise DeclarationError(f"cannot remove {kind} {name!r}: it does not exist")
        gone = [_registration_in(declared), *_registration_in(declared).versions.values()]
        self._unresolved = [each for each in self._unresolved if each not in gone]
        self.invalidate(_LISTS[kind].partition("/")[0])

    def resolve(self) -> None:
        """Resolve the type hints with names that were defined after the declaration, such as a class further down in
        the module.

        A server does this when it starts. Raises `DeclarationError`, with file and line, for names that do not exist.
        """
        for mount in self.mounts:
            mount.registry.resolve()
        if not self._unresolved:
            return
        failed = self._resolve_hints()
        self.invalidate()  # derived registrations must be created again
        if failed:
            raise DeclarationError("\n".join(failed)) from None

    def _resolve_hints(self) -> list[str]:
        """Resolve hints, and return the errors of those that cannot be resolved yet."""
        failed: dict[Registration, str] = {}
        for registration in self._unresolved:
            try:
                if registration.resolve_hints is not None:
                    registration.resolve_hints()
            except DeclarationError as exc:
                failed[registration] = f"{location(registration.function)}: {exc}"
        self._unresolved = list(failed)
        return list(failed.values())

    def declared(self, kind: str) -> dict[str, Any]:
        """Return the declarations of a kind by name, shown or hidden."""
        return dict(self._declarations.of(kind))

    def unchanged_tool(self, name: str) -> Registration | None:
        """Return a declared or mounted tool without the change to it; None if it does not exist."""
        found = self._declarations.tools.get(name)
        for mount in self.mounts:
            found = found or mount.offered("tools").get(name)
        return found

    def invalidate(self, *what: str) -> None:
        """Discard the view and the pages after a change of "tools", "prompts" or "resources"; of all without
        arguments.
        """
        self._version += 1
        self.__dict__.pop("view", None)
        self.provider_registrations = {}
        for each in what or ("tools", "prompts", "resources"):
            for method, pages in self.lists.items():
                if method.startswith(each):
                    pages.clear()
            self._on_change(each)

    def _pages(self, method: str) -> Pages:
        result, field = RESULTS[method]

        def packed(items: Sequence[Any], cursor: str | None, rules: Rules) -> Raw:
            return self.encode_list(result(**{field: items}, next_cursor=cursor), rules)

        return Pages(lambda: self.without_searchable(method, self.view.definitions(method), {}), packed, self.page_size)

    def without_searchable(self, method: str, items: dict[str, Any], provided: Mapping[str, Any]) -> dict[str, Any]:
        """Return the items to list: all but the tools that clients find by search."""
        if self.search is None or method != "tools/list":
            return items
        return self.search.listed(items, provided)

    # --- capabilities ------------------------------------------------------------------------------------------

    def capabilities(self, *, may_log: bool = False) -> ServerCapabilities:
        """Return the capabilities to declare. A capability once declared stays, since clients rely on it.

        `may_log`: there are handlers elsewhere that can log.
        """
        self._announced |= self.view.capabilities | {each for mount in self.mounts for each in mount.capabilities}
        self._announced |= {each for provider in self.providers for each in provider.provides}
        if may_log:
            self._announced.add("logging")
        lists = ListCapability(list_changed=True)
        return ServerCapabilities(
            tools=lists if "tools" in self._announced else None,
            prompts=lists if "prompts" in self._announced else None,
            resources=ResourcesCapability(subscribe=True, list_changed=True)
            if "resources" in self._announced
            else None,
            completions={} if "completions" in self._announced else None,
            logging={} if "logging" in self._announced else None,
        )

    # --- look-up -----------------------------------------------------------------------------------------------

    def prompt(self, name: str) -> Registration:
        """Return a prompt by its name. Raises `InvalidParams`."""
        registration = self.prompts.get(name)
        if registration is None:
            raise InvalidParams(f"no prompt {name!r:.200}")
        return registration

    def resource(self, uri: str) -> tuple[Registration, dict[str, Any]]:
        """Return the resource or template for a URI, and the values of the template's variables. Raises
        `ResourceNotFound`.
        """
        return self.view.resource(uri)

    def find(self, kind: str, name: str) -> Registration | None:
        """Return the shown tool, prompt, resource (by URI) or template (by text), declared or mounted; None if there is
        none.
        """
        if kind == "resource template":
            return self.templates[name][1] if name in self.templates else None
        if kind != "resource":
            return self.tools.get(name) if kind == "tool" else self.prompts.get(name)
        try:
            return self.resource(name)[0]
        except ResourceNotFound:
            return None

    def hides(self, kind: str, name: str) -> bool:
        """Return whether the registration for a name, a URI or the text of a template exists here or on a mounted
        server, and is hidden: then no other registration takes its place, above all none of a provider.
        """
        if kind == "resource":
            return self.view.hides_uri(name)
        if self.find(kind, name) is not None:
            return False
        return name in self.view.before_rules[kind] or any(
            before in self._declarations.of(kind) or any(mount.has(kind, before) for mount in self.mounts)
            for before in self.changes_to(kind, name)
        )

    def changes_to(self, kind: str, name: str) -> dict[str, ToolChange | None]:
        """Return the changes that result in a name, by the name before; the name itself, without a change, unless it is
        changed to another. Empty for the former name of a changed tool.
        """
        if kind != "tool":
            return {name: None}
        changes: dict[str, ToolChange | None] = {
            old: change for old, change in self.tool_changes.items() if (change.name or old) == name
        }
        if name not in self.tool_changes:
            changes[name] = None
        return changes

    def completion_target(self, ref: Reference) -> Registration:
        """Return the prompt, template or resource whose arguments are completed. Raises `InvalidParams`."""
        if isinstance(ref, PromptReference):
            return self.prompt(ref.name)
        _, registration = self.templates.get(ref.uri, (None, None))
        if registration is not None:
            return registration
        try:
            return self.resource(ref.uri)[0]
        except ResourceNotFound as error:
            raise InvalidParams(f"no resource template {ref.uri!r:.200}") from error


def _registration_in(declared: Any) -> Registration:
    """Return the registration of a declaration; that of a template is a tuple with the template."""
    registration: Registration = declared[1] if isinstance(declared, tuple) else declared
    return registration

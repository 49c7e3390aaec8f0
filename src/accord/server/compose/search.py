"""Search in a large catalogue of tools: `search_tools` finds definitions, `call_tool` calls a tool.

If the definitions of all tools exceed a budget of tokens, `tools/list` contains these two and the tools in `always`.
That depends on the server only, not on the client: "the list of tools [...] MUST NOT vary per-connection". The other
tools can still be called by name.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.revision import LATEST, RULES
from accord.messages.tools import CallToolResult, Tool, ToolAnnotations
from accord.server.compose.provider_resolver import ProviderResolver
from accord.server.compose.ranking import Ranking, words
from accord.server.compose.tool_definitions import tokens, within_budget, words_of
from accord.server.core.context import Context
from accord.server.core.registration import Registration
from accord.server.declare.declaration import make_tool

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.access import Viewer
    from accord.server.core.registry import Registry

log: logging.Logger = logging.getLogger("accord.server")

SEARCH, CALL = "search_tools", "call_tool"

_MAX_RANKED = 1_000
"""The most ranked tools that a search considers."""
_RANKINGS = 16
"""The most indexes to cache: one for each set of visible tools."""


class SearchResult(msgspec.Struct):
    """The result of a search: definitions, and how many more tools matched, at most 1,000."""

    tools: list[JSONObject]
    left_out: int = 0


class Search:
    """The search over the tools of one server. Raises `DeclarationError` for an invalid budget or limit."""

    def __init__(self, registry: Registry, limits: Limits, budget: int, always: Collection[str], limit: int) -> None:
        if not isinstance(budget, int) or not isinstance(limit, int) or budget < 1 or limit < 1:
            raise DeclarationError(
                "search_tools needs a token budget and a tool limit of at least 1: search_tools(4000, limit=20)"
            )
        self._registry = registry
        self._provisions = ProviderResolver(registry, limits)
        self._budget = budget
        self._always = frozenset(always)
        self._unchecked = self._always
        """Names in `always` whose existence is not checked yet."""
        self._limit = limit
        self._catalogue: tuple[Mapping[str, Any], Mapping[str, Tool], Catalogue] | None = None
        self.registrations: dict[str, Registration] = self._search_tools()
        """The two tools, by name."""

    def _search_tools(self) -> dict[str, Registration]:
        safe = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        name, search = make_tool(self._search, name=SEARCH, annotations=safe, description=_ABOUT_SEARCH)
        other, call = make_tool(_call, name=CALL, description=_ABOUT_CALL)
        call.rewrite_call = rewrite_call_tool
        return {name: search, other: call}

    # --- list --------------------------------------------------------------------------------------------------

    def listed(self, items: dict[str, Any], provided: Mapping[str, Registration]) -> dict[str, Any]:
        """Return the items to list, by name; `provided` are the tools of providers among them."""
        self._warn_missing(provided)
        if self._is_large(provided):
            kept = self._always | self.registrations.keys() | self._page_tools(provided)
            return {name: item for name, item in items.items() if name in kept}
        return {name: item for name, item in items.items() if not self._is_search_tool(name)}

    def _warn_missing(self, provided: Mapping[str, Registration]) -> None:
        """Log once which tools in `always` are missing; they may be registered later."""
        missing = sorted(self._unchecked - self._registry.tools.keys() - provided.keys())
        self._unchecked = frozenset()
        if missing:
            log.warning("accord: search_tools(always=...): there is no tool %s", ", ".join(map(repr, missing)))

    def _is_search_tool(self, name: str) -> bool:
        return self._registry.tools.get(name) is self.registrations.get(name, self)

    def _page_tools(self, provided: Mapping[str, Registration]) -> set[str]:
        """Return the tools that only pages call: models must not find them, and hosts must know them."""
        tools = chain(self._registry.tools.items(), provided.items())
        return {name for name, tool in tools if tool.listed_with is not None}

    def _is_large(self, provided: Mapping[str, Registration]) -> bool:
        """Return whether the definitions of all tools exceed the budget; stops at the first that does."""
        left = self._budget
        for tool in chain(_definitions(_for_models(provided)), _definitions(self._own())):
            left -= tokens(tool)
            if left < 0:
                return True
        return False

    def _own(self) -> dict[str, Registration]:
        return {
            name: registration
            for name, registration in self._registry.tools.items()
            if not self._is_search_tool(name) and registration.listed_with is None
        }

    # --- search ------------------------------------------------------------------------------------------------

    async def _search(self, query: str, ctx: Context, limit: int = 5) -> SearchResult:
        """Find tools.

        Args:
            query: A few words that say what is to be done, such as "delete calendar event".
            limit: How many tools to give at most.
        """
        catalogue = await self._all()
        best = catalogue.best(query, ctx.viewer)[:_MAX_RANKED]
        limit = max(1, min(limit, self._limit))
        tools = list(within_budget([catalogue.tools[key] for key in best], self._budget, limit))
        return SearchResult(tools, len(best) - len(tools))

    async def _all(self) -> Catalogue:
        """Return the catalogue of all tools, indexed again only if the definitions changed."""
        own = self._registry.tools
        has_providers = self._registry.view.has_providers
        provided = _for_models(await self._provisions.listed("tools/list")) if has_providers else {}
        definitions = {name: registration.define(RULES[LATEST]) for name, registration in provided.items()}
        cached = self._catalogue
        if cached is None or cached[0] is not own or cached[1] != definitions:
            cached = self._catalogue = own, definitions, Catalogue({**provided, **self._own()})
        elif provided:
            cached[2].update({**provided, **self._own()})
        return cached[2]


def _for_models(provided: Mapping[str, Registration]) -> dict[str, Registration]:
    return {name: tool for name, tool in provided.items() if tool.listed_with is None}


def check_free(registry: Registry) -> None:
    """Raise `DeclarationError` if another tool has the name of one of the two."""
    for name in (SEARCH, CALL):
        if name in registry.declared("tool"):
            raise DeclarationError(f"there is a tool {name!r} already; the search tool needs that name")


class Catalogue:
    """A searchable index of tools in all versions."""

    def __init__(self, registrations: Mapping[str, Registration]) -> None:
        self._registrations: dict[str, Registration] = dict(registrations)
        self.tools: dict[str, Tool] = {}
        """The definitions, by name and version."""
        self._texts: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        for name, registration in registrations.items():
            for version, each in _versions(registration):
                key = _key(name, version)
                self.tools[key] = each.define(RULES[LATEST])
                self._texts[key], self._names[key] = list(words_of(name, self.tools[key])), list(words(name))
        self._rankings: OrderedDict[tuple[str, ...], Ranking] = OrderedDict()

    def update(self, registrations: Mapping[str, Registration]) -> None:
        """Replace registrations whose definitions are the same, but whose rules may be new."""
        self._registrations |= registrations

    def best(self, query: str, viewer: Viewer) -> list[str]:
        """Return the keys of the tools that have a word of the query, the best first; all tools for an empty query.
        Only tools visible to the viewer are ranked: hidden tools do not affect the scores.
        """
        keys = tuple(self._visible_to(viewer))
        return self._ranking(keys).best(query) if query.strip() else list(keys)

    def _visible_to(self, viewer: Viewer) -> Iterator[str]:
        """Yield the key of each tool's newest version that is visible to a viewer."""
        for name, registration in self._registrations.items():
            if not registration.versions:
                if viewer.can_see(registration):
                    yield _key(name, None)
            elif versions := viewer.versions(registration):
                yield _key(name, [*versions][-1])

    def _ranking(self, keys: tuple[str, ...]) -> Ranking:
        """Return the index of these tools; the indexes of recent searches are cached."""
        ranking = self._rankings.pop(keys, None)
        if ranking is None:
            ranking = Ranking({key: self._texts[key] for key in keys}, {key: self._names[key] for key in keys})
        self._rankings[keys] = ranking
        if len(self._rankings) > _RANKINGS:
            self._rankings.popitem(last=False)
        return ranking


def _versions(registration: Registration) -> Iterable[tuple[str | None, Registration]]:
    return registration.versions.items() or [(None, registration)]


def _key(name: str, version: str | None) -> str:
    return f"{len(name)} {name} {version or ''}"  # both may contain spaces


def rewrite_call_tool(registration: Registration, arguments: Raw) -> tuple[str, Raw]:
    """Return the name and arguments of the tool that a `call_tool` request calls. Raises `InvalidArguments`."""
    (name, inner_arguments), _ = registration.bind(arguments, None)
    return name, Raw(codec.encode(inner_arguments or {}))


def _call(name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
    """Never runs: see `Registration.rewrite_call`.

    Args:
        name: The name of the tool.
        arguments: Its arguments.
    """
    raise NotImplementedError  # dispatch calls the requested tool instead


def _definitions(registrations: Mapping[str, Registration]) -> Iterator[Tool]:
    return (registration.define(RULES[LATEST]) for registration in registrations.values())


_ABOUT_SEARCH = (
    "This server has more tools than it lists. Search them by a few words that say what is to be done, and get the "
    f"definitions of those that fit best; then call one with {CALL}."
)
_ABOUT_CALL = (
    f"Call a tool by its name, as {SEARCH} gives it, with arguments that fit its inputSchema. The result is that of "
    "the tool."
)

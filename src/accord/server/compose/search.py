"""A large catalogue of tools behind two: `search_tools` finds their definitions, `call_tool` calls one.

Where the definitions of all tools of a server take more than a budget of tokens, its list has these two and those that
are always to be there. That depends on what the server has, and on nobody who asks: "the list of tools [...] MUST NOT
vary per-connection". The others can be called by their names as ever.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from accord.server.core.context import Context
from accord.server.core.registration import Registration
from accord.server.declare.declaration import make_tool

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.access import Viewer
    from accord.server.core.registry import Registry

log: logging.Logger = logging.getLogger("accord.server")

SEARCH, CALL = "search_tools", "call_tool"

_BYTES = 4
"""Bytes of JSON that are taken for one token: what English in JSON comes to with most models, about."""
_MOST = 1_000
"""Tools that are looked at after the ranking."""
_SHORT_FIELDS = ("type", "enum", "const")
"""What a shortened definition says of an argument."""
_RANKINGS = 16
"""Indexes that are kept: one for each set of tools that somebody sees."""
_SENTENCE = 200
"""Characters of the description in a shortened definition."""
_NAME, _ARGUMENT = 3, 2
"""How often the words of a name and of an argument count."""


class SearchResult(msgspec.Struct):
    """What a search found: definitions, and how many more tools have one of the words, at most 1,000."""

    tools: list[JSONObject]
    left_out: int = 0


class Search:
    """The search over the tools of one server. Raises `DeclarationError` for a budget that is none."""

    def __init__(self, registry: Registry, limits: Limits, budget: int, always: Collection[str], most: int) -> None:
        if not isinstance(budget, int) or not isinstance(most, int) or budget < 1 or most < 1:
            raise DeclarationError(
                "search_tools needs a token budget and a tool limit of at least 1: search_tools(4000, limit=20)"
            )
        self._registry = registry
        self._provisions = ProviderResolver(registry, limits)
        self._budget = budget
        self._always = frozenset(always)
        self._unchecked = self._always
        """Of these, what has yet to be looked for."""
        self._most = most
        self._catalogue: tuple[Mapping[str, Any], Mapping[str, Tool], Catalogue] | None = None
        self.registrations: dict[str, Registration] = self._search_tools()
        """The two tools, by name."""

    def _search_tools(self) -> dict[str, Registration]:
        safe = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        name, search = make_tool(self._search, name=SEARCH, annotations=safe, description=_ABOUT_SEARCH)
        other, call = make_tool(_call, name=CALL, description=_ABOUT_CALL)
        call.rewrite_call = rewrite_call_tool
        return {name: search, other: call}

    # --- the list ----------------------------------------------------------------------------------------------

    def listed(self, items: dict[str, Any], provided: Mapping[str, Registration]) -> dict[str, Any]:
        """Of the items of a list, by name, those that are to be in it; `provided` are tools of providers among them."""
        self._warn_missing(provided)
        if self._is_large(provided):
            return {name: item for name, item in items.items() if name in self._always or name in self.registrations}
        return {name: item for name, item in items.items() if not self._is_mine(name)}

    def _warn_missing(self, provided: Mapping[str, Registration]) -> None:
        """Say once which tools that are always to be there are not; they may come later."""
        missing = sorted(self._unchecked - self._registry.tools.keys() - provided.keys())
        self._unchecked = frozenset()
        if missing:
            log.warning("accord: search_tools(always=...): there is no tool %s", ", ".join(map(repr, missing)))

    def _is_mine(self, name: str) -> bool:
        return self._registry.tools.get(name) is self.registrations.get(name, self)

    def _is_large(self, provided: Mapping[str, Registration]) -> bool:
        """Whether the definitions of all tools are more than the budget; no more are made than it takes to say."""
        left = self._budget
        for tool in chain(_definitions(provided), _definitions(self._own())):
            left -= tokens(tool)
            if left < 0:
                return True
        return False

    def _own(self) -> dict[str, Registration]:
        return {name: offer for name, offer in self._registry.tools.items() if not self._is_mine(name)}

    # --- the search --------------------------------------------------------------------------------------------

    async def _search(self, query: str, ctx: Context, limit: int = 5) -> SearchResult:
        """Find tools.

        Args:
            query: A few words that say what is to be done, such as "delete calendar event".
            limit: How many tools to give at most.
        """
        catalogue = await self._all()
        best = catalogue.best(query, ctx.viewer)[:_MOST]
        tools = list(self._within_budget([catalogue.tools[key] for key in best], max(1, min(limit, self._most))))
        return SearchResult(tools, len(best) - len(tools))

    def _within_budget(self, tools: Sequence[Tool], most: int) -> Iterator[JSONObject]:
        """Yield the first, and as many of the following as there is room for. A definition for which there is no room
        is shortened, so that a good match with a large schema does not give way to a worse one.
        """
        left = self._budget
        for number, tool in enumerate(tools[:most]):
            shown = _definition(tool)
            if tokens(shown) > left:
                shown = _shortened(shown)
            left -= tokens(shown)
            if number and left < 0:
                return
            yield shown

    async def _all(self) -> Catalogue:
        """All tools, indexed again only where they are no longer what they were."""
        own = self._registry.tools
        provided = await self._provisions.listed("tools/list") if self._registry.view.has_providers else {}
        definitions = {name: offer.define(RULES[LATEST]) for name, offer in provided.items()}
        kept = self._catalogue
        if kept is None or kept[0] is not own or kept[1] != definitions:
            kept = self._catalogue = own, definitions, Catalogue({**provided, **self._own()})
        elif provided:
            kept[2].update({**provided, **self._own()})
        return kept[2]


def check_free(registry: Registry) -> None:
    """Raise `DeclarationError` where a tool has the name of one of the two."""
    for name in (SEARCH, CALL):
        if name in registry.declared("tool"):
            raise DeclarationError(f"there is a tool {name!r} already; the search tool needs that name")


class Catalogue:
    """Tools that can be searched, each in all of its versions."""

    def __init__(self, offers: Mapping[str, Registration]) -> None:
        self._registrations: dict[str, Registration] = dict(offers)
        self.tools: dict[str, Tool] = {}
        """The definitions, by name and version."""
        self._texts: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        for name, offer in offers.items():
            for version, each in _versions(offer):
                key = _key(name, version)
                self.tools[key] = each.define(RULES[LATEST])
                self._texts[key], self._names[key] = list(_words(name, self.tools[key])), list(words(name))
        self._rankings: OrderedDict[tuple[str, ...], Ranking] = OrderedDict()

    def update(self, offers: Mapping[str, Registration]) -> None:
        """Take registrations of the same definitions, of which the rules may be new."""
        self._registrations |= offers

    def best(self, query: str, viewer: Viewer) -> list[str]:
        """Return the keys of the tools that have a word of the query, the best first; of all tools for no word at all.
        They are found and ranked among those that the viewer sees: what is hidden has no words and no weight.
        """
        keys = tuple(self._visible_to(viewer))
        return self._ranking(keys).best(query) if query.strip() else list(keys)

    def _visible_to(self, viewer: Viewer) -> Iterator[str]:
        """Yield the keys of what is listed for somebody: of each tool the newest version that exists for them."""
        for name, offer in self._registrations.items():
            if not offer.versions:
                if viewer.can_see(offer):
                    yield _key(name, None)
            elif versions := viewer.versions(offer):
                yield _key(name, [*versions][-1])

    def _ranking(self, keys: tuple[str, ...]) -> Ranking:
        """Return the index of these tools; those of the last few viewers who see different tools are kept."""
        made = self._rankings.pop(keys, None)
        if made is None:
            made = Ranking({key: self._texts[key] for key in keys}, {key: self._names[key] for key in keys})
        self._rankings[keys] = made
        if len(self._rankings) > _RANKINGS:
            self._rankings.popitem(last=False)
        return made


def _versions(offer: Registration) -> Iterable[tuple[str | None, Registration]]:
    return offer.versions.items() or [(None, offer)]


def _key(name: str, version: str | None) -> str:
    return f"{len(name)} {name} {version or ''}"  # both may have blanks


def tokens(tool: Tool | JSONObject) -> int:
    """Return about how many tokens a definition takes of the context of a model."""
    return len(codec.encode(tool)) // _BYTES + 1


def rewrite_call_tool(offer: Registration, arguments: Raw) -> tuple[str, Raw]:
    """Which tool a call of `call_tool` means, and with which arguments. Raises `InvalidArguments`."""
    (name, given), _ = offer.bind(arguments, None)
    return name, Raw(codec.encode(given or {}))


def _call(name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
    """Never called itself: see `Registration.rewrite_call`.

    Args:
        name: The name of the tool.
        arguments: Its arguments.
    """
    raise NotImplementedError  # dispatch calls the tool that is meant in its place


def _definitions(offers: Mapping[str, Registration]) -> Iterator[Tool]:
    return (offer.define(RULES[LATEST]) for offer in offers.values())


def _words(name: str, tool: Tool) -> Iterator[str]:
    yield from (*words(name), *words(tool.title or "")) * _NAME
    yield from words(tool.description or "")
    for argument, about in tool.input_schema.get("properties", {}).items():
        yield from (*words(argument),) * _ARGUMENT
        if isinstance(about, dict) and isinstance(about.get("description"), str):
            yield from words(about["description"])


def _definition(tool: Tool) -> JSONObject:
    """What a model has to know of a tool; what all revisions have a name for."""
    about = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    return {key: value for key, value in about.items() if value is not None}


def _shortened(shown: JSONObject) -> JSONObject:
    """Return a definition whose arguments have their types and no more: a call still checks the whole schema."""
    schema = shown["inputSchema"]
    properties = {
        name: {key: about[key] for key in _SHORT_FIELDS if key in about} if isinstance(about, dict) else about
        for name, about in schema.get("properties", {}).items()
    }
    required = {"required": schema["required"]} if "required" in schema else {}
    description = {"description": shown["description"][:_SENTENCE]} if "description" in shown else {}
    return {**shown, **description, "inputSchema": {"type": "object", "properties": properties, **required}}


_ABOUT_SEARCH = (
    "This server has more tools than it lists. Search them by a few words that say what is to be done, and get the "
    f"definitions of those that fit best; then call one with {CALL}."
)
_ABOUT_CALL = (
    f"Call a tool by its name, as {SEARCH} gives it, with arguments that fit its inputSchema. The result is that of "
    "the tool."
)

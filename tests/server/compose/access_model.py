"""Servers that are put together at random, and a model of who may see what of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import count
from typing import Any
from urllib.parse import unquote

from hypothesis import strategies as st

from accord import (
    CacheHint,
    Caching,
    PromptReference,
    Provided,
    Provider,
    RequireScopes,
    Server,
    Tool,
    ToolAnnotations,
    ToolChange,
)
from accord.messages.completion import Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt, PromptArgument
from accord.messages.resources import ResourceTemplate

Scopes = frozenset[str]
NONE: Scopes = frozenset()
PUBLIC = CacheHint(ttl=60, scope="public")
PATHS = ("x/open/1", "x/private/1")


# --- the model -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """Something to learn of: `names` is what it is called now, a URI of a template by the text of that as well. Each
    version of a tool is one of its own.
    """

    kind: str
    names: tuple[str, ...]
    tags: Scopes = NONE
    scopes: Scopes = NONE
    version: str | None = None
    had: Scopes = NONE
    """All names and tags that rules are asked about."""
    provided: bool = False


@dataclass
class Node:
    """A server: what it declares or a provider has, what is mounted, changed, hidden, and guarded."""

    items: list[Item] = field(default_factory=list)
    mounts: list[tuple[str, Node]] = field(default_factory=list)
    changes: dict[str, tuple[str, Scopes | None]] = field(default_factory=dict)
    visibility: list[tuple[bool, Scopes]] = field(default_factory=list)
    """What was shown or hidden, by name and tag: the last that says anything of an item holds."""
    only: bool = False
    """Whether all else is hidden."""
    rules: list[tuple[str, Scopes]] = field(default_factory=list)
    tag_rules: list[tuple[str, Scopes]] = field(default_factory=list)
    shadows: list[Item] = field(default_factory=list)
    """What a provider has under the name of something that is declared or mounted, which is never seen."""
    caches: bool = False
    """Whether results are kept."""
    catches_all: bool = False
    """Whether the server has an open template for whatever nothing else answers."""

    def shown(self) -> list[Item]:
        found = [*self.items]
        for prefix, inner in self.mounts:
            for item in inner.shown():
                found.append(renamed(item, [outside(item.kind, name, prefix) for name in item.names]))
        for at, item in enumerate(found):
            if item.kind == "tool" and item.names[0] in self.changes:
                name, tags = self.changes[item.names[0]]
                changed = renamed(item, [name])
                found[at] = dataclasses.replace(changed, tags=item.tags if tags is None else tags)
        return [self.guarded(item) for item in found if not self.hides(item)]

    def hides(self, item: Item) -> bool:
        names = item.names[:1] if item.provided else item.names
        ends = [names] if item.provided or item.kind != "uri" else [names, names[1:]]  # a template that is hidden
        said = [self.says(names, item.tags) for names in ends]
        return False in said or (self.only and None in said)

    def says(self, names: Sequence[str], tags: Scopes) -> bool | None:
        return next(
            (shown for shown, words in reversed(self.visibility) if not words.isdisjoint((*names, *tags))), None
        )

    def guarded(self, item: Item) -> Item:
        asked = [scopes for pattern, scopes in self.rules if any(fnmatchcase(name, pattern) for name in names_of(item))]
        asked += [scopes for tag, scopes in self.tag_rules if tag in item.had | item.tags]
        return dataclasses.replace(item, scopes=item.scopes.union(*asked))


def names_of(item: Item) -> Scopes:
    return item.had.union(item.names)


def renamed(item: Item, names: Sequence[str]) -> Item:
    return dataclasses.replace(item, names=tuple(names), had=item.had.union(item.names, item.tags))


def outside(kind: str, name: str, prefix: str) -> str:
    if not prefix:
        return name
    return f"{prefix}_{name}" if kind in ("tool", "prompt") else name.replace("://", f"://{prefix}/")


def may_see(item: Item, granted: Scopes | None, view: Scopes) -> bool:
    names = item.names[:1] if item.provided else item.names
    return view.isdisjoint((*names, *item.tags)) and (granted is None or item.scopes <= granted)


# --- the servers -----------------------------------------------------------------------------------------------


class Shelf(Provider):
    """What a node has that is not declared."""

    def __init__(self, items: list[Item]) -> None:
        super().__init__()
        self.items = items

    def named(self, kind: str) -> list[str]:
        return [item.names[0] for item in self.items if item.kind == kind]

    async def tools(self) -> list[Provided]:
        return [Provided(Tool(name=name, input_schema={"type": "object"}), lambda _: "") for name in self.named("tool")]

    async def prompts(self) -> list[Provided]:
        argument = [PromptArgument(name="city")]
        return [Provided(Prompt(name=name, arguments=argument), lambda _: "") for name in self.named("prompt")]

    async def resources(self) -> list[Resource]:
        return [Resource(uri=uri, name=uri) for uri in self.named("resource")]

    async def templates(self) -> list[ResourceTemplate]:
        return [ResourceTemplate(uri_template=text, name=text) for text in self.named("template")]

    async def resource(self, uri: str) -> Provided | None:
        scheme, _, path = unquote(uri).partition("://")
        known = f"{scheme.lower()}://{path}"
        if known not in (*self.named("resource"), *self.named("uri")):
            return None
        return Provided(Resource(uri=uri, name=uri), lambda: "text")

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        if isinstance(ref, PromptReference):
            return ["Oslo"] if ref.name in self.named("prompt") else None
        return PATHS if ref.uri in self.named("template") else None


Servers = dict[int, Server]
"""The servers that are made, by the identity of their nodes."""


def made_of(node: Node, servers: Servers, **options: Any) -> Server:
    rules: list[Any] = [Caching()] if node.caches else []
    rules += [RequireScopes({pattern: scopes}) for pattern, scopes in node.rules]
    rules += [RequireScopes(tags={tag: scopes}) for tag, scopes in node.tag_rules]
    server = servers[id(node)] = Server("node", middleware=rules, **options)
    for item in node.items:
        if not item.provided:
            declare(server, item)
    if provided := [*node.shadows, *(item for item in node.items if item.provided)]:
        server.add_provider(Shelf(provided))
    for prefix, inner in node.mounts:
        server.mount(servers.get(id(inner)) or made_of(inner, servers), prefix)
    for name, (new, tags) in node.changes.items():
        server.change_tool(name, ToolChange(name=new, tags=tags))
    if node.only:
        server.enable(*TOOLS_OF_SEARCH, tags=HELPER, only=True)
    for shown, words in node.visibility:
        (server.enable if shown else server.disable)(*words, tags=words)
    if node.catches_all:
        server.resource(ALL, tags=HELPER)(lambda path: path)
    return server


HELPER = frozenset({"helper"})
"""Marks what is on servers for the test: it is never hidden."""

TOOLS_OF_SEARCH = frozenset({"search_tools", "call_tool"})

ALL = "docs://{+path}"
"""A template that answers for every spelling of what is below `docs:`."""


def declare(server: Server, item: Item) -> None:
    name = item.names[0]
    if item.kind == "tool":
        server.tool(name=name, tags=item.tags, scopes=item.scopes, version=item.version, annotations=SAFE)(lambda: "")
    elif item.kind == "prompt":
        prompt = server.prompt(name=name, tags=item.tags, scopes=item.scopes, version=item.version)(lambda city="": "")
        prompt.complete("city")(proposing(item.version))
    elif item.kind == "resource":
        server.resource(name, tags=item.tags, scopes=item.scopes, cache=PUBLIC)(lambda: "text")
    elif item.kind == "template":
        template = server.resource(name, tags=item.tags, scopes=item.scopes, cache=PUBLIC)(lambda path: "text")
        template.complete("path")(lambda typed: list(PATHS))


SAFE = ToolAnnotations(read_only_hint=True)


def proposing(version: str | None) -> Callable[[str], list[str]]:
    return lambda typed: ["Oslo", *filter(None, [version])]


SOME = st.sampled_from([NONE, NONE, frozenset("a"), frozenset("b")])
TAGS = st.sampled_from([NONE, NONE, frozenset({"red"}), frozenset({"blue"})])


@st.composite
def items(draw: Any, numbers: Any) -> list[Item]:
    found = []
    for kind in draw(st.lists(st.sampled_from(["tool", "tool", "prompt", "resource", "template"]), max_size=4)):
        number, provided = next(numbers), draw(st.booleans())
        tags, scopes = (NONE, NONE) if provided else (draw(TAGS), draw(SOME))
        if kind == "template":
            text = f"data{number}://{{+path}}"
            found.append(Item(kind, (text,), tags, scopes, provided=provided))
            for path in PATHS:
                found.append(Item("uri", (f"data{number}://{path}", text), tags, scopes, provided=provided))
            continue
        word = draw(st.sampled_from(["open", "private"]))
        name = f"docs://x/{word}/{number}" if kind == "resource" else f"{word}_{kind}_{number}"
        if kind in ("tool", "prompt") and not provided and draw(st.booleans()):
            for version in draw(st.permutations(["1", "2", "3"]))[: draw(st.integers(1, 3))]:
                found.append(Item(kind, (name,), draw(TAGS), draw(SOME), version))
            continue
        found.append(Item(kind, (name,), tags, scopes, provided=provided))
    return found


@st.composite
def nodes(draw: Any, numbers: Any, depth: int = 0) -> Node:
    node = Node(draw(items(numbers)))
    if depth < 2:
        prefixes = st.lists(st.sampled_from(["", "p", "q"]), max_size=2, unique=True)
        node.mounts = [(prefix, draw(nodes(numbers, depth + 1))) for prefix in draw(prefixes)]
        if node.mounts and node.mounts[0][0] and draw(st.booleans()):  # one server, mounted twice
            node.mounts.append(("r", node.mounts[0][1]))
    names = [*dict.fromkeys(item.names[0] for item in Node(node.items, node.mounts).shown())]
    tools = [name for name in names if "_tool_" in name]
    for name in draw(st.lists(st.sampled_from(tools), max_size=2, unique=True)) if tools else ():
        node.changes[name] = (f"changed_{next(numbers)}", draw(st.sampled_from([None, NONE, frozenset({"red"})])))
    several = st.frozensets(st.sampled_from([*names, "red"]), min_size=1, max_size=2)
    node.visibility = draw(st.lists(st.tuples(st.sampled_from([False, False, True]), several), max_size=2))
    node.only = draw(st.sampled_from([False, False, False, True]))
    node.caches = draw(st.booleans())
    declared = [item for item in everything(Node(node.items, node.mounts)) if not item.provided]
    node.shadows = draw(st.lists(st.sampled_from(declared), max_size=2)) if declared and draw(st.booleans()) else []
    patterns = ["private_*", "p_private_*", "docs://x/private/*", "docs://p/x/private/*", "data*://x/private/*", *names]
    node.rules = draw(st.lists(st.tuples(st.sampled_from(patterns), SOME.filter(bool)), max_size=2))
    node.tag_rules = draw(st.lists(st.tuples(st.sampled_from(["red", "blue"]), SOME.filter(bool)), max_size=1))
    return node


@dataclass(frozen=True)
class World:
    """A server, a client with some scopes, and what is hidden from its session."""

    node: Node
    granted: Scopes | None
    view: Scopes
    other: Scopes
    """What was granted to somebody else, who asks the same before."""
    adds: bool
    """Whether a middleware puts everything into lists, as one does that keeps what an administrator was given."""
    budget: int
    """What the definitions of tools may take before they have to be searched for."""
    page_size: int
    place: int
    """Which of the servers has tools that look on behalf of the client, and hide for it."""
    later: list[tuple[int, bool, Scopes]]
    """What is shown and hidden while it is served, on which of the servers."""


@st.composite
def worlds(draw: Any) -> World:
    node = draw(nodes(count(1)))
    granted = draw(st.sampled_from([None, NONE, frozenset("a"), frozenset("b"), frozenset("ab")]))
    shown = [name for item in node.shown() for name in (*item.names, *item.tags)]
    view = draw(st.frozensets(st.sampled_from(shown), max_size=2)) if shown and draw(st.booleans()) else NONE
    provided = any(item.provided and item.kind in ("resource", "uri") for item in everything(node)) or has_shadows(node)
    places = [each for each, _ in places_in(node)]
    if not provided:
        for each in places:
            each.catches_all = draw(st.booleans()) and draw(st.booleans())
    later = []
    for at in draw(st.lists(st.sampled_from(range(len(places))), max_size=2)):
        if names := [name for item in everything(places[at]) for name in (item.names[0], *item.tags)]:
            several = st.frozensets(st.sampled_from(names), min_size=1, max_size=2)
            later.append((at, draw(st.booleans()), draw(several)))
    return World(
        node,
        granted,
        view,
        draw(st.sampled_from([NONE, frozenset("a"), frozenset("ab")])),
        draw(st.booleans()),
        draw(st.sampled_from([1, 10**9])),
        draw(st.sampled_from([2, 1000])),
        draw(st.sampled_from(range(len(places)))),
        later,
    )


Path = tuple[tuple[Node, str], ...]
"""The servers around one, the innermost first, each with the prefix under which it has what is inside."""


def places_in(node: Node, path: Path = ()) -> Iterator[tuple[Node, Path]]:
    """All servers of a tree, and where they stand in it."""
    yield node, path
    for prefix, inner in node.mounts:
        yield from places_in(inner, ((node, prefix), *path))


def outermost(path: Path, kind: str, name: str) -> str:
    """The name on the outermost server of what one inside calls so."""
    for around, prefix in path:
        name = outside(kind, name, prefix)
        if kind == "tool" and name in around.changes:
            name, _ = around.changes[name]
    return name


def seen_in(node: Node, granted: Scopes | None, view: Scopes) -> list[Item]:
    """What somebody sees of everything."""
    seen = {(item.names, item.version) for item in node.shown() if may_see(item, granted, view)}
    return [item for item in everything(node) if (item.names, item.version) in seen]


def has_shadows(node: Node) -> bool:
    return bool(node.shadows) or any(has_shadows(inner) for _, inner in node.mounts)


def named(items: list[Item], kind: str) -> list[str]:
    return [item.names[0] for item in items if item.kind == kind]


def everything(node: Node) -> list[Item]:
    """All that is somewhere in it, by the names that it has or would have outside."""
    bare = Node(node.items, [(prefix, without_rules(inner)) for prefix, inner in node.mounts], node.changes)
    return bare.shown()


def is_exact(node: Node) -> bool:
    return all(prefix and is_exact(inner) for prefix, inner in node.mounts)


def without_rules(node: Node) -> Node:
    return Node(node.items, [(prefix, without_rules(inner)) for prefix, inner in node.mounts], node.changes)

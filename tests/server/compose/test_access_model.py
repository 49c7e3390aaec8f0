"""Servers that are put together at random, and every way to learn of an item, beside a model of who may see what."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import count
from typing import Any
from urllib.parse import unquote

from hypothesis import given, settings, strategies as st

from accord import (
    CacheHint,
    Client,
    Context,
    NotSupported,
    Principal,
    PromptReference,
    ProtocolError,
    Provided,
    Provider,
    RequireScopes,
    ResourceTemplateReference,
    ResourceUpdated,
    Server,
    Tool,
    ToolChange,
)
from accord.messages.completion import Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt, PromptArgument
from accord.messages.resources import ResourceTemplate

from tests.server.compose.reaching import tools_of

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
    hidden: Scopes = NONE
    rules: list[tuple[str, Scopes]] = field(default_factory=list)
    tag_rules: list[tuple[str, Scopes]] = field(default_factory=list)
    shadows: list[Item] = field(default_factory=list)
    """What a provider has under the name of something that is declared or mounted, which is never seen."""

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
        return [self.guarded(item) for item in found if not is_hidden(item, self.hidden)]

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


def is_hidden(item: Item, words: Scopes) -> bool:
    names = item.names[:1] if item.provided else item.names
    return not words.isdisjoint((*names, *item.tags))


def may_see(item: Item, granted: Scopes | None, view: Scopes) -> bool:
    return not is_hidden(item, view) and (granted is None or item.scopes <= granted)


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


def made_of(node: Node) -> Server:
    rules = [RequireScopes({pattern: scopes}) for pattern, scopes in node.rules]
    rules += [RequireScopes(tags={tag: scopes}) for tag, scopes in node.tag_rules]
    server = Server("node", middleware=rules)
    for item in node.items:
        if not item.provided:
            declare(server, item)
    if provided := [*node.shadows, *(item for item in node.items if item.provided)]:
        server.add_provider(Shelf(provided))
    for prefix, inner in node.mounts:
        server.mount(made_of(inner), prefix)
    for name, (new, tags) in node.changes.items():
        server.change_tool(name, ToolChange(name=new, tags=tags))
    if node.hidden:
        server.disable(*node.hidden, tags=node.hidden)
    return server


def declare(server: Server, item: Item) -> None:
    name = item.names[0]
    if item.kind == "tool":
        server.tool(name=name, tags=item.tags, scopes=item.scopes, version=item.version)(lambda: "")
    elif item.kind == "prompt":
        prompt = server.prompt(name=name, tags=item.tags, scopes=item.scopes, version=item.version)(lambda city="": "")
        prompt.complete("city")(proposing(item.version))
    elif item.kind == "resource":
        server.resource(name, tags=item.tags, scopes=item.scopes, cache=PUBLIC)(lambda: "text")
    elif item.kind == "template":
        template = server.resource(name, tags=item.tags, scopes=item.scopes, cache=PUBLIC)(lambda path: "text")
        template.complete("path")(lambda typed: list(PATHS))


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
    names = [*dict.fromkeys(item.names[0] for item in Node(node.items, node.mounts).shown())]
    tools = [name for name in names if "_tool_" in name]
    for name in draw(st.lists(st.sampled_from(tools), max_size=2, unique=True)) if tools else ():
        node.changes[name] = (f"changed_{next(numbers)}", draw(st.sampled_from([None, NONE, frozenset({"red"})])))
    several = st.frozensets(st.sampled_from([*names, "red"]), max_size=2)
    node.hidden = draw(st.sampled_from([NONE, NONE])) or draw(several if draw(st.booleans()) else st.just(NONE))
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
    catches_all: bool
    """Whether the server has an open template for whatever nothing else answers."""
    adds: bool
    """Whether a middleware puts everything into lists, as one does that keeps what an administrator was given."""


@st.composite
def worlds(draw: Any) -> World:
    node = draw(nodes(count(1)))
    granted = draw(st.sampled_from([None, NONE, frozenset("a"), frozenset("b"), frozenset("ab")]))
    shown = [name for item in node.shown() for name in (*item.names, *item.tags)]
    view = draw(st.frozensets(st.sampled_from(shown), max_size=2)) if shown and draw(st.booleans()) else NONE
    provided = any(item.provided and item.kind in ("resource", "uri") for item in everything(node)) or has_shadows(node)
    return World(node, granted, view, draw(st.booleans()) and not provided, draw(st.booleans()))


# --- every way to learn of an item -----------------------------------------------------------------------------


class Looking:
    """A client with some scopes and, in a session, some things hidden; and what the model has of all."""

    def __init__(self, world: World, server: Server, client: Client, seen: list[Item], public: list[Item]) -> None:
        self.world, self.server, self.client, self.seen = world, server, client, seen
        self.known = everything(world.node)
        self.public = public
        """What those see who were granted nothing."""
        self.exact = is_exact(world.node)
        """Whether it can be told from a name which server it belongs to; else the rules of all hold for its updates."""

    def names(self, *kinds: str) -> list[str]:
        return sorted({item.names[0] for item in self.seen if item.kind in kinds})

    async def compare(self) -> None:
        await self.lists()
        for item in self.known:
            for name in dict.fromkeys((item.names[0], *spelled(item))):
                assert await self.gets(item, name) == (item in self.seen), name
            for name in strange(item) if self.world.catches_all else ():
                assert item in self.seen or not await self.gets(item, name), name
        await self.completions()
        await self.subscriptions()

    async def lists(self) -> None:
        client = self.client
        helping = {"hide", "sees", "search_tools", "call_tool"}
        assert sorted({*await tools_of(client)} - helping) == self.names("tool")
        for listed in (*await client.list_tools(), *await client.list_prompts()):
            versions = [item.version for item in self.seen if item.version and item.names[0] == listed.name]
            assert ((listed.meta or {}).get("accord/versions") or []) == sorted(filter(None, versions))
        assert sorted({each.name for each in await client.list_prompts()} - {"helping"}) == self.names("prompt")
        assert sorted({each.uri for each in await client.list_resources()} - {*ABOVE}) == self.names("resource")
        templates = {each.uri_template for each in await client.list_resource_templates()} - {ALL}
        assert sorted(templates) == self.names("template")
        found: Any = (await client.call_tool("search_tools", {"query": "", "limit": 1000})).structured_content
        assert sorted({tool["name"] for tool in found["tools"]} - helping) == self.names("tool")
        assert found["left_out"] == 0

    async def gets(self, item: Item, name: str) -> bool:
        try:
            if item.kind == "tool":
                sees = (await self.client.call_tool("sees", {"name": name})).text == "true"
                assert sees == (item.names[0] in self.names("tool")) or not (sees or self.exact)
                await self.client.call_tool(name, meta=item.version and {"accord/version": item.version})
            elif item.kind == "prompt":
                await self.client.get_prompt(name, meta=item.version and {"accord/version": item.version})
            elif item.kind in ("resource", "uri"):
                scope = (await self.client.read_resource(name)).cache_scope
                assert item in self.public or scope != "public"
            else:
                return item in self.seen
        except ProtocolError:
            return False
        return True

    async def completions(self) -> None:
        for item in self.known:
            if item.kind == "prompt":
                ref, meta = PromptReference(name=item.names[0]), item.version and {"accord/version": item.version}
                values = await self.complete(ref, "city", meta)
                assert values == (["Oslo", *filter(None, [item.version])] if item in self.seen else None)
            elif item.kind == "template":
                text = item.names[0]
                values = await self.complete(ResourceTemplateReference(uri=text), "path")
                uris = self.names("uri")
                wanted = [path for path in PATHS if text.replace("{+path}", path) in uris]
                if item in self.seen and not self.exact:
                    assert set(values or ()) <= set(wanted)
                else:
                    assert values == (wanted if item in self.seen else None)

    async def complete(self, ref: Reference, argument: str, meta: Any = None) -> list[str] | None:
        try:
            return (await self.client.complete(ref, argument=argument, meta=meta)).values
        except ProtocolError:
            return None

    async def subscriptions(self) -> None:
        uris = [item.names[0] for item in self.known if item.kind in ("resource", "uri")]
        for uri in uris:
            try:
                async with self.client.subscribe(uri):
                    granted = True
            except (ProtocolError, NotSupported):
                granted = False
            assert granted == (uri in self.names("resource", "uri")), uri
        async with self.client.subscribe(*ABOVE) as changes:
            told = await self.told(changes)
        wanted = [uri for uri in self.names("resource", "uri") if uri.startswith("docs:")]
        assert sorted(told) == wanted if self.exact else set(told) <= set(wanted)

    async def told(self, changes: Any) -> list[str]:
        """The URIs that a subscription is told of, when everything has changed."""
        for item in self.known:
            if item.kind in ("resource", "uri"):
                self.server.resource_updated(item.names[0])
        self.server.resource_updated("end://x/")
        told: list[str] = []
        async with asyncio.timeout(100):
            while (change := await anext(changes)) != ResourceUpdated("end://x/"):
                if isinstance(change, ResourceUpdated):
                    told.append(change.uri)
        return told


ABOVE = ("docs://x/", "docs://p/", "docs://q/", "end://x/")
"""What the outermost server has for everybody: whoever subscribes to it hears of what is below."""


ALL = "docs://{+path}"
"""A template that answers for every spelling of what is below `docs:`."""


def strange(item: Item) -> list[str]:
    """URIs that some parser takes for that of a resource; a template that matches everything may answer for them."""
    if item.kind != "resource":
        return []
    uri = item.names[0]
    changes = [
        ("//", "//ann@"),
        ("vate", "v\nate"),
        ("/x/", "%2Fx%2F"),
        ("//", "//./"),
        ("x/", "x/y/../"),
        ("x/", "X/"),
    ]
    return [uri.replace(old, new, 1) for old, new in changes] + [f"{uri};v=1", f"{uri}?v=1", f"{uri}/", f" {uri}"]


def spelled(item: Item) -> list[str]:
    """Other spellings of a URI, which are the same resource; of a template, only those that it matches."""
    if item.kind not in ("resource", "uri"):
        return []
    uri = item.names[0]
    other = [uri.replace("x/", "%78/", 1)]
    return [*other, uri.replace("docs:", "DOCS:", 1)] if item.kind == "resource" and not item.provided else other


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from(["2025-11-25", "2026-07-28"]), st.booleans())
def test_nothing_is_learned_of_what_may_not_be_seen(world: World, revision: str, answered_before: bool) -> None:
    node, granted, view = world.node, world.granted, world.view
    if revision == "2026-07-28":
        view = NONE  # it has no sessions
    server = made_of(node)
    if world.catches_all:
        server.resource(ALL)(lambda path: path)
    if world.adds:
        server.add_middleware(adding(everything(node)))
    for uri in ABOVE:
        server.resource(uri)(lambda: "")
    server.prompt("helping")(lambda city="": "").complete("city")(lambda typed: [])
    server.search_tools(budget=10**9, limit=1000)

    @server.tool
    def hide(names: list[str], ctx: Context) -> str:
        ctx.disable(*names, tags=names)
        return ""

    @server.tool
    def sees(name: str, ctx: Context) -> bool:
        return ctx.sees(name)

    if answered_before:
        assert server.registry.view
    seen, public = seen_in(node, granted, view), seen_in(node, NONE, NONE)

    async def run() -> None:
        who = None if granted is None else Principal("who", granted)
        async with Client(server, principal=who, revisions=[revision]) as client:
            looking = Looking(world, server, client, seen, public)
            if view:
                before = [item.names[0] for item in seen_in(node, granted, NONE) if item.kind in ("resource", "uri")]
                async with client.subscribe(*before, *ABOVE) as changes:
                    await client.call_tool("hide", {"names": sorted(view)})
                    told, wanted = await looking.told(changes), looking.names("resource", "uri")
                    assert sorted(told) == wanted if looking.exact else set(told) <= set(wanted)
            await looking.compare()

    asyncio.run(run())


def seen_in(node: Node, granted: Scopes | None, view: Scopes) -> list[Item]:
    """What somebody sees of everything."""
    seen = {(item.names, item.version) for item in node.shown() if may_see(item, granted, view)}
    return [item for item in everything(node) if (item.names, item.version) in seen]


def adding(known: list[Item]) -> Any:
    """A middleware that puts all of this into lists."""
    made = {
        "tools/list": [Tool(name=name, input_schema={"type": "object"}) for name in named(known, "tool")],
        "prompts/list": [Prompt(name=name) for name in named(known, "prompt")],
        "resources/list": [Resource(uri=uri, name=uri) for uri in named(known, "resource")],
        "resources/templates/list": [ResourceTemplate(uri_template=t, name=t) for t in named(known, "template")],
    }

    async def add(request: Any, call_next: Any) -> Any:
        value = await call_next(request)
        return [*made[request.method], *value] if request.lists else value

    return add


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

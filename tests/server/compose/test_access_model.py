"""Every way to learn of an item, on servers that are put together at random, beside a model of who may see what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given, settings, strategies as st

from accord import (
    APIKeys,
    Client,
    Context,
    NotSupported,
    Principal,
    PromptReference,
    ProtocolError,
    ResourceNotFound,
    ResourceTemplateReference,
    ResourceUpdated,
    Server,
    Tool,
)
from accord.limits import Limits
from accord.messages.completion import Reference
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate

from tests.server.compose.access_model import (
    ALL,
    HELPER,
    NONE,
    PATHS,
    PUBLIC,
    TOOLS_OF_SEARCH,
    Item,
    Path,
    Scopes,
    Servers,
    World,
    everything,
    is_exact,
    made_of,
    named,
    outermost,
    places_in,
    seen_in,
    worlds,
)
from tests.server.compose.reaching import client_of, over_http, tools_of

ABOVE = ("docs://x/", "docs://p/", "docs://q/", "docs://r/", "end://x/")
"""What the outermost server has for everybody: whoever subscribes to it hears of what is below."""


class Looking:
    """A client with some scopes and, in a session, some things hidden; and what the model has of all."""

    def __init__(self, world: World, server: Server, client: Client, granted: Scopes | None, view: Scopes) -> None:
        self.world, self.server, self.client, self.granted, self.view = world, server, client, granted, view
        self.known = everything(world.node)
        self.exact = is_exact(world.node)
        """Whether it can be told from a name which server it belongs to; else the rules of all hold for its updates."""
        self.inside, self.path = [*places_in(world.node)][world.place]
        self.paths = [path for each, path in places_in(world.node) if each is self.inside]
        """How the server is reached that has tools of its own: it may be mounted more than once."""
        self.templates = {outermost(path, "template", ALL) for each, path in places_in(world.node) if each.catches_all}
        self.composing = {outermost(path, "template", f"{through(name)}{{uri}}") for name, path in self.helpers()}
        self.look_again()

    def helpers(self) -> list[tuple[str, Path]]:
        return [("", ()), *(("inner_", path) for path in self.paths)]

    def look_again(self) -> None:
        self.seen = seen_in(self.world.node, self.granted, self.view)
        self.public = seen_in(self.world.node, NONE, NONE)
        """What those see who were granted nothing."""

    def names(self, *kinds: str) -> list[str]:
        return sorted({item.names[0] for item in self.seen if item.kind in kinds})

    async def compare(self) -> None:
        await self.lists()
        for item in self.known:
            for name in dict.fromkeys((item.names[0], *spelled(item))):
                error = await self.error_of(item.kind, name, item.version)
                assert (error is None) == (item in self.seen), name
                if error is not None:
                    await self.says_nothing(item, name, error)
            for name in strange(item) if self.templates else ():
                assert item in self.seen or await self.error_of(item.kind, name, None) is not None, name
        await self.from_inside()
        await self.completions()
        await self.subscriptions()

    # --- lists -------------------------------------------------------------------------------------------------

    async def lists(self) -> None:
        client = self.client
        listed, is_small = {*await tools_of(client)} - self.helping - TOOLS_OF_SEARCH, self.world.budget > 1
        if is_small or (self.world.adds and self.exact):
            assert listed == {*self.names("tool")}
        else:
            assert listed <= {*(self.names("tool") if self.world.adds else ())}
        for each in (*await client.list_tools(fresh=True), *await client.list_prompts(fresh=True)):
            versions = [item.version for item in self.seen if item.version and item.names[0] == each.name]
            told = (each.meta or {}).get("accord/versions") or []
            assert told == sorted(filter(None, versions)) or not (told or is_small)
            assert (each.meta or {}).get("accord/version") in (None, *versions)
        prompts = await client.list_prompts(fresh=True)
        assert sorted({each.name for each in prompts} - {"helping"}) == self.names("prompt")
        resources = await client.list_resources(fresh=True)
        assert sorted({each.uri for each in resources} - {*ABOVE}) == self.names("resource")
        templates = {each.uri_template for each in await client.list_resource_templates(fresh=True)}
        templates -= {*self.templates, *self.composing}
        assert sorted(templates) == self.names("template")
        found: Any = (await client.call_tool("search_tools", {"query": "", "limit": 1000})).structured_content
        if is_small:
            assert sorted({tool["name"] for tool in found["tools"]} - self.helping) == self.names("tool")
        assert found["left_out"] + len(found["tools"]) == len({*self.names("tool"), *self.helping})

    @property
    def helping(self) -> set[str]:
        tools = ("hide", "sees", "read")
        return {outermost(path, "tool", f"{prefix}{name}") for prefix, path in self.helpers() for name in tools}

    # --- calls and reads ---------------------------------------------------------------------------------------

    async def error_of(self, kind: str, name: str, version: str | None) -> Any:
        """What somebody is told who calls, gets or reads it; None where that is answered."""
        meta = None if version is None else {"accord/version": version}
        try:
            if kind == "tool":
                await self.calls(name, version)
                await self.client.call_tool(name, meta=meta)
            elif kind == "prompt":
                await self.client.get_prompt(name, meta=meta)
            elif kind in ("resource", "uri"):
                scope = (await self.client.read_resource(name, fresh=True)).cache_scope
                shared = [item for item in self.public if item.kind in ("resource", "uri")]
                assert scope != "public" or any(name in (item.names[0], *spelled(item)) for item in shared)
            elif name not in self.names(kind):
                return ""
        except ProtocolError as error:
            said = repr((error.code, error.message, error.data)).replace(repr(name), "NAME").replace(name, "NAME")
            return said if version is None else said.replace(f"'{version}'", "VERSION")
        return None

    async def calls(self, name: str, version: str | None) -> None:
        """What the tool that calls others makes of it."""
        meta = None if version is None else {"accord/version": version}
        shown = [item.version for item in self.seen if item.kind == "tool" and item.names[0] == name]
        called = await self.client.call_tool("call_tool", {"name": name}, meta=meta)
        assert bool(called.is_error) == (version not in shown)

    async def says_nothing(self, item: Item, name: str, error: Any) -> None:
        """What is not there for somebody is answered as what is not there at all."""
        other = await self.error_of(item.kind, ghost_of(item.kind, name), item.version)
        if item.version and [each for each in self.seen if each.kind == item.kind and each.names[0] == name]:
            other = await self.error_of(item.kind, name, "9")
        assert error == other or (other is None and self.templates), name

    async def from_inside(self) -> None:
        """What handlers find out and read on behalf of the client, on the outermost server and on another."""
        for item in self.known:
            await self.through("", item.kind, item.names[0])
        for item in everything(self.inside):
            await self.through("inner_", item.kind, item.names[0])

    async def through(self, prefix: str, kind: str, name: str) -> None:
        path, paths = (self.path, self.paths) if prefix else ((), [()])
        outer = {outermost(each, kind, name) for each in paths}
        seen, about = not outer.isdisjoint(self.names(kind)), "resource" if kind == "uri" else kind
        if kind in ("tool", "resource", "uri"):
            tool = outermost(path, "tool", f"{prefix}sees")
            sees = (await self.client.call_tool(tool, {"kind": about, "name": name})).text == "true"
            assert sees <= seen, name
            assert sees or not seen or not self.exact or prefix, name
        if kind in ("resource", "uri"):
            tool = outermost(path, "tool", f"{prefix}read")
            error = await self.reads(tool, name)
            assert (error is None) <= seen, name
            assert error is None or not seen or not self.exact or prefix, name
            assert seen or error == await self.reads(tool, ghost_of(kind, name)) or self.templates

            await self.composed(prefix, path, name, outer)

    async def composed(self, prefix: str, path: Path, name: str, outer: set[str]) -> None:
        """What a resource makes of another, which may say that it is the same for everybody."""
        found = await self.client.read_resource(
            outermost(path, "uri", f"{through(prefix)}{name.encode().hex()}"), fresh=True
        )
        was_read = found.contents[0].text == "read"  # type: ignore[union-attr]  # it is a text
        assert was_read <= (not outer.isdisjoint(self.names("resource", "uri")))
        public = {item.names[0] for item in self.public if item.kind in ("resource", "uri")}
        assert found.cache_scope != "public" or (was_read and not outer.isdisjoint(public))

    async def reads(self, tool: str, uri: str) -> str | None:
        """The error of a handler that reads a resource for the client; None where it may."""
        try:
            found = await self.client.call_tool(tool, {"uri": uri})
        except ProtocolError as error:
            return repr((error.code, error.message, error.data)).replace(uri, "NAME")
        return found.text.replace(uri, "NAME") if found.is_error else None

    # --- completion --------------------------------------------------------------------------------------------

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

    # --- notifications -----------------------------------------------------------------------------------------

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
            await self.check_told(changes)

    async def check_told(self, changes: Any) -> None:
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
        async with asyncio.timeout(30):
            while (change := await anext(changes)) != ResourceUpdated("end://x/"):
                if isinstance(change, ResourceUpdated):
                    told.append(change.uri)
        return told


def ghost_of(kind: str, name: str) -> str:
    """A name like this one, of what is nowhere."""
    return f"{name}_ghost" if kind in ("tool", "prompt") else re.sub(r"(?<=data)\d+|\d+$", "9999", name, count=1)


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


# --- the servers, with what looks at them ----------------------------------------------------------------------


def served(world: World, **options: Any) -> tuple[Server, Servers]:
    """The servers of a world, with tools that look and hide for a client."""
    servers: Servers = {}
    limits = Limits(page_size=world.page_size, completions_per_second=1_000_000)  # a fast machine would meet the limit
    server = made_of(world.node, servers, limits=limits, **options)
    if world.adds:
        server.add_middleware(adding(everything(world.node)))
    for uri in ABOVE:
        server.resource(uri, tags=HELPER)(lambda: "")
    server.prompt("helping", tags=HELPER)(lambda city="": "").complete("city")(lambda typed: [])
    server.search_tools(budget=world.budget, limit=1000)
    add_helpers(server, "")
    add_helpers(server_at(world, servers, world.place), "inner_")
    return server, servers


def server_at(world: World, servers: Servers, place: int) -> Server:
    node, _ = [*places_in(world.node)][place]
    return servers[id(node)]


def add_helpers(server: Server, prefix: str) -> None:
    @server.tool(name=f"{prefix}hide", tags=HELPER)
    def hide(names: list[str], tags: list[str], ctx: Context) -> str:
        ctx.disable(*names, tags=tags)
        return ""

    @server.tool(name=f"{prefix}sees", tags=HELPER)
    def sees(kind: str, name: str, ctx: Context) -> bool:
        return ctx.sees(name) if kind == "tool" else ctx.sees_resource(name)

    @server.tool(name=f"{prefix}read", tags=HELPER)
    async def read(uri: str, ctx: Context) -> str:
        await ctx.read_resource(uri)
        return ""

    @server.resource(f"{through(prefix)}{{uri}}", tags=HELPER, cache=PUBLIC)
    async def composed(uri: str, ctx: Context) -> str:
        try:
            await ctx.read_resource(bytes.fromhex(uri).decode())
        except ResourceNotFound:
            return ""
        return "read"


def through(prefix: str) -> str:
    """The beginning of the URIs of a resource that reads others."""
    return f"{prefix.rstrip('_')}through://"


def adding(known: list[Item]) -> Any:
    """A middleware that puts all of this into lists."""
    made = {
        "tools/list": [
            Tool(name=item.names[0], input_schema={"type": "object"}, meta=version_meta(item))
            for item in known
            if item.kind == "tool"
        ],
        "prompts/list": [
            Prompt(name=item.names[0], meta=version_meta(item)) for item in known if item.kind == "prompt"
        ],
        "resources/list": [Resource(uri=uri, name=uri) for uri in named(known, "resource")],
        "resources/templates/list": [ResourceTemplate(uri_template=t, name=t) for t in named(known, "template")],
    }

    async def add(request: Any, call_next: Any) -> Any:
        value = await call_next(request)
        return [*value, *made[request.method]] if request.lists else value

    return add


def version_meta(item: Item) -> Any:
    """What an administrator is told of the versions of something."""
    return item.version and {"accord/version": item.version, "accord/versions": ["1", "2", "3"]}


async def hide(looking: Looking, words: Scopes) -> None:
    """Hide something from the session: half of it by a tool of the server inside, if that has it."""
    own = {outermost(looking.path, item.kind, item.names[0]): item.names[0] for item in everything(looking.inside)}
    if len(looking.paths) > 1:  # it would hide what it has under all names
        own = {}
    inner = {"names": [own[each] for each in sorted(words) if each in own], "tags": []}
    await looking.client.call_tool(outermost(looking.path, "tool", "inner_hide"), inner) if inner["names"] else None
    rest = sorted(each for each in words if each not in own)
    if rest:
        await looking.client.call_tool("hide", {"names": rest, "tags": rest})


async def look_at(world: World, server: Server, servers: Servers, clients: Sequence[Looking]) -> None:
    looking, *_ = clients
    if looking.view:
        before = [
            item.names[0] for item in seen_in(world.node, looking.granted, NONE) if item.kind in ("resource", "uri")
        ]
        async with looking.client.subscribe(*before, *ABOVE) as changes:
            await hide(looking, looking.view)
            told, wanted = await looking.told(changes), looking.names("resource", "uri")
            assert sorted(told) == wanted if looking.exact else set(told) <= set(wanted)
    for each in reversed(clients):
        await each.compare()
    for place, shown, words in world.later:
        node, _ = [*places_in(world.node)][place]
        node.visibility.append((shown, words))
        inside = server_at(world, servers, place)
        (inside.enable if shown else inside.disable)(*words, tags=words)
    if world.later:
        for each in reversed(clients):
            each.look_again()
            await each.compare()


REVISIONS = st.sampled_from(["2025-11-25", "2026-07-28"])


@settings(max_examples=60, deadline=None)
@given(worlds(), REVISIONS, st.booleans())
def test_nothing_is_learned_of_what_may_not_be_seen(world: World, revision: str, answered_before: bool) -> None:
    server, servers = served(world)
    if answered_before:
        assert server.registry.view

    async def run() -> None:
        async with AsyncExitStack() as opened:
            clients = []
            for granted in (world.granted, world.other):
                who = None if granted is None else Principal(f"with {sorted(granted)}", granted)
                client = await opened.enter_async_context(Client(server, principal=who, revisions=[revision]))
                view = world.view if revision != "2026-07-28" and not clients else NONE
                clients.append(Looking(world, server, client, granted, view))
            await look_at(world, server, servers, clients)

    asyncio.run(run())


@settings(max_examples=8, deadline=None)
@given(worlds(), REVISIONS)
def test_nothing_is_learned_over_http(world: World, revision: str) -> None:
    keys = {"a": Principal("ann", world.granted or NONE), "b": Principal("ann", world.other)}
    server, servers = served(world, auth=APIKeys(keys))

    async def run() -> None:
        async with over_http(server) as url, AsyncExitStack() as opened:
            clients = []
            for key, who in keys.items():
                client = await opened.enter_async_context(client_of(url, key, revision))
                view = world.view if revision != "2026-07-28" and not clients else NONE
                clients.append(Looking(world, server, client, who.scopes, view))
            await look_at(world, server, servers, clients)

    asyncio.run(run())

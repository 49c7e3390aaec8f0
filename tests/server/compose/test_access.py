"""Rules hold wherever something can be learned of a thing: by any spelling, any former name, through any mount."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from accord import (
    AccordError,
    APIKeys,
    CacheHint,
    Caching,
    Client,
    Context,
    InvalidParams,
    Principal,
    PromptReference,
    Provided,
    Provider,
    RequireScopes,
    ResourceNotFound,
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
from accord.server.compose import uri_spelling

from tests.server.compose.reaching import client_of, over_http, tools_of
from tests.server.compose.test_uri_spelling import MANY_READINGS

WHO = APIKeys({"ann": Principal("ann", frozenset({"admin"})), "eve": Principal("eve")})
BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
RULES = RequireScopes(
    {"delete_*": {"admin"}, "docs://private/*": {"admin"}, "plan": {"admin"}, "vault://{+id}": {"admin"}}
)


class Shelf(Provider):
    """Tools, prompts and resources of each kind, some of them for administrators."""

    NAMES = ("read_all", "delete_all")
    URIS = ("docs://open/a", "docs://private/plan", "vault://1")

    async def tools(self) -> list[Provided]:
        return [Provided(Tool(name=name, input_schema={"type": "object"}), lambda _: "done") for name in self.NAMES]

    async def prompts(self) -> list[Provided]:
        argument = [PromptArgument(name="city")]
        return [Provided(Prompt(name=name, arguments=argument), lambda _: "text") for name in ("tell", "plan")]

    async def resources(self) -> list[Resource]:
        return [Resource(uri=uri, name=uri) for uri in self.URIS]

    async def templates(self) -> list[ResourceTemplate]:
        return [ResourceTemplate(uri_template=text, name=text) for text in ("docs://{+path}", "vault://{+id}")]

    async def resource(self, uri: str) -> Provided | None:
        return Provided(Resource(uri=uri, name=uri), lambda: f"the text of {uri}")

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        if isinstance(ref, PromptReference):
            return ["Oslo"]
        return ["open/a", "private/plan"] if ref.uri.startswith("docs://") else ["1"]


def provided(where: str) -> tuple[Server, Shelf, str, str]:
    """A server of a provider with rules here, on the mounted server, or on the one outside; and the prefixes."""
    shelf = Shelf()
    inner = Server("inner", auth=WHO, middleware=[RULES] if where in ("alone", "inner") else [])
    inner.add_provider(shelf)
    if where == "alone":
        return inner, shelf, "", ""
    outer = Server("outer", auth=WHO, middleware=[RULES] if where == "outer" else [])
    outer.mount(inner, "in")
    return outer, shelf, "in_", "in/"


def at(uri: str, prefix: str) -> str:
    return uri.replace("://", f"://{prefix}")


PLACES = pytest.mark.parametrize("where", ["alone", "inner", "outer"])


@PLACES
@BOTH
async def test_what_a_provider_has_is_listed_read_called_and_found_by_those_who_may(where: str, revision: str) -> None:
    made, _, name, prefix = provided(where)
    made.search_tools(budget=1)
    async with over_http(made) as url:
        for key, seen in (("ann", True), ("eve", False)):
            async with client_of(url, key, revision) as client:
                uris = [item.uri for item in await client.list_resources()]
                assert [at(uri, prefix) in uris for uri in Shelf.URIS] == [True, seen, seen]
                texts = [item.uri_template for item in await client.list_resource_templates()]
                assert texts == [at("docs://{+path}", prefix)] + [at("vault://{+id}", prefix)] * seen
                assert [item.name for item in await client.list_prompts()] == [f"{name}tell"] + [f"{name}plan"] * seen
                found = (await client.call_tool("search_tools", {"query": "all", "limit": 9})).structured_content
                assert found["tools"][0]["name"] == f"{name}read_all"
                assert len(found["tools"]) + found["left_out"] == 1 + seen
                if not seen:
                    with pytest.raises(InvalidParams, match="no tool"):
                        await client.call_tool(f"{name}delete_all")
                    for uri in Shelf.URIS[1:]:
                        with pytest.raises(ResourceNotFound):
                            await client.read_resource(at(uri, prefix))
                    with pytest.raises(InvalidParams, match="no prompt"):
                        await client.get_prompt(f"{name}plan")


@PLACES
@BOTH
async def test_completion_of_what_a_provider_has_goes_by_the_same_rules(where: str, revision: str) -> None:
    made, _, name, prefix = provided(where)

    async def values(client: Client, ref: Any, argument: str) -> list[str]:
        return (await client.complete(ref, argument=argument)).values

    docs, vault = (ResourceTemplateReference(uri=at(uri, prefix)) for uri in ("docs://{+path}", "vault://{+id}"))
    async with over_http(made) as url, client_of(url, "ann", revision) as ann, client_of(url, "eve", revision) as eve:
        assert await values(ann, docs, "path") == ["open/a", "private/plan"]
        assert await values(eve, docs, "path") == ["open/a"]
        assert await values(ann, vault, "id") == ["1"]
        assert await values(ann, PromptReference(name=f"{name}plan"), "city") == ["Oslo"]
        assert await values(eve, PromptReference(name=f"{name}tell"), "city") == ["Oslo"]
        with pytest.raises(InvalidParams, match="no resource template"):
            await values(eve, vault, "id")
        with pytest.raises(InvalidParams, match="no prompt"):
            await values(eve, PromptReference(name=f"{name}plan"), "city")


async def test_a_completion_does_not_count_what_is_hidden() -> None:
    made = Server("docs", auth=WHO, middleware=[RULES])

    @made.resource("docs://{+path}")
    def docs(path: str) -> str:
        return path

    @docs.complete("path")
    def paths(prefix: str) -> list[str]:
        return [f"open/{number:03}" for number in range(100)] + 7 * ["private/plan"]

    ref = ResourceTemplateReference(uri="docs://{+path}")
    async with over_http(made) as url, client_of(url, "eve") as eve:
        found = await eve.complete(ref, argument="path")
    assert len(found.values) == 100
    assert found.total is None


@PLACES
@BOTH
async def test_updates_of_what_a_provider_has_are_notified_to_those_who_may_see_it(where: str, revision: str) -> None:
    made, shelf, _, prefix = provided(where)

    @made.tool
    def change() -> str:
        for uri in ("docs://private/plan", "docs://private", "vault://1", "docs://open/a"):
            shelf.updated(uri)
        return "changed"

    above = [at("docs://open/a", prefix), at("docs://", prefix)]
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, eve.subscribe(*above) as changes:
        await eve.call_tool("change")
        async with asyncio.timeout(100):
            assert await anext(changes) == ResourceUpdated(at("docs://open/a", prefix))


@BOTH
@pytest.mark.parametrize(
    "uri", ["docs://%70rivate/plan", "DOCS://private/plan", "docs://private%2Fplan", "docs://private"]
)
@pytest.mark.parametrize("declared", [False, True])
async def test_another_spelling_of_a_uri_is_not_another_resource(declared: bool, uri: str, revision: str) -> None:
    made = Server("docs", auth=WHO, middleware=[RULES])
    if declared:
        made.resource("docs://{+path}")(lambda path: path)
    else:
        made.add_provider(Shelf())
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, client_of(url, "ann", revision) as ann:
        with pytest.raises(ResourceNotFound):
            await eve.read_resource(uri)
        if uri.startswith("docs:"):
            assert (await ann.read_resource(uri)).contents


async def test_the_scopes_of_a_resource_hold_in_another_spelling_beside_an_open_template() -> None:
    made = Server("docs", auth=WHO)
    made.resource("docs://secret", scopes={"admin"})(lambda: "secret")
    made.resource("docs://{name}")(lambda name: f"template: {name}")
    async with over_http(made) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        for uri in ("docs://secret", "docs://%73ecret", "docs://SECRET"):
            assert (await ann.read_resource(uri)).contents[0].text == "secret"  # type: ignore[union-attr]
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(uri)
        assert (await eve.read_resource("docs://open")).contents


class Failing(Provider):
    """It counts what it is asked for, and fails."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def tool(self, name: str) -> Provided | None:
        return self._fail(name)

    async def prompt(self, name: str) -> Provided | None:
        return self._fail(name)

    async def resource(self, uri: str) -> Provided | None:
        return self._fail(uri)

    def _fail(self, name: str) -> Provided | None:
        self.asked.append(name)
        raise RuntimeError("out of order")


@BOTH
async def test_a_provider_that_fails_does_not_distinguish_hidden_from_missing_items(revision: str) -> None:
    made, failing = Server("docs", auth=WHO), Failing()
    made.tool("wipe", scopes={"admin"})(lambda: "wiped")
    made.prompt("plan", scopes={"admin"})(lambda: "a plan")
    made.resource("docs://plan", scopes={"admin"})(lambda: "a plan")
    made.add_provider(failing)
    async with over_http(made) as url, client_of(url, "eve", revision) as eve:
        asks: list[tuple[Callable[[str], Awaitable[object]], str, str]] = [
            (eve.call_tool, "wipe", "wash"),
            (eve.get_prompt, "plan", "plot"),
            (eve.read_resource, "docs://plan", "docs://plot"),
        ]
        for ask, hidden, absent in asks:
            told = []
            for name in (hidden, absent):
                with pytest.raises(AccordError) as failed:
                    await ask(name)
                told.append((type(failed.value), str(failed.value).replace(name, "it")))
            assert told[0] == told[1]
    assert failing.asked == ["wipe", "wash", "plan", "plot", "docs://plan", "docs://plot"]


class Invalid(Provider):
    """Items of which none can be used: their handlers and definitions do not fit."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    async def tool(self, name: str) -> Provided | None:
        return Provided(Tool(name=name, input_schema={}), lambda: "") if name.startswith(self._prefix) else None

    async def prompt(self, name: str) -> Provided | None:
        return Provided(Prompt(name=name), lambda: "") if name.startswith(self._prefix) else None

    async def resource(self, uri: str) -> Provided | None:
        return Provided(Prompt(name="x"), lambda: "") if uri.startswith(f"docs://{self._prefix}") else None

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        return ["Oslo"]


class Valid(Invalid):
    """Items that can be used."""

    async def tool(self, name: str) -> Provided | None:
        tool = Tool(name=name, input_schema={"type": "object"})
        return Provided(tool, lambda _: "") if name.startswith(self._prefix) else None

    async def prompt(self, name: str) -> Provided | None:
        return Provided(Prompt(name=name), lambda _: "") if name.startswith(self._prefix) else None

    async def resource(self, uri: str) -> Provided | None:
        found = uri.startswith(f"docs://{self._prefix}")
        return Provided(Resource(uri=uri, name=uri), lambda: "") if found else None


SECRET = RequireScopes({"secret*": {"admin"}, "in_secret*": {"admin"}, "docs://secret*": {"admin"}})


async def errors_of(client: Client, name: str, uri: str) -> list[tuple[type, str]]:
    """The errors of all requests for a tool, a prompt and a resource."""
    prompt, resource = PromptReference(name=name), ResourceTemplateReference(uri=uri)
    asks: list[tuple[Callable[[], Awaitable[object]], str]] = [
        (lambda: client.call_tool(name), name),
        (lambda: client.get_prompt(name), name),
        (lambda: client.complete(prompt, argument="a"), name),
        (lambda: client.read_resource(uri), uri),
        (lambda: client.complete(resource, argument="a"), uri),
    ]
    errors = []
    for ask, subject in asks:
        with pytest.raises(AccordError) as failed:
            await ask()
        errors.append((type(failed.value), str(failed.value).replace(subject, "it")))
    return errors


@BOTH
@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("providers", ["invalid", "valid failing", "failing valid", "invalid failing"])
async def test_a_hidden_item_of_a_provider_is_reported_as_a_missing_one(
    providers: str, mounted: bool, revision: str
) -> None:
    made, outer = Server("docs", middleware=[SECRET]), Server("outer", middleware=[SECRET])
    failing = Failing()
    kinds: dict[str, Provider] = {"invalid": Invalid("secret"), "valid": Valid("secret"), "failing": failing}
    for each in providers.split():
        made.add_provider(kinds[each])
    outer.mount(made, "in")
    prefix, path = ("in_", "in/") if mounted else ("", "")
    async with Client(outer if mounted else made, principal=Principal("eve"), revisions=[revision]) as eve:
        hidden = await errors_of(eve, f"{prefix}secret", f"docs://{path}secret")
        asked = len(failing.asked)
        assert hidden == await errors_of(eve, f"{prefix}missing", f"docs://{path}missing")
        assert len(failing.asked) == 2 * asked


async def test_a_change_that_cannot_be_applied_does_not_reveal_the_tool_of_a_provider() -> None:
    made = Server("docs", middleware=[SECRET])
    made.add_provider(Valid("secret"))
    made.change_tool("secret", ToolChange(tags="abc"))  # a string, not a set
    async with Client(made, principal=Principal("eve")) as eve:
        for name in ("secret", "missing"):
            with pytest.raises(InvalidParams, match=f"no tool '{name}'"):
                await eve.call_tool(name)


async def test_an_invalid_item_of_a_provider_is_reported_to_those_who_may_see_it() -> None:
    made = Server("docs", middleware=[SECRET])
    made.add_provider(Invalid("secret"))
    async with Client(made, principal=Principal("ann", frozenset({"admin"}))) as ann:
        for _, text in await errors_of(ann, "secret", "docs://secret"):
            assert "could not be checked" in text


@pytest.mark.parametrize("prefix", ["", "in/"])
async def test_an_open_template_gives_no_other_spelling_of_what_needs_scopes(prefix: str) -> None:
    made, outer = Server("docs", auth=WHO), Server("outer", auth=WHO)
    made.resource("docs://of/plan", scopes={"admin"})(lambda: "secret")
    made.resource("docs://secret/{+id}", scopes={"admin"})(lambda id: id)
    made.resource("docs://{+path}")(lambda path: path)
    made.resource("docs://of/PUBLIC")(lambda: "open")
    outer.mount(made, prefix.rstrip("/"))
    hidden = ["secret/1", "secret%2F1", "%73ecret/1", "SECRET/1", "./secret/1", "secret%5C1", "of/plan", "of%2Fplan"]
    async with over_http(outer) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        for path in (*hidden, "of/./plan"):
            uri = at(f"docs://{path}", prefix)
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(uri)
            assert (await ann.read_resource(uri)).contents
        for path in ("of/PUBLIC", "open", "secrets/1", "Open%2F1", "secret"):
            assert (await eve.read_resource(at(f"docs://{path}", prefix))).contents


class Proposing(Provider):
    """It proposes something for whatever it is asked."""

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        return ["Oslo"]


@pytest.mark.parametrize("prefix", ["", "in_"])
async def test_a_provider_completes_a_hidden_prompt_as_one_that_is_not_there(prefix: str) -> None:
    made, outer = Server("docs", auth=WHO), Server("outer", auth=WHO)
    made.prompt("plan", scopes={"admin"})(lambda city: city)
    made.add_provider(Proposing())
    outer.mount(made, prefix.rstrip("_"))
    async with over_http(outer) as url, client_of(url, "eve") as eve:
        for name in ("plan", "plot"):
            with pytest.raises(InvalidParams, match=f"no prompt '{prefix}{name}'"):
                await eve.complete(PromptReference(name=f"{prefix}{name}"), argument="city", value="")


class Planning(Provider):
    """It has a prompt of a name that a server declares."""

    async def prompt(self, name: str) -> Provided | None:
        about = Prompt(name="plan", arguments=[PromptArgument(name="city")])
        return Provided(about, lambda _: "text") if name == "plan" else None

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        return ["Oslo"] if ref == PromptReference(name="plan") else None


@BOTH
@pytest.mark.parametrize("prefix", ["", "in_"])
async def test_a_provider_completes_no_prompt_of_the_name_of_a_hidden_one(prefix: str, revision: str) -> None:
    made, outer = Server("docs", auth=WHO), Server("outer", auth=WHO)
    prompt = made.prompt("plan", scopes={"admin"})(lambda city: city)
    prompt.complete("city")(lambda typed: ["Bergen"])
    made.add_provider(Planning())
    outer.mount(made, prefix.rstrip("_"))
    plan = PromptReference(name=f"{prefix}plan")
    async with over_http(outer) as url, client_of(url, "eve", revision) as eve, client_of(url, "ann", revision) as ann:
        assert (await ann.complete(plan, argument="city", value="")).values == ["Bergen"]
        with pytest.raises(InvalidParams, match="no prompt"):
            await eve.complete(plan, argument="city", value="")


@BOTH
@pytest.mark.parametrize("prefix", ["", "in/"])
@pytest.mark.parametrize("where", ["inner", "outer"])
async def test_an_open_template_gives_nothing_of_what_a_tag_hides(where: str, prefix: str, revision: str) -> None:
    made, outer = Server("docs"), Server("outer", auth=WHO)
    made.resource("docs://plan", tags={"secret"})(lambda: "secret")
    made.resource("docs://private/{id}", tags={"secret"})(lambda id: id)
    made.resource("docs://{+path}")(lambda path: path)
    outer.mount(made, prefix.rstrip("/"))
    (made if where == "inner" else outer).disable(tags={"secret"})
    async with over_http(outer) as url, client_of(url, "eve", revision) as eve:
        for path in ("plan", "%70lan", "./plan", "PLAN", "private/1", "private%2F1"):
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(at(f"docs://{path}", prefix))
        for path in ("plans", "private", "private/1/2", "open"):
            assert (await eve.read_resource(at(f"docs://{path}", prefix))).contents


@BOTH
async def test_an_open_template_outside_gives_nothing_of_what_a_mounted_server_hides(revision: str) -> None:
    made, outer = Server("docs"), Server("outer")
    made.resource("docs://plan", tags={"secret"})(lambda: "secret")
    made.disable(tags={"secret"})
    outer.mount(made, "in")
    outer.resource("docs://{+path}")(lambda path: path)
    async with Client(outer, revisions=[revision]) as client:
        for uri in ("docs://in/plan", "docs://in/%70lan", "docs://./in/plan"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(uri)
        assert (await client.read_resource("docs://in/open")).contents
        async with client.subscribe("docs://in/") as changes:
            for uri in ("docs://in/plan", "docs://in/open"):
                outer.resource_updated(uri)
            async with asyncio.timeout(10):
                assert await anext(changes) == ResourceUpdated("docs://in/open")


class Same(Provider):
    """It has what a server declares, and answers for every URI."""

    async def tools(self) -> list[Provided]:
        return [Provided(Tool(name="wipe", input_schema={"type": "object"}), lambda _: "provided")]

    async def prompts(self) -> list[Provided]:
        return [Provided(Prompt(name="plan", arguments=[PromptArgument(name="city")]), lambda _: "provided")]

    async def resources(self) -> list[Resource]:
        return [Resource(uri=uri, name="provided") for uri in ("docs://plan", "docs://private/1", "docs://open")]

    async def templates(self) -> list[ResourceTemplate]:
        return [ResourceTemplate(uri_template="docs://private/{id}", name="provided")]

    async def resource(self, uri: str) -> Provided | None:
        return Provided(Resource(uri=uri, name=uri), lambda: "provided")

    async def complete(self, ref: Reference, argument: str, typed: str) -> Sequence[str] | None:
        return ["Oslo"]


@pytest.mark.parametrize("renamed_by", ["middle", "outer"])
async def test_a_provider_gives_nothing_in_the_place_of_a_hidden_tool_that_was_renamed(renamed_by: str) -> None:
    inner, middle, outer = Server("inner"), Server("middle"), Server("outer")
    inner.tool("clean")(lambda: "declared")
    middle.mount(inner, "in")
    outer.mount(middle, "")
    outer.add_provider(Same())
    (middle if renamed_by == "middle" else outer).change_tool("in_clean", ToolChange(name="wipe"))

    @outer.tool
    def sees(ctx: Context) -> bool:
        return ctx.sees("wipe")

    outer.disable("nothing")  # with a rule, handlers learn what their client may see
    async with Client(outer) as client:
        assert sorted(await tools_of(client)) == ["sees", "wipe"]
        assert (await client.call_tool("wipe")).text == "declared"
        assert (await client.call_tool("sees")).data is True
        inner.disable("clean")
        assert await tools_of(client) == ["sees"]
        with pytest.raises(InvalidParams, match="no tool"):
            await client.call_tool("wipe")
        assert (await client.call_tool("sees")).data is False


class Named(Provider):
    """It has tools with these names, which return their descriptions."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    async def tools(self) -> list[Provided]:
        return [
            Provided(
                Tool(name=name, description=f"provided {name}", input_schema={"type": "object"}),
                lambda _, name=name: f"provided {name}",
            )
            for name in self.names
        ]


async def results_of(client: Client) -> dict[str, str]:
    return {name: (await client.call_tool(name)).text for name in await tools_of(client)}


@pytest.mark.parametrize("mounted", [False, True])
async def test_tools_of_a_provider_may_swap_their_names(mounted: bool) -> None:
    server, outer = Server("server"), Server("outer")
    server.add_provider(Named("a", "b"))
    outer.mount(server)
    for old, new in (("a", "b"), ("b", "a")):
        (outer if mounted else server).change_tool(old, ToolChange(name=new))
    async with Client(outer if mounted else server) as client:
        assert await results_of(client) == {"b": "provided a", "a": "provided b"}


@pytest.mark.parametrize("hidden", [("a", "b"), ("a",), ("b",)])
async def test_no_provider_takes_the_place_of_hidden_tools_that_swapped_their_names(hidden: Sequence[str]) -> None:
    server = Server("server")
    for name in ("a", "b"):
        server.tool(name=name)(lambda: "declared")
    server.change_tool("a", ToolChange(name="b"))
    server.change_tool("b", ToolChange(name="a"))
    server.add_provider(Named("a", "b", "c"))
    server.disable(*hidden)
    async with Client(server) as client:
        declared = dict.fromkeys({"a", "b"} - {*hidden}, "declared")
        assert await results_of(client) == {**declared, "c": "provided c"}
        with pytest.raises(InvalidParams, match="no tool"):
            await client.call_tool(hidden[0])


async def test_a_provider_has_the_former_name_of_a_renamed_tool() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.tool(name="search")(lambda: "declared")
    inner.change_tool("search", ToolChange(name="inner_search"))
    outer.mount(inner)
    outer.add_provider(Named("search"))
    async with Client(outer) as client:
        assert await results_of(client) == {"inner_search": "declared", "search": "provided search"}


async def test_a_provider_has_the_name_that_a_change_gives_to_a_tool_which_does_not_exist() -> None:
    server = Server("server")
    server.change_tool("old", ToolChange(name="new"))
    server.add_provider(Named("new"))
    async with Client(server) as client:
        assert await results_of(client) == {"new": "provided new"}


@pytest.mark.parametrize("changes", [{"d": "a"}, {"d": "a", "c": "a"}, {"c": "a", "d": "a"}])
@pytest.mark.parametrize("mounted", [False, True])
async def test_lists_show_the_tool_that_is_called_if_changes_give_one_name_to_several(
    changes: dict[str, str], mounted: bool
) -> None:
    server, outer = Server("server"), Server("outer")
    server.add_provider(Named("a", "c"))
    server.add_provider(Named("d"))
    outer.mount(server)
    for old, new in changes.items():
        (outer if mounted else server).change_tool(old, ToolChange(name=new))
    async with Client(outer if mounted else server) as client:
        listed = {tool.name: tool.description for tool in await client.list_tools()}
        assert await results_of(client) == listed


HIDDEN_PATHS = ("plan", "%70lan", "./plan", "PLAN", "private/1", "private%2F1", "private%252F1")


@BOTH
@pytest.mark.parametrize("prefix", ["", "in/"])
@pytest.mark.parametrize("where", ["inner", "outer", "scopes"])
@pytest.mark.parametrize("beside", ["inner", "outer"])
async def test_a_provider_gives_nothing_in_the_place_of_what_is_hidden(
    beside: str, where: str, prefix: str, revision: str
) -> None:
    scopes = {"admin"} if where == "scopes" else set[str]()
    made, outer = Server("docs"), Server("outer", auth=WHO)
    made.tool("wipe", tags={"secret"}, scopes=scopes)(lambda: "declared")
    made.prompt("plan", tags={"secret"}, scopes=scopes)(lambda city="": "declared")
    made.resource("docs://plan", tags={"secret"}, scopes=scopes)(lambda: "declared")
    made.resource("docs://private/{id}", tags={"secret"}, scopes=scopes)(lambda id: "declared")
    made.add_provider(Same())
    outer.mount(made, prefix.rstrip("/"))
    if beside == "outer" and not prefix:
        outer.add_provider(Same())
    outer.search_tools(budget=10**6)
    if where != "scopes":
        (made if where == "inner" else outer).disable(tags={"secret"})
    name = prefix.replace("/", "_")
    async with over_http(outer) as url, client_of(url, "eve", revision) as eve:
        assert await tools_of(eve) == []
        assert await eve.list_prompts() == []
        assert [each.uri for each in await eve.list_resources()] == [at("docs://open", prefix)]
        assert await eve.list_resource_templates() == []
        for _ in range(2):
            found = (await eve.call_tool("search_tools", {"query": ""})).structured_content
            assert found["tools"] == []
        with pytest.raises(InvalidParams):
            await eve.call_tool(f"{name}wipe")
        with pytest.raises(InvalidParams):
            await eve.get_prompt(f"{name}plan")
        for path in HIDDEN_PATHS:
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(at(f"docs://{path}", prefix))
        assert (await eve.read_resource(at("docs://open", prefix))).contents
        template = ResourceTemplateReference(uri=at("docs://private/{id}", prefix))
        with pytest.raises(InvalidParams, match="no resource template"):
            await eve.complete(template, argument="id")
        with pytest.raises(InvalidParams, match="no prompt"):
            await eve.complete(PromptReference(name=f"{name}plan"), argument="city")


@BOTH
async def test_a_directory_gives_no_file_in_the_place_of_a_template_with_scopes(tmp_path: Path, revision: str) -> None:
    for name in ("open", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.md").write_text(name)
    made = Server("files", auth=WHO)
    made.resource("docs://private/{name}", scopes={"admin"})(lambda name: name)
    made.add_directory(tmp_path, uri="docs://", watch=False)
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, client_of(url, "ann", revision) as ann:
        assert [item.uri for item in await eve.list_resources()] == ["docs://open/plan.md"]
        assert len(await ann.list_resources()) == 2
        for uri in ("docs://private/plan.md", "docs://private%2Fplan.md", "docs://%70rivate/plan.md"):
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(uri)
            assert (await ann.read_resource(uri)).contents
        assert (await eve.read_resource("docs://open%2Fplan.md")).contents


@BOTH
@pytest.mark.parametrize("base", ["docs://", "docs:", "file:///"])
async def test_the_root_of_a_directory_is_notified_of_all_visible_files(
    base: str, tmp_path: Path, revision: str
) -> None:
    made = Server("files", auth=WHO, middleware=[RequireScopes({f"{base}secret.md": {"admin"}})])
    made.add_directory(tmp_path, uri=base, watch=False)
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, eve.subscribe(base) as changes:
        for name in ("secret.md", "of/plan.md", "plan.md"):
            made.resource_updated(f"{base}{name}")
        async with asyncio.timeout(10):
            assert [await anext(changes), await anext(changes)] == [
                ResourceUpdated(f"{base}of/plan.md"),
                ResourceUpdated(f"{base}plan.md"),
            ]


@BOTH
async def test_rules_of_a_mounted_server_hold_for_nothing_that_others_provide(tmp_path: Path, revision: str) -> None:
    (tmp_path / "of").mkdir()
    (tmp_path / "of" / "plan.md").write_text("plan")
    inner, made = Server("inner"), Server("files")
    inner.tool("tell")(lambda: "")
    inner.enable("tell", only=True)
    made.add_directory(tmp_path, uri="docs://", watch=False)
    made.mount(inner)
    async with Client(made, revisions=[revision]) as client:
        assert "plan.md" in str((await client.read_resource("docs://of")).contents)
        async with client.subscribe("docs://of") as changes:
            made.resource_updated("docs://of/plan.md")
            async with asyncio.timeout(10):
                assert await anext(changes) == ResourceUpdated("docs://of/plan.md")


@BOTH
@pytest.mark.parametrize("by", ["rule", "name"])
async def test_rules_of_a_mounted_server_hold_for_updates_of_what_it_has_no_longer(by: str, revision: str) -> None:
    inner, made = Server("inner", middleware=[RULES] if by == "rule" else []), Server("outer", auth=WHO)
    made.resource("docs://in/")(lambda: "")
    inner.resource("docs://private/plan")(lambda: "")
    if by == "name":
        inner.disable("docs://private/plan")
    made.mount(inner, "in")
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, eve.subscribe("docs://in/") as changes:
        inner.remove_resource("docs://private/plan")
        for uri in ("docs://private/plan", "docs://open"):
            inner.resource_updated(uri)
        async with asyncio.timeout(10):
            assert await anext(changes) == ResourceUpdated("docs://in/open")


async def test_a_template_gives_nothing_that_a_hidden_one_refuses() -> None:
    made = Server("docs")
    made.resource("docs://private/{name}", tags={"secret"})(lambda name: name)
    made.resource("docs://{+path}", unsafe_variables=True)(lambda path: path)
    made.disable(tags={"secret"})
    async with Client(made) as client:
        for path in ("private/a", "private/C:a", "private/%00a", "private/..%5Ca"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(f"docs://{path}")
        assert (await client.read_resource("docs://open/C:a")).contents


PARAMETERS = ["x=1&q=secret", "q=secret&x=1", "q=secret&q=open", "&q=secret", "q&q=secret", "q=secret&%71=open"]


@BOTH
@pytest.mark.parametrize("prefix", ["", "in/"])
@pytest.mark.parametrize("by", ["rule", "scopes", "name"])
async def test_a_template_gives_nothing_for_more_parameters_than_it_reads(by: str, prefix: str, revision: str) -> None:
    rule = RequireScopes({"find://items?q=secret*": {"admin"}, "row://a;q=secret": {"admin"}})
    made, outer = Server("items", middleware=[rule] if by == "rule" else []), Server("outer", auth=WHO)
    if by == "scopes":
        made.resource("find://items?q=secret", scopes={"admin"})(lambda: "secret")
        made.resource("row://a;q=secret", scopes={"admin"})(lambda: "secret")
    made.resource("find://items{?q}")(lambda q="": f"found {q}")
    made.resource("row://a{;q}")(lambda q="": f"found {q}")
    if by == "name":
        made.disable("find://items?q=secret", "row://a;q=secret")
    outer.mount(made, prefix.rstrip("/"))
    async with over_http(outer) as url, client_of(url, "eve", revision) as eve:
        for query in ("q=secret", *PARAMETERS):
            for uri in (f"find://items?{query}", f"row://a;{query.replace('&', ';')}"):
                try:
                    read = await eve.read_resource(at(uri, prefix))
                except ResourceNotFound:
                    continue
                assert "secret" not in str(read.contents[0].text), uri  # type: ignore[union-attr]
        for uri in ("find://items?q=open", "find://items?x=1&q=open", "find://items", "row://a;q=open"):
            assert (await eve.read_resource(at(uri, prefix))).contents


@BOTH
@pytest.mark.parametrize("prefix", ["", "in/"])
@pytest.mark.parametrize("by", ["rule", "name", "scopes", "tag"])
async def test_the_order_of_parameters_leads_past_no_rule(by: str, prefix: str, revision: str) -> None:
    named = "find://items?q=secret&lang=en"  # another order than that of the template
    rules = [RequireScopes({named: {"admin"}})] if by == "rule" else []
    made, outer = Server("items", middleware=rules), Server("outer", auth=WHO)
    if by == "scopes":
        made.resource(named, scopes={"admin"})(lambda: "")
    made.resource("find://items{?lang,q}")(lambda lang="", q="": f"{lang} {q}")
    if by == "name":
        made.disable(named)
    if by == "tag":
        made.resource(named, tags={"secret"})(lambda: "")
        made.disable(tags={"secret"})
    outer.mount(made, prefix.rstrip("/"))
    async with over_http(outer) as url, client_of(url, "eve", revision) as eve:
        for query in ("q=secret&lang=en", "lang=en&q=secret", "lang=en&x=1&q=secret", "&q=s%65cret&lang=en&q=a"):
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(at(f"find://items?{query}", prefix))
        for query in ("q=secret", "lang=en&q=open", "q=open&lang=en", "q=secret&lang=no"):
            assert (await eve.read_resource(at(f"find://items?{query}", prefix))).contents


@BOTH
async def test_a_completion_is_judged_by_the_defaults_of_the_function_that_makes_it(revision: str) -> None:
    made = Server("docs", auth=WHO, middleware=[RequireScopes({"docs://private/*": {"admin"}})])
    template = made.resource("docs://{folder}/{name}")(lambda folder, name: name)
    template.complete("name")(lambda typed, folder="private": [f"{folder}-plan"])
    reference = ResourceTemplateReference(uri="docs://{folder}/{name}")
    async with over_http(made) as url, client_of(url, "eve", revision) as eve, client_of(url, "ann", revision) as ann:
        assert (await eve.complete(reference, argument="name")).values == []
        assert (await ann.complete(reference, argument="name")).values == ["private-plan"]
        found = await eve.complete(reference, argument="name", context={"folder": "open"})
        assert found.values == ["open-plan"]


@pytest.mark.parametrize(("length", "values"), [(100, 100), (8_000, 8), (10_000, 0)])
async def test_a_completion_has_the_values_whose_uris_can_be_judged_in_a_moment(length: int, values: int) -> None:
    made = Server("docs")
    template = made.resource("docs://{folder}/{name}")(lambda folder, name: name)
    template.complete("name")(lambda typed: [f"{number:03}" for number in range(100)])
    made.resource("docs://private/{id}", tags={"secret"})(lambda id: id)
    made.disable(tags={"secret"})
    reference = ResourceTemplateReference(uri="docs://{folder}/{name}")
    async with Client(made) as client:
        found = await client.complete(reference, argument="name", context={"folder": "a" * length})
    assert len(found.values) == values


async def test_a_template_stays_open_where_the_one_that_is_hidden_comes_after_it() -> None:
    made = Server("docs")
    made.resource("docs://{+path}")(lambda path: path)
    made.resource("docs://private/{id}", tags={"secret"})(lambda id: id)
    made.disable(tags={"secret"})
    async with Client(made) as client:
        assert (await client.read_resource("docs://private/1")).contents


@pytest.mark.parametrize("listed_before", [False, True])
@pytest.mark.parametrize("by", ["name", "tag"])
async def test_a_rule_holds_by_the_name_and_the_tags_before_a_change(listed_before: bool, by: str) -> None:
    rules = RequireScopes({"delete_*": {"admin"}}) if by == "name" else RequireScopes(tags={"unsafe": {"admin"}})
    made = Server("changed", auth=WHO, middleware=[rules])
    made.tool("delete_row", tags={"unsafe"})(lambda: "deleted")
    if listed_before:
        assert made.registry.tools
    made.change_tool("delete_row", ToolChange(name="clean_up", tags=()))
    async with over_http(made) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        assert await tools_of(eve) == []
        with pytest.raises(InvalidParams):
            await eve.call_tool("clean_up")
        assert (await ann.call_tool("clean_up")).text == "deleted"


async def test_a_rule_of_the_outer_server_holds_by_the_names_inside() -> None:
    inner, outer = Server("inner"), Server("outer", auth=WHO, middleware=[RULES])
    inner.tool("delete_row")(lambda: "deleted")
    inner.resource("docs://{+path}")(lambda path: path)
    outer.mount(inner, "in")
    async with over_http(outer) as url, client_of(url, "eve") as eve:
        assert await tools_of(eve) == []
        with pytest.raises(ResourceNotFound):
            await eve.read_resource("docs://in/private/plan")
        assert (await eve.read_resource("docs://in/open")).contents


async def test_a_rule_around_one_function_hides_it_as_scopes_do() -> None:
    made = Server("one", auth=WHO)
    made.tool("wipe", middleware=[RequireScopes({"*": {"admin"}})])(lambda: "wiped")
    made.resource("docs://{+path}", middleware=[RULES])(lambda path: path)
    async with over_http(made) as url, client_of(url, "eve") as eve:
        assert await tools_of(eve) == []
        with pytest.raises(ResourceNotFound):
            await eve.read_resource("docs://private/plan")
        assert (await eve.read_resource("docs://open")).contents


async def test_what_a_middleware_adds_to_a_list_is_judged_too() -> None:
    made = Server("adds", auth=WHO, middleware=[RULES])
    made.tool("own")(lambda: "")

    @made.middleware
    async def more(request: Any, call_next: Any) -> Any:
        value = await call_next(request)
        extra = [Tool(name=name, input_schema={"type": "object"}) for name in ("delete_it", "look")]
        return [*value, *extra] if request.lists else value

    async with over_http(made) as url, client_of(url, "eve") as eve:
        assert await tools_of(eve) == ["own", "look"]


async def test_a_middleware_that_caches_a_list_reveals_nothing_that_others_see() -> None:
    made = Server("keeps", auth=WHO)
    made.tool("open")(lambda: "")
    made.tool("wipe", scopes={"admin"})(lambda: "")
    made.tool("old", tags={"old"})(lambda: "")
    made.resource("docs://plan", scopes={"admin"})(lambda: "")
    made.resource("docs://{+path}", scopes={"admin"})(lambda path: "")
    kept: dict[str, Any] = {}

    @made.middleware
    async def keep(request: Any, call_next: Any) -> Any:
        if not request.lists:
            return await call_next(request)
        if request.method not in kept:
            kept[request.method] = await call_next(request)
        return kept[request.method]

    async with over_http(made) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        assert await tools_of(ann) == ["open", "wipe", "old"]
        assert await ann.list_resources()
        assert await ann.list_resource_templates()
        made.disable(tags={"old"})
        assert await tools_of(eve) == ["open"]
        assert await eve.list_resources() == []
        assert await eve.list_resource_templates() == []


async def test_a_middleware_that_caches_a_list_reveals_no_versions_that_others_see() -> None:
    made = Server("keeps", auth=WHO)
    for kind in (made.tool, made.prompt):
        for name, scopes in {"both": [(), ()], "newest": [(), ("admin",)], "older": [("admin",), ()]}.items():
            kind(name=name, version="1", scopes=scopes[0], description="one")(lambda: "")
            kind(name=name, version="2", scopes=scopes[1], description="two")(lambda: "")
    kept: dict[str, Any] = {}

    @made.middleware
    async def keep(request: Any, call_next: Any) -> Any:
        value = await call_next(request)
        return kept.setdefault(request.method, value) if request.lists else value

    to_ann = {name: ("two", ["1", "2"]) for name in ("both", "newest", "older")}
    to_eve = {"both": ("two", ["1", "2"]), "newest": ("one", ["1"]), "older": ("two", ["2"])}
    async with over_http(made) as url, client_of(url, "ann") as ann, client_of(url, "eve") as eve:
        for client, expected in ((ann, to_ann), (eve, to_eve), (ann, to_ann)):
            for listed in (await client.list_tools(fresh=True), await client.list_prompts(fresh=True)):
                told = {each.name: (each.description, (each.meta or {})["accord/versions"]) for each in listed}
                assert told == expected


async def test_what_not_everybody_may_read_is_not_for_shared_caches() -> None:
    public = CacheHint(ttl=60, scope="public")
    inner, outer = Server("inner"), Server("outer", auth=WHO, middleware=[RULES])
    inner.resource("docs://plan", cache=public)(lambda: "plan")
    inner.resource("docs://mine", scopes={"admin"}, cache=public)(lambda: "mine")
    inner.resource("docs://all/{+path}", cache=public)(lambda path: path)
    outer.add_middleware(RequireScopes({"docs://in/plan": {"admin"}, "docs://in/all/secret": {"admin"}}))
    outer.mount(inner, "in")
    scopes = {"plan": "private", "mine": "private", "all/secret": "private", "all/open": "public"}
    async with over_http(outer) as url, client_of(url, "ann") as ann:
        for path, scope in scopes.items():
            assert (await ann.read_resource(f"docs://in/{path}")).cache_scope == scope


@pytest.mark.parametrize("middleware", [[], [Caching()]], ids=["", "kept"])
async def test_what_a_handler_makes_of_what_not_everybody_may_read_is_not_for_shared_caches(middleware: Any) -> None:
    public = CacheHint(ttl=60, scope="public")
    inner, outer = Server("inner", middleware=middleware), Server("outer", auth=WHO, middleware=[RULES])
    inner.resource("docs://plan", scopes={"admin"})(lambda: "plan")
    inner.resource("docs://ruled")(lambda: "ruled")
    inner.resource("docs://open")(lambda: "open")
    outer.add_middleware(RequireScopes({"docs://in/ruled": {"admin"}}))
    outer.mount(inner, "in")

    @inner.resource("reads://{name}", cache=public)
    async def reads(name: str, ctx: Context) -> str:
        try:
            return str((await ctx.read_resource(f"docs://{name}"))[0].text)
        except ResourceNotFound:
            return "nothing"

    @inner.resource("sees://{name}", cache=public)
    async def sees(name: str, ctx: Context) -> str:
        return name if ctx.sees_resource(f"docs://{name}") else "nothing"

    async with over_http(outer) as url, client_of(url, "ann") as ann, client_of(url, "eve") as eve:
        for how in ("reads", "sees"):
            for name in ("plan", "ruled"):
                for _ in range(2):
                    assert await read_with_scope(ann, f"{how}://in/{name}") == (name, "private")
                assert await read_with_scope(eve, f"{how}://in/{name}") == ("nothing", "private")
        for _ in range(2):
            assert await read_with_scope(eve, "reads://in/open") == ("open", "public")


async def read_with_scope(client: Client, uri: str) -> tuple[str, str | None]:
    found = await client.read_resource(uri, fresh=True)
    return found.contents[0].text, found.cache_scope  # type: ignore[union-attr]  # each is a text


class Parsing(Provider):
    """Takes URIs apart with the standard library."""

    async def resource(self, uri: str) -> Provided | None:
        parts = urlsplit(uri)
        if parts.scheme != "docs" or not parts.hostname:
            return None
        return Provided(Resource(uri=uri, name=uri), lambda: f"{parts.hostname}{parts.path}")


@pytest.mark.parametrize(
    "uri",
    [
        "docs://ann@private/plan",
        "docs://private:80/plan",
        "docs://priv\nate/plan",
        "do\tcs://private/plan",
        " docs://private/plan",
        "\x00docs://private/plan",
        "docs://open\\@private/plan",
        "docs://private:http/plan",
        "docs://open?/../private/plan",
    ],
)
async def test_a_provider_that_parses_uris_gives_nothing_that_a_rule_covers(uri: str) -> None:
    made = Server("parses", auth=WHO, middleware=[RULES])
    made.add_provider(Parsing())
    async with over_http(made) as url, client_of(url, "ann") as ann, client_of(url, "eve") as eve:
        assert (await ann.read_resource("docs://private/plan")).contents
        with pytest.raises(AccordError):
            await eve.read_resource(uri)


class Normalizing(Provider):
    """Reads a path as below a root, which `..` does not leave."""

    async def resource(self, uri: str) -> Provided | None:
        path = normpath(uri.replace("docs://", "/"))
        return Provided(Resource(uri=uri, name=uri), lambda: path)


@pytest.mark.parametrize(
    "uri",
    [
        "docs://m/a/../private/plan",
        "docs://m/a/x/%2e%2e/../private/plan",
        "docs://m/a/../private/..\\/../plan",  # a backslash is a character of the name
    ],
)
async def test_a_rule_outside_covers_what_a_mounted_provider_finds_below_its_root(uri: str) -> None:
    rules = RequireScopes({"docs://m/a/private/*": {"admin"}})
    inner, middle, outer = Server("inner"), Server("middle"), Server("outer", auth=WHO, middleware=[rules])
    inner.add_provider(Normalizing())
    middle.mount(inner, "a")
    outer.mount(middle, "m")
    async with over_http(outer) as url, client_of(url, "ann") as ann, client_of(url, "eve") as eve:
        assert (await ann.read_resource("docs://m/a/private/plan")).contents
        assert (await eve.read_resource("docs://m/a/open/plan")).contents
        with pytest.raises(ResourceNotFound):
            await eve.read_resource(uri)


class Forwarding(Provider):
    """Reads the path of a URL that is relative to another."""

    async def resource(self, uri: str) -> Provided | None:
        path = urljoin("http://api.example/", uri.replace("docs://", "/"))
        return Provided(Resource(uri=uri, name=uri), lambda: path)


async def test_a_rule_covers_what_a_url_with_an_empty_segment_is_for_a_web_server() -> None:
    server = Server("docs", auth=WHO, middleware=[RequireScopes({"docs://private/*": {"admin"}})])
    server.add_provider(Forwarding())
    uri = "docs://a/../private//../plan"
    async with over_http(server) as url, client_of(url, "ann") as ann, client_of(url, "eve") as eve:
        assert (await ann.read_resource(uri)).contents[0].text == "http://api.example/private/plan"
        with pytest.raises(ResourceNotFound):
            await eve.read_resource(uri)


async def test_a_uri_with_too_many_readings_is_hidden_where_there_are_rules() -> None:
    made, open_to_all = Server("docs", auth=WHO, middleware=[RULES]), Server("open", auth=WHO)
    for server in (made, open_to_all):
        server.resource("docs://{+path}")(lambda path: path)
        async with over_http(server) as url, client_of(url, "eve") as eve:
            assert (await eve.read_resource("docs://open%2Fplan?page=%252F")).contents
            if server is open_to_all:
                assert (await eve.read_resource(MANY_READINGS)).contents
                continue
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(MANY_READINGS)


async def test_a_provider_has_no_uri_with_too_many_readings_where_there_are_rules() -> None:
    """Rules are compared with the first of them only."""
    server = Server("docs", auth=WHO, middleware=[RequireScopes({"docs://private/*": {"admin"}})])
    server.add_provider(WithoutParameters())
    async with over_http(server) as url, client_of(url, "eve") as eve:
        assert (await eve.read_resource("docs://open/;v=1/plan")).contents
        with pytest.raises(ResourceNotFound):
            await eve.read_resource(f"docs://A/b/c/d/e/f/g/h{'/..' * 8}/%25252561/..;/private/plan")


class WithoutParameters(Provider):
    """Reads a path without the parameters of its segments."""

    async def resource(self, uri: str) -> Provided | None:
        path = normpath(re.sub(";[^/]*", "", uri.replace("docs://", "/")))
        return Provided(Resource(uri=uri, name=uri), lambda: path)


class Counting(RequireScopes):
    """Counts the characters that its rules are compared with."""

    compared = 0

    def scopes_of(self, name: str, tags: Any) -> frozenset[str]:
        self.compared += len(name)
        return super().scopes_of(name, tags)


@pytest.mark.parametrize(
    "part", ["\\../..", "/..\\\\..//../;x", "%252e%252e//\\\\;a/..", "\ufdfa/..", "%252f..%5c..%2f"]
)
@pytest.mark.parametrize("kind", ["provider", "template"])
async def test_rules_are_compared_with_few_readings_of_a_long_uri(kind: str, part: str) -> None:
    """With hundreds of rules, each further reading would take time from other clients."""
    rules = Counting({"docs://private/*": {"admin"}})
    server = Server("docs", auth=WHO, middleware=[rules])
    if kind == "provider":
        server.add_provider(WithoutParameters())
    else:
        server.resource("docs://{+path}", unsafe_variables=True)(lambda path: path)
    async with over_http(server) as url, client_of(url, "eve") as eve:
        rules.compared = 0
        with suppress(ResourceNotFound):
            await eve.read_resource("docs://A/b/c/d/e/f/g/h/.." + part * (8_000 // len(part)))
    assert rules.compared <= 150_000


async def test_a_provider_that_completes_everything_does_not_distinguish_a_hidden_template_from_a_missing_one() -> None:
    made = Server("docs", auth=WHO)
    made.resource("docs://{+path}", scopes={"admin"})(lambda path: path)
    made.add_provider(Proposing())
    async with over_http(made) as url, client_of(url, "eve") as eve:
        for text in ("docs://{+path}", "docs://{path}", "note://{+path}"):
            with pytest.raises(InvalidParams, match="no resource template"):
                await eve.complete(ResourceTemplateReference(uri=text), argument="path", value="")


def hidden() -> Server:
    made = Server("hidden")
    made.resource("docs://{name}")(lambda name: name)
    made.resource("docs://rare", tags={"rare"})(lambda: "rare")
    return made


@pytest.mark.parametrize("mounted", [False, True])
async def test_what_a_server_hides_is_hidden_in_every_spelling_and_from_those_who_subscribed_above(
    mounted: bool,
) -> None:
    made, prefix = hidden(), ""
    made.disable("docs://plan", tags={"rare"})
    if mounted:
        outer = Server("outer")
        outer.mount(made, "in")
        made, prefix = outer, "in/"
    async with Client(made) as client, client.subscribe(at("docs://open", prefix), at("docs://", prefix)) as changes:
        for spelled in ("plan", "%70lan", "PLAN"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(f"docs://{prefix}{spelled}")
        for name in ("plan", "open"):
            made.resource_updated(f"docs://{prefix}{name}")
        async with asyncio.timeout(100):
            assert await anext(changes) == ResourceUpdated(f"docs://{prefix}open")


async def test_a_handler_of_a_mounted_server_reads_and_sees_for_a_client_what_that_may() -> None:
    inner, outer = (
        Server("inner"),
        Server("outer", auth=WHO, middleware=[RequireScopes({"docs://in/plan": {"admin"}, "in_wipe": {"admin"}})]),
    )
    inner.resource("docs://plan")(lambda: "a plan")
    inner.tool("wipe")(lambda: "wiped")

    @inner.tool
    async def read(ctx: Context) -> str:
        return str((await ctx.read_resource("docs://plan"))[0].text)

    @inner.tool
    async def sees(ctx: Context) -> bool:
        return ctx.sees("wipe")

    outer.mount(inner, "in")
    async with over_http(outer) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        assert (await ann.call_tool("in_read")).text == "a plan"
        assert (await ann.call_tool("in_sees")).text == "true"
        assert (await eve.call_tool("in_sees")).text == "false"
        with pytest.raises((ResourceNotFound, InvalidParams)):
            await eve.call_tool("in_read")


async def test_a_search_finds_the_version_that_is_listed() -> None:
    made = Server("versions", auth=WHO)
    for version, scopes in (("1", ()), ("2", {"admin"})):
        made.tool(name="order", version=version, scopes=scopes, description=f"version {version}")(lambda: "")
    made.search_tools(budget=1)
    async with over_http(made) as url:
        for key, text in (("ann", "version 2"), ("eve", "version 1")):
            async with client_of(url, key) as client:
                found = (await client.call_tool("search_tools", {"query": "order"})).structured_content
                assert [tool["description"] for tool in found["tools"]] == [text]


async def test_a_search_takes_no_version_for_a_part_of_a_name() -> None:
    made = Server("versions", auth=WHO)
    for version in ("1", "2"):
        made.tool(name="order 1", version=version, description="open")(lambda: "")
        made.tool(name="order", version=f"1 {version}", scopes={"admin"}, description="secret")(lambda: "")
    made.search_tools(budget=1)
    async with over_http(made) as url, client_of(url, "eve") as eve:
        found = (await eve.call_tool("search_tools", {"query": ""})).structured_content
        assert [tool["description"] for tool in found["tools"]] == ["open"]


@PLACES
async def test_the_files_of_a_directory_go_by_rules_on_their_uris(where: str, tmp_path: Path) -> None:
    for name in ("open", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.md").write_text(name)
    made, prefix = Server("files", auth=WHO, middleware=[RULES] if where in ("alone", "inner") else []), ""
    made.add_directory(tmp_path, uri="docs://", watch=False)
    if where != "alone":
        inner, made, prefix = made, Server("outer", auth=WHO, middleware=[RULES] if where == "outer" else []), "in/"
        made.mount(inner, "in")
    base = f"docs://{prefix}"
    async with over_http(made) as url, client_of(url, "eve") as eve, client_of(url, "ann") as ann:
        assert [item.uri for item in await eve.list_resources()] == [f"{base}open/plan.md"]
        for path in ("private/plan.md", "%70rivate/plan.md"):
            assert (await ann.read_resource(base + path)).contents
        for path in ("private/plan.md", "%70rivate/plan.md", "private", "private/"):
            with pytest.raises(ResourceNotFound):
                await eve.read_resource(base + path)
        ref = ResourceTemplateReference(uri=f"{base}{{+path}}")
        for client, names in ((eve, ["open/"]), (ann, ["open/", "private/"])):
            assert (await client.complete(ref, argument="path")).values == names
            [listing] = (await client.read_resource(base)).contents
            assert listing.text is not None
            assert listing.text.split() == names
        async with eve.subscribe(f"{base}private/plan.md", f"{base}open/plan.md") as changes:
            for name in ("private", "open"):
                made.resource_updated(f"{base}{name}/plan.md")
            async with asyncio.timeout(10):
                assert await anext(changes) == ResourceUpdated(f"{base}open/plan.md")


class Many(Provider):
    """A number of resources."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._resources = [Resource(uri=f"docs://{at}", name=str(at)) for at in range(number)]

    async def resources(self) -> list[Resource]:
        return self._resources


async def turns_during_a_list(number: int) -> int:
    """How often another task runs while so many resources are judged."""
    made, turns = Server("docs", middleware=[RULES]), 0
    made.add_provider(Many(number))

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with Client(made, principal=Principal("eve")) as eve, asyncio.TaskGroup() as group:
        task = group.create_task(other())
        assert len(await eve.list_resources()) == number
        task.cancel()
    return turns


async def test_a_list_of_many_items_of_a_provider_lets_other_clients_run() -> None:
    assert await turns_during_a_list(900) - await turns_during_a_list(10) > 40


class Escaped(Many):
    """As many resources, whose URIs have several readings."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._resources = [Resource(uri=f"file:///a%20B%2F{at}", name=str(at)) for at in range(number)]


def escaped_files(number: int) -> Server:
    """A server whose own rules, and those of one in it, are compared with the URIs of many files."""
    inner, made = Server("inner", middleware=[RULES]), Server("outer", middleware=[RULES])
    inner.add_provider(Escaped(number))
    made.mount(inner, "in")
    made.add_provider(Escaped(number))
    return made


async def test_the_readings_of_listed_uris_are_not_found_anew_for_each_list(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    real = uri_spelling.resolved
    monkeypatch.setattr(uri_spelling, "resolved", lambda path: found.append(path) or real(path))
    async with Client(escaped_files(200), principal=Principal("eve")) as eve:
        assert len(await eve.list_resources()) == 400
        first = len(found)
        assert len(await eve.list_resources(fresh=True)) == 400
    assert len(found) == first > 400


async def test_the_readings_of_listed_uris_are_not_found_anew_for_rules_of_a_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, found = Server("docs"), [""]
    for at in range(100):
        made.resource(f"file:///c%20D%2F{at}", name=f"file {at}")(lambda: "text")

    @made.tool
    def hide(ctx: Context) -> None:
        ctx.disable("file:///c%20D%2F3")

    real = uri_spelling.resolved
    async with Client(made, revisions=["2025-11-25"]) as client:
        await client.call_tool("hide")
        assert len(await client.list_resources()) == 99
        monkeypatch.setattr(uri_spelling, "resolved", lambda path: found.append(path) or real(path))
        assert len(await client.list_resources(fresh=True)) == 99
    assert found == [""]

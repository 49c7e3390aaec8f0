"""What is not known beforehand: rows of a database as tools, prompts and resources."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from accord import (
    ArgumentChange,
    Client,
    Completion,
    Context,
    InvalidParams,
    Limits,
    ListChanged,
    ProtocolError,
    Provided,
    Provider,
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
from accord.messages.revision import REVISIONS

from tests.server.compose.reaching import tools_of


class Queries(Provider):
    """A file of SQLite: saved queries are tools, saved texts prompts, and notes resources."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.running = 0
        with self._connected() as db:
            db.executescript(
                """
                CREATE TABLE queries (name TEXT PRIMARY KEY, sql TEXT, about TEXT);
                CREATE TABLE prompts (name TEXT PRIMARY KEY, text TEXT);
                CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
                INSERT INTO queries VALUES ('longest', 'SELECT text FROM notes ORDER BY length(text) DESC', 'Longest');
                INSERT INTO prompts VALUES ('greet', 'Greet {who}.');
                INSERT INTO notes VALUES (1, 'milk'), (2, 'bread and butter');
                """
            )

    def _connected(self) -> Any:
        return sqlite3.connect(self._path)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        db = self._connected()
        try:
            with db:
                return list(db.execute(sql, values))
        finally:
            db.close()

    async def tools(self) -> Sequence[Provided]:
        return [self._tool(*row) for row in self.rows("SELECT * FROM queries")]

    def _tool(self, name: str, sql: str, about: str) -> Provided:
        schema = {"type": "object", "properties": {"most": {"type": "integer"}}, "additionalProperties": False}
        return Provided(Tool(name=name, description=about, input_schema=schema), partial(self._run, sql))

    async def _run(self, sql: str, arguments: dict[str, Any], ctx: Context) -> str:
        found = self.rows(f"{sql} LIMIT ?", arguments.get("most", 10))
        return f"{ctx.server.name}: {', '.join(text for (text,) in found)}"

    async def prompts(self) -> Sequence[Provided]:
        return [
            Provided(Prompt(name=name, arguments=[PromptArgument(name="who")]), partial(self._fill, text))
            for name, text in self.rows("SELECT * FROM prompts")
        ]

    def _fill(self, text: str, arguments: dict[str, str]) -> str:
        return text.format(**arguments)

    async def resources(self) -> Sequence[Resource]:
        return [Resource(uri=f"note://{id}", name=text) for id, text in self.rows("SELECT * FROM notes")]

    async def templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate(uri_template="note://{id}", name="note")]

    async def resource(self, uri: str) -> Provided | None:
        found = self.rows("SELECT text FROM notes WHERE id = ?", uri.removeprefix("note://"))
        return Provided(Resource(uri=uri, name=uri), lambda: found[0][0]) if found else None

    async def complete(self, ref: Reference, argument: str, typed: str) -> Completion | list[str] | None:
        return [f"{id}" for id, _ in self.rows("SELECT * FROM notes")] if "note" in str(ref) else None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.running += 1
        yield
        self.running -= 1

    def save(self, id: int, text: str) -> None:
        self.rows("INSERT OR REPLACE INTO notes VALUES (?, ?)", id, text)
        self.changed("resources")
        self.updated(f"note://{id}")


@pytest.fixture
def queries(tmp_path: Path) -> Queries:
    return Queries(tmp_path / "queries.db")


def server(*providers: Provider, name: str = "provided", **options: Any) -> Server:
    made = Server(name, **options)
    for provider in providers:
        made.add_provider(provider)
    made.tool("own")(lambda: "own")
    return made


@pytest.mark.parametrize("prefix", ["", "db"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_rows_are_tools_prompts_and_resources(queries: Queries, revision: str, prefix: str) -> None:
    made = server(queries)
    if prefix:
        made, inner = Server("outer"), made
        made.mount(inner, prefix)
    name, uri = (f"{prefix}_", f"note://{prefix}/") if prefix else ("", "note://")
    async with Client(made, revisions=[revision]) as client:
        assert await tools_of(client) == [f"{name}own", f"{name}longest"]
        result = await client.call_tool(f"{name}longest", {"most": 1})
        assert result.text == "provided: bread and butter"
        assert (await client.call_tool(f"{name}longest", {"many": 1})).is_error
        [prompt] = await client.list_prompts()
        got = await client.get_prompt(prompt.name, {"who": "Ann"})
        assert (prompt.name, got.messages[0].content.text) == (f"{name}greet", "Greet Ann.")  # type: ignore[union-attr]
        assert [one.uri for one in await client.list_resources()] == [f"{uri}1", f"{uri}2"]
        assert [one.uri_template for one in await client.list_resource_templates()] == [uri + "{id}"]
        assert (await client.read_resource(f"{uri}1")).contents[0].text == "milk"
        with pytest.raises(ResourceNotFound):
            await client.read_resource(f"{uri}9")
        with pytest.raises(InvalidParams):
            await client.call_tool(f"{name}shortest")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_its_changes_are_notified_and_it_runs_as_long_as_the_server(queries: Queries, revision: str) -> None:
    made = server(queries)
    async with Client(made, revisions=[revision]) as client:
        assert queries.running == 1
        async with client.subscribe("note://1", resources=True) as told, asyncio.timeout(100):
            queries.save(1, "cream")
            events = {await anext(told), await anext(told)}
            assert events == {ListChanged("resources"), ResourceUpdated("note://1")}
            assert (await client.read_resource("note://1")).contents[0].text == "cream"
        found = await client.complete(template="note://{id}", argument="id")
        assert list(found.values) == ["1", "2"]
    assert queries.running == 0


async def test_what_the_server_declares_itself_goes_first(queries: Queries) -> None:
    made = server(queries)
    made.tool("longest")(lambda: "mine")
    async with Client(made) as client:
        assert await tools_of(client) == ["own", "longest"]
        assert (await client.call_tool("longest")).text == "mine"


async def test_middleware_wraps_what_is_provided(queries: Queries) -> None:
    async def shout(request: Any, call_next: Any) -> Any:
        value = await call_next(request)
        return value.upper() if isinstance(value, str) else value

    async with Client(server(queries, middleware=[shout])) as client:
        assert (await client.call_tool("longest", {"most": 1})).text == "PROVIDED: BREAD AND BUTTER"
        assert (await client.read_resource("note://1")).contents[0].text == "MILK"


async def test_what_is_provided_is_changed_and_hidden_as_what_is_declared(queries: Queries) -> None:
    made = server(queries)
    made.change_tool("longest", ToolChange(name="long", arguments={"most": ArgumentChange(name="limit", default=1)}))
    async with Client(made) as client:
        own, tool = await client.list_tools()
        assert (own.name, tool.name, list(tool.input_schema["properties"])) == ("own", "long", ["limit"])
        assert (await client.call_tool("long")).text == "provided: bread and butter"
        assert (await client.call_tool("long", {"limit": 2})).text == "provided: bread and butter, milk"
        with pytest.raises(InvalidParams):
            await client.call_tool("longest")
        made.disable("long", "note://1", "greet")
        assert await tools_of(client) == ["own"]
        assert [one.uri for one in await client.list_resources(fresh=True)] == ["note://2"]
        assert await client.list_prompts(fresh=True) == []
        for refused in (client.call_tool("long"), client.get_prompt("greet", {"who": "x"})):
            with pytest.raises(InvalidParams):
                await refused
        with pytest.raises(ResourceNotFound):
            await client.read_resource("note://1")
        made.enable("long")
        assert (await client.call_tool("long")).text


# --- faults ----------------------------------------------------------------------------------------------------


class Broken(Provider):
    """Fails at everything."""

    async def tools(self) -> Sequence[Provided]:
        raise OSError("the disk is gone")

    resources = prompts = templates = tools  # type: ignore[assignment]

    async def resource(self, uri: str) -> Provided | None:
        raise OSError("the disk is gone")

    async def complete(self, ref: Reference, argument: str, typed: str) -> list[str]:
        raise OSError("the disk is gone")


class Silent(Broken):
    """Never answers."""

    async def tools(self) -> Sequence[Provided]:
        await asyncio.Event().wait()
        return ()

    resources = prompts = templates = tools  # type: ignore[assignment]

    async def resource(self, uri: str) -> Provided | None:
        await asyncio.Event().wait()
        return None


class Wrong(Provider):
    """Has other things than it says."""

    async def tools(self) -> Sequence[Any]:
        return [Resource(uri="a://b", name="c"), "text"]

    resources = prompts = templates = tools

    async def resource(self, uri: str) -> Any:
        return Provided(Tool(name="x", input_schema={}), print)


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("broken", [Broken, Silent, Wrong])
async def test_one_that_fails_takes_nothing_from_the_others(
    queries: Queries, broken: type[Provider], mounted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(provider_seconds=0.05)
    made = server(broken(), queries, limits=limits)
    if mounted:
        made = Server("outer", limits=limits)
        made.mount(server(broken()))
        made.mount(server(queries))
    async with Client(made) as client:
        with caplog.at_level(logging.WARNING, "accord.server"):
            assert await tools_of(client) == ["own", "longest"]
        assert f"the provider {broken.__name__} failed to say what tools it has" in caplog.text
        assert len(await client.list_prompts()) == 1
        assert len(await client.list_resources()) == 2
        assert len(await client.list_resource_templates()) == 1
        assert "butter" in (await client.call_tool("longest")).text
        assert (await client.read_resource("note://1")).contents[0].text == "milk"
        assert (await client.get_prompt("greet", {"who": "Ann"})).messages
        assert (await client.complete(template="note://{id}", argument="id")).values


@pytest.mark.parametrize("broken", [Broken, Silent])
async def test_the_failure_is_reported_where_nobody_else_handles_it(broken: type[Provider]) -> None:
    async with Client(server(broken(), limits=Limits(provider_seconds=0.05))) as client:
        for asked in (client.call_tool("gone"), client.get_prompt("gone"), client.read_resource("note://gone")):
            with pytest.raises(ProtocolError, match="could not be checked"):
                await asked
        assert (await client.call_tool("own")).text == "own"


async def test_a_handler_that_fails_fails_its_own_call() -> None:
    class Failing(Provider):
        async def tools(self) -> Sequence[Provided]:
            def fail(arguments: dict[str, Any]) -> str:
                raise ValueError("not today")

            return [Provided(Tool(name="fail", input_schema={"type": "object"}), fail)]

    async with Client(server(Failing())) as client:
        result = await client.call_tool("fail")
        assert result.is_error
        assert "not today" in result.text


class Opened(Provider):
    """What is there only while the lifespan runs."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []
        self.names: list[str] = []

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        if self.errors:
            raise self.errors.pop()
        self.names.append("opened")
        yield
        self.names.clear()

    async def tools(self) -> list[Provided]:
        return [Provided(Tool(name=name, input_schema={"type": "object"}), lambda _: "done") for name in self.names]

    async def resources(self) -> list[Resource]:
        return [Resource(uri=f"note://{name}", name=name) for name in self.names]

    async def resource(self, uri: str) -> Provided | None:
        found = [each for each in await self.resources() if each.uri == uri]
        return Provided(found[0], lambda: "text") if found else None

    async def complete(self, ref: Reference, argument: str, typed: str) -> list[str] | None:
        return [*self.names] or None


def mounted_twice(opened: Opened) -> Server:
    """A server around one around one with this provider."""
    middle, outer = Server("middle"), Server("outer")
    middle.mount(server(opened, name="inner"), "in")
    outer.mount(middle, "mid")
    return outer


async def first_tools(client: Client) -> object:
    return [tool.name for tool in await client.list_tools()]


async def first_search(client: Client) -> object:
    found = await client.call_tool("search_tools", {"query": "opened"})
    return [tool["name"] for tool in found.structured_content["tools"]]


async def first_call(client: Client) -> object:
    return (await client.call_tool("mid_in_opened")).text


async def first_read(client: Client) -> object:
    return len((await client.read_resource("note://mid/in/opened")).contents)


async def first_completion(client: Client) -> object:
    return (await client.complete(ResourceTemplateReference(uri="note://mid/in/{id}"), argument="id")).values


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (first_tools, ["mid_in_own", "mid_in_opened"]),
        (first_search, ["mid_in_opened"]),
        (first_call, "done"),
        (first_read, 1),
        (first_completion, ["opened"]),
    ],
)
async def test_a_provider_of_a_mounted_server_is_asked_within_its_lifespan(
    ask: Callable[[Client], Awaitable[object]], wanted: object
) -> None:
    opened = Opened()
    outer = mounted_twice(opened)
    if ask is first_search:
        outer.search_tools(budget=1)
    async with Client(outer) as client:
        assert await ask(client) == wanted
    assert opened.names == []


async def test_a_mounted_server_that_cannot_start_leaves_out_its_provided_items(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened = Opened()
    opened.errors = [OSError("no database"), OSError("no database")]
    async with Client(mounted_twice(opened)) as client:
        assert await tools_of(client) == ["mid_in_own"]
        with pytest.raises(ProtocolError, match="no database"):
            await client.call_tool("mid_in_opened")
        with pytest.raises(InvalidParams, match="no tool 'elsewhere'"):
            await client.call_tool("elsewhere")
        assert await tools_of(client) == ["mid_in_own", "mid_in_opened"]
    assert "no database" in caplog.text

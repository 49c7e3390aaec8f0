"""`search_tools`: a catalogue that is too large to be listed is searched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st

from accord import (
    APIKeys,
    ArgumentChange,
    Client,
    Context,
    DeclarationError,
    Elicit,
    InvalidParams,
    Principal,
    Provided,
    Provider,
    Server,
    Tool,
    ToolChange,
)
from accord.messages.revision import REVISIONS
from accord.server.compose.ranking import Ranking, words
from accord.server.compose.search import tokens

from tests.server.compose.reaching import client_of, over_http, tools_of
from tests.server.raw import raw_peer

TWO = ["search_tools", "call_tool"]
ASKING = [revision for revision in REVISIONS if revision >= "2025-06-18"]


def catalogue(count: int = 100, **options: Any) -> Server:
    made = Server("large", **options)

    @made.tool
    def get_weather(city: str, days: int = 3) -> str:
        """How the weather will be in a city."""
        return f"{city}: sun for {days} days"

    @made.tool
    def deleteCalendarEvent(event_id: str) -> str:
        """Take a meeting out of the diary."""
        return f"deleted {event_id}"

    for number in range(count):
        add(made, number)
    return made


def add(made: Server, number: int) -> None:
    def serve(value: int) -> str:
        return f"{number}: {value}"

    made.tool(f"filler_{number}", description=f"Does nothing of use, number {number}.")(serve)


async def find(client: Client, query: str, **options: Any) -> list[str]:
    result = await client.call_tool("search_tools", {"query": query, **options})
    assert not result.is_error, result.text
    return [tool["name"] for tool in result.structured_content["tools"]]


# --- what is listed --------------------------------------------------------------------------------------------


async def test_a_missing_required_member_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    made = catalogue(3)
    made.search_tools(always=["get_weather", "nope"])
    async with Client(made) as client:
        await tools_of(client)
        add(made, 4)
        await tools_of(client)
    assert caplog.text.count("there is no tool 'nope'") == 1
    assert "get_weather" not in caplog.text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_beyond_the_budget_the_list_has_two_tools_and_those_that_are_always_there(revision: str) -> None:
    made = catalogue()
    made.search_tools(1000, always=["get_weather", "comes_later"])
    async with Client(made, revisions=[revision]) as client:
        assert await tools_of(client) == [*TWO, "get_weather"]
        assert (await client.call_tool("filler_7", {"value": 1})).text == "7: 1"


async def test_within_the_budget_everything_is_listed_and_nothing_else() -> None:
    made = catalogue(3)
    made.search_tools(1000)
    async with Client(made) as client:
        assert await tools_of(client) == ["get_weather", "deleteCalendarEvent", "filler_0", "filler_1", "filler_2"]


async def test_the_list_follows_when_tools_come_and_go() -> None:
    made = catalogue(3)
    made.search_tools(1000)
    async with Client(made) as client:
        assert len(await tools_of(client)) == 5
        for number in range(3, 60):
            add(made, number)
        assert await tools_of(client) == TWO
        assert "filler_59" in await find(client, "filler 59")
        for number in range(3, 60):
            made.remove_tool(f"filler_{number}")
        assert len(await tools_of(client)) == 5


async def test_the_budget_is_what_all_definitions_come_to() -> None:
    made = catalogue(20)
    async with Client(made, revisions=["2026-07-28"]) as client:
        whole = sum(tokens(tool) for tool in await client.list_tools())
        made.search_tools(whole)
        assert len(await tools_of(client)) == 22
        made.search_tools(whole - 1)
        assert await tools_of(client) == TWO


async def test_what_a_server_hides_does_not_count() -> None:
    made = catalogue()
    made.search_tools(1000)
    made.enable("get_weather", "filler_3", only=True)
    async with Client(made) as client:
        assert await tools_of(client) == ["get_weather", "filler_3"]


def test_a_name_that_is_taken_and_a_budget_that_is_none_are_refused() -> None:
    made = Server("taken")
    made.tool("call_tool")(lambda: "mine")
    with pytest.raises(DeclarationError, match="'call_tool' already"):
        made.search_tools()
    for options in ({"budget": 0}, {"limit": 0}, {"always": "get_weather"}):
        with pytest.raises(DeclarationError):
            Server("other").search_tools(**options)  # type: ignore[arg-type]


# --- what is found ---------------------------------------------------------------------------------------------

QUERIES = [
    ("weather", "get_weather"),
    ("getWeather", "get_weather"),
    ("what is the WEATHER like in the cities", "get_weather"),
    ("forecast for a city", "get_weather"),
    ("delete event", "deleteCalendarEvent"),
    ("calendars", "deleteCalendarEvent"),
    ("cal", "deleteCalendarEvent"),
    ("deleting meetings", "deleteCalendarEvent"),
    ("event_id", "deleteCalendarEvent"),
    ("filler_42", "filler_42"),
]


@pytest.mark.parametrize(("query", "name"), QUERIES)
async def test_the_best_comes_first(query: str, name: str) -> None:
    made = catalogue()
    made.search_tools(1000)
    async with Client(made) as client:
        assert (await find(client, query))[0] == name


async def test_a_found_definition_is_all_that_a_call_needs() -> None:
    made = catalogue()
    made.search_tools(1000)
    made.change_tool("get_weather", ToolChange(name="sky", arguments={"city": ArgumentChange(name="place")}))
    async with Client(made, revisions=["2025-11-25"]) as client:
        found = (await client.call_tool("search_tools", {"query": "weather"})).structured_content
        assert found["tools"] == [
            {
                "name": "sky",
                "description": "How the weather will be in a city.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"place": {"type": "string"}, "days": {"type": "integer", "default": 3}},
                    "required": ["place"],
                    "additionalProperties": False,
                },
            }
        ]
        called = await client.call_tool("call_tool", {"name": "sky", "arguments": {"place": "Oslo"}})
        assert called.text == "Oslo: sun for 3 days"


async def test_a_search_keeps_to_the_budget_and_to_the_limit_and_says_what_it_left_out() -> None:
    made = catalogue()
    made.search_tools(500, limit=8)
    async with Client(made) as client:
        result = await client.call_tool("search_tools", {"query": "filler", "limit": 1000})
        assert len(result.structured_content["tools"]) == 8
        assert result.structured_content["left_out"] == 92
        assert len(await find(client, "filler", limit=2)) == 2
        assert len(await find(client, "filler", limit=-5)) == 1
        made.search_tools(100, limit=8)
        assert 1 <= len(await find(client, "filler", limit=8)) < 8
        made.search_tools(1)
        assert len(await find(client, "filler")) == 1


def tracker() -> Server:
    """A catalogue as that of a large HTTP API: many tools share their words, and schemas are larger than a budget."""
    made = Server("tracker")
    things = ["issue", "comment", "milestone", "label", "release", "branch", "webhook", "secret", "user", "team"]
    about = {"type": "string", "description": "A long explanation of what may stand here. " * 20}
    large = {"type": "object", "properties": {f"field_{number}": about for number in range(60)}}
    for area in ["issues", "orgs", "repos", "reactions"]:
        for verb in ["create", "delete", "list", "update"]:
            for thing in things:
                name = (
                    f"{area}_{verb}" if thing == "issue" and area == "issues" else f"{area}_{verb}-{thing}-for-{area}"
                )
                tool = Tool(
                    name=name,
                    description=f"{verb.title()} one {thing}. Anyone with access to a repository can do so.",
                    input_schema={"type": "object", "properties": {"repository": about, "title": about}},
                    output_schema=large,
                )
                made.add_tool(tool, lambda arguments: {})
    return made


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("create an issue in a repository", "issues_create"),
        ("delete an issue", "issues_delete"),
        ("update the release for repos", "repos_update-release-for-repos"),
    ],
)
async def test_the_requested_tool_is_found_whatever_its_schemas_take(query: str, name: str) -> None:
    made = tracker()
    made.search_tools(4000)
    async with Client(made) as client:
        result = await client.call_tool("search_tools", {"query": query, "limit": 5})
    found = result.data["tools"]
    assert found[0]["name"] == name
    assert len(found) == 5


async def test_a_definition_without_room_is_shortened_instead_of_left_out() -> None:
    made = tracker()
    made.search_tools(900)
    async with Client(made) as client:
        found = (await client.call_tool("search_tools", {"query": "create an issue", "limit": 3})).data["tools"]
    assert [each["inputSchema"]["properties"]["title"] for each in found[1:]] == [{"type": "string"}] * 2
    assert len(found) == 3


@pytest.mark.parametrize("query", ["", "   ", "zzz", "?!", "\0", "日本", "é" * 5000, "a b c " * 5000])
async def test_any_query_is_answered(query: str) -> None:
    made = catalogue()
    made.search_tools(1000)
    async with Client(made) as client:
        await find(client, query)
        assert (await client.call_tool("search_tools", {})).is_error


async def test_words_of_any_script_are_found() -> None:
    made = catalogue()
    made.tool("wetter", description="погода в городе, 天気")(lambda: "")
    made.search_tools(1000)
    async with Client(made) as client:
        assert await find(client, "погода") == ["wetter"]
        assert await find(client, "天気") == ["wetter"]


def test_words_are_split_where_names_are() -> None:
    assert list(words("getHTTPResponse_codes2x")) == ["get", "http", "response", "code", "2", "x"]


@given(st.dictionaries(st.text(min_size=1), st.lists(st.sampled_from("abcdefgh")), max_size=20), st.text("abcdefgh "))
def test_a_ranking_has_each_name_with_a_search_word_and_no_other(texts: dict[str, list[str]], query: str) -> None:
    asked = set(words(" ".join(query)))
    wanted = asked - {"a"} or asked  # the one letter of these that is an article
    best = Ranking(texts).best(" ".join(query))
    assert len(best) == len(set(best))
    assert set(best) == {name for name, text in texts.items() if wanted & set(text)}


# --- calling ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ASKING)
async def test_a_tool_is_called_as_directly_with_its_middleware_its_questions_and_its_errors(revision: str) -> None:
    seen: list[str] = []
    runs: list[str] = []

    async def outer(request: Any, call_next: Any) -> Any:
        seen.append(f"{request.method} {request.name}")
        return await call_next(request)

    async def inner(request: Any, call_next: Any) -> Any:
        return f"<{await call_next(request)}>"

    made = catalogue(middleware=[outer])

    @made.tool(middleware=[inner])
    async def wipe(path: str, sure: Annotated[bool, Elicit("Delete {path}?")], ctx: Context) -> str:
        runs.append(path)
        more = await ctx.elicit("Really?", bool)
        return f"{path} {sure} {more.data}"

    made.search_tools(1000)
    asked: list[str] = []

    def answer(params: Any) -> dict[str, bool]:
        asked.append(params.message)
        return {"value": True}

    async with Client(made, revisions=[revision], elicitation=answer) as client:
        result = await client.call_tool("call_tool", {"name": "wipe", "arguments": {"path": "/x"}})
        assert result.text == "</x True True>"
        assert asked == ["Delete /x?", "Really?"]
        assert runs == ["/x"]
        assert seen == ["tools/call wipe"]
        wrong = await client.call_tool("call_tool", {"name": "wipe", "arguments": {"file": "/x"}})
        assert wrong.is_error
        assert 'unknown argument "file"' in wrong.text


MISTAKES = [
    ({"name": "nothing"}, "no tool 'nothing'"),
    ({}, 'missing argument "name"'),
    ({"name": "call_tool", "arguments": {"name": "get_weather"}}, "cannot call itself"),
    ({"name": "get_weather", "arguments": [1]}, "arguments"),
    ({"name": "get_weather", "arguments": {"city": 1}}, 'argument "city": expected string'),
    ({"name": "get_weather", "city": "Oslo"}, 'unknown argument "city"'),
    ({"name": "get_weather"}, 'missing argument "city"'),
]


@pytest.mark.parametrize(("arguments", "why"), MISTAKES)
async def test_a_call_that_cannot_be_made_is_an_error_for_the_model(arguments: dict[str, Any], why: str) -> None:
    made = catalogue()
    made.search_tools(1000)
    async with Client(made) as client:
        result = await client.call_tool("call_tool", arguments)
        assert result.is_error
        assert why in result.text


async def test_search_itself_can_be_called_that_way() -> None:
    made = catalogue()
    made.search_tools(1000)
    async with Client(made) as client:
        call = {"name": "search_tools", "arguments": {"query": "weather"}}
        assert '"get_weather"' in (await client.call_tool("call_tool", call)).text


async def test_a_state_of_one_tool_is_good_for_no_other() -> None:
    """What seals a question is the tool that asked, not `call_tool`."""
    made = catalogue()

    @made.tool
    def wipe(path: str, sure: Annotated[bool, Elicit("Delete?")]) -> str:
        return f"{path} {sure}"

    made.tool("keep")(wipe)
    made.search_tools(1000)
    able = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    answers = {"sure": {"action": "accept", "content": {"value": True}}}

    async with raw_peer(made, "2026-07-28") as peer:

        async def call(name: str, **more: Any) -> Any:
            arguments = {"name": name, "arguments": {"path": "/x"}}
            return await peer.ask("tools/call", {"name": "call_tool", "arguments": arguments, "_meta": able, **more})

        asked = (await call("wipe"))["result"]
        assert asked["resultType"] == "input_required"
        retry = {"requestState": asked["requestState"], "inputResponses": answers}
        assert "requestState" in str(await call("keep", **retry))
        assert (await call("wipe", **retry))["result"]["content"][0]["text"] == "/x True"


# --- who may see it --------------------------------------------------------------------------------------------


async def test_scopes_hold_in_a_search_and_in_a_call_as_in_lists() -> None:
    keys = APIKeys({"a": Principal("ann", frozenset({"admin"})), "b": Principal("bob")})
    made = catalogue(auth=keys)
    made.tool("reset_weather", scopes={"admin"})(lambda: "reset")
    made.search_tools(1000)
    call = {"name": "reset_weather"}
    async with over_http(made) as url, client_of(url, "a") as ann, client_of(url, "b") as bob:
        assert await tools_of(ann) == await tools_of(bob) == TWO
        assert await find(ann, "reset weather") == ["reset_weather", "get_weather"]
        assert await find(bob, "reset weather") == ["get_weather"]
        assert (await ann.call_tool("call_tool", call)).text == "reset"
        refused = await bob.call_tool("call_tool", call)
        assert refused.is_error
        assert refused.text == "no tool 'reset_weather'"
        with pytest.raises(InvalidParams):
            await bob.call_tool("reset_weather")


async def test_a_search_reveals_nothing_of_hidden_tools() -> None:
    keys = APIKeys({"a": Principal("ann", frozenset({"admin"})), "b": Principal("bob")})
    made, secret = Server("few", auth=keys), Server("many", auth=keys)
    for each in (made, secret):
        for name in ("apple", "berry", "cherry", "date", "elder", "fig", "grape", "pear_one", "pear_two", "user"):
            each.tool(name)(lambda: "")
        each.search_tools(10)
    for number in range(30):
        secret.tool(f"purge_users_pea_{number}", scopes={"admin"})(lambda: "")
    queries = ["apple berry cherry date elder fig grape pear purge", "userspurge", "pea", "purge", "pear apple", ""]
    async with (
        over_http(made) as url,
        over_http(secret) as other,
        client_of(url, "b") as bob,
        client_of(other, "b") as bob_there,
        client_of(other, "a") as ann,
    ):
        for query in queries:
            arguments = {"query": query, "limit": 20}
            found = [await each.call_tool("search_tools", arguments) for each in (bob, bob_there)]
            assert found[0].structured_content == found[1].structured_content, query
        assert await find(ann, "purge")


async def test_what_a_session_hides_is_not_found_in_it() -> None:
    made = catalogue()

    @made.tool
    def hide(ctx: Context) -> str:
        ctx.disable("get_weather")
        return "hidden"

    made.search_tools(1000)
    async with Client(made, revisions=["2025-11-25"]) as one, Client(made, revisions=["2025-11-25"]) as other:
        await one.call_tool("hide")
        assert await find(one, "weather") == []
        assert await find(other, "weather") == ["get_weather"]
        assert await tools_of(one) == await tools_of(other) == TWO


async def test_mounted_tools_are_found_here_and_the_search_of_a_mounted_server_is_its_own() -> None:
    inner, outer = catalogue(), catalogue(0)
    inner.search_tools(1000)
    outer.mount(inner, "acme")
    async with Client(outer) as client:
        names = await tools_of(client)
        assert len(names) == 104
        assert not {f"acme_{name}" for name in TWO} & set(names)
        outer.search_tools(1000)
        assert await tools_of(client) == TWO
        assert set(await find(client, "weather")) == {"get_weather", "acme_get_weather"}
        call = {"name": "acme_get_weather", "arguments": {"city": "Oslo"}}
        assert (await client.call_tool("call_tool", call)).text == "Oslo: sun for 3 days"


class Rows(Provider):
    """As many tools as it is told to have."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    async def tools(self) -> Sequence[Provided]:
        return [Provided(Tool(name=f"row_{n}", input_schema={"type": "object"}), self.serve) for n in range(self.count)]

    def serve(self, arguments: dict[str, Any]) -> str:
        return "a row"


async def test_tools_of_providers_count_and_are_found() -> None:
    made, rows = catalogue(0), Rows(1)
    made.add_provider(rows)
    made.search_tools(1000)
    async with Client(made) as client:
        assert len(await tools_of(client)) == 3
        rows.count = 100
        assert await tools_of(client) == TWO
        assert await find(client, "row 99") == ["row_99"] + [f"row_{n}" for n in range(4)]
        rows.count = 101
        assert (await find(client, "row 100"))[0] == "row_100"
        assert (await client.call_tool("call_tool", {"name": "row_7"})).text == "a row"


async def test_many_search_at_once_while_tools_come() -> None:
    made = catalogue()
    made.search_tools(1000)

    async def work(client: Client, number: int) -> None:
        add(made, 1000 + number)
        assert (await find(client, f"filler {1000 + number}"))[0] == f"filler_{1000 + number}"

    async with Client(made) as client:
        await asyncio.gather(*(work(client, number) for number in range(30)))

"""`change_tool`: a tool under another name, with another text, and with fewer arguments."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from jsonschema_rs import Draft202012Validator

from accord import (
    ArgumentChange,
    Client,
    Context,
    DeclarationError,
    Elicit,
    Header,
    Server,
    Tool,
    ToolAnnotations,
    ToolChange,
)
from accord.errors import HeaderMismatch
from accord.messages.revision import LATEST, REVISIONS, RULES
from accord.server.compose.argument_schema import change_schema
from accord.wire.headers import check_parameters

from tests.server.raw import raw_peer

ASKING = [revision for revision in REVISIONS if revision >= "2025-06-18"]


class Place(msgspec.Struct):
    name: str
    near: Place | None = None


def server() -> Server:
    made = Server("changed")

    @made.tool(tags={"weather"})
    def forecast(q: str, units: str = "imperial", days: int = 3) -> str:
        """How the weather will be.

        Args:
            q: Which place.
        """
        return f"{q}, {units}, {days}"

    @made.tool
    def route(start: Place, end: Place) -> list[str]:
        return [start.name, end.name]

    return made


async def shown(made: Server, name: str, revision: str = "2025-11-25") -> Tool:
    async with Client(made, revisions=[revision]) as client:
        return {tool.name: tool for tool in await client.list_tools(fresh=True)}[name]


async def said(made: Server, tool: str, **arguments: Any) -> str:
    async with Client(made) as client:
        return (await client.call_tool(tool, arguments)).text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_has_another_name_and_text_and_no_longer_its_own(revision: str) -> None:
    made = server()
    made.change_tool("forecast", ToolChange(name="weather", description="Sun or rain."))
    async with Client(made, revisions=[revision]) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert list(tools) == ["weather", "route"]
        assert tools["weather"].description == "Sun or rain."
        assert (await client.call_tool("weather", {"q": "Oslo"})).text == "Oslo, imperial, 3"
        with pytest.raises(Exception, match="no tool 'forecast'"):
            await client.call_tool("forecast", {"q": "Oslo"})


async def test_a_hidden_tool_is_neither_listed_nor_callable() -> None:
    made = server()
    made.change_tool("forecast", ToolChange(hidden=True))
    async with Client(made) as client:
        assert [tool.name for tool in await client.list_tools()] == ["route"]
        with pytest.raises(Exception, match="no tool 'forecast'"):
            await client.call_tool("forecast", {"q": "Oslo"})


async def test_title_annotations_tags_and_meta_are_changed() -> None:
    made = server()
    change = ToolChange(
        title="Weather", annotations=ToolAnnotations(read_only_hint=True), tags={"sky"}, meta={"example.org/a": 1}
    )
    made.change_tool("forecast", change)
    tool = await shown(made, "forecast")
    assert (tool.title, tool.meta) == ("Weather", {"example.org/a": 1})
    assert tool.annotations == ToolAnnotations(read_only_hint=True)
    made.disable(tags={"weather"})
    assert await shown(made, "forecast")
    made.disable(tags={"sky"})
    with pytest.raises(KeyError):
        await shown(made, "forecast")


async def test_arguments_are_renamed_described_and_given_a_default() -> None:
    made = server()
    arguments = {
        "q": ArgumentChange(name="city", description="A town."),
        "units": ArgumentChange(fixed="metric"),
        "days": ArgumentChange(default=7),
    }
    made.change_tool("forecast", ToolChange(arguments=arguments))
    schema = (await shown(made, "forecast")).input_schema
    assert list(schema["properties"]) == ["city", "days"]
    assert schema["properties"]["city"]["description"] == "A town."
    assert schema["properties"]["days"]["default"] == 7
    assert schema["required"] == ["city"]
    assert await said(made, "forecast", city="Oslo") == "Oslo, metric, 7"
    assert await said(made, "forecast", city="Oslo", days=1) == "Oslo, metric, 1"


async def test_a_default_makes_an_argument_optional() -> None:
    made = server()
    made.change_tool("forecast", ToolChange(arguments={"q": ArgumentChange(default="Oslo")}))
    assert "required" not in (await shown(made, "forecast")).input_schema
    assert await said(made, "forecast") == "Oslo, imperial, 3"


async def test_what_is_hidden_keeps_its_own_default_or_gets_another() -> None:
    made = server()
    hidden = {"units": ArgumentChange(hidden=True), "q": ArgumentChange(hidden=True, default="Rome")}
    made.change_tool("forecast", ToolChange(arguments=hidden))
    assert list((await shown(made, "forecast")).input_schema["properties"]) == ["days"]
    assert await said(made, "forecast") == "Rome, imperial, 3"


REFUSED = [
    ({"q": "Oslo"}, 'unknown argument "q", known are: "city"'),
    ({"city": "Oslo", "units": "metric"}, 'unknown argument "units"'),
    ({"city": "Oslo", "days": 1}, 'unknown argument "days"'),
    ({"city": 7}, 'argument "q": expected string, got integer 7\n("q" in there is the argument "city")'),
    ({}, 'missing argument "q"\n("q" in there is the argument "city")'),
    ({"city": "Oslo", "more": 1}, 'unknown argument "more"'),
]


@pytest.mark.parametrize("middleware", [False, True])
@pytest.mark.parametrize(("arguments", "why"), REFUSED)
async def test_what_is_not_shown_is_refused_and_the_reason_fits_what_is_shown(
    arguments: dict[str, Any], why: str, middleware: bool
) -> None:
    inner, made = server(), Server("outer")
    if middleware:
        inner.add_middleware(passing)
    made.mount(inner)
    changes = {
        "q": ArgumentChange(name="city"),
        "units": ArgumentChange(fixed="metric"),
        "days": ArgumentChange(hidden=True),
    }
    made.change_tool("forecast", ToolChange(arguments=changes))
    async with Client(made) as client:
        result = await client.call_tool("forecast", arguments)
        assert result.is_error
        assert result.text.startswith(why)


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


async def test_a_tool_that_takes_any_argument_does_not_take_those_that_are_hidden() -> None:
    made = Server("open")

    @made.tool
    def run(job: str, user: str = "nobody", **options: str) -> str:
        return f"{job} {user} {options}"

    made.change_tool(
        "run", ToolChange(arguments={"user": ArgumentChange(fixed="ann"), "job": ArgumentChange(name="j")})
    )
    assert await said(made, "run", j="x", fast="yes") == "x ann {'fast': 'yes'}"
    assert "unknown argument" in await said(made, "run", j="x", user="root")
    assert "unknown argument" in await said(made, "run", j="x", job="y")


@pytest.mark.parametrize("arguments", [b"[1]", b"3", b'"x"', b'{"city": 1e999}', b'{"city": "\\ud800"}'])
async def test_arguments_that_are_none_are_refused_as_without_the_change(arguments: bytes) -> None:
    made = server()
    made.change_tool("forecast", ToolChange(arguments={"q": ArgumentChange(name="city")}))
    async with raw_peer(made) as peer:
        peer.say(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast","arguments":%b}}' % arguments
        )
        answer = await peer.hear()
        assert "error" in answer or answer["result"]["isError"]
        assert (await peer.call("forecast", city="Oslo"))["content"][0]["text"] == "Oslo, imperial, 3"


async def test_numbers_and_nested_values_reach_the_tool_as_they_were_sent() -> None:
    made = Server("raw")
    got: list[Any] = []
    schema = {"type": "object", "properties": {"n": {}, "deep": {}}}
    made.add_tool(Tool(name="keep", input_schema=schema), lambda arguments: got.append(arguments) or "")
    made.change_tool("keep", ToolChange(arguments={"n": ArgumentChange(name="number")}))
    deep = [{"number": 2**63, "n": None}, 0.1, "ü"]
    await said(made, "keep", number=2**53 + 1, deep=deep)
    assert got == [{"n": 2**53 + 1, "deep": deep}]


# --- schemas ---------------------------------------------------------------------------------------------------


async def test_definitions_and_what_refers_to_them_stay() -> None:
    made = server()
    before = (await shown(made, "route", "2026-07-28")).output_schema
    made.change_tool("route", ToolChange(arguments={"start": ArgumentChange(name="from_"), "end": ArgumentChange()}))
    tool = await shown(made, "route", "2026-07-28")
    value = {"from_": {"name": "a", "near": {"name": "b"}}, "end": {"name": "c"}}
    Draft202012Validator(tool.input_schema).validate(value)
    assert not Draft202012Validator(tool.input_schema).is_valid({**value, "from_": {"near": {"name": "b"}}})
    assert tool.output_schema == before
    assert await said(made, "route", **value) == '["a","c"]'


def test_references_to_what_is_renamed_or_gone_lead_to_what_it_was() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "x-mcp-header": "A"},
            "b": {"$ref": "#/properties/a"},
            "c": {"type": "array", "items": {"$ref": "#"}},
            "d": {"$ref": "#/$defs/d"},
        },
        "$defs": {"d": {"type": "string"}},
    }
    made = change_schema(schema, {"a": ArgumentChange(fixed=1), "b": ArgumentChange(name="x")})
    check = Draft202012Validator(made)
    assert check.is_valid({"x": 3, "c": [{"a": 1, "b": 2}], "d": "t"})
    assert not check.is_valid({"x": "t"})
    assert not check.is_valid({"c": [{"b": "t"}]})
    assert not check.is_valid({"d": 1})
    assert "x-mcp-header" not in str(made)


def test_keywords_about_several_arguments_are_left_out_where_their_names_change() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "maxProperties": 1,
    }
    assert change_schema(schema, {"a": ArgumentChange(description="the first")}).keys() == schema.keys()
    assert change_schema(schema, {"a": ArgumentChange(name="x")}) == {
        "type": "object",
        "properties": {"x": {}, "b": {}},
    }


NAMES = st.sampled_from("abcdef")
KINDS = st.sampled_from(["same", "named", "default", "fixed", "hidden"])


@given(st.dictionaries(NAMES, st.booleans(), min_size=1), st.dictionaries(NAMES, KINDS), st.sets(NAMES))
def test_what_fits_the_shown_schema_fits_the_tool(
    required: dict[str, bool], kinds: dict[str, str], given: set[str]
) -> None:
    """Of any change: arguments that the schema lets pass are those that the tool takes, and no others."""
    made = Server("any")
    got: list[Any] = []
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in required},
        "required": [name for name in required if required[name]],
        "additionalProperties": False,
    }
    made.add_tool(Tool(name="tool", input_schema=schema), got.append)
    changes = {name: change_of(name, kinds[name], required[name]) for name in required if name in kinds}
    made.change_tool("tool", ToolChange(arguments=changes))
    offer = made.registry.tools["tool"]
    seen = offer.define(RULES[LATEST]).input_schema
    arguments = {("new_" + name if kinds.get(name) == "named" else name): 1 for name in given}
    if Draft202012Validator(seen).is_valid(arguments):
        ((values,), _) = offer.bind(msgspec.Raw(msgspec.json.encode(arguments)), None)
        fixed = {
            name
            for name in changes
            if kinds[name] in ("fixed", "default") or (kinds[name] == "hidden" and required[name])
        }
        assert values.keys() == (given & required.keys()) | fixed
        assert all(values[name] == 2 for name in fixed - given)
    else:
        with pytest.raises(Exception, match=r"argument|do not fit"):
            offer.bind(msgspec.Raw(msgspec.json.encode(arguments)), None)


def change_of(name: str, kind: str, required: bool) -> ArgumentChange:
    match kind:
        case "named":
            return ArgumentChange(name="new_" + name)
        case "default":
            return ArgumentChange(default=2)
        case "fixed":
            return ArgumentChange(fixed=2)
        case "hidden":
            return ArgumentChange(hidden=True, default=2) if required else ArgumentChange(hidden=True)
    return ArgumentChange(description="the same")


# --- what belongs to a tool ------------------------------------------------------------------------------------


async def test_an_argument_that_a_header_repeats_is_checked_by_its_new_name() -> None:
    made = Server("headers")

    @made.tool
    def run(region: Annotated[str, Header("Region")], zone: Annotated[str, Header("Zone")] = "a") -> str:
        return region + zone

    made.change_tool(
        "run", ToolChange(arguments={"region": ArgumentChange(name="where"), "zone": ArgumentChange(fixed="b")})
    )
    offer = made.registry.tools["run"]
    assert offer.mirrored == {"Region": ("where",)}
    check_parameters(offer.mirrored, {b"mcp-param-region": b"eu"}, {"where": "eu"})
    with pytest.raises(HeaderMismatch, match="where"):
        check_parameters(offer.mirrored, {}, {"where": "eu"})


@pytest.mark.parametrize("revision", ASKING)
@pytest.mark.parametrize("mounted", [False, True])
async def test_a_question_shows_the_arguments_whatever_they_are_called(revision: str, mounted: bool) -> None:
    inner = Server("asks")
    runs: list[tuple[str, int]] = []

    @inner.tool
    def wipe(path: str, sure: Annotated[bool, Elicit("Delete {path}, {times} times?")], times: int = 1) -> str:
        runs.append((path, times))
        return f"{path} {sure}"

    made = inner
    if mounted:
        inner.add_middleware(passing)
        made = Server("outer")
        made.mount(inner)
    changes = {"path": ArgumentChange(name="file"), "times": ArgumentChange(fixed=3)}
    made.change_tool("wipe", ToolChange(arguments=changes))
    asked: list[str] = []

    def answer(params: Any) -> dict[str, bool]:
        asked.append(params.message)
        return {"value": True}

    async with Client(made, revisions=[revision], elicitation=answer) as client:
        assert (await client.call_tool("wipe", {"file": "/x"})).text == "/x True"
        assert (await client.call_tool("wipe", {"path": "/x"})).is_error
    assert asked == ["Delete /x, 3 times?"]
    assert runs == [("/x", 3)]


async def test_middleware_of_the_tool_knows_it_as_it_is_and_that_of_the_server_as_it_is_shown() -> None:
    seen: list[Any] = []

    async def inside(request: Any, call_next: Any) -> Any:
        seen.append(("inside", request.name, request.tool.name, request.arguments))
        return await call_next(request.replace(arguments={**request.arguments, "days": 9}))

    async def outside(request: Any, call_next: Any) -> Any:
        if request.method == "tools/call":
            seen.append(("outside", request.name, request.tool.name, request.arguments))
        return await call_next(request)

    made = Server("both", middleware=[outside])

    @made.tool(middleware=[inside])
    def forecast(q: str, days: int = 1) -> str:
        return f"{q} {days}"

    made.change_tool("forecast", ToolChange(name="weather", arguments={"q": ArgumentChange(name="city")}))
    assert await said(made, "weather", city="Oslo") == "Oslo 9"
    assert seen == [
        ("outside", "weather", "weather", {"city": "Oslo"}),
        ("inside", "forecast", "forecast", {"q": "Oslo"}),
    ]


async def test_a_context_and_structured_output_stay() -> None:
    made = Server("more")

    @made.tool
    def where(q: str, ctx: Context) -> Place:
        return Place(f"{q} {ctx.revision}")

    made.change_tool("where", ToolChange(arguments={"q": ArgumentChange(name="city")}))
    async with Client(made, revisions=["2025-11-25"]) as client:
        result = await client.call_tool("where", {"city": "Oslo"})
        assert result.structured_content == {"name": "Oslo 2025-11-25", "near": None}


async def test_a_change_is_changed_again_where_the_server_is_mounted() -> None:
    inner, outer = server(), Server("outer")
    inner.change_tool("forecast", ToolChange(name="weather", arguments={"q": ArgumentChange(name="city")}))
    outer.mount(inner, "acme")
    arguments = {"city": ArgumentChange(name="town"), "units": ArgumentChange(fixed="metric")}
    outer.change_tool("acme_weather", ToolChange(name="sky", arguments=arguments))
    assert await said(outer, "sky", town="Oslo") == "Oslo, metric, 3"
    assert await said(inner, "weather", city="Oslo") == "Oslo, imperial, 3"


# --- mistakes --------------------------------------------------------------------------------------------------

MISTAKES = [
    (lambda: ArgumentChange(fixed=1, default=2), "cannot have a default"),
    (lambda: ArgumentChange(fixed=1, name="x"), "cannot have a name or a description"),
    (lambda: ArgumentChange(hidden=True, description="x"), "cannot have a name or a description"),
    (lambda: ArgumentChange(fixed=object()), "must be JSON"),
    (lambda: ArgumentChange(default=float("nan")), "must be JSON"),
]


@pytest.mark.parametrize(("make", "why"), MISTAKES)
def test_a_change_that_contradicts_itself_is_refused(make: Any, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        make()


NOT_FITTING = [
    ({"nothing": ArgumentChange(name="x")}, "no argument 'nothing' to change; it has: q, units, days"),
    ({"q": ArgumentChange(hidden=True)}, "needs 'q'"),
    ({"q": ArgumentChange(name="days")}, "two arguments would have the name 'days'"),
]


@pytest.mark.parametrize(("arguments", "why"), NOT_FITTING)
def test_a_change_that_does_not_fit_is_refused_where_the_tool_is_there(
    arguments: dict[str, ArgumentChange], why: str
) -> None:
    made, outer = server(), Server("outer")
    outer.mount(made, "acme")
    for each, name in ((made, "forecast"), (outer, "acme_forecast")):
        with pytest.raises(DeclarationError, match=why):
            each.change_tool(name, ToolChange(arguments=arguments))
        assert name in each.registry.tools


@pytest.mark.parametrize("name", ["forecast", "later"])
def test_what_is_no_change_is_refused_whether_the_tool_is_there_or_not(name: str) -> None:
    with pytest.raises(DeclarationError, match=r"write ToolChange\(name="):
        server().change_tool(name, {"name": "weather"})  # type: ignore[arg-type]


async def test_names_may_be_swapped() -> None:
    made = server()
    swapped = {"q": ArgumentChange(name="units"), "units": ArgumentChange(name="q")}
    made.change_tool("forecast", ToolChange(arguments=swapped))
    assert await said(made, "forecast", units="Oslo", q="metric") == "Oslo, metric, 3"


def test_where_the_tool_comes_later_an_argument_that_it_does_not_have_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, outer = server(), Server("outer")
    changes = {"nothing": ArgumentChange(name="x"), "q": ArgumentChange(name="city")}
    outer.change_tool("forecast", ToolChange(arguments=changes))
    outer.mount(made)
    with caplog.at_level(logging.WARNING, "accord.server"):
        tool = outer.registry.tools["forecast"].define(RULES[LATEST])
    assert "no argument 'nothing' to change" in caplog.text
    assert list(tool.input_schema["properties"]) == ["city", "units", "days"]


def test_where_the_tool_comes_later_and_could_not_be_called_it_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    made, outer = server(), Server("outer")
    outer.change_tool("forecast", ToolChange(arguments={"q": ArgumentChange(hidden=True)}))
    outer.mount(made)
    assert list(outer.registry.tools) == ["route"]
    assert "'forecast' is not shown: the tool 'forecast' needs 'q'" in caplog.text


def test_of_two_tools_with_one_name_the_first_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    made = server()
    made.change_tool("route", ToolChange(name="forecast"))
    assert list(made.registry.tools) == ["forecast"]
    assert "hidden by another" in caplog.text


async def test_clients_are_notified_of_a_change() -> None:
    made = server()
    async with raw_peer(made) as peer:
        await peer.ask("tools/list")
        made.change_tool("forecast", ToolChange(name="weather"))
        assert (await peer.hear())["method"] == "notifications/tools/list_changed"
        names = [tool["name"] for tool in (await peer.ask("tools/list"))["result"]["tools"]]
        assert names == ["weather", "route"]

"""Arguments that stand in headers too: declared by a hint or by hand, and wrong ones refused when they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType

import msgspec
import pydantic
import pytest

from accord import DeclarationError, Header, Server, Tool

from tests.server.raw import raw_peer

Region = NewType("Region", str)


@dataclass
class Place:
    zone: Annotated[int, Header("Zone")]
    street: str = ""


class Model(pydantic.BaseModel):
    floor: Annotated[int, Header("Floor")] = pydantic.Field(default=1, ge=0)


def checked(value: str) -> str:
    return value


async def test_the_schema_of_a_parameter_names_its_header() -> None:
    server = Server("test")

    @server.tool
    def query(text: str, region: Annotated[Region, Header("Region"), "Where to ask."] = Region("eu")) -> str:
        return f"{text} {region}"

    async with raw_peer(server) as peer:
        (tool,) = (await peer.ask("tools/list"))["result"]["tools"]
        region = {"type": "string", "x-mcp-header": "Region", "description": "Where to ask.", "default": "eu"}
        assert tool["inputSchema"]["properties"] == {"text": {"type": "string"}, "region": region}
        answer = await peer.ask("tools/call", {"name": "query", "arguments": {"text": "hello"}})
        assert answer["result"]["content"][0]["text"] == "hello eu"
    assert server.registry.tools["query"].mirrored == {"Region": ("region",)}


def mirrored(function: Any) -> Any:
    server = Server("test")
    server.tool("it")(function)
    return server.registry.tools["it"].mirrored


def test_parameters_of_every_simple_type_may_have_a_header() -> None:
    def by_type(
        text: Annotated[str, Header("Text")],
        number: Annotated[Annotated[int, msgspec.Meta(ge=0)], Header("Number")],
        truth: Annotated[bool, Header("Truth")],
        choice: Annotated[Literal["a", "b"], Header("Choice")],
        read_by_pydantic: Annotated[str, pydantic.AfterValidator(checked), Header("Read")],
        place: Place,
        model: Model,
        rest: str = "",
    ) -> str:
        return ""

    assert mirrored(by_type) == {
        "Text": ("text",),
        "Number": ("number",),
        "Truth": ("truth",),
        "Choice": ("choice",),
        "Read": ("read_by_pydantic",),
        "Zone": ("place", "zone"),
        "Floor": ("model", "floor"),
    }


def test_most_tools_mirror_nothing() -> None:
    def plain(text: str) -> str:
        return text

    assert mirrored(plain) == {}


WRONG: list[tuple[Any, str]] = [
    (Annotated[float, Header("X")], "its type is string, integer or boolean alone"),
    (Annotated[str | None, Header("X")], "if it may be left out, its default is not null"),
    (Annotated[list[str], Header("X")], "its type is string, integer or boolean alone"),
    (Annotated[Place, Header("X")], "its type is string, integer or boolean alone"),
    (list[Annotated[str, Header("X")]], "reached by `properties` alone"),
    (Annotated[str, Header("X")] | None, "reached by `properties` alone"),
    (dict[str, Annotated[str, Header("X")]], "reached by `properties` alone"),
    (list[Place], "reached by `properties` alone"),
    (Annotated[str, Header("zone")], "'zone' .*'it'|'it' .*have the same x-mcp-header"),
]


@pytest.mark.parametrize(("hint", "why"), WRONG)
def test_a_wrong_declaration_is_refused_when_it_is_made(hint: Any, why: str) -> None:
    def wrong(it: hint, place: Place) -> str:
        return ""

    server = Server("test")
    with pytest.raises(DeclarationError, match=f"tool 'wrong': .*{why}"):
        server.tool(wrong)
    assert not server.registry.tools


@pytest.mark.parametrize("name", ["", "My Region", "Region\r\nX", "Région", "a:b", "x" * 200 + " "])
def test_a_name_that_no_header_can_have_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="only letters, digits"):
        Header(name)


def test_a_tool_by_hand_may_mirror_its_arguments() -> None:
    properties = {"region": {"type": "string", "x-mcp-header": "Region"}}
    server = Server("test")
    server.add_tool(Tool(name="it", input_schema={"type": "object", "properties": properties}), lambda given: "")
    assert server.registry.tools["it"].mirrored == {"Region": ("region",)}


def test_a_tool_by_hand_that_does_so_wrongly_is_refused() -> None:
    wrong = {"type": "object", "properties": {"region": {"type": "number", "x-mcp-header": "Region"}}}
    server = Server("test")
    with pytest.raises(DeclarationError, match="tool 'it': 'region' has an x-mcp-header: then its type is"):
        server.add_tool(Tool(name="it", input_schema=wrong), lambda given: "")
    assert not server.registry.tools


def test_prompts_and_resources_have_no_headers() -> None:
    def greet(name: Annotated[str, Header("Name")]) -> str:
        return name

    server = Server("test")
    for declare in (server.prompt, server.resource("greet://{name}")):
        with pytest.raises(DeclarationError, match="greet: only parameters of tools can have a Header"):
            declare(greet)
    assert not server.registry.prompts
    assert not server.registry.templates

"""Structured data together with images, files or text: `ToolOutput`, and `CallToolResult` with a declared schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from accord import CallToolResult, Client, Context, Image, Server, TextContent, ToolOutput
from accord.errors import DeclarationError
from accord.messages.content import ImageContent
from accord.messages.revision import REVISIONS

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
STRUCTURED = REVISIONS[2:]


@dataclass
class Report:
    city: str
    high: float


OSLO = Report("Oslo", 21.5)

server = Server("weather")


@server.tool
def chart() -> ToolOutput[Report]:
    return ToolOutput(OSLO, content=[Image(data=PNG)])


@server.tool
def annotated_with_the_data() -> Report:
    return ToolOutput(OSLO, content=[Image(data=PNG)])  # type: ignore[return-value]


@server.tool
def told() -> ToolOutput[list[int]]:
    return ToolOutput([1, 2], content=["one and two", Image(data=PNG)], meta={"source": "test"})


@server.tool
def undeclared(ctx: Context) -> ToolOutput:  # type: ignore[type-arg]
    return ToolOutput({"city": "Oslo"}, content=[Image(data=PNG)])


@server.tool
def plain_text() -> ToolOutput[str]:
    return ToolOutput("hello", content=[Image(data=PNG)])


@server.tool
def wrong() -> ToolOutput[Report]:
    return ToolOutput({"city": "Oslo"}, content=[Image(data=PNG)])  # type: ignore[arg-type]


@server.tool
def pair() -> tuple[Report, Image]:
    return OSLO, Image(data=PNG)


@server.tool
def inside_of_data() -> dict[str, Any]:
    return {"report": OSLO, "chart": Image(data=PNG)}


@server.tool
def by_hand() -> Annotated[CallToolResult, Report]:
    return CallToolResult(
        content=[Image(data=PNG), "a chart"],  # type: ignore[list-item]
        structured_content={"city": "Oslo", "high": 21.5},
    )


@server.tool
def by_hand_and_wrong() -> Annotated[CallToolResult, Report]:
    return CallToolResult(content=[], structured_content={"city": "Oslo"})


@server.tool
def by_hand_and_missing() -> Annotated[CallToolResult, Report]:
    return CallToolResult(content=[TextContent(text="nothing else")])


@server.tool
def by_hand_and_failed() -> Annotated[CallToolResult, Report]:
    return CallToolResult(content=[TextContent(text="no such city")], is_error=True)


async def called(name: str, revision: str) -> Any:
    async with Client(server, revisions=[revision], strict=True) as client:
        return await client.call_tool(name)


@pytest.mark.parametrize("revision", STRUCTURED)
@pytest.mark.parametrize("name", ["chart", "annotated_with_the_data"])
async def test_the_data_are_structured_and_the_content_follows_their_json(name: str, revision: str) -> None:
    result = await called(name, revision)
    assert result.data == {"city": "Oslo", "high": 21.5}
    assert result.output_schema["required"] == ["city", "high"]
    text, image = result.content
    assert text.text == '{"city":"Oslo","high":21.5}'
    assert isinstance(image, ImageContent)


@pytest.mark.parametrize("revision", REVISIONS[:2])
async def test_a_revision_without_structured_content_has_the_content(revision: str) -> None:
    text, image = (await called("chart", revision)).content
    assert text.text == '{"city":"Oslo","high":21.5}'
    assert isinstance(image, ImageContent)


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_text_of_its_own_replaces_the_json(revision: str) -> None:
    result = await called("told", revision)
    assert result.data == [1, 2]
    assert [type(block) for block in result.content] == [TextContent, ImageContent]
    assert result.text == "one and two"
    assert result.meta["source"] == "test"


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_an_object_is_structured_without_a_declared_type(revision: str) -> None:
    result = await called("undeclared", revision)
    assert result.structured_content == {"city": "Oslo"}
    assert result.output_schema is None


async def test_plain_text_is_content_as_it_is_without_tool_output() -> None:
    result = await called("plain_text", REVISIONS[-1])
    assert result.data == "hello"
    assert [type(block) for block in result.content] == [TextContent, ImageContent]


async def test_data_that_do_not_fit_the_declared_type_are_an_error_of_the_tool() -> None:
    result = await called("wrong", REVISIONS[-1])
    assert result.is_error
    assert "wrong returned what its annotation does not allow" in result.text
    assert '"high"' in result.text


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_a_result_made_by_hand_may_declare_the_type_of_its_structured_content(revision: str) -> None:
    result = await called("by_hand", revision)
    assert result.data == {"city": "Oslo", "high": 21.5}
    assert result.output_schema["required"] == ["city", "high"]
    assert [type(block) for block in result.content] == [ImageContent, TextContent]


async def test_a_result_made_by_hand_is_checked_against_what_it_declares() -> None:
    assert '"high"' in (await called("by_hand_and_wrong", REVISIONS[-1])).text
    missing = await called("by_hand_and_missing", REVISIONS[-1])
    assert missing.is_error
    assert "structured_content" in missing.text
    assert (await called("by_hand_and_failed", REVISIONS[-1])).text == "no such city"


@pytest.mark.parametrize("revision", STRUCTURED)
async def test_a_tuple_of_data_and_an_image_is_content_only(revision: str) -> None:
    result = await called("pair", revision)
    assert (result.structured_content, result.output_schema) == (msgspec.UNSET, None)
    text, image = result.content
    assert text.text == '{"city":"Oslo","high":21.5}'
    assert isinstance(image, ImageContent)


async def test_an_image_inside_of_data_is_an_error_that_names_tool_output() -> None:
    result = await called("inside_of_data", REVISIONS[-1])
    assert result.is_error
    assert result.text.endswith("or with data as ToolOutput(data, content=[...])")


def test_content_that_is_no_list_is_refused() -> None:
    with pytest.raises(DeclarationError, match="content="):
        ToolOutput(OSLO, content=Image(data=PNG))  # type: ignore[arg-type]


relay = Server("relay")


@relay.tool
async def relayed() -> CallToolResult:
    async with Client(server) as client:
        return await client.call_tool("told")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_relayed_array_is_structured_only_where_the_revision_allows_it(revision: str) -> None:
    async with Client(relay, revisions=[revision], strict=True) as client:
        result = await client.call_tool("relayed")
    assert result.text == "one and two"
    assert result.data == ([1, 2] if revision == REVISIONS[-1] else "one and two")

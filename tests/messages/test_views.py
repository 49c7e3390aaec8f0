"""What a revision makes of the one set of types, for writing and in the checker's eye."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from accord import types as messages
from accord.errors import NotSupported
from accord.messages.revision import LATEST, REVISIONS
from accord.messages.views import arm_view, arms_of_revision, is_type_in_revision
from accord.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    ElicitParams,
    EmbeddedResource,
    EmptyResult,
    ListToolsResult,
    Model,
    PrimitiveSchema,
    SamplingMessage,
    TextContent,
    Tool,
    ToolExecution,
    table,
    view,
)

MODELS = [
    each for each in vars(messages).values() if isinstance(each, type) and issubclass(each, Model) and each is not Model
]


def names(type_: type) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(type_)}


def narrowed(value: Any, revision: str) -> Any:
    type_ = view(type(value), revision)
    return msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value), type=type_)))


def strictly(type_: Any, revision: str, raw: str) -> Any:
    return msgspec.json.decode(raw, type=view(type_, revision, strict=True))


# For writing


def test_a_type_that_does_not_change_is_its_own_view() -> None:
    assert view(TextContent, "2025-06-18") is TextContent
    assert view(EmptyResult, LATEST) is EmptyResult
    assert view(messages.PromptArgument, LATEST) is messages.PromptArgument
    assert view(ContentBlock, LATEST) is ContentBlock
    assert view(int, LATEST) is int


def test_views_are_made_once() -> None:
    assert view(Tool, "2024-11-05") is view(Tool, "2024-11-05")
    assert view(Tool, "2024-11-05") is not view(Tool, "2025-03-26")


def test_fields_live_and_end() -> None:
    assert names(view(Tool, "2024-11-05")) == {"name", "description", "inputSchema"}
    assert "execution" in names(view(Tool, "2025-11-25"))
    assert "execution" not in names(view(Tool, LATEST))


def test_a_view_goes_all_the_way_down() -> None:
    tool = Tool(
        name="a",
        title="A",
        input_schema={"type": "object", "x": 1},
        execution=ToolExecution(task_support="optional"),
        meta={"com.example/x": 1},
    )
    result = ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="private", result_type="complete")
    assert narrowed(result, "2024-11-05") == {"tools": [{"name": "a", "inputSchema": {"type": "object", "x": 1}}]}
    assert narrowed(result, "2025-06-18")["tools"][0]["_meta"] == {"com.example/x": 1}


def test_arms_that_do_not_live_drop_out_of_unions() -> None:
    assert [arm.__name__ for arm in get_args(view(ContentBlock, "2024-11-05"))] == [
        "TextContent",
        "ImageContent",
        "EmbeddedResource",
    ]
    with pytest.raises(msgspec.ValidationError, match="audio"):
        narrowed(CallToolResult(content=[AudioContent(data="", mime_type="audio/wav")]), "2024-11-05")


def test_an_arm_that_is_no_struct_has_its_life_too() -> None:
    message = SamplingMessage(role="user", content=[TextContent(text="a")])
    assert narrowed(message, "2025-11-25")["content"] == [{"type": "text", "text": "a"}]
    with pytest.raises(msgspec.ValidationError):
        narrowed(message, "2025-06-18")


def test_a_tag_stays() -> None:
    assert narrowed(TextContent(text="a", meta={"x": 1}), "2024-11-05") == {"type": "text", "text": "a"}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("type_", MODELS, ids=lambda type_: type_.__name__)
def test_strict_and_plain_views_have_the_same_fields(type_: type, revision: str) -> None:
    if not is_type_in_revision(type_, revision):
        with pytest.raises(NotSupported, match=f"{type_.__name__} is not part of revision {revision}"):
            view(type_, revision)
        return
    in_use_before = {"extensions"} if "Capabilities" in type_.__name__ and revision != LATEST else set()
    strict = names(view(type_, revision, strict=True))
    assert names(view(type_, revision)) - strict <= in_use_before
    assert strict <= names(view(type_, revision))


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_view_can_be_read(revision: str) -> None:
    for row in {**table(revision, "client"), **table(revision, "server")}.values():
        for type_ in filter(None, (row.params, row.result)):
            msgspec.json.Decoder(view(type_, revision))
            msgspec.json.Decoder(view(type_, revision, strict=True))


def test_whole_types_live_and_end() -> None:
    assert not is_type_in_revision(AudioContent, "2024-11-05")
    assert is_type_in_revision(AudioContent, LATEST)
    assert is_type_in_revision(TextContent, "2024-11-05")


# The checker's eye


def test_unknown_fields_are_seen() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        strictly(TextContent, LATEST, '{"type":"text","text":"a","colour":"red"}')


def test_open_ended_types_take_what_they_do_not_know() -> None:
    strictly(messages.ServerCapabilities, LATEST, '{"teleport":{}}')
    strictly(EmptyResult, "2025-11-25", '{"anything":1}')


def test_fields_of_another_revision_are_unknown() -> None:
    strictly(Tool, "2025-11-25", '{"name":"a","inputSchema":{"type":"object"},"execution":{}}')
    with pytest.raises(msgspec.ValidationError, match="unknown field `execution`"):
        strictly(Tool, LATEST, '{"name":"a","inputSchema":{"type":"object"},"execution":{}}')


def test_null_does_not_stand_for_absent() -> None:
    msgspec.json.decode('{"type":"text","text":"a","annotations":null}', type=TextContent)
    with pytest.raises(msgspec.ValidationError, match="got `null`"):
        strictly(TextContent, LATEST, '{"type":"text","text":"a","annotations":null}')


def test_null_is_a_value_where_the_schema_says_so() -> None:
    task = '{"taskId":"1","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}'
    assert strictly(messages.TaskInfo, "2025-11-25", task).ttl is None
    assert strictly(CallToolResult, LATEST, '{"content":[],"resultType":"complete","structuredContent":null}')


def test_structured_content_was_an_object() -> None:
    assert strictly(CallToolResult, "2025-06-18", '{"content":[],"structuredContent":{}}')
    with pytest.raises(msgspec.ValidationError, match="structuredContent"):
        strictly(CallToolResult, "2025-06-18", '{"content":[],"structuredContent":[]}')


def test_requiredness_is_that_of_the_revision() -> None:
    strictly(CallToolResult, "2025-11-25", '{"content":[]}')
    with pytest.raises(msgspec.ValidationError, match="resultType"):
        strictly(CallToolResult, LATEST, '{"content":[]}')
    strictly(messages.CancelledParams, "2025-11-25", "{}")
    for revision in ("2024-11-05", LATEST):
        with pytest.raises(msgspec.ValidationError, match="requestId"):
            strictly(messages.CancelledParams, revision, "{}")


def test_raw_json_is_seen_as_what_it_must_be() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"inputSchema"):
        strictly(Tool, LATEST, '{"name":"a","inputSchema":{"type":"array"}}')
    strictly(Tool, LATEST, '{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}')
    with pytest.raises(msgspec.ValidationError, match=r"outputSchema"):
        strictly(Tool, "2025-11-25", '{"name":"a","inputSchema":{"type":"object"},"outputSchema":{}}')
    with pytest.raises(msgspec.ValidationError, match="protocolVersion"):
        strictly(messages.PaginatedParams, LATEST, '{"_meta":{}}')
    strictly(messages.PaginatedParams, "2025-11-25", '{"_meta":{"com.example/x":1}}')


@pytest.mark.parametrize("priority", ["-1", "1.5", '"high"'])
def test_bounds_hold(priority: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        strictly(messages.Annotations, LATEST, f'{{"priority":{priority}}}')
    assert strictly(messages.Annotations, LATEST, '{"priority":1}').priority == 1


# Merged types


def test_a_merged_type_fits_one_of_its_shapes() -> None:
    link = '{"type":"resource","resource":{"uri":"a:b"%s}}'
    strictly(EmbeddedResource, LATEST, link % ',"text":"a"')
    strictly(EmbeddedResource, LATEST, link % ',"blob":""')
    for wrong in ("", ',"text":"a","blob":""'):
        with pytest.raises(msgspec.ValidationError, match=r"none of its shapes: Text.*Blob.*\$.resource"):
            strictly(EmbeddedResource, LATEST, link % wrong)


def test_shapes_live_and_end() -> None:
    url = '{"message":"m","mode":"url","url":"https://a"}'
    strictly(ElicitParams, LATEST, url)
    with pytest.raises(msgspec.ValidationError, match="elicitationId"):
        strictly(ElicitParams, "2025-11-25", url)
    with pytest.raises(msgspec.ValidationError, match="mode"):
        strictly(ElicitParams, "2025-06-18", url)
    assert [arm.name for arm in arms_of_revision(ElicitParams, "2025-06-18")] == ["ElicitRequestFormParams"]
    with pytest.raises(KeyError):
        arm_view(ElicitParams, "ElicitRequestURLParams", "2025-06-18")


def test_forms_are_seen_through() -> None:
    form = '{"message":"m","requestedSchema":{"type":"object","properties":{"a":%s}}}'
    strictly(ElicitParams, LATEST, form % '{"type":"string","format":"email"}')
    strictly(ElicitParams, LATEST, form % '{"type":"array","items":{"type":"string","enum":["a"]}}')
    for wrong in ('{"type":"string","pattern":"a"}', '{"type":"boolean","minLength":1}', '{"type":"object"}'):
        with pytest.raises(msgspec.ValidationError):
            strictly(ElicitParams, LATEST, form % wrong)
    with pytest.raises(msgspec.ValidationError):
        strictly(ElicitParams, "2025-06-18", form % '{"type":"array","items":{"type":"string","enum":["a"]}}')


def test_a_shape_has_only_its_own_fields() -> None:
    assert names(arm_view(PrimitiveSchema, "BooleanSchema", LATEST)) == {
        "type",
        "title",
        "description",
        "default",
    }

"""Content of newer kinds, said in what an older revision has."""

from __future__ import annotations

import pytest

from accord.messages.content import (
    Annotations,
    AudioContent,
    ResourceLink,
    TextContent,
    adapt_content,
    is_wrapper,
    wrap_schema,
)
from accord.messages.revision import REVISIONS

SOUND = AudioContent(data="AAAA", mime_type="audio/wav", annotations=Annotations(priority=1))
LINK = ResourceLink(uri="file:///a.txt", name="a", title="The letter", description="from A to Z")


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_revision_has_stays_as_it_is(revision: str) -> None:
    text = TextContent(text="x")
    assert adapt_content([text], revision)[0] is text
    assert (adapt_content([SOUND], revision)[0] is SOUND) == (revision != "2024-11-05")
    assert (adapt_content([LINK], revision)[0] is LINK) == (revision not in ("2024-11-05", "2025-03-26"))


def test_sound_becomes_an_embedded_resource_with_the_same_bytes() -> None:
    (block,) = adapt_content([SOUND], "2024-11-05")
    assert (block.resource.blob, block.resource.mime_type) == ("AAAA", "audio/wav")
    assert block.annotations == SOUND.annotations


def test_a_link_becomes_text_that_names_it() -> None:
    assert adapt_content([LINK], "2025-03-26") == [TextContent(text="[The letter](file:///a.txt): from A to Z")]
    plain = ResourceLink(uri="file:///a.txt", name="a")
    assert adapt_content([plain], "2025-03-26") == [TextContent(text="[a](file:///a.txt)")]


def test_a_wrapped_schema_is_an_object_says_so_and_keeps_its_definitions_in_reach() -> None:
    inner = {"type": "array", "items": {"$ref": "#/$defs/Day"}, "$defs": {"Day": {"type": "string"}}}
    schema = wrap_schema(inner)
    assert is_wrapper(schema)
    assert schema["properties"] == {"result": {"type": "array", "items": {"$ref": "#/$defs/Day"}}}
    assert schema["$defs"] == {"Day": {"type": "string"}}
    assert "$defs" in inner
    assert not is_wrapper(wrap_schema({"type": "null"})["properties"]["result"])


@pytest.mark.parametrize(
    ("schema", "wraps"),
    [
        (None, False),
        ({}, False),
        ({"properties": {"result": {}}, "required": ["result"]}, False),
        ({"x-fastmcp-wrap-result": True}, True),
        ({"x-fastmcp-wrap-result": "yes"}, False),
        ({"title": "forecastOutput", "required": ["result"]}, True),
        ({"title": "forecastOutput", "required": ["sum"]}, False),
        ({"title": "forecastOutput"}, False),
        ({"title": "ForecastOutput", "required": ["result"]}, False),
        ({"title": 5, "required": ["result"]}, False),
    ],
)
def test_only_what_is_marked_or_made_by_the_official_sdk_is_a_wrapper(schema: dict[str, object], wraps: bool) -> None:
    assert is_wrapper(schema) is wraps

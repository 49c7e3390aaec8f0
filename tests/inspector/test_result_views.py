"""The results of calls as the page shows them: media by their content, bounds, any shape."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from accord.inspector.result_views import media_type, view_result

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def blocks(*content: Any) -> Any:
    return view_result(msgspec.json.encode({"content": list(content)})).blocks


def media(kind: str, data: bytes, mime_type: str) -> Any:
    return blocks({"type": kind, "data": base64.b64encode(data).decode(), "mimeType": mime_type})[0]


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\4", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"<svg onload=alert(1)>", ""),
        (b"<!doctype html>", ""),
        (b"%PDF-1.7", ""),
        (b"", ""),
    ],
)
def test_the_type_of_media_is_found_in_their_bytes(head: bytes, found: str) -> None:
    assert media_type(head) == found


def test_only_images_and_audio_of_known_formats_have_data() -> None:
    assert media("image", PNG, "image/png").data
    other = media("image", PNG, "image/svg+xml")
    assert (other.media_type, other.note) == ("image/png", "the server says image/svg+xml; the data is image/png")
    svg = media("image", b"<svg onload=alert(1)>", "image/png")
    assert (svg.data, svg.media_type) == ("", "")
    assert "does not show" in svg.note
    assert blocks({"type": "image", "data": "?", "mimeType": "image/png"})[0].note == "its data is not valid Base64"


def test_too_much_data_is_left_to_the_file() -> None:
    image = {"type": "image", "data": base64.b64encode(PNG + bytes(4 << 20)).decode(), "mimeType": "image/png"}
    shown = blocks(image, image)
    assert [bool(block.data) for block in shown] == [True, False]
    assert "save the result" in shown[1].note


def test_blocks_of_unknown_kinds_are_json() -> None:
    new, wrong, text = blocks({"type": "hologram", "x": 1.0}, 5, {"type": "text", "text": 5})
    assert (new.kind, new.block_json) == ("hologram", '{"type":"hologram","x":1.0}')
    assert (wrong.kind, wrong.block_json) == ("invalid", "5")
    assert text.block_json


def test_many_blocks_are_bounded() -> None:
    shown = blocks(*[{"type": "text", "text": "x"}] * 1_000)
    assert len(shown) == 501
    assert shown[-1].note == "500 more blocks; they are in the JSON"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["text", "image", "resource"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "mimeType", "resource", "blob", "uri", "role", "content"]), inner
        )
    ),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["content", "contents", "messages", "structuredContent", "isError"]), values))
def test_any_result_has_a_view(result: dict[str, Any]) -> None:
    encoded = msgspec.json.encode(result)
    view = view_result(encoded, '{"type": "object"}')
    assert view.result_json.encode() == encoded
    msgspec.json.encode(view)


@pytest.mark.parametrize("result", [b"null", b"[]", b"5", b'"x"', b"{", b"\xff", b"[" * 100_000])
def test_a_result_that_is_no_object_has_a_view(result: bytes) -> None:
    assert view_result(result, "{}").blocks == []

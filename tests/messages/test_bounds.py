"""Each text and list that a peer controls has its bound, applied where it is decoded, named in the error."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from accord.errors import InvalidParams
from accord.messages import codec, envelope
from accord.messages.bounds import (
    CURSOR_LENGTH,
    MEASURED_BYTES,
    META_BYTES,
    NAME_LENGTH,
    REMARK_LENGTH,
    STATE_LENGTH,
    URI_LENGTH,
    has_more_nodes,
    memory_of,
    normalize,
)
from accord.messages.completion import CompleteParams
from accord.messages.envelope import MalformedMessage
from accord.messages.meta import PaginatedParams
from accord.messages.methods import METHODS
from accord.messages.notifications import CancelledParams, ListenParams, ProgressParams
from accord.messages.prompts import GetPromptParams, ListPromptsResult
from accord.messages.resources import ReadResourceParams, SubscribeParams
from accord.messages.tools import CallToolParams, ListToolsResult
from accord.session import peek

from tests.measure import assert_linear

TYPED = {"name": "a", "value": ""}
CASES: list[tuple[Any, dict[str, Any], tuple[str, ...], int]] = [
    (CallToolParams, {"name": ""}, ("name",), NAME_LENGTH),
    (CallToolParams, {"name": "x", "requestState": ""}, ("requestState",), STATE_LENGTH),
    (GetPromptParams, {"name": ""}, ("name",), NAME_LENGTH),
    (ReadResourceParams, {"uri": ""}, ("uri",), URI_LENGTH),
    (SubscribeParams, {"uri": ""}, ("uri",), URI_LENGTH),
    (PaginatedParams, {"cursor": ""}, ("cursor",), CURSOR_LENGTH),
    (CancelledParams, {"requestId": "", "reason": "x"}, ("requestId",), NAME_LENGTH),
    (CancelledParams, {"requestId": 1, "reason": ""}, ("reason",), REMARK_LENGTH),
    (ProgressParams, {"progressToken": "", "progress": 1}, ("progressToken",), NAME_LENGTH),
    (CompleteParams, {"ref": {"type": "ref/resource", "uri": ""}, "argument": TYPED}, ("ref", "uri"), URI_LENGTH),
    (CompleteParams, {"ref": {"type": "ref/prompt", "name": "x"}, "argument": TYPED}, ("argument", "value"), REMARK_LENGTH),  # noqa: E501
    (ListToolsResult, {"tools": [], "nextCursor": ""}, ("nextCursor",), CURSOR_LENGTH),
    (ListPromptsResult, {"prompts": [], "nextCursor": ""}, ("nextCursor",), CURSOR_LENGTH),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "base", "path", "most"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_a_text_is_taken_up_to_its_bound_and_refused_beyond_it(
    type_: Any, base: dict[str, Any], path: tuple[str, ...], most: int
) -> None:
    def decode(length: int) -> Any:
        value = msgspec.json.decode(msgspec.json.encode(base))
        place = value
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = "é" * length  # characters, not bytes
        return codec.decode_params(type_, msgspec.json.encode(value))

    decode(most)
    with pytest.raises(InvalidParams, match=rf"length <= {most} - at `\$\.{'.'.join(path)}`"):
        decode(most + 1)


def test_lists_and_objects_of_texts_are_bounded_too() -> None:
    many = {"name": "x", "arguments": {f"a{n}": "" for n in range(1_001)}}
    with pytest.raises(InvalidParams, match=r"length <= 1000 - at `\$\.arguments`"):
        codec.decode_params(GetPromptParams, msgspec.json.encode(many))
    wish = {"notifications": {"resourceSubscriptions": ["x:y"] * 10_001}}
    with pytest.raises(InvalidParams, match="length <= 10000"):
        codec.decode_params(ListenParams, msgspec.json.encode(wish))


def test_the_envelope_bounds_ids_and_methods_and_repeats_no_long_id() -> None:
    long = "x" * (NAME_LENGTH + 1)
    with pytest.raises(MalformedMessage, match="length <= 1024") as raised:
        envelope.read(msgspec.json.encode({"jsonrpc": "2.0", "id": long, "method": "m"}))
    assert raised.value.id is None
    with pytest.raises(MalformedMessage, match="length <= 1024") as raised:
        envelope.read(msgspec.json.encode({"jsonrpc": "2.0", "id": 7, "method": long}))
    assert raised.value.id == 7


def test_meta_of_a_request_is_bounded_in_bytes() -> None:
    for read in (peek.request_meta, peek.mirrored_params):
        read(msgspec.Raw(msgspec.json.encode({"_meta": {"x": "y" * (META_BYTES - 20)}})))
        with pytest.raises(InvalidParams, match="_meta has more than 262,144 bytes"):
            read(msgspec.Raw(msgspec.json.encode({"_meta": {"x": "y" * META_BYTES}})))
        read(msgspec.Raw(msgspec.json.encode({"arguments": {"x": "y" * META_BYTES}})))


UNBOUNDED = {"description", "title", "text", "data", "blob", "instructions", "message", "status_message", "result_type"}
"""Texts that are content, or that nothing is done with."""


def test_no_text_in_the_params_of_a_client_is_without_a_bound() -> None:
    loose: list[str] = []

    def look(type_: Any, where: str) -> None:
        for field in msgspec.structs.fields(type_):
            found = msgspec.inspect.type_info(field.type)
            for each in getattr(found, "types", (found,)):
                if (
                    isinstance(each, msgspec.inspect.StrType)
                    and each.max_length is None
                    and field.name not in UNBOUNDED
                ):
                    loose.append(f"{where}.{field.name}")
                elif isinstance(each, msgspec.inspect.StructType):
                    look(each.cls, f"{where}.{field.name}")

    for row in METHODS:
        if row.sender in ("client", "both") and row.name.partition("/")[0] not in ("tasks", "initialize"):
            look(row.params, row.name)
    assert not [each for each in loose if "tasks/status" not in each]


@pytest.mark.parametrize(
    ("message", "more"),
    [
        (b"[" * 40_000 + b"]" * 40_000, True),
        (b"{" + b",".join([b'"a":1'] * 40_000) + b"}", True),
        (b'{"text":"' + b"[{:" * 40_000 + b'"}', False),
        (b'{"text":"' + rb"\"[:\"" * 40_000 + b'"}', False),
        (b"[" + b",".join([b'""'] * 20_000) + b"]" + b" " * 40_000, False),
        (b"[" + b",".join([b'""'] * 40_000) + b"]", True),
        (b"[" + b",".join([b"1"] * 40_000) + b"]", True),
        (b'["' + b"," * 80_000 + b'"]', False),
        (b'["' + b'","'.join([b":"] * 40_000) + b'"]', True),  # so many texts are not looked through
        (b"[" * 20_000, False),  # small enough not to be measured
        (b"[" + b",".join([b"5e-310"] * 1_001) + b"]", True),
        (b"[" + b",".join([b"1e300"] * 999) + b"]", False),
        (b"[" + b" ,".join([b"1.5E+0305"] * 1_001) + b"]", True),
        (b"[[" + b"],[".join([b"1e-3000"] * 1_001) + b"]]", True),
        (b"{" + b",".join([b'"%d0e300": 0' % n for n in range(1_001)]) + b"}", True),  # names may be numbers
        (b"[" + b",".join([b"1.5e-99"] * 15_000) + b"]", False),
        (b"[" + b",".join([b"1.5e+005"] * 15_000) + b"]", False),
        (b'["' + b",".join([b"5e-310"] * 1_002) + b'"]', False),
        (b'["a","' + rb"1e300:\"1e300\"," * 1_002 + b'", 1]', False),
        (b'["a", 5e-310,"' + b'","'.join([b"1e300", b"b"] * 1_002) + b'"]', False),
        (b'[{"a":"1e300"},' + b",".join([b"5e-310"] * 1_002) + b"]", True),
        (b"[" + b",".join([b'"ae300f5e-310c"'] * 15_000) + b"]", False),
    ],
)
def test_structure_is_counted_and_texts_are_not(message: bytes, more: bool) -> None:
    assert len(message) > MEASURED_BYTES or not more
    assert has_more_nodes(message, 10_000) is more


@pytest.mark.parametrize("wide", ["é", "中", "😀", r"\u4e2d", r"\uD83D\uDE00", r"\\n"])
def test_a_text_is_estimated_as_wide_as_its_widest_character(wide: str) -> None:
    message = f'"{"x" * 100_000}{wide}"'.encode()
    taken = len(message) + sys.getsizeof(msgspec.json.decode(message))
    assert 0.9 * taken < memory_of(message, 1_000) < 2 * taken


def test_a_message_is_not_estimated_beyond_the_structure_that_it_may_have() -> None:
    assert memory_of(b'"' + b"," * 1_000_000 + b'"', 1_000) < 3_000_000


def test_a_text_that_does_not_end_is_measured_in_linear_time() -> None:
    assert_linear(lambda size: has_more_nodes(b"[" * 20_001 + b'"' + rb"\"" * size, 20_000), 50_000)


COMBINING = "\u0315\u0316"


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_combining_characters_are_normalized_in_linear_time(form: Any) -> None:
    assert_linear(lambda size: normalize(form, COMBINING * size), 1_000)


@given(st.text(), st.sampled_from(["", "a" * 200, "\u00e9 " * 100]), st.sampled_from(["NFC", "NFKC"]))
@example("\u1100\u1161\u11a8", "a" * 200, "NFC")
@example("\u0301", "a" * 200, "NFC")
def test_a_text_with_few_characters_beyond_ascii_in_a_row_is_normalized_as_a_whole(
    text: str, before: str, form: Any
) -> None:
    text = text[:50]
    assert normalize(form, before + text) == unicodedata.normalize(form, before + text)

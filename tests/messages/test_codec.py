"""The codec: typed values to bytes and back, by revision."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from msgspec import UNSET, Raw

from accord.errors import InvalidParams
from accord.messages import codec
from accord.messages.content import TextContent
from accord.messages.identity import Implementation
from accord.messages.meta import SERVER_INFO, PaginatedParams
from accord.messages.revision import REVISIONS, RULES
from accord.messages.tools import CallToolResult, ListToolsResult, Tool

S26 = REVISIONS[-1]
INFO = codec.raw(Implementation(name="s", version="1"))


def decoded(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))


def test_a_decoder_is_made_once() -> None:
    assert codec.decoder(Tool) is codec.decoder(Tool)


def test_what_is_no_struct_or_has_no_older_shape_is_not_touched() -> None:
    for value in ({"a": 1}, Raw(b"{}"), None, 5):
        assert codec.narrow(value, "2024-11-05") is value
    block = TextContent(text="x")
    assert codec.narrow(block, S26) is block


def test_an_older_revision_is_spared_what_it_does_not_know() -> None:
    tool = Tool(name="t", input_schema={"type": "object"}, title="T")
    assert "title" not in decoded(codec.narrow(tool, "2025-03-26"))
    assert decoded(codec.narrow(tool, "2025-06-18"))["title"] == "T"
    assert tool.title == "T"


def test_params_are_decoded_and_absent_ones_are_empty() -> None:
    assert codec.decode_params(PaginatedParams, Raw(b'{"cursor":"c","x":1}')).cursor == "c"
    assert codec.decode_params(PaginatedParams, UNSET) == PaginatedParams()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (b'{"cursor":5}', "$.cursor"),
        (b"[]", "object"),
        (b"null", "object"),
        (b"{", "params do not fit"),
        (b'{"cursor":"\xff"}', "params do not fit"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deep"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_params_that_do_not_fit_say_where(params: bytes, says: str) -> None:
    with pytest.raises(InvalidParams) as raised:
        codec.decode_params(PaginatedParams, params)
    assert says in raised.value.message


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_in_bytes_is_finished(revision: str) -> None:
    result = Raw(b'{"a":1}')
    assert codec.finish_result(result, RULES[revision], INFO) is result


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_says_what_it_is_only_where_the_revision_does(revision: str) -> None:
    finished = decoded(codec.finish_result(ListToolsResult(tools=[], meta={"a": 1}), RULES[revision], INFO))
    if revision != S26:
        assert finished == {"tools": [], "_meta": {"a": 1}}
        return
    assert finished == {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"a": 1, SERVER_INFO: {"name": "s", "version": "1"}},
    }


def test_a_stamp_leaves_what_was_decided() -> None:
    decided = ListToolsResult(tools=[], ttl_ms=5, cache_scope="public")
    stamped = codec.stamp_result(decided, INFO)
    assert (stamped.ttl_ms, stamped.cache_scope) == (5, "public")
    assert decided.result_type is None
    asking = CallToolResult(content=[], result_type="input_required")
    assert codec.stamp_result(asking, INFO) is asking
    assert codec.stamp_result({"resultType": "task", "a": 1}, INFO) == {"resultType": "task", "a": 1}
    assert codec.stamp_result({"a": 1}, INFO) == {"resultType": "complete", "a": 1}
    assert "ttlMs" not in decoded(codec.stamp_result(CallToolResult(content=[]), INFO))


objects = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3) | st.none(), max_size=3)


@settings(max_examples=200)
@given(objects, objects)
def test_joined_objects_are_one_in_which_the_second_counts(first: dict[str, Any], second: dict[str, Any]) -> None:
    joined = codec.join_objects(codec.encode(first), codec.encode(second))
    assert msgspec.json.decode(joined) == {**first, **second}


@given(objects)
def test_params_get_a_meta(params: dict[str, Any]) -> None:
    params.pop("_meta", None)
    joined = codec.with_meta(codec.encode(params), b'{"a":1}')
    assert msgspec.json.decode(joined) == {"_meta": {"a": 1}, **params}


def test_what_was_decoded_without_a_type_can_be_given_one() -> None:
    assert codec.convert(Implementation, {"name": "n", "version": "v"}) == Implementation(name="n", version="v")
    for value in (None, 5, {}, {"name": 5, "version": "v"}):
        assert codec.convert(Implementation, value) is None


@pytest.mark.parametrize(
    "text", ["[" + "1e300," * 1_001 + "0]", "[" + "[]," * 100_001 + "0]", "[" * 10_000, "{", "\ud800", b"\xff"]
)
def test_json_in_a_text_that_would_take_long_to_decode_is_an_error(text: str | bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeError, RecursionError)):
        codec.decode_text(text)


def test_json_in_a_text_is_decoded() -> None:
    assert codec.decode_text('{"a": [1e300]}') == {"a": [1e300]}

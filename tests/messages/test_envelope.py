"""The envelope: one message out of its bytes, what is wrong with one that is none, and what goes out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from msgspec import UNSET, Raw

from accord.errors import InvalidRequest, ParseError
from accord.messages import envelope
from accord.messages.envelope import (
    ErrorObject,
    ErrorResponse,
    MalformedMessage,
    Notification,
    Response,
)

from tests.measure import assert_linear

# What comes in


def test_a_request_keeps_its_params_as_they_came() -> None:
    incoming = envelope.read(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{ "a" : 1.0 }}')
    assert (incoming.id, incoming.method) == (1, "m")
    assert bytes(incoming.params) == b'{ "a" : 1.0 }'  # type: ignore[arg-type]
    assert incoming.result is UNSET
    assert incoming.error is UNSET


def test_keys_nobody_knows_are_passed_over() -> None:
    assert envelope.read(b'{"x":[{}],"jsonrpc":"2.0","method":"m","y":null}').method == "m"


@pytest.mark.parametrize("id", [0, -5, 2**64, "", "7", "é"])
def test_an_id_keeps_its_json_type(id: Any) -> None:
    read = envelope.read(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "m"})).id
    assert (type(read), read) == (type(id), id)


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":null,"error":{}}',
        b'{"jsonrpc":"2.0","error":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"jsonrpc":"2.0","method":""}',
        b' \t\r{"jsonrpc":"2.0","method":"m"}\r ',
        '{"jsonrpc":"2.0","method":"m","params":"\u2028é😀"}'.encode(),
    ],
)
def test_the_envelope_is_all_that_is_looked_at(message: bytes) -> None:
    envelope.read(message)
    envelope.read(Raw(message.strip()))


@pytest.mark.parametrize(
    ("message", "error", "id", "answerable", "unnamed"),
    [
        (b"", ParseError, None, True, False),
        (b"{", ParseError, None, True, False),
        (b'{"jsonrpc":"1.0"', ParseError, None, True, True),
        (b'{"method":5,"a":', ParseError, None, True, False),
        (b'{"jsonrpc":"2.0","method":"m","params":"\xff"}', ParseError, None, True, False),
        (b'{"method":null,"\x80":1}', ParseError, None, True, False),
        (b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ParseError, None, True, True),
        (b'{"a":' + b"[" * 100_000, ParseError, None, True, False),
        (b"5", InvalidRequest, None, True, False),
        (b"[]", InvalidRequest, None, True, False),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', InvalidRequest, None, True, False),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', InvalidRequest, None, True, False),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', InvalidRequest, None, True, False),
        (b'{"id":1,"method":"m"}', InvalidRequest, 1, True, False),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', InvalidRequest, "a", True, False),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', InvalidRequest, 1, True, False),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', InvalidRequest, 1, True, True),
        (b'{"jsonrpc":"2.0","id":1}', InvalidRequest, 1, True, True),
        (b'{"jsonrpc":"2.0"}', InvalidRequest, None, True, True),
        (b'{"id":1,"result":{}}', InvalidRequest, 1, False, True),
        (b'{"jsonrpc":"1.0","id":1,"error":{}}', InvalidRequest, 1, False, True),
        (b'{"jsonrpc":"2.0","id":1.5,"result":{}}', InvalidRequest, None, False, True),
        (b'{"method":"notifications/x"}', InvalidRequest, None, False, False),
        (b'{"method":"x"}', InvalidRequest, None, True, False),
        (b'{"id":1,"method":"notifications/x"}', InvalidRequest, 1, True, False),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_what_cannot_be_read_is_reported_with_what_to_answer(
    message: bytes, error: type, id: Any, answerable: bool, unnamed: bool
) -> None:
    with pytest.raises(MalformedMessage) as raised:
        envelope.read(message)
    bad = raised.value
    assert type(bad.error) is error
    may_be_answers = [not each.names_method and not each.keys.isdisjoint(("jsonrpc", "id")) for each in bad.outlines]
    assert (bad.id, bad.answerable, any(may_be_answers)) == (id, answerable, unnamed)
    assert str(bad) == bad.error.message


@settings(max_examples=200)
@given(st.binary() | st.binary().map(lambda some: b'{"jsonrpc":"2.0","id":1,"method":"' + some + b'"}'))
def test_bytes_are_read_or_malformed_and_nothing_else(message: bytes) -> None:
    try:
        envelope.read(message)
    except MalformedMessage:
        pass
    else:
        message.decode()
        assert isinstance(msgspec.json.decode(message, strict=False), dict)


def test_the_items_of_an_array_are_found_and_nothing_else_is_one() -> None:
    found = envelope.items('[{"a":1}, 5 ,"é"]'.encode())
    assert found is not None
    assert [bytes(item).strip() for item in found] == [b'{"a":1}', b"5", '"é"'.encode()]
    assert envelope.items(b"[]") == []
    for message in (b"{}", b"[", b"[1,]", b'["\xff"]', b"[" * 100_000, b""):
        assert envelope.items(message) is None


@pytest.mark.parametrize(
    ("message", "array"), [(b"[", True), (b" \t\r\n[1]", True), (b"{}", False), (b"", False), (b"\xef\xbb\xbf[", False)]
)
def test_an_array_is_known_by_its_first_character(message: bytes, array: bool) -> None:
    assert envelope.is_array(message) is array


# What goes out


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Notification("m"), {"jsonrpc": "2.0", "method": "m"}),
        (Notification("m", {"a": 1}), {"jsonrpc": "2.0", "method": "m", "params": {"a": 1}}),
        (Response("a", Raw(b"{}")), {"jsonrpc": "2.0", "id": "a", "result": {}}),
        (
            ErrorResponse(1, ErrorObject(-1, "m", None)),
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "m", "data": None}},
        ),
        (
            ErrorResponse(None, ErrorObject(-1, "m")),
            {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "m"}},
        ),
        (ErrorResponse(UNSET, ErrorObject(-1, "m")), {"jsonrpc": "2.0", "error": {"code": -1, "message": "m"}}),
    ],
)
def test_what_goes_out_says_its_version_and_no_more_than_there_is(message: Any, expected: Any) -> None:
    encoded = msgspec.json.encode(message)
    assert msgspec.json.decode(encoded) == expected
    envelope.read(encoded)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":"', rb"\""),
        (b'{"jsonrpc":"2.0","id":"', rb"\""),
        (b'{"jsonrpc":"2.0","id":1,"result":"', b"\\\\"),
        (b'{"jsonrpc":"2.0","id"', b" "),
        (b'{"jsonrpc":"2.0","id":1', b" "),
        (b"{", b'"" '),
        (b"{", b"}{"),
    ],
)
def test_the_id_of_an_invalid_message_is_looked_for_in_linear_time(head: bytes, piece: bytes) -> None:
    assert_linear(lambda size: envelope.outlines(head + piece * size), 10_000)


@pytest.mark.parametrize(
    ("message", "id", "keys"),
    [
        (rb'{"jsonrpc":"2.0","id":7,"result":"\"id\":8', 7, {"jsonrpc", "id", "result"}),
        (b'{"jsonrpc":"2.0","id":7,"result":"' + b"\\", 7, {"jsonrpc", "id", "result"}),
        (rb'{ "result" : {"id":8, "a":"{\""}, "id" : "a\"b" , x', 'a"b', {"id", "result"}),
    ],
)
def test_an_invalid_message_is_read_as_far_as_its_texts_allow(message: bytes, id: Any, keys: set[str]) -> None:
    (outline,) = envelope.outlines(message)
    assert (outline.id, outline.keys) == (id, keys)

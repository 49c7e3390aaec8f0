"""Members that occur twice are found, wherever they are and however they are written; nothing else is refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from accord.errors import InvalidParams
from accord.messages import codec, envelope
from accord.messages.duplicate_members import find_duplicate, first_repeated, has_duplicates
from accord.messages.envelope import MalformedMessage
from accord.messages.prompts import GetPromptParams
from accord.server.core.dispatch import read_tool_call

REPEATED: list[tuple[bytes, str]] = [
    (b'{"a":1,"a":2}', "a"),
    (b'{"a" :1,"a":2}', "a"),
    (b' { "a" : 1 , "a" : 1 } ', "a"),
    (b'{"a":{"b":1,"b":2}}', "b"),
    (b'{"a":[{"b":1},{"b":1,"c":0,"b":1}]}', "b"),
    (rb'{"a":1,"\u0061":2}', "a"),
    (rb'{"x":"\u003a","a":1,"a":2}', "a"),
    (rb'{"x":"\u003A\u003A","a":1,"a":2}', "a"),
    (rb'{"x":"\\u003a","a":1,"a":2}', "a"),
    (b'{"a":"b:c","a":1}', "a"),
    (b'{"":1,"":2}', ""),
    (b'{"a":1,"b":":","a":{"c":":"}}', "a"),
]


@pytest.mark.parametrize(("text", "name"), REPEATED)
def test_a_member_that_occurs_twice_is_found_by_its_name(text: bytes, name: str) -> None:
    assert has_duplicates(text)
    assert find_duplicate(text) == name


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"[]",
        b'{"a":1,"b":{"a":2}}',
        b'[{"a":1},{"a":1}]',
        b'{"a":":","b":"::"}',
        rb'{"a":"\u003a","b":"\u003A"}',
        rb'{"a":"\\u003a","b":1}',
        rb'{"a":"\":\":","b":1}',
        b'{"a":1,"A":2}',
        b'{"a":12345678901234567890123,"b":1e3}',
        b"no JSON: at : all",
        b'{"a":1,"a":',
        b"[" * 5_000,
    ],
)
def test_other_texts_are_not_refused(text: bytes) -> None:
    assert not has_duplicates(text)
    assert find_duplicate(text) is None


KEYS = st.sampled_from(["a", "b", ":", '"', "\\", "a:", "é", "\u003a\u0061"])
VALUES: Any = st.recursive(
    st.none() | st.integers() | st.sampled_from(['":', "\\u003a", ":", "x", '"a":1']),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(KEYS, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def written(value: Any, escaped: bool) -> str:
    """JSON of a value in which an object is a tuple of pairs."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{written(key, escaped)} :{written(each, escaped)}" for key, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(each, escaped) for each in value) + "]"
    text = json.dumps(value)
    return text.replace(":", "\\u003a") if escaped and isinstance(value, str) else text


def is_repeated(value: Any) -> bool:
    if isinstance(value, tuple):
        return len({key for key, _ in value}) < len(value) or any(is_repeated(each) for _, each in value)
    return isinstance(value, list) and any(map(is_repeated, value))


@settings(max_examples=300)
@given(VALUES, st.booleans())
def test_any_json_is_judged_as_a_reader_of_pairs_judges_it(value: Any, escaped: bool) -> None:
    text = written(value, escaped).encode()
    assert has_duplicates(text) == is_repeated(value)
    assert (find_duplicate(text) is not None) == is_repeated(value)


@pytest.mark.parametrize("depth", [*range(900, 1_010), 5_000])
def test_a_repeated_member_in_params_of_any_depth_is_refused(depth: int) -> None:
    text = b'{"name":"a","name":"b","more":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    with pytest.raises(InvalidParams):
        codec.decode_params(GetPromptParams, text)
    with pytest.raises(InvalidParams):
        read_tool_call(text)
    with pytest.raises(MalformedMessage):
        envelope.read(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{},"method":"n",' + text[1:])


def test_the_name_of_a_repeated_member_is_found_in_linear_time() -> None:
    class Name(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"{n:x}") for n in range(3_000)]
    assert first_repeated([*names, names[-1]]) == names[-1]
    assert Name.compared < 3 * len(names)
    assert first_repeated(names) is None


# In the envelope

MESSAGE = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}}
SPELLINGS: list[dict[str, Any]] = [{"separators": (",", ":")}, {}, {"indent": 2}]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
@pytest.mark.parametrize("id", [1, 123456789012, "x", "0192f2d8-2d8b-7c6e-8000-0123456789ab", "é:"])
@pytest.mark.parametrize("more", [{}, {"_trace": "a:b", "x": {"id": 1}}], ids=["", "more"])
def test_messages_of_honest_peers_are_read(spelling: dict[str, Any], id: Any, more: dict[str, Any]) -> None:
    for content in ({"method": "m", "params": {"a": 1}}, {"method": "é"}, {"result": {}}, {"error": {"code": 1}}):
        message = json.dumps({"jsonrpc": "2.0", "id": id, **content, **more}, **spelling).encode()
        assert envelope.read(message).id == id
    for content in ({"method": "m", "params": {"a": 1}}, {"method": "m"}):
        envelope.read(json.dumps({"jsonrpc": "2.0", **content, **more}, **spelling).encode())


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
@pytest.mark.parametrize("id", [1, 123456789012, "x"])
def test_only_messages_with_room_for_another_member_are_searched(
    spelling: dict[str, Any], id: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(envelope, "find_duplicate")  # which a search needs
    for content in (
        {"id": id, "method": "tools/call", "params": {"url": "http://a"}},
        {"id": id, "result": {"content": [{"text": "a:b"}]}},
        {"id": id, "error": {"code": 1, "message": ":"}},
        {"method": "notifications/progress", "params": {"progressToken": id, "progress": 1}},
    ):
        envelope.read(json.dumps({"jsonrpc": "2.0", **content}, **spelling).encode())


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
@pytest.mark.parametrize(
    "second", ['"id":1', '"id":8', '"method":"m"', '"params":{}', '"jsonrpc":"2.0"', '"jsonrpc":"1.0"', '"x":1,"x":1']
)
@pytest.mark.parametrize("first", [True, False])
def test_a_member_of_the_envelope_that_occurs_twice_is_refused(
    spelling: dict[str, Any], second: str, first: bool
) -> None:
    whole = json.dumps(MESSAGE, **spelling)
    message = f"{{{second},{whole[1:]}" if first else f"{whole[:-1]},{second}}}"
    with pytest.raises(MalformedMessage):
        envelope.read(message.encode())


@pytest.mark.parametrize("notification", ['"method":"a"', '"params":{}', '"id":1,"id":1'])
def test_a_notification_has_no_room_for_a_second_member_either(notification: str) -> None:
    with pytest.raises(MalformedMessage):
        envelope.read(f'{{"jsonrpc":"2.0","method":"","params":{{}},{notification}}}'.encode())


@pytest.mark.parametrize("member", ['"result":{}', '"id":3', '"error":{}'])
def test_an_answer_with_a_second_member_is_refused_and_never_answered(member: str) -> None:
    for content in ('"result":{}', '"error":{}'):
        message = f'{{"jsonrpc":"2.0","id":3,{content},{member}}}'.encode()
        if content == member or "id" in member:
            with pytest.raises(MalformedMessage) as raised:
                envelope.read(message)
            assert not raised.value.answerable
            assert raised.value.outlines[0].id == 3


def test_members_that_nobody_knows_are_bounded_together() -> None:
    whole = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{},"x":"%b"}'
    envelope.read(whole % (b"y" * 60_000))
    with pytest.raises(MalformedMessage, match="more than 65,536 bytes beside params") as raised:
        envelope.read(whole % (b"y" * 70_000))
    assert raised.value.id == 1


# In params


def test_params_with_a_member_twice_are_refused_by_its_name() -> None:
    with pytest.raises(InvalidParams, match="params have the member 'name' twice"):
        codec.decode_params(GetPromptParams, b'{"name":"a","name":"b"}')
    with pytest.raises(InvalidParams, match="params have the member 'x' twice"):
        codec.decode_params(GetPromptParams, b'{"name":"a","arguments":{"x":"1","x":"2"}}')
    assert codec.decode_params(GetPromptParams, b'{"name":"a","arguments":{"name":"b"}}').name == "a"


def test_what_a_peer_answers_is_read_with_the_last_of_two_members() -> None:
    assert codec.decode_result(GetPromptParams, b'{"name":"a","name":"b"}').name == "b"
    assert msgspec.json.decode(b'{"a":1,"a":2}') == {"a": 2}

"""The first look into params, and the `_meta` that is remembered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from accord.errors import InvalidParams
from accord.messages.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from accord.session import peek

META = {
    PROTOCOL_VERSION: "2026-07-28",
    CLIENT_INFO: {"name": "c", "version": "1"},
    CLIENT_CAPABILITIES: {},
}


def params(meta: Any, **members: Any) -> Raw:
    return Raw(msgspec.json.encode({**members, "_meta": meta}))


def test_the_same_meta_is_decoded_once() -> None:
    last = peek.LastMeta()
    first = peek.request_meta(params(META, name="a"), last)
    assert first == peek.request_meta(params(META, name="a"))
    assert peek.request_meta(params(META, name="b"), last) is first
    assert peek.mirrored_params(params(META, name="c"), last).meta is first


def test_another_meta_is_never_answered_with_the_last_one() -> None:
    last = peek.LastMeta()
    peek.request_meta(params(META), last)
    other = META | {CLIENT_INFO: {"name": "d", "version": "1"}}
    for meta in (other, {**META, "progressToken": 1}, {**META, "progressToken": 2}, META, None, {}):
        assert peek.request_meta(params(meta), last) == peek.request_meta(params(meta))
        assert peek.mirrored_params(params(meta), last).meta == peek.request_meta(params(meta))
    assert peek.request_meta(Raw(b'{"name":"a"}'), last) is None


@pytest.mark.parametrize("meta", [7, {**META, CLIENT_INFO: {"name": 7}}, {**META, "progressToken": 1.5}, []])
def test_a_remembered_meta_changes_no_error(meta: Any) -> None:
    last = peek.LastMeta()
    peek.request_meta(params(META), last)
    with pytest.raises(InvalidParams) as plain:
        peek.request_meta(params(meta))
    with pytest.raises(InvalidParams) as remembered:
        peek.request_meta(params(meta), last)
    assert str(remembered.value) == str(plain.value)
    with pytest.raises(InvalidParams) as posted:
        peek.mirrored_params(params(meta), last)
    assert str(posted.value) == str(plain.value)

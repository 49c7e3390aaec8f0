"""Sealed text: it opens with the keys that sealed it, whole and unchanged, or not at all."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import DeclarationError, Server
from accord.server.input.request_state import Keyring, SealBroken

OLD, NEW, OTHER = bytes(range(32)), bytes(range(32, 64)), b"k" * 16
LETTERS = string.ascii_letters + string.digits + "-_"
MAX = 4096


def opens(keyring: Keyring, text: str) -> bytes | None:
    """What the text holds; None when it is refused in the one way that it may be."""
    try:
        return keyring.open(text, max_bytes=MAX)
    except SealBroken:
        return None


@given(st.binary(max_size=MAX))
def test_what_was_sealed_opens(payload: bytes) -> None:
    keyring = Keyring()
    text = keyring.seal(payload)
    assert set(text) <= set(LETTERS)
    assert keyring.open(text, max_bytes=MAX) == payload


def test_the_same_keys_open_in_another_process() -> None:
    assert Keyring([OLD]).open(Keyring([OLD]).seal(b"state"), max_bytes=5) == b"state"


def test_each_default_key_is_its_own() -> None:
    assert opens(Keyring(), Keyring().seal(b"state")) is None


def test_the_first_key_seals_and_all_open() -> None:
    before, during, after = Keyring([OLD]), Keyring([NEW, OLD]), Keyring([NEW])
    assert opens(during, before.seal(b"early")) == b"early"
    assert opens(after, during.seal(b"late")) == b"late"
    assert opens(before, during.seal(b"late")) is None
    assert opens(after, before.seal(b"early")) is None


def test_a_key_given_twice_is_one_key() -> None:
    assert opens(Keyring([OLD]), Keyring([OLD, NEW, OLD]).seal(b"state")) == b"state"


def test_a_text_for_one_purpose_is_broken_for_another() -> None:
    text = Keyring([OLD], purpose=b"cursor").seal(b"state")
    assert opens(Keyring([OLD]), text) is None
    assert opens(Keyring([OLD], purpose=b"cursor"), text) == b"state"


@pytest.mark.parametrize(("keys", "says"), [([], "keys= is empty"), ([b"x" * 15], "15 bytes"), ([OLD, b""], "0 bytes")])
def test_a_key_that_can_be_guessed_is_refused(keys: list[bytes], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        Keyring(keys)


@pytest.mark.parametrize("size", range(20))
def test_the_bound_is_exact(size: int) -> None:
    keyring = Keyring([OLD])
    text = keyring.seal(b"x" * size)
    assert keyring.open(text, max_bytes=size) == b"x" * size
    if size:
        with pytest.raises(SealBroken, match=f"over {size - 1} bytes"):
            keyring.open(text, max_bytes=size - 1)


def test_a_long_text_is_refused_before_any_work() -> None:
    with pytest.raises(SealBroken, match="over 10 bytes"):
        Keyring([OLD]).open("\ud800" * 10_000_000, max_bytes=10)


@pytest.mark.parametrize("text", ["", "1", "é" * 60, "\0" * 60, "\ud800" * 60, "A" * 51, "1" * 52, "=" * 80])
def test_what_is_no_sealed_text_is_broken(text: str) -> None:
    with pytest.raises(SealBroken):
        Keyring([OLD]).open(text, max_bytes=MAX)


def test_no_second_text_encodes_the_same_payload() -> None:
    """The trailing bits of base64, its padding and other alphabet, blanks, case."""
    keyring = Keyring([OLD])
    for size in range(9):
        text = keyring.seal(bytes(range(250, 250 + min(size, 6))) + b"x" * max(0, size - 6))
        head, payload, seal = text[:9], text[9:-43], text[-43:]
        seconds = {text + "=", f"{head}{payload}={seal}", f"{head}{payload}=={seal}", text + "\n", " " + text}
        seconds |= {text.replace("-", "+").replace("_", "/"), text.swapcase(), text.lower(), text.upper()}
        seconds |= {text[:-1] + letter for letter in LETTERS}
        seconds |= {head + payload[:-1] + letter + seal for letter in LETTERS if payload}
        for second in seconds - {text}:
            assert opens(keyring, second) is None, second


# --- 100,000 changes ------------------------------------------------------------------------------------------


def flipped(chance: random.Random, text: str, other: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chr(ord(text[at]) ^ 1 << chance.randrange(8)) + text[at + 1 :]


def replaced(chance: random.Random, text: str, other: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(LETTERS) + text[at + 1 :]


def cut(chance: random.Random, text: str, other: str) -> str:
    first, last = sorted(chance.choices(range(len(text) + 1), k=2))
    return chance.choice([text[:first], text[first:], text[:first] + text[last:]])


def inserted(chance: random.Random, text: str, other: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice([*LETTERS, "=", "\n", " ", "\0", "é", "\ud800", "1" * 9]) + text[at:]


def spliced(chance: random.Random, text: str, other: str) -> str:
    at, there = chance.randrange(len(text) + 1), chance.randrange(len(other) + 1)
    return text[:at] + other[chance.choice([at, there]) :]


def with_the_seal_of_another(chance: random.Random, text: str, other: str) -> str:
    return text[:-43] + other[-43:]


def with_the_key_of_another(chance: random.Random, text: str, other: str) -> str:
    return text[:1] + other[1:9] + text[9:]


def with_another_version(chance: random.Random, text: str, other: str) -> str:
    return chance.choice(LETTERS) + text[1:]


def encoded_again(chance: random.Random, text: str, other: str) -> str:
    whole = text + "=" * (-len(text) % 4)
    data = base64.urlsafe_b64decode(whole)
    return chance.choice([base64.b64encode(data), base64.urlsafe_b64encode(data), base64.b32encode(data)]).decode()


def doubled(chance: random.Random, text: str, other: str) -> str:
    return chance.choice([text + text, text + other, text[:9] + text[9:-43] * 2 + text[-43:]])


CHANGES: list[Callable[[random.Random, str, str], str]] = [
    flipped,
    replaced,
    cut,
    inserted,
    spliced,
    with_the_seal_of_another,
    with_the_key_of_another,
    with_another_version,
    encoded_again,
    doubled,
]


def test_none_of_100_000_changes_is_accepted() -> None:
    chance = random.Random(27)
    keyring = Keyring([OLD, NEW])
    texts = [Keyring([key]).seal(chance.randbytes(chance.randrange(1, 300))) for key in (OLD, NEW, OTHER) * 8]
    real = set(texts)
    tried, accepted = 0, []
    while tried < 100_000:
        text, other = chance.choice(texts), chance.choice(texts)
        changed = chance.choice(CHANGES)(chance, text, other)
        if changed in real:
            continue
        tried += 1
        if opens(keyring, changed) is not None:
            accepted.append(changed)
    assert accepted == []


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ([], "keys= is empty"),
        ([b"x" * 15], "15 bytes"),
        (b"x" * 32, "must be a list"),
        ("x" * 32, "must be a list"),
        (7, "must be a list"),
        (["x" * 32], "must be bytes, not str"),
        ([None], "must be bytes, not NoneType"),
    ],
)
def test_a_server_refuses_such_keys_when_it_is_made(keys: Any, says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        Server("test", state_keys=keys)

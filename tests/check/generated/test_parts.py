"""The parts of generating: patterns read, references made plain, values shrunk, results kept, leaks seen."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord.check.generated.document import Document
from accord.check.generated.leaks import CANARY, leaked
from accord.check.generated.matching import matches
from accord.check.generated.pool import Pool
from accord.check.generated.shrinking import shrunk
from accord.check.generated.trials import Plan

PATTERNS = [
    "^a$",
    "^[A-Z]{3}-\\d+$",
    "x|y",
    "[^a]",
    "^(?:ab|c)+$",
    ".",
    "a{2,5}?",
    "\\S\\W",
    "^$",
    "(a)(?P<n>b)",
    "[é-ü]",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_read_off_a_pattern_matches_it(pattern: str) -> None:
    found = list(islice(matches(pattern, 3), 12))
    assert found
    assert all(re.search(pattern, text) for text in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("pattern", ["(", "\\p{L}+", "a(?=b)", "(a)\\1"])
def test_a_pattern_that_cannot_be_read_gives_nothing(pattern: str) -> None:
    assert list(islice(matches(pattern), 3)) == []


@given(st.from_regex(r"\A[a-z\[\]()|*+?.^$0-9\\-]{0,12}\Z"))
def test_reading_any_pattern_ends(pattern: str) -> None:
    assert len(list(islice(matches(pattern, 2), 5))) <= 5


def test_references_become_pointers_from_one_root() -> None:
    schema = {
        "$id": "https://example.com/a",
        "properties": {"x": {"$ref": "#b"}, "y": {"$ref": "#/$defs/c"}, "$ref": {"const": {"$ref": "#b"}}},
        "$defs": {"b": {"$anchor": "b", "type": "integer"}, "c": {"$id": "c", "items": {"$ref": "#"}}},
    }
    properties = Document(schema).root["properties"]  # type: ignore[index]
    assert properties["x"] == {"$ref": "#/$defs/root/$defs/b"}
    assert properties["y"] == {"$ref": "#/$defs/root/$defs/c"}
    assert Document(schema).target("#/$defs/root/$defs/c") == {"items": {"$ref": "#/$defs/root/$defs/c"}}
    assert properties["$ref"] == {"const": {"$ref": "#b"}}


async def least(value: Any, fails: Any, tries: int = 500) -> Any:
    async def check(simpler: Any) -> bool:
        return bool(fails(simpler))

    return await shrunk(value, check, lambda simpler: True, tries)


async def test_a_number_shrinks_to_the_bound_where_it_begins_to_fail() -> None:
    assert await least({"n": 98_765, "x": "noise"}, lambda value: value.get("n", 0) > 100) == {"n": 101}
    assert await least(-5_000, lambda value: value < -7) == -8
    assert await least(7.25, lambda value: value > 3) in (4, 5, 6, 7)


async def test_a_text_shrinks_to_the_characters_that_fail() -> None:
    assert await least({"s": "hello 'quoted' world"}, lambda value: "'" in value.get("s", "")) == {"s": "'"}
    assert await least("x" * 900, lambda value: len(value) >= 300) == "a" * 300


async def test_an_array_shrinks_to_the_items_that_fail() -> None:
    assert await least([1, [2, 3], {"a": 9}], lambda value: [3] in value or [2, 3] in value) in ([[3]], [[2, 3]])


async def test_shrinking_stays_within_what_is_allowed_and_within_its_tries() -> None:
    async def always(value: Any) -> bool:
        return True

    assert await shrunk({"a": "text", "b": 1}, always, lambda value: "a" in value, 500) == {"a": ""}
    calls = 0

    async def counted(value: Any) -> bool:
        nonlocal calls
        calls += 1
        return False

    assert await shrunk("a long text", counted, lambda value: True, 5) == "a long text"
    assert calls == 5


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_shrinking_always_ends_with_something_no_larger(value: Any) -> None:
    import asyncio

    found = asyncio.run(least(value, lambda simpler: True))
    assert len(msgspec.json.encode(found)) <= len(msgspec.json.encode(value))


def test_what_a_server_gave_is_known_by_its_name() -> None:
    pool = Pool()
    pool.learn(
        {
            "structuredContent": {"user": {"id": 7}, "nextCursor": "c2"},
            "content": [{"type": "text", "text": '{"sku": "x-1"}'}],
        }
    )
    pool.learn({"content": [{"type": "resource_link", "uri": "test://a", "name": "a"}]})
    assert pool.known("userId") == [7]
    assert pool.known("user_id") == [7]
    assert pool.known("cursor") == ["c2"]
    assert pool.known("SKU") == ["x-1"]
    assert pool.known("uri") == pool.links == ["test://a"]
    assert pool.known("colour") == []


def test_a_pool_is_bounded() -> None:
    pool = Pool()
    for number in range(2_000):
        pool.learn({"structuredContent": {f"key{number}": number, "id": number, "long": "x" * 10_000}})
    assert len(pool.known("id")) == 20
    assert pool.known("long") == []


TRACES = [
    'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in run\nZeroDivisionError: division by zero',
    "TypeError: x is undefined\n    at run (/srv/dist/index.js:12:5)",
    "java.lang.NullPointerException\n\tat com.example.Tool.run(Tool.java:17)",
    "goroutine 7 [running]:\nmain.main()",
    "thread 'main' panicked at src/main.rs:3:5",
]


@pytest.mark.parametrize("text", TRACES)
def test_a_trace_of_an_exception_is_a_leak(text: str) -> None:
    answer = {"isError": True, "content": [{"type": "text", "text": text}]}
    assert leaked(answer, failed=True, sent={})
    assert leaked(answer, failed=True, sent={"echo": text}) is None


def test_a_folder_of_code_is_a_leak_in_errors_only() -> None:
    text = {"text": "cannot read /usr/lib/python3/site-packages/thing/x.py"}
    assert "site-packages" in str(leaked(text, failed=True, sent={}))
    assert leaked(text, failed=False, sent={}) is None


def test_the_secret_of_the_environment_is_a_leak_anywhere() -> None:
    assert leaked({"structuredContent": {"env": {"A": CANARY}}}, failed=False, sent={})


@pytest.mark.parametrize(
    "text", ["File not found: a.txt", "at noon (12:30)", "the traceback of a story", "/home/me/notes.txt"]
)
def test_ordinary_words_are_no_leak(text: str) -> None:
    assert leaked({"content": [{"type": "text", "text": text}]}, failed=True, sent={}) is None


def trials(schema: Any, pool: Pool | None = None) -> list[Any]:
    plan = Plan({"name": "t", "inputSchema": schema}, pool or Pool())
    found = []
    while (trial := plan.next()) is not None:
        found.append(trial)
    return found


def test_no_arguments_are_tried_twice_and_each_is_of_its_sort() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "s": {"type": "string"}},
        "required": ["n"],
    }
    found = trials(schema)
    document = Document(schema)
    assert len({msgspec.json.encode(trial.arguments) for trial in found}) == len(found) > 15
    assert all(document.fits(trial.arguments) == (trial.sort == "valid") for trial in found)
    assert {trial.sort for trial in found} == {"valid", "wrong"}
    assert found[0].arguments == {"n": 0}


def test_what_the_server_gave_becomes_an_argument() -> None:
    pool = Pool()
    pool.learn({"structuredContent": {"order": {"id": "o-17"}}})
    schema = {"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}
    assert {"orderId": "o-17"} in [trial.arguments for trial in trials(schema, pool)]


@pytest.mark.parametrize("name", ["duration", "waitSeconds", "sleep_ms", "timeout"])
def test_nobody_waits_for_a_day(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "number", "default": 10}}}
    found = [trial.arguments for trial in trials(schema) if trial.sort == "valid"]
    assert found
    assert all(arguments[name] <= 1 for arguments in found)

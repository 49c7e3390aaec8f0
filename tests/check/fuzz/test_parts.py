"""The parts of generating: patterns read, references made plain, values shrunk, results kept, leaks seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.leaks import CANARY, find_leak
from accord.check.fuzz.pattern_texts import matching_texts
from accord.check.fuzz.schema_document import SchemaDocument
from accord.check.fuzz.sequence_reducer import shrink
from accord.check.fuzz.sequences import (
    CallStep,
    MissingValue,
    Steps,
    decode_steps,
    encode_steps,
    remove_steps,
    resolve_arguments,
    value_reference,
)
from accord.check.fuzz.trial_plan import TrialPlan
from accord.check.fuzz.value_pool import ValuePool
from accord.errors import TargetError

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
    found = list(islice(matching_texts(pattern, 3), 12))
    assert found
    assert all(re.search(pattern, text) for text in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("pattern", ["(", "\\p{L}+", "a(?=b)", "(a)\\1"])
def test_a_pattern_that_cannot_be_read_gives_nothing(pattern: str) -> None:
    assert list(islice(matching_texts(pattern), 3)) == []


@given(st.from_regex(r"\A[a-z\[\]()|*+?.^$0-9\\-]{0,12}\Z"))
def test_reading_any_pattern_ends(pattern: str) -> None:
    assert len(list(islice(matching_texts(pattern, 2), 5))) <= 5


def test_references_become_pointers_from_one_root() -> None:
    schema = {
        "$id": "https://example.com/a",
        "properties": {"x": {"$ref": "#b"}, "y": {"$ref": "#/$defs/c"}, "$ref": {"const": {"$ref": "#b"}}},
        "$defs": {"b": {"$anchor": "b", "type": "integer"}, "c": {"$id": "c", "items": {"$ref": "#"}}},
    }
    properties = SchemaDocument(schema).root["properties"]  # type: ignore[index]
    assert properties["x"] == {"$ref": "#/$defs/root/$defs/b"}
    assert properties["y"] == {"$ref": "#/$defs/root/$defs/c"}
    assert SchemaDocument(schema).resolve_reference("#/$defs/root/$defs/c") == {
        "items": {"$ref": "#/$defs/root/$defs/c"}
    }
    assert properties["$ref"] == {"const": {"$ref": "#b"}}


async def least(value: Any, fails: Any, tries: int = 500) -> Any:
    async def check(simpler: Any) -> bool:
        return bool(fails(simpler))

    return await shrink(value, check, lambda simpler: True, tries)


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

    assert await shrink({"a": "text", "b": 1}, always, lambda value: "a" in value, 500) == {"a": ""}
    calls = 0

    async def counted(value: Any) -> bool:
        nonlocal calls
        calls += 1
        return False

    assert await shrink("a long text", counted, lambda value: True, 5) == "a long text"
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


ORDER = (CallStep(kind="tool", name="order"),)


def values(pool: ValuePool, name: str) -> list[Any]:
    return [source.value for source in pool.get_values(name)]


def test_what_a_server_gave_is_known_by_its_name() -> None:
    pool = ValuePool()
    first = {
        "structuredContent": {"user": {"id": 7}, "nextCursor": "c2"},
        "content": [{"type": "text", "text": '{"sku": "x-1"}'}],
    }
    second = {"content": [{"type": "resource_link", "uri": "test://a", "name": "a"}]}
    pool.add_result(ORDER, first)
    pool.add_result(ORDER, second)
    assert values(pool, "userId") == values(pool, "user_id") == [7]
    assert values(pool, "cursor") == ["c2"]
    assert values(pool, "SKU") == ["x-1"]
    assert values(pool, "uri") == ["test://a"]
    assert values(pool, "colour") == []
    for name, result in (("sku", first), ("userId", first), ("uri", second)):
        (source,) = pool.get_values(name)
        assert resolve_arguments(value_reference(0, source.path), [result]) == source.value


def test_what_lists_and_completions_gave_is_known_too() -> None:
    pool = ValuePool()
    listing = (CallStep(kind="list", name="resources/list"),)
    pool.add_result(listing, {"resources": [{"uri": "test://a", "name": "a"}], "nextCursor": "c2"})
    pool.add_result((CallStep(kind="completion", name="test://{city} city"),), {"completion": {"values": ["Oslo"]}})
    assert (values(pool, "uri"), values(pool, "cursor"), values(pool, "city")) == (["test://a"], ["c2"], ["Oslo"])


def test_a_pool_is_bounded() -> None:
    pool = ValuePool()
    for number in range(2_000):
        pool.add_result(ORDER, {"structuredContent": {f"key{number}": number, "id": number, "long": "x" * 10_000}})
        pool.add_result((CallStep(kind="tool", name=f"t{number}"),), {"structuredContent": {"n": number}})
    assert len(pool.get_values("id")) == 5
    assert len(pool.get_values("n")) == 20
    assert pool.get_values("long") == []


def test_what_takes_too_many_calls_is_not_stored() -> None:
    pool = ValuePool()
    pool.add_result(ORDER * 5, {"structuredContent": {"id": 1}})
    assert pool.get_values("id") == []


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
    assert find_leak(answer, failed=True, sent={})
    assert find_leak(answer, failed=True, sent={"echo": text}) is None


def test_a_folder_of_code_is_a_leak_in_errors_only() -> None:
    text = {"text": "cannot read /usr/lib/python3/site-packages/thing/x.py"}
    assert "site-packages" in str(find_leak(text, failed=True, sent={}))
    assert find_leak(text, failed=False, sent={}) is None


def test_the_secret_of_the_environment_is_a_leak_anywhere() -> None:
    assert find_leak({"structuredContent": {"env": {"A": CANARY}}}, failed=False, sent={})


@pytest.mark.parametrize(
    "text", ["File not found: a.txt", "at noon (12:30)", "the traceback of a story", "/home/me/notes.txt"]
)
def test_ordinary_words_are_no_leak(text: str) -> None:
    assert find_leak({"content": [{"type": "text", "text": text}]}, failed=True, sent={}) is None


def plan(schema: Any, pool: ValuePool | None = None) -> TrialPlan:
    subject = FuzzTarget(
        kind="tool", name="t", schema=schema, build_request=lambda arguments: ("tools/call", arguments)
    )
    return TrialPlan(subject, pool or ValuePool())


def trials(schema: Any, pool: ValuePool | None = None) -> list[Steps]:
    planned = plan(schema, pool)
    found = []
    while (steps := planned.next()) is not None:
        found.append(steps)
    return found


def test_no_arguments_are_tried_twice_and_each_is_of_its_sort() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "s": {"type": "string"}},
        "required": ["n"],
    }
    found = [step for (step,) in trials(schema)]
    document = SchemaDocument(schema)
    assert len({msgspec.json.encode(step.arguments) for step in found}) == len(found) > 15
    assert all(document.matches(step.arguments) == (step.wrong is None) for step in found)
    assert len({step.wrong for step in found}) > 2
    assert found[0].arguments == {"n": 0}


ORDER_ID = {"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}


def test_what_the_server_gave_becomes_an_argument() -> None:
    pool = ValuePool()
    pool.add_result(ORDER, {"structuredContent": {"order": {"id": "o-17"}}})
    fed = CallStep(
        kind="tool", name="t", arguments={"orderId": value_reference(0, ("structuredContent", "order", "id"))}
    )
    assert (*ORDER, fed) in trials(ORDER_ID, pool)


def test_what_was_fed_is_fed_on() -> None:
    pool = ValuePool()
    paid = (
        *ORDER,
        CallStep(kind="tool", name="pay", arguments={"id": value_reference(0, ("structuredContent", "order", "id"))}),
    )
    pool.add_result(paid, {"structuredContent": {"receipt": "r-1"}})
    pool.add_result(ORDER, {"structuredContent": {"order": {"id": "o-17"}}})
    schema = {"type": "object", "properties": {"receipt": {"type": "string"}, "orderId": {"type": "string"}}}
    longest = max(trials(schema, pool), key=len)
    assert [step.name for step in longest] == ["order", "pay", "order", "t"]
    results = [{"structuredContent": {"order": {"id": "o-1"}}}, {"structuredContent": {"receipt": "r-2"}}]
    results.append({"structuredContent": {"order": {"id": "o-3"}}})
    assert resolve_arguments(longest[-1].arguments, results) == {"receipt": "r-2", "orderId": "o-3"}


@pytest.mark.parametrize("name", ["duration", "waitSeconds", "sleep_ms", "timeout"])
def test_nobody_waits_for_a_day(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "number", "default": 10}}}
    found = [step.arguments for (step,) in trials(schema) if step.wrong is None]
    assert found
    assert all(arguments[name] <= 1 for arguments in found)


def test_a_slow_call_without_arguments_is_no_smaller_form_of_a_fast_one() -> None:
    planned = plan({"type": "object", "properties": {"duration": {"type": "number", "default": 10}}})
    quick = planned.step({"duration": 0})
    assert planned.allows(quick, {"duration": 0.1})
    assert not planned.allows(quick, {})
    assert not planned.allows(quick, {"duration": 60})


def test_a_sequence_is_bounded() -> None:
    pool = ValuePool()
    for name in "abcdef":
        steps = tuple(CallStep(kind="tool", name=f"{name}{number}") for number in range(4))
        pool.add_result(steps, {"structuredContent": {f"{name}{name}": name}})
    schema = {"type": "object", "properties": {f"{name}{name}": {"type": "string"} for name in "abcdef"}}
    assert max(map(len, trials(schema, pool))) == 5


def test_without_a_call_others_take_what_was_seen_of_it() -> None:
    steps = (
        *ORDER,
        *ORDER,
        CallStep(
            kind="tool", name="t", arguments={"a": [value_reference(0, ("x",))], "b": value_reference(1, ("y", 0))}
        ),
    )
    fewer = remove_steps(steps, range(1), [{"x": 5}, {"y": [6]}])
    assert fewer[-1].arguments == {"a": [5], "b": value_reference(0, ("y", 0))}
    assert remove_steps(fewer, range(1), [{"y": [6]}])[-1].arguments == {"a": [5], "b": 6}


@pytest.mark.parametrize("way", [("b",), ("a", 0), ("text", None), ("text", 3, None)])
def test_what_a_result_does_not_have_is_missing(way: Any) -> None:
    with pytest.raises(MissingValue):
        resolve_arguments(value_reference(0, way), [{"a": 1, "text": "no JSON"}])
    with pytest.raises(MissingValue):
        resolve_arguments(value_reference(1, way), [{}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
STEPS = st.lists(
    st.builds(CallStep, kind=st.sampled_from(["tool", "prompt", "read"]), name=st.text(max_size=5), arguments=JSON),
    min_size=1,
    max_size=4,
).map(tuple)


@given(STEPS)
def test_calls_are_the_same_after_a_way_through_a_command_line(steps: Steps) -> None:
    assert decode_steps(encode_steps(steps)) == steps


@given(st.text() | st.sampled_from(["[]", "{}", '[{"kind": "door", "name": "a"}]', '[{"kind": "tool"}]', "[" * 9_999]))
def test_an_invalid_sequence_of_calls_is_refused(text: str) -> None:
    with pytest.raises(TargetError, match="sequence"):
        decode_steps(text)


@given(JSON, st.lists(JSON, max_size=3))
def test_arguments_of_any_form_are_resolved_or_missing(arguments: Any, results: list[Any]) -> None:
    try:
        found = resolve_arguments(arguments, results)
    except MissingValue:
        return
    assert found == arguments or "$from" in str(arguments)


DRAW = """
import json, sys
from accord.check.fuzz.values import draw_values
text, number = {"type": "string"}, {"type": "number"}
schema = {"type": "object", "properties": {"a": text, "n": number}, "required": ["a", "n"]}
print(json.dumps(draw_values(schema, 120, 1)))
"""


def test_what_is_drawn_depends_on_the_seed_and_not_on_what_else_is_loaded() -> None:
    more = "import accord.cli.check_options, accord.check.server, accord.server.openapi\n"
    commands = [[sys.executable, "-c", before + DRAW] for before in ("", more)]
    first, second = [subprocess.run(command, capture_output=True, check=True).stdout for command in commands]
    assert first == second
    assert len(json.loads(first)) > 100


def test_the_cache_of_characters_is_in_a_folder_of_the_user(tmp_path: Path) -> None:
    code = """
import os
from accord.check.fuzz.trial_plan import _random_arguments
assert len(_random_arguments({"type": "object", "properties": {"a": {"type": "string"}}}, 5, 1)) == 5
print(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"])
"""
    folders = {name: str(tmp_path / name) for name in ("TMPDIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")}
    for folder in folders.values():
        os.mkdir(folder)
    environment = {
        name: value for name, value in os.environ.items() if name != "HYPOTHESIS_STORAGE_DIRECTORY"
    } | folders
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith(str(tmp_path))
    assert os.listdir(folders["TMPDIR"]) == []
    assert sorted(os.listdir(tmp_path)) == sorted(folders)

"""Schemas of which a value would take all memory, or all time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from accord.check.fuzz.boundaries import boundaries
from accord.check.fuzz.pattern_texts import LONGEST, matching_texts
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.fuzz.values import draw_values

from tests.measure import assert_linear

_PLENTY = 10**12

_TOO_LARGE: list[dict[str, Any]] = [
    {"type": "string", "minLength": _PLENTY},
    {"type": "array", "minItems": _PLENTY, "maxItems": _PLENTY},
    {"type": "array", "contains": {"type": "null"}, "minContains": _PLENTY},
    {"type": "object", "minProperties": _PLENTY},
    {"type": "object", "minProperties": _PLENTY, "patternProperties": {"^a{1000}$": True}},
]


@pytest.mark.parametrize(
    "pattern", ["(a{60000}){60000}", "a{60000}" * 10, "((a{100}){100}){100}", "(?:x|a{60000}){60000}b", "[ab]{1000000}"]
)
def test_no_text_of_a_pattern_is_longer_than_the_longest(pattern: str) -> None:
    assert all(len(text) <= LONGEST for text in matching_texts(pattern))


def test_a_text_of_the_greatest_length_is_made() -> None:
    assert len(next(matching_texts("(?:a{256}){256}"))) == LONGEST


@pytest.mark.parametrize("schema", _TOO_LARGE, ids=str)
def test_a_schema_whose_values_are_all_too_large_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(GenerationError):
        smallest(schema)


@pytest.mark.parametrize("schema", _TOO_LARGE, ids=str)
@pytest.mark.parametrize("choice", ["arms", "types"])
def test_of_a_choice_only_what_is_small_enough_is_made(schema: dict[str, Any], choice: str) -> None:
    either = {"anyOf": [schema, {"type": "null"}]} if choice == "arms" else {**schema, "type": [schema["type"], "null"]}
    assert smallest(either) is None
    assert {str(each.value) for each in boundaries(either)} <= {"None"}
    assert set(map(str, draw_values(either, 3, 1))) <= {"None"}


def test_the_time_for_a_value_grows_with_its_members() -> None:
    def schema(members: int) -> dict[str, Any]:
        names = [f"m{number}" for number in range(members)]
        return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}

    assert_linear(lambda members: smallest(schema(members)), 50)


def test_a_choice_takes_no_more_memory_than_its_arms() -> None:
    def peak(arms: int) -> int:
        tracemalloc.start()
        try:
            assert smallest({"oneOf": [{"const": number} for number in range(arms)]}) == 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(1_000) < 5 * peak(300)


def test_more_schemas_of_one_place_than_python_can_recurse_are_refused() -> None:
    with pytest.raises(GenerationError):
        smallest({"allOf": [{"minimum": 1}] * 2_000})

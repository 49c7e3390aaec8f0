"""Keywords that are checked here give the same results as those of jsonschema-rs, and in linear time."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from accord.errors import Mismatch
from accord.schema.validate import compile

from tests.measure import costs_at_most

UNIQUE = {"uniqueItems": True}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def shapes(count: int) -> list[Any]:
    """Different arrays of arrays, with nothing else inside."""
    made: list[Any] = [[]]
    while len(made) < count:
        made += [[*each, []] for each in made] + [[each] for each in made]
    return list({repr(each): each for each in made}.values())[:count]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (UNIQUE, [10**22 + n for n in range(20_000)]),
        (UNIQUE, [{"a": [10**300 + n]} for n in range(5_000)]),
        (UNIQUE, shapes(8_000)),
        ({"items": {"multipleOf": 0.01}}, [1.2345e300] * 40_000),
        ({"items": {"multipleOf": 1e-300}}, [1.2345e300] * 40_000),
        ({"items": {"multipleOf": 10**200 + 1}}, [(10**200 + 1) * 10**2000] * 10_000),
    ],
    ids=["numbers", "numbers inside", "shapes", "fractions", "small fractions", "integers"],
)
def test_no_value_takes_long(schema: Any, value: Any) -> None:
    with costs_at_most(30):
        compile(schema).validate(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e18])
    | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=20))
def test_items_are_unique_as_jsonschema_rs_says(items: list[Any]) -> None:
    assert fits(UNIQUE, items) == jsonschema_rs.is_valid(UNIQUE, items)
    assert fits({"uniqueItems": False}, items)


@given(
    st.integers() | st.integers(-1_000, 1_000).map(lambda n: n / 100) | st.booleans() | st.text(),
    st.integers(1, 1_000) | st.integers(1, 1_000).map(lambda n: n / 100),
)
def test_a_number_is_a_multiple_as_jsonschema_rs_says(value: Any, divisor: float) -> None:
    schema = {"multipleOf": divisor}
    assert fits(schema, value) == jsonschema_rs.is_valid(schema, value)


@pytest.mark.parametrize(
    ("divisor", "value", "multiple"),
    [(0.1, 0.3, True), (0.01, 19.99, True), (1e-300, 1e300, True), (1e300, 1e-300, False), (0.5, 1e308, True)],
)
def test_numbers_are_divided_as_they_are_written(divisor: float, value: float, multiple: bool) -> None:
    assert fits({"multipleOf": divisor}, value) is multiple


def test_the_failure_names_the_place() -> None:
    with pytest.raises(Mismatch, match=r"\$\.a: the array has non-unique elements"):
        compile({"properties": {"a": UNIQUE}}).validate({"a": [1, 1.0]})
    with pytest.raises(Mismatch, match=r"\$\[0\]: 3 is not a multiple of 2"):
        compile({"items": {"multipleOf": 2}}).validate([3])


@pytest.mark.parametrize("keyword", [{"format": "email"}, {"contentEncoding": "base64"}, {"contentMediaType": "a/b"}])
def test_formats_and_contents_are_annotations_in_every_draft(keyword: dict[str, str]) -> None:
    compile({"$schema": DRAFT_7, **keyword}).validate("?")


def fits(schema: Any, value: Any) -> bool:
    try:
        compile(schema).validate(value)
    except Mismatch:
        return False
    return True

"""Values that are written to make their conversion slow."""

from __future__ import annotations

import dataclasses
import uuid
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pydantic_core
import pytest

from accord.errors import InvalidArguments, Mismatch
from accord.schema import arguments, pydantic_types
from accord.schema.arguments import integers_of_floats
from accord.schema.type_converter import convert_to
from accord.server.declare.signature import signature

from tests.measure import assert_linear

_MODULUS = (1 << 61) - 1
"""`hash` of an integer is its remainder by this."""


@dataclasses.dataclass
class Add:
    left: Add | Multiply | None
    operator: Literal["+"]


@dataclasses.dataclass
class Multiply:
    left: Add | Multiply | None
    operator: Literal["*"]


def _nested(depth: int, operator: str) -> Any:
    value = None
    for _ in range(depth):
        value = {"left": value, "operator": operator}
    return value


def test_a_value_of_nested_unions_is_converted_in_time_that_grows_with_its_size() -> None:
    assert_linear(lambda depth: [convert_to(_nested(depth, "*"), Add | Multiply) for _ in range(10)], 2, 8)


def test_a_value_that_fits_no_arm_of_nested_unions_is_refused_in_time_that_grows_with_its_size() -> None:
    def refuse(depth: int) -> None:
        for _ in range(10):
            with pytest.raises(Mismatch) as refusal:
                convert_to(_nested(depth, "?"), Add | Multiply)
            assert len(str(refusal.value)) < 1_000

    assert_linear(refuse, 2, 8)


def test_nested_unions_are_converted_to_the_first_arm_that_fits() -> None:
    mixed = {"left": {"left": None, "operator": "+"}, "operator": "*"}
    assert convert_to(mixed, Add | Multiply) == Multiply(Add(None, "+"), "*")


def test_equal_values_at_two_places_become_two_values() -> None:
    first, second = convert_to([_nested(1, "+"), _nested(1, "+")], list[Add | Multiply])
    assert first == second
    assert first is not second


def _colliding(count: int) -> list[int]:
    return [_MODULUS * number for number in range(1, count + 1)]


class Record(msgspec.Struct):
    numbers: set[int]


class Model(pydantic.BaseModel):
    numbers: set[int] = set()
    ids: set[uuid.UUID] = set()
    table: dict[int, str] = {}


@cache
def _decimals(count: int) -> list[str]:
    """Return decimals of up to 18 digits, of which each has the hash 1."""
    found, factor = list[str](), 1
    for exponent in range(1, 100 * count):
        factor = factor * pow(10, -1, _MODULUS) % _MODULUS
        if factor < 10**18 and len(found) < count:
            found.append(f"{factor}e{exponent}")
    return found


@cache
def _points(count: int) -> list[tuple[int, int]]:
    """Return pairs of numbers of which each has the same hash."""
    prime_1, prime_2, prime_5, mask = 11400714785074694791, 14029467366897019727, 2870177450012600261, (1 << 64) - 1
    wanted, found = hash((1, 2)) - (2 ^ prime_5 ^ 3527539) & mask, list[tuple[int, int]]()
    rotated = wanted * pow(prime_1, -1, 1 << 64) & mask
    before = (rotated >> 31 | rotated << 33) & mask
    for first in range(10_000):
        lane = prime_5 + first * prime_2 & mask
        lane = (lane << 31 | lane >> 33) * prime_1 & mask
        second = (before - lane) * pow(prime_2, -1, 1 << 64) & mask
        if second < 10**18 and len(found) < count:
            found.append((first, second))
    assert len({hash(each) for each in found}) == 1
    return found


class Point(pydantic.BaseModel, frozen=True):
    x: int
    y: int


class Collections(pydantic.BaseModel, strict=True):
    amounts: Annotated[set[Decimal], pydantic.Strict(False)] = set()
    rows: frozenset[Annotated[tuple[int, int], pydantic.Strict(False)]] = frozenset()
    points: set[Point] = set()
    by_amount: dict[Decimal, int] = {}
    more: list[Collections] = []


def _check_number(value: Any) -> Any:
    if value == "broken":
        raise RuntimeError("unforeseen")
    return value


class Unforeseen(pydantic.BaseModel):
    numbers: set[Annotated[int, pydantic.BeforeValidator(_check_number)]] = set()


class Typed(TypedDict):
    numbers: frozenset[int]


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (set[int], _colliding(100)),
        (frozenset[int], _colliding(100)),
        (set[Decimal], [str(each) for each in _colliding(100)]),
        (set[uuid.UUID], [str(uuid.UUID(int=each)) for each in _colliding(100)]),
        (set[tuple[int, str]], [[each, "a"] for each in _colliding(100)]),
        (dict[int, str], {str(each): "a" for each in _colliding(100)}),
        (dict[uuid.UUID, str], {str(uuid.UUID(int=each)): "a" for each in _colliding(100)}),
        (list[set[int]], [_colliding(100)]),
        (Record, {"numbers": _colliding(100)}),
        (Typed, {"numbers": _colliding(100)}),
        (Model, {"numbers": _colliding(100)}),
        (Model, {"ids": [str(uuid.UUID(int=each)) for each in _colliding(100)]}),
        (Model, {"ids": [uuid.UUID(int=each).hex for each in _colliding(100)]}),
        (Model, {"table": {str(each): "a" for each in _colliding(100)}}),
        (Model, {"numbers": [f"{each:_}" for each in _colliding(100)]}),
        (Model, {"table": {f"+{each:_}": "a" for each in _colliding(100)}}),
        (Collections, {"amounts": _decimals(100)}),
        (Collections, {"rows": _points(100)}),
        (Collections, {"points": [{"x": x, "y": y} for x, y in _points(100)]}),
        (Collections, {"by_amount": dict.fromkeys(_decimals(100), 1)}),
        (Collections, {"more": [{"more": [{"amounts": _decimals(100)}]}]}),
        (Unforeseen, {"numbers": ["broken", *(f"{each:_}" for each in _colliding(100))]}),
    ],
)
def test_values_of_one_hash_are_refused_before_a_set_or_a_dict_of_them_is_made(hint: Any, value: Any) -> None:
    with pytest.raises(Mismatch, match=r"(?i)more than 64 different values share one hash"):
        convert_to(value, hint)


@pytest.mark.parametrize(
    ("hint", "value", "meaning"),
    [
        (set[int], _colliding(60), set(_colliding(60))),
        (set[int], [1] * 1_000, {1}),
        (set[int], [*range(1 << 64, (1 << 64) + 1_000)], {*range(1 << 64, (1 << 64) + 1_000)}),
        (set[int], [], set()),
        (dict[int, str], {str(each): "a" for each in range(1_000)}, dict.fromkeys(range(1_000), "a")),
        (dict[Decimal, int], {"1": 1, "1.0": 2, "3": 3}, {Decimal(1): 2, Decimal(3): 3}),
        (dict[int, set[int]], {"1": [2, 3]}, {1: {2, 3}}),
        (Record, {"numbers": [1, 2]}, Record({1, 2})),
        (Typed, {"numbers": [1, 2]}, {"numbers": frozenset({1, 2})}),
        (Model, {"numbers": _colliding(60)}, Model(numbers=set(_colliding(60)))),
        (Model, {"numbers": [1 << 70] * 1_000}, Model(numbers={1 << 70})),
        (
            Model,
            {"ids": [str(uuid.UUID(int=each)) for each in range(500)]},
            Model(ids={uuid.UUID(int=each) for each in range(500)}),
        ),
    ],
    ids=str,
)
def test_other_sets_and_dicts_are_converted(hint: Any, value: Any, meaning: Any) -> None:
    found = convert_to(value, hint)
    assert found == meaning
    assert type(found) is type(meaning)


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (set[int], [1, "x"], r'\$\[1\]: expected integer, got string "x"'),
        (set[int], {"a": 1}, r"\$: expected array, got object"),
        (dict[int, str], {"x": "a"}, r"\$: a key: expected integer, got string"),
        (dict[int, str], {"1": 2}, "expected string, got integer"),
        (dict[int, str], [1], r"\$: expected object, got array"),
    ],
)
def test_what_is_wrong_in_a_set_or_a_dict_is_named(hint: Any, value: Any, text: str) -> None:
    with pytest.raises(Mismatch, match=text):
        convert_to(value, hint)


def test_a_value_without_such_numbers_is_not_converted_again() -> None:
    value = {"a": [{"b": [1, "x", 1.5]}], "c": {}}
    assert integers_of_floats(value) is value
    assert integers_of_floats({**value, "d": [[2.0]]}) == {**value, "d": [[2]]}


def test_items_without_such_numbers_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may send many of them."""
    seen = []
    monkeypatch.setattr(arguments, "integers_of_floats", lambda value: seen.append(value) or integers_of_floats(value))
    assert integers_of_floats([[0, "x"], {"a": True, "b": None}, [1, 2.0]]) == [
        [0, "x"],
        {"a": True, "b": None},
        [1, 2],
    ]
    assert seen == [[0, "x"], {"a": True, "b": None}, [1, 2.0], 1, 2.0]


def test_only_the_first_failures_of_pydantic_are_in_its_error() -> None:
    with pytest.raises(ValueError, match="greater than 0") as failed:
        pydantic_types.load(list[pydantic.PositiveInt], [0] * 1_000)
    assert str(failed.value).count("greater than 0") == 100


def test_very_many_failures_of_pydantic_are_not_all_read() -> None:
    class Union(pydantic.BaseModel):
        values: Annotated[list[pydantic.PositiveInt | bool], pydantic.Field(min_length=10)]

    value = {"values": [None] * 20_000}
    with pytest.raises(ValueError, match=r"and more, 40,000 in all$") as failed:
        pydantic_types.load(Union, value)
    assert "values.2.bool" in str(failed.value)
    assert "at least 10 items" not in str(failed.value)
    with pytest.raises(ValueError, match=r"^and more, 20,000 in all$"):
        pydantic_types.load(dict[str, pydantic.PositiveInt], {str(number): 0 for number in range(20_000)})


class Validations:
    """A type of pydantic that counts its validations."""

    count = 0

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        def validate(value: Any) -> Any:
            Validations.count += 1
            raise ValueError("it never fits")

        return pydantic_core.core_schema.no_info_plain_validator_function(validate)


def test_the_reason_why_an_argument_fails_needs_no_further_conversion() -> None:
    class Model(pydantic.BaseModel):
        value: Validations

    def tool(model: Any) -> None: ...

    tool.__annotations__["model"] = Model
    Validations.count = 0
    with pytest.raises(InvalidArguments, match="it never fits"):
        signature(tool).bind(b'{"model":{"value":"x"}}')
    assert Validations.count == 2, "all arguments at once, and each by itself"

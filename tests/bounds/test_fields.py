"""Every bounded field of every message, at its bound and above it: read where it is as long as it may be, and refused
with its path where it is longer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from accord.errors import InvalidParams
from accord.messages import codec
from accord.messages.methods import METHODS

from tests.bounds.server_rows import proposing
from tests.bounds.table import Outcome
from tests.bounds.test_table import HELD_SECONDS, longest_step
from tests.bounds.wires import EVERYWHERE, wire
from tests.measure import processor_seconds

Path = tuple[str, ...]
TYPES = {
    type_.__name__: type_
    for row in METHODS
    for type_ in (row.params, row.result)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct)
}


def members(type_: Any) -> tuple[Any, ...]:
    return tuple(getattr(type_, "types", (type_,)))


def value_of(type_: Any) -> Any:
    """Return the smallest value of a type."""
    first = members(type_)[0]
    if isinstance(first, inspect.StructType):
        return struct_of(first)
    if isinstance(first, inspect.LiteralType):
        return first.values[0]
    if isinstance(first, (inspect.ListType, inspect.CollectionType)):
        return []
    if isinstance(first, inspect.DictType):
        return {}
    if isinstance(first, inspect.StrType):
        return ""
    if isinstance(first, inspect.BoolType):
        return False
    if isinstance(first, (inspect.IntType, inspect.FloatType)):
        return first.ge or 0
    if isinstance(first, inspect.EnumType):
        return next(iter(first.cls)).value
    return None if isinstance(first, inspect.NoneType) else {}


def struct_of(type_: Any) -> dict[str, Any]:
    info = type_ if isinstance(type_, inspect.StructType) else inspect.type_info(type_)
    made = {field.encode_name: value_of(field.type) for field in info.fields if field.required}
    if info.tag is not None:
        made[info.tag_field] = info.tag
    return made


def bounded(type_: Any, path: Path = (), seen: frozenset[Any] = frozenset()) -> Iterator[tuple[Path, Any, int]]:
    """Yield the place of each bounded text, list and object in a struct, what is there at its bound, and the bound."""
    info = type_ if isinstance(type_, inspect.StructType) else inspect.type_info(type_)
    if info.cls in seen:
        return
    for field in info.fields:
        yield from _bounded_in(field.type, (*path, field.encode_name), seen | {info.cls})


def _bounded_in(type_: Any, path: Path, seen: frozenset[Any]) -> Iterator[tuple[Path, Any, int]]:
    for each in members(type_):
        most = getattr(each, "max_length", None)
        if isinstance(each, inspect.StructType):
            yield from bounded(each, path, seen)
        elif isinstance(each, (inspect.ListType, inspect.CollectionType)):
            if most is not None:
                yield path, lambda count, each=each: [value_of(each.item_type)] * count, most
            yield from _bounded_in(each.item_type, (*path, "[]"), seen)
        elif isinstance(each, inspect.DictType):
            if most is not None:
                yield path, lambda count, each=each: {f"k{n}": value_of(each.value_type) for n in range(count)}, most
            yield from _bounded_in(each.key_type, (*path, "{key}"), seen)
            yield from _bounded_in(each.value_type, (*path, "{}"), seen)
        elif isinstance(each, inspect.StrType) and most is not None:
            yield path, lambda count: "é" * count, most


def message(type_: Any, path: Path, value: Any) -> bytes:
    """Return the smallest message with a value at a place."""
    return msgspec.json.encode(_placed(inspect.type_info(type_), path, value))


def _placed(type_: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    for each in members(type_):
        if step == "[]" and isinstance(each, (inspect.ListType, inspect.CollectionType)):
            return [_placed(each.item_type, rest, value)]
        if step in ("{}", "{key}") and isinstance(each, inspect.DictType):
            return (
                {value: value_of(each.value_type)} if step == "{key}" else {"k": _placed(each.value_type, rest, value)}
            )
        if isinstance(each, inspect.StructType):
            field = next((field for field in each.fields if field.encode_name == step), None)
            if field is not None:
                return {**struct_of(each), step: _placed(field.type, rest, value)}
    raise AssertionError(path)


CASES = [
    pytest.param(type_, path, make, most, id=f"{name}-{'.'.join(path)}")
    for name, type_ in TYPES.items()
    for path, make, most in bounded(type_)
]


@pytest.mark.parametrize(("type_", "path", "make", "most"), CASES)
def test_a_field_is_read_up_to_its_bound_and_refused_above_it(type_: Any, path: Path, make: Any, most: int) -> None:
    begun = time.thread_time()
    codec.decode_result(type_, message(type_, path, make(most)))
    with pytest.raises(InvalidParams, match=f"length <= {most}"):
        codec.decode_result(type_, message(type_, path, make(most + 1)))
    unit = processor_seconds(lambda: sorted(map(str, range(80_000))))
    assert time.thread_time() - begun < max(HELD_SECONDS, 5 * unit) + unit


REQUESTS = {
    row.name: row.params
    for row in METHODS
    if row.sender in ("client", "both") and not row.notification and row.params is not None
    if row.name in ("tools/call", "prompts/get", "resources/read", "resources/subscribe", "tools/list")
    or row.name == "completion/complete"
}


@pytest.mark.parametrize("over", EVERYWHERE)
@pytest.mark.parametrize("method", REQUESTS)
async def test_a_server_refuses_a_field_above_its_bound_with_a_short_answer(method: str, over: str) -> None:
    type_ = REQUESTS[method]
    async with wire(over, proposing()) as client:
        for path, make, most in bounded(type_):
            if path[0] in ("_meta", "task", "inputResponses", "requestState"):
                continue  # parts that the revision does not have, or reads on its own
            params = msgspec.json.decode(message(type_, path, make(most + 1)))
            with longest_step() as step:
                found: Outcome = await client.ask(method, params)
            assert f"length <= {most}" in found.refused, (path, found.refused[:200])
            assert found.received < 1_024
            assert step.seconds < 4 * HELD_SECONDS, path


def test_most_types_have_bounded_fields() -> None:
    assert len(CASES) > 70

"""Calls one after the other, of which later ones take values out of the results of earlier ones; and the same as JSON:

    [{"kind": "tool", "name": "order"},
     {"kind": "tool", "name": "ship", "arguments": {"id": {"$from": [0, "structuredContent", "order", "id"]}}}]

`$from` says which step, counted from 0, and the way into its result. `null` on that way is the JSON that stands in a
text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from accord.check.fuzz.invalid_values import Defect
from accord.errors import TargetError
from accord.messages.base import JSONObject

StepKind: TypeAlias = Literal["tool", "prompt", "template", "completion", "read", "list"]
ResultPath: TypeAlias = tuple[str | int | None, ...]
"""Into a result: names, numbers, and None for the JSON in a text."""

_FROM = "$from"


class CallStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call. What is `wrong` with its arguments is wrong on purpose; `what` says it in words."""

    kind: StepKind
    name: str
    arguments: Any = {}
    wrong: Defect | None = None
    what: str = ""

    def __str__(self) -> str:
        name = repr(self.name) if self.kind == "tool" else f"{self.kind} {self.name!r}"
        return f"{name} with {msgspec.json.encode(self.arguments).decode()}"


Steps: TypeAlias = tuple[CallStep, ...]


class MissingValue(LookupError):
    """A result does not have what a later call wants of it."""


def value_reference(step: int, way: ResultPath) -> JSONObject:
    """What stands for a value out of the result of an earlier step."""
    return {_FROM: [step, *way]}


def resolve_arguments(arguments: Any, results: Sequence[Any]) -> Any:
    """Arguments with the values in place. Raises `MissingValue`."""
    return _map_references(arguments, lambda step, way: _value_at(results, step, way))


def shift_steps(steps: Steps, count: int) -> Steps:
    """The same steps, for where `count` others come before them."""
    return tuple(
        _replace_arguments(step, _map_references(step.arguments, lambda at, way: value_reference(at + count, way)))
        for step in steps
    )


def remove_steps(steps: Steps, gone: range, results: Sequence[Any]) -> Steps:
    """Some steps less: what others take of them is what `results` had. Raises `MissingValue`."""

    def moved(at: int, way: ResultPath) -> Any:
        return _value_at(results, at, way) if at in gone else value_reference(at - len(gone) * (at >= gone.stop), way)

    return tuple(
        _replace_arguments(step, _map_references(step.arguments, moved))
        for number, step in enumerate(steps)
        if number not in gone
    )


def encode_steps(steps: Steps) -> str:
    """In one line, as `decode_steps` reads it."""
    return msgspec.json.encode(steps).decode()


def decode_steps(text: str) -> Steps:
    """The steps in a JSON array. Raises `TargetError`."""
    try:
        steps = msgspec.json.decode(text, type=tuple[CallStep, ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(
            f'these are no calls ({exc}); write [{{"kind": "tool", "name": "...", "arguments": {{}}}}]'
        ) from exc
    if not steps:
        raise TargetError("there is no call in the list")
    return steps


def _replace_arguments(step: CallStep, arguments: Any) -> CallStep:
    return msgspec.structs.replace(step, arguments=arguments)


def _map_references(value: Any, change: Callable[[int, ResultPath], Any]) -> Any:
    if isinstance(value, list):
        return [_map_references(each, change) for each in value]
    if not isinstance(value, dict):
        return value
    match value.get(_FROM) if len(value) == 1 else None:
        case [int(step), *way]:
            return change(step, tuple(way))
    return {name: _map_references(each, change) for name, each in value.items()}


def _value_at(results: Sequence[Any], step: int, way: ResultPath) -> Any:
    """What stands there. Raises `MissingValue`."""
    try:
        value = results[step]
        for key in way:
            value = msgspec.json.decode(value) if key is None else value[key]
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise MissingValue(f"the result of step {step} has nothing at {way}") from exc
    return value

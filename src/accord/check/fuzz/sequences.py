"""Sequences of calls, in which later calls use values from earlier results, and their form as JSON:

    [{"kind": "tool", "name": "order"},
     {"kind": "tool", "name": "ship", "arguments": {"id": {"$from": [0, "structuredContent", "order", "id"]}}}]

`$from` is the number of a step, counted from 0, and the path into its result. `null` in the path decodes a text as
JSON.
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
"""A path into a result: names, indexes, and None to decode a text as JSON."""

_FROM = "$from"


class CallStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call. `wrong` is the intended defect of its arguments; `what` describes it."""

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
    """A result lacks a value that a later call uses."""


def value_reference(step: int, path: ResultPath) -> JSONObject:
    """Return the reference to a value in the result of an earlier step."""
    return {_FROM: [step, *path]}


def resolve_arguments(arguments: Any, results: Sequence[Any]) -> Any:
    """Return arguments with references replaced by values. Raises `MissingValue`."""
    return _map_references(arguments, lambda step, path: _value_at(results, step, path))


def shift_steps(steps: Steps, count: int) -> Steps:
    """Return the steps with references adjusted for `count` steps before them."""
    return tuple(
        _replace_arguments(step, _map_references(step.arguments, lambda at, path: value_reference(at + count, path)))
        for step in steps
    )


def remove_steps(steps: Steps, removed: range, results: Sequence[Any]) -> Steps:
    """Remove steps, and replace references to them by the values in `results`. Raises `MissingValue`."""

    def adjusted(at: int, path: ResultPath) -> Any:
        if at in removed:
            return _value_at(results, at, path)
        return value_reference(at - len(removed) * (at >= removed.stop), path)

    return tuple(
        _replace_arguments(step, _map_references(step.arguments, adjusted))
        for number, step in enumerate(steps)
        if number not in removed
    )


def encode_steps(steps: Steps) -> str:
    """Return the steps as JSON in one line, which `decode_steps` reads."""
    return msgspec.json.encode(steps).decode()


def decode_steps(text: str) -> Steps:
    """Return the steps in a JSON array. Raises `TargetError` for anything else."""
    try:
        steps = msgspec.json.decode(text, type=tuple[CallStep, ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise TargetError(
            f'invalid sequence of calls ({exc}); write [{{"kind": "tool", "name": "...", "arguments": {{}}}}]'
        ) from exc
    if not steps:
        raise TargetError("the sequence has no calls")
    return steps


def _replace_arguments(step: CallStep, arguments: Any) -> CallStep:
    return msgspec.structs.replace(step, arguments=arguments)


def _map_references(value: Any, change: Callable[[int, ResultPath], Any]) -> Any:
    if isinstance(value, list):
        return [_map_references(each, change) for each in value]
    if not isinstance(value, dict):
        return value
    match value.get(_FROM) if len(value) == 1 else None:
        case [int(step), *path]:
            return change(step, tuple(path))
    return {name: _map_references(each, change) for name, each in value.items()}


def _value_at(results: Sequence[Any], step: int, path: ResultPath) -> Any:
    """Return the value at a path in the result of a step. Raises `MissingValue`."""
    try:
        value = results[step]
        for key in path:
            value = msgspec.json.decode(value) if key is None else value[key]
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise MissingValue(f"the result of step {step} has no value at {path}") from exc
    return value

"""The calls to one target, in order: minimal arguments, all members, boundary values, and arguments with one defect.

Calls with values from earlier results come between them, and calls with random arguments at the end. No call is made
twice. Arguments that are durations are always present and small, so that calls end soon.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from accord.check.fuzz.boundaries import boundaries
from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.invalid_values import invalid_variants
from accord.check.fuzz.schema_document import GenerationError, SchemaDocument
from accord.check.fuzz.sequences import CallStep, Steps, shift_steps, value_reference
from accord.check.fuzz.smallest import smallest
from accord.check.fuzz.value_pool import PooledValue, ValuePool
from accord.check.probes.content import get_object
from accord.messages.base import JSONObject

_DURATION_WORDS = re.compile(
    r"(?:^|_|\b)(?:duration|delay|sleep|wait|timeout|interval|pause|ttl|seconds|secs|minutes|millis(?:econds)?|ms)(?:$|_|\b)"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def shorten_durations(schema: JSONObject) -> JSONObject:
    """Return the schema of arguments with each duration required and at most 1, or its minimum.

    If no value matches that, the schema is returned unchanged.
    """
    properties = get_object(schema, "properties")
    short = {name: _shortest_duration(each) for name, each in properties.items() if _is_duration(name, each)}
    required = schema.get("required")
    names = dict.fromkeys((*(required if isinstance(required, list) else ()), *short))
    shortened = {**schema, "properties": {**properties, **short}, "required": list(names)} if short else schema
    try:
        smallest(shortened)
    except GenerationError:
        return schema
    return shortened


def _is_duration(name: str, schema: Any) -> bool:
    is_number = isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    return is_number and _DURATION_WORDS.search(_CAMEL_CASE.sub("_", name).lower()) is not None


def _shortest_duration(schema: JSONObject) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in ("default", "examples")}
    most = max(1 if schema["type"] == "integer" else 0.1, schema.get("minimum", 0))
    return {**rest, "maximum": min(most, schema.get("maximum", most))}


_PLAIN = frozenset(("$schema", "type", "properties", "required", "additionalProperties", "title", "description"))
_POOL_TURN = 4
"""One in this many turns uses values from earlier results, while there are any."""
_LONGEST = 10
"""The maximum number of calls in one sequence."""
_UNCHECKED = ("template",)
"""Targets whose arguments cannot be of another type, because they are part of a URI."""


class TrialPlan:
    """The plan for one target. Raises `GenerationError` if no arguments can be generated for its schema."""

    def __init__(self, target: FuzzTarget, pool: ValuePool) -> None:
        self.target: FuzzTarget = target
        self._pool = pool
        self._short_schema = shorten_durations(target.schema)
        self._document = SchemaDocument(target.schema)
        self._short_document = SchemaDocument(self._short_schema)
        self._fixed = iter(()) if target.needs_pooled_values else self._fixed_trials()
        self._random_arguments: Iterator[Any] = iter(())
        self._tried: set[bytes] = set()
        self._turns = 0
        self.minimal_arguments: Any = smallest(self._short_schema)

    @property
    def name(self) -> str:
        """Return the name of the target."""
        return self.target.name

    @property
    def has_choice(self) -> bool:
        """Return whether its arguments can vary."""
        schema = self.target.schema
        has_members = bool(get_object(schema, "properties")) or schema.keys() - _PLAIN != set()
        return has_members and not self.target.needs_pooled_values

    async def draw(self, count: int, seed: int) -> None:
        """Generate `count` random arguments; none without hypothesis, which the extra `check` installs."""
        self._random_arguments = iter(await asyncio.to_thread(_random_arguments, self._short_schema, count, seed))

    def next(self) -> Steps | None:
        """Return the next sequence of calls, or None; the calls before its last one provide values for it."""
        self._turns += 1
        sources = [self._fixed, self._pooled_trials(), self._random_trials()]
        if self._turns % _POOL_TURN == 0:
            sources.insert(0, sources.pop(1))
        return next((steps for source in sources for steps in source if self._is_new(steps)), None)

    def allows(self, step: CallStep, arguments: Any) -> bool:
        """Return whether arguments may replace those of the step: valid with short durations, or invalid like them."""
        if not isinstance(arguments, dict):
            return False
        return self._short_document.matches(arguments) if step.wrong is None else not self._document.matches(arguments)

    def step(self, arguments: Any, **more: Any) -> CallStep:
        """Return a call of the target."""
        return CallStep(kind=self.target.kind, name=self.target.name, arguments=arguments, **more)

    def _fixed_trials(self) -> Iterator[Steps]:
        yield (self.step(self.minimal_arguments),)
        valid = (self.step(each.value) for each in boundaries(self._short_schema))
        invalid = () if self.target.kind in _UNCHECKED else self._invalid_trials()
        for pair in zip_longest(valid, invalid):
            yield from ((step,) for step in pair if step is not None and isinstance(step.arguments, dict))

    def _invalid_trials(self) -> Iterator[CallStep]:
        for each in invalid_variants(self.target.schema, self.minimal_arguments):
            yield self.step(each.value, wrong=each.wrong, what=f"{each.what}, at {each.path}")

    def _random_trials(self) -> Iterator[Steps]:
        return ((self.step(arguments),) for arguments in self._random_arguments)

    def _pooled_trials(self) -> Iterator[Steps]:
        """Yield calls with minimal arguments, one of them from an earlier result, then as many as possible."""
        first: dict[str, PooledValue] = {}
        if self.target.kind == "list":
            yield (self.step({}),)
        for name in get_object(self.target.schema, "properties"):
            for source in self._pooled_values(name):
                first.setdefault(name, source)
                yield self._steps_with_values({name: source})
        combined = self._steps_with_values(first)
        values = {name: source.value for name, source in first.items()}
        if (
            len(first) > 1
            and len(combined) <= _LONGEST
            and self._short_document.matches({**self.minimal_arguments, **values})
        ):
            yield combined

    def _pooled_values(self, name: str) -> list[PooledValue]:
        """Return the pooled values that are valid here, in order; a cursor only for the list that returned it."""
        only_own = self.target.kind == "list"
        return [
            source
            for source in self._pool.get_values(name)
            if self._short_document.matches({**self.minimal_arguments, name: source.value})
            and (not only_own or (source.steps[-1].kind, source.steps[-1].name) == self.target.key)
        ]

    def _steps_with_values(self, sources: dict[str, PooledValue]) -> Steps:
        before: Steps = ()
        references: JSONObject = {}
        for name, source in sources.items():
            if before[-len(source.steps) :] != source.steps:
                before += shift_steps(source.steps, len(before))
            references[name] = value_reference(len(before) - 1, source.path)
        return (*before, self.step({**self.minimal_arguments, **references}))

    def _is_new(self, steps: Steps) -> bool:
        text = msgspec.json.encode(steps)
        if text in self._tried:
            return False
        self._tried.add(text)
        return True


def _random_arguments(schema: JSONObject, count: int, seed: int) -> list[Any]:
    if "hypothesis" not in sys.modules:  # keep its character cache out of the current folder
        from platformdirs import user_cache_path

        # nor in a folder that other users may write to
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(user_cache_path("accord") / "hypothesis"))
    try:
        from accord.check.fuzz.values import draw_values
    except ImportError:
        return []
    return draw_values(schema, count, seed)

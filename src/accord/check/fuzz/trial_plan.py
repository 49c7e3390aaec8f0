"""What is tried with one subject, in order: the least, everything, the edges, one thing wrong; now and then what the
server gave before; then chance. No calls are tried twice.

Calls that are over soon: what says how long something takes is always there, and small. Nobody waits for a day.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
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
    """The same schema of arguments, with the least time for each that is a time, at most one; as it was, where nothing
    fits that.
    """
    properties = get_object(schema, "properties")
    short = {name: _shortest_duration(each) for name, each in properties.items() if _is_duration(name, each)}
    required = schema.get("required")
    wanted = dict.fromkeys((*(required if isinstance(required, list) else ()), *short))
    found = {**schema, "properties": {**properties, **short}, "required": list(wanted)} if short else schema
    try:
        smallest(found)
    except GenerationError:
        return schema
    return found


def _is_duration(name: str, schema: Any) -> bool:
    is_number = isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    return is_number and _DURATION_WORDS.search(_CAMEL_CASE.sub("_", name).lower()) is not None


def _shortest_duration(schema: JSONObject) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in ("default", "examples")}
    most = max(1 if schema["type"] == "integer" else 0.1, schema.get("minimum", 0))
    return {**rest, "maximum": min(most, schema.get("maximum", most))}


_PLAIN = frozenset(("$schema", "type", "properties", "required", "additionalProperties", "title", "description"))
_POOL_TURN = 4
"""Each such turn is for a sequence, as long as there are some."""
_LONGEST = 10
"""Calls in one sequence."""
_UNCHECKED = ("template",)
"""What has no arguments of another type: all of them stand in a URI."""


class TrialPlan:
    """What is tried with one subject. Raises `GenerationError` where its schema allows nothing that can be made."""

    def __init__(self, subject: FuzzTarget, pool: ValuePool) -> None:
        self.target: FuzzTarget = subject
        self._pool = pool
        self._short_schema = shorten_durations(subject.schema)
        self._document = SchemaDocument(subject.schema)
        self._short_document = SchemaDocument(self._short_schema)
        self._fixed = iter(()) if subject.needs_pooled_values else self._fixed_trials()
        self._random_arguments: Iterator[Any] = iter(())
        self._tried: set[bytes] = set()
        self._turns = 0
        self.minimal_arguments: Any = smallest(self._short_schema)

    @property
    def name(self) -> str:
        """That of its subject."""
        return self.target.name

    @property
    def has_choice(self) -> bool:
        """Whether its arguments can differ at all."""
        schema = self.target.schema
        has_members = bool(get_object(schema, "properties")) or schema.keys() - _PLAIN != set()
        return has_members and not self.target.needs_pooled_values

    async def draw(self, count: int, seed: int) -> None:
        """Draw so many arguments by chance; none without hypothesis, which the extra `check` brings."""
        self._random_arguments = iter(await asyncio.to_thread(_random_arguments, self._short_schema, count, seed))

    def next(self) -> Steps | None:
        """The next calls, if there are any: those before the last one lead there."""
        self._turns += 1
        sources = [self._fixed, self._pooled_trials(), self._random_trials()]
        if self._turns % _POOL_TURN == 0:
            sources.insert(0, sources.pop(1))
        return next((steps for source in sources for steps in source if self._is_new(steps)), None)

    def allows(self, step: CallStep, arguments: Any) -> bool:
        """Whether other arguments are of the same sort as those of the step: right and soon done, or wrong."""
        if not isinstance(arguments, dict):
            return False
        return self._short_document.matches(arguments) if step.wrong is None else not self._document.matches(arguments)

    def step(self, arguments: Any, **more: Any) -> CallStep:
        """One call."""
        return CallStep(kind=self.target.kind, name=self.target.name, arguments=arguments, **more)

    def _fixed_trials(self) -> Iterator[Steps]:
        yield (self.step(self.minimal_arguments),)
        edges = (self.step(each.value) for each in boundaries(self._short_schema))
        wrongs = () if self.target.kind in _UNCHECKED else self._invalid_trials()
        for pair in zip_longest(edges, wrongs):
            yield from ((step,) for step in pair if step is not None and isinstance(step.arguments, dict))

    def _invalid_trials(self) -> Iterator[CallStep]:
        for each in invalid_variants(self.target.schema, self.minimal_arguments):
            yield self.step(each.value, wrong=each.wrong, what=f"{each.what}, at {each.path}")

    def _random_trials(self) -> Iterator[Steps]:
        return ((self.step(arguments),) for arguments in self._random_arguments)

    def _pooled_trials(self) -> Iterator[Steps]:
        """The least arguments, with one of them out of an earlier result; and with all of them that can be had so."""
        first: dict[str, PooledValue] = {}
        if self.target.kind == "list":
            yield (self.step({}),)
        for name in get_object(self.target.schema, "properties"):
            for source in self._pooled_values(name):
                first.setdefault(name, source)
                yield self._steps_with_values({name: source})
        all_of_them = self._steps_with_values(first)
        values = {name: source.value for name, source in first.items()}
        if (
            len(first) > 1
            and len(all_of_them) <= _LONGEST
            and self._short_document.matches({**self.minimal_arguments, **values})
        ):
            yield all_of_them

    def _pooled_values(self, name: str) -> list[PooledValue]:
        """Those that fit, as they were seen; a cursor is for the list that it came from."""
        own = self.target.kind == "list"
        return [
            source
            for source in self._pool.get_values(name)
            if self._short_document.matches({**self.minimal_arguments, name: source.value})
            and (not own or (source.steps[-1].kind, source.steps[-1].name) == self.target.key)
        ]

    def _steps_with_values(self, sources: dict[str, PooledValue]) -> Steps:
        before: Steps = ()
        fed: JSONObject = {}
        for name, source in sources.items():
            if before[-len(source.steps) :] != source.steps:
                before += shift_steps(source.steps, len(before))
            fed[name] = value_reference(len(before) - 1, source.path)
        return (*before, self.step({**self.minimal_arguments, **fed}))

    def _is_new(self, steps: Steps) -> bool:
        text = msgspec.json.encode(steps)
        if text in self._tried:
            return False
        self._tried.add(text)
        return True


def _random_arguments(schema: JSONObject, count: int, seed: int) -> list[Any]:
    if "hypothesis" not in sys.modules:  # its notes about characters are not for the folder we happen to be in
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir(), "accord-hypothesis")))
    try:
        from accord.check.fuzz.values import draw_values
    except ImportError:
        return []
    return draw_values(schema, count, seed)

"""What is tried with one subject, in order: the least, everything, the edges, one thing wrong; now and then what the
server gave before; then chance. No calls are tried twice.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from accord.check.blocks import inside
from accord.check.generated.boundaries import boundaries
from accord.check.generated.breaches import breaches
from accord.check.generated.brevity import brief
from accord.check.generated.document import Document
from accord.check.generated.pool import Pool, Source
from accord.check.generated.sequences import Step, Steps, after, taken
from accord.check.generated.smallest import smallest
from accord.check.generated.subjects import Subject
from accord.messages.base import JSONObject

_PLAIN = frozenset(("$schema", "type", "properties", "required", "additionalProperties", "title", "description"))
_FED = 4
"""Each such turn is for a sequence, as long as there are some."""
_LONGEST = 10
"""Calls in one sequence."""
_UNCHECKED = ("template",)
"""What has no arguments of another type: all of them stand in a URI."""


class Plan:
    """What is tried with one subject. Raises `Unserved` where its schema allows nothing that can be made."""

    def __init__(self, subject: Subject, pool: Pool) -> None:
        self.subject: Subject = subject
        self._pool = pool
        self._brief = brief(subject.schema)
        self._whole = Document(subject.schema)
        self._short = Document(self._brief)
        self._fixed = iter(()) if subject.is_fed_only else self._known_trials()
        self._drawn: Iterator[Any] = iter(())
        self._tried: set[bytes] = set()
        self._turns = 0
        self.least: Any = smallest(self._brief)

    @property
    def name(self) -> str:
        """That of its subject."""
        return self.subject.name

    @property
    def has_choice(self) -> bool:
        """Whether its arguments can differ at all."""
        schema = self.subject.schema
        has_members = bool(inside(schema, "properties")) or schema.keys() - _PLAIN != set()
        return has_members and not self.subject.is_fed_only

    async def draw(self, count: int, seed: int) -> None:
        """Draw so many arguments by chance; none without hypothesis, which the extra `check` brings."""
        self._drawn = iter(await asyncio.to_thread(_drawn, self._brief, count, seed))

    def next(self) -> Steps | None:
        """The next calls, if there are any: those before the last one lead there."""
        self._turns += 1
        sources = [self._fixed, self._fed(), self._chance()]
        if self._turns % _FED == 0:
            sources.insert(0, sources.pop(1))
        return next((steps for source in sources for steps in source if self._is_new(steps)), None)

    def allows(self, step: Step, arguments: Any) -> bool:
        """Whether other arguments are of the same sort as those of the step: right and soon done, or wrong."""
        if not isinstance(arguments, dict):
            return False
        return self._short.fits(arguments) if step.wrong is None else not self._whole.fits(arguments)

    def step(self, arguments: Any, **more: Any) -> Step:
        """One call."""
        return Step(kind=self.subject.kind, name=self.subject.name, arguments=arguments, **more)

    def _known_trials(self) -> Iterator[Steps]:
        yield (self.step(self.least),)
        edges = (self.step(each.value) for each in boundaries(self._brief))
        wrongs = () if self.subject.kind in _UNCHECKED else self._wrongs()
        for pair in zip_longest(edges, wrongs):
            yield from ((step,) for step in pair if step is not None and isinstance(step.arguments, dict))

    def _wrongs(self) -> Iterator[Step]:
        for each in breaches(self.subject.schema, self.least):
            yield self.step(each.value, wrong=each.wrong, what=f"{each.what}, at {each.path}")

    def _chance(self) -> Iterator[Steps]:
        return ((self.step(arguments),) for arguments in self._drawn)

    def _fed(self) -> Iterator[Steps]:
        """The least arguments, with one of them out of an earlier result; and with all of them that can be had so."""
        first: dict[str, Source] = {}
        if self.subject.kind == "list":
            yield (self.step({}),)
        for name in inside(self.subject.schema, "properties"):
            for source in self._sources(name):
                first.setdefault(name, source)
                yield self._with({name: source})
        all_of_them = self._with(first)
        values = {name: source.value for name, source in first.items()}
        if len(first) > 1 and len(all_of_them) <= _LONGEST and self._short.fits({**self.least, **values}):
            yield all_of_them

    def _sources(self, name: str) -> list[Source]:
        """Those that fit, as they were seen; a cursor is for the list that it came from."""
        own = self.subject.kind == "list"
        return [
            source
            for source in self._pool.known(name)
            if self._short.fits({**self.least, name: source.value})
            and (not own or (source.steps[-1].kind, source.steps[-1].name) == self.subject.key)
        ]

    def _with(self, sources: dict[str, Source]) -> Steps:
        before: Steps = ()
        fed: JSONObject = {}
        for name, source in sources.items():
            if before[-len(source.steps) :] != source.steps:
                before += after(source.steps, len(before))
            fed[name] = taken(len(before) - 1, source.way)
        return (*before, self.step({**self.least, **fed}))

    def _is_new(self, steps: Steps) -> bool:
        text = msgspec.json.encode(steps)
        if text in self._tried:
            return False
        self._tried.add(text)
        return True


def _drawn(schema: JSONObject, count: int, seed: int) -> list[Any]:
    if "hypothesis" not in sys.modules:  # its notes about characters are not for the folder we happen to be in
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir(), "accord-hypothesis")))
    try:
        from accord.check.generated.drawing import drawn
    except ImportError:
        return []
    return drawn(schema, count, seed)

"""What is tried with one tool, in order: the least, everything, the edges, one thing wrong; then chance, and what the
server gave before. No arguments are tried twice.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from accord.check.blocks import inside
from accord.check.generated.boundaries import boundaries
from accord.check.generated.breaches import Wrong, breaches
from accord.check.generated.document import Document, Unserved
from accord.check.generated.pool import Pool
from accord.check.generated.smallest import smallest
from accord.messages.base import JSONObject

Sort: TypeAlias = Literal["valid", "wrong"]

_TIMES = re.compile(
    r"(?:^|_|\b)(?:duration|delay|sleep|wait|timeout|interval|pause|ttl|seconds|secs|minutes|millis(?:econds)?|ms)(?:$|_|\b)"
)
_PLAIN = frozenset(("$schema", "type", "properties", "required", "additionalProperties", "title", "description"))
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One call to be made."""

    tool: str
    arguments: Any
    sort: Sort
    what: str
    """What is special about it, in words."""
    wrong: Wrong | None = None


class Plan:
    """What is tried with one tool. Raises `Unserved` for a tool whose schema allows nothing that can be made."""

    def __init__(self, tool: JSONObject, pool: Pool) -> None:
        self.tool: JSONObject = tool
        self.name: str = str(tool.get("name"))
        schema = inside(tool, "inputSchema")
        self.document: Document = Document(schema)
        self._pool = pool
        self._schema = schema
        self._brief = _brief(schema)
        self._fixed = self._known_trials()
        self._drawn: Iterator[Any] = iter(())
        self._tried: set[bytes] = set()
        self.least: Any = smallest(self._brief)

    @property
    def has_choice(self) -> bool:
        """Whether its arguments can differ at all."""
        return bool(inside(self._schema, "properties")) or self._schema.keys() - _PLAIN != set()

    async def draw(self, count: int, seed: int) -> None:
        """Draw so many arguments by chance; none without hypothesis, which the extra `check` brings."""
        self._drawn = iter(await asyncio.to_thread(_drawn, self._brief, count, seed))

    def next(self) -> Trial | None:
        """The next one, if there is any."""
        for trial in self._fixed:
            if self._is_new(trial):
                return trial
        for arguments in chain(self._fed(), self._drawn):
            trial = Trial(tool=self.name, arguments=arguments, sort="valid", what="drawn by chance")
            if self._is_new(trial):
                return trial
        return None

    def allows(self, trial: Trial, arguments: Any) -> bool:
        """Whether other arguments are of the sort that the trial has."""
        return isinstance(arguments, dict) and self.document.fits(arguments) == (trial.sort == "valid")

    def _known_trials(self) -> Iterator[Trial]:
        yield Trial(tool=self.name, arguments=self.least, sort="valid", what="the least that it takes")
        edges = (
            Trial(tool=self.name, arguments=each.value, sort="valid", what=f"{each.what} at {each.path}")
            for each in boundaries(self._brief)
        )
        wrongs = (
            Trial(
                tool=self.name,
                arguments=each.value,
                sort="wrong",
                what=f"{each.what}, at {each.path}",
                wrong=each.wrong,
            )
            for each in breaches(self._schema, self.least)
        )
        for pair in zip_longest(edges, wrongs):
            yield from (trial for trial in pair if trial is not None and isinstance(trial.arguments, dict))

    def _fed(self) -> Iterator[Any]:
        """The least arguments, with one of them replaced by what the server gave under its name."""
        for name in inside(self._schema, "properties"):
            for value in self._pool.known(name):
                arguments = {**self.least, name: value}
                if self.document.fits(arguments):
                    yield arguments

    def _is_new(self, trial: Trial) -> bool:
        text = msgspec.json.encode(trial.arguments)
        if text in self._tried:
            return False
        self._tried.add(text)
        return True


def _brief(schema: JSONObject) -> JSONObject:
    """The same, but what says how long something takes is always there, and at most one: nobody waits for a day."""
    properties = inside(schema, "properties")
    short = {name: _short(each) for name, each in properties.items() if _takes_time(name, each)}
    required = schema.get("required")
    wanted = dict.fromkeys((*(required if isinstance(required, list) else ()), *short))
    brief = {**schema, "properties": {**properties, **short}, "required": list(wanted)} if short else schema
    try:
        smallest(brief)
    except Unserved:
        return schema
    return brief


def _takes_time(name: str, schema: Any) -> bool:
    is_number = isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    return is_number and _TIMES.search(_HUMPS.sub("_", name).lower()) is not None


def _short(schema: JSONObject) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in ("default", "examples")}
    most = max(1 if schema["type"] == "integer" else 0.1, schema.get("minimum", 0))
    return {**rest, "maximum": min(most, schema.get("maximum", most))}


def _drawn(schema: JSONObject, count: int, seed: int) -> list[Any]:
    if "hypothesis" not in sys.modules:  # its notes about characters are not for the folder we happen to be in
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir(), "accord-hypothesis")))
    try:
        from accord.check.generated.drawing import drawn
    except ImportError:
        return []
    return drawn(schema, count, seed)

"""The inverse of a URI template: from a URI back to the values.

Matching is two passes over the URI for each part of the template, so it is linear in the URI whatever comes.
From the right, every part marks the positions from which it and all that follows fit; from the left, every
part picks its end among the marked ones. Where several matches are possible, these rules choose:

- `{a}`, `{a,b}`, `{.a}` and `{/a}` end as early as the rest allows, the leftmost first (`{a}{b}` gives `b`
  everything). They may be empty, and never contain a raw `/`, `?` or `#`.
- `{+a}`, `{#a}`, `{.a*}`, `{/a*}` and parameters end as late as the rest allows. `{+a}` crosses `/`, and `?`
  and `#` too, except that a later `{?..}` keeps the `?` for itself, and a later `{#..}` the `#`.
- `{/a}`, `{.a}`, `{#a}` and parameters may be missing, and are then absent from the result.
- The commas of `{a,b}` go from left to right; the first exploded variable, else the last, gets spare ones.
- `{?a,b}`, `{&c}` and `{;d}` are found by name in any order, the first of two equal names. Unknown parameters
  are ignored, unless an exploded variable that is not there under its own name collects them in a dict.
- Exploded variables come back as lists (or that dict), others as strings, `{a:3}` of 3 characters at most.
- A variable used twice must say the same at both places (with `:3`, the beginning of it).

A URI is read as one unit per character, a raw `/` and a `%2F` being different ones: no cut falls into an
escape, and the case of hex digits does not matter. A character that may not stand raw in a URI (a space, an
`é`) equals its escape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from accord.server.declare.template_syntax import LOWER, OPERATORS, Expression, Operator, TemplateVariable, units_of


class Slot(Struct, frozen=True):
    """A part of a URI to match: `lead` and then `run`, or nothing at all if there is a lead."""

    operator: Operator
    variables: tuple[TemplateVariable, ...]
    run: re.Pattern[str]
    stops: str
    """The characters that end a run."""
    longest: bool
    limit: int | None

    @property
    def lead(self) -> str:
        return self.operator.first


Found: TypeAlias = list[tuple[TemplateVariable, Any]]


def slots_of(parts: Sequence[str | Expression]) -> Iterator[str | Slot]:
    """Yield the literals and slots of a template for matching: the variables of `{/a,b}` and `{.a,b}` are separate
    slots.
    """
    last = {part.operator.first: at for at, part in enumerate(parts) if not isinstance(part, str)}
    for at, part in enumerate(parts):
        if isinstance(part, str):
            yield units_of(part) or ""
            continue
        operator, stops = part.operator, part.operator.stops
        if operator is OPERATORS["+"]:
            stops = "".join(sign for sign in "?#" if last.get(sign, -1) > at)
        alone = [(variable,) for variable in part.variables] if operator.first in (".", "/") else [part.variables]
        for variables in alone:
            explode = variables[0].explode and operator.first in (".", "/")
            limit = variables[0].limit if len(variables) == 1 and not operator.named else None
            reach = stops.replace(operator.separator, "") if explode else stops
            run = re.compile(f"[^{reach}]+" if reach else "(?s:.+)")
            yield Slot(operator, variables, run, reach, operator.longest or explode, limit)


def count_slashes(track: Sequence[str | Slot]) -> tuple[int, float]:
    """Return the minimum and maximum number of raw slashes in a matching URI."""
    least = sum(part.count("/") for part in track if isinstance(part, str))
    slots = [part for part in track if not isinstance(part, str)]
    if any(slot.run.match("/") for slot in slots):
        return least, math.inf
    return least, least + sum(slot.lead == "/" for slot in slots)


def locate(track: Sequence[str | Slot], units: str) -> list[tuple[Slot, str]] | None:
    """Return the slots that are present, with their text after the lead; None if the URI does not match."""
    marks = [bytearray(len(units)) + b"\1"]
    for part in reversed(track):
        marks.append(_mark(part, units, marks[-1]))
        if 1 not in marks[-1]:
            return None
    if not marks.pop()[0]:
        return None
    at, spans = 0, []
    for part in track:
        ends = marks.pop()
        if isinstance(part, str):
            at += len(part)
            continue
        start = at + len(part.lead)
        end = _end(part, units, start, ends) if units.startswith(part.lead, at) else -1
        if end >= 0:
            spans.append((part, units[start:end]))
            at = end
    return spans


def _end(slot: Slot, units: str, start: int, ends: bytearray) -> int:
    """Return the end of the slot's run from `start`, -1 if there is none."""
    run = slot.run.match(units, start)
    last = run.end() if run else start
    if slot.limit is not None:
        last = min(last, start + slot.limit)
    return ends.rfind(1, start, last + 1) if slot.longest else ends.find(1, start, last + 1)


def _mark(slot: str | Slot, units: str, ends: bytearray) -> bytearray:
    """Return the positions from which a part can reach one of `ends`."""
    if isinstance(slot, str):
        return _mark_literal(slot, units, ends)
    starts = bytearray(ends)
    for start, stop in _runs(slot, units, ends):
        _fill(starts, ends, start, stop, slot.limit)
    if not slot.lead:
        return starts
    marks = bytearray(ends)
    for at in _occurrences(slot.lead, units):
        marks[at] |= starts[at + 1]
    return marks


def _runs(slot: Slot, units: str, ends: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the runs that have one of `ends`: a URI with thousands of segments has few of them."""
    stop, at = -1, ends.find(1)
    while at >= 0:
        start = max((units.rfind(sign, stop + 1, at) for sign in slot.stops), default=-1)
        start = stop + 1 if start < 0 else start + 1
        run = slot.run.match(units, start)
        stop = run.end() if run else start
        yield start, stop
        at = ends.find(1, stop + 1)


def _mark_literal(literal: str, units: str, ends: bytearray) -> bytearray:
    marks = bytearray(len(ends))
    for at in _occurrences(literal, units):
        marks[at] = ends[at + len(literal)]
    return marks


def _fill(starts: bytearray, ends: bytearray, start: int, stop: int, limit: int | None) -> None:
    """Mark each position of a run from which an end can be reached."""
    if limit is None:
        end = ends.rfind(1, start, stop + 1)
        starts[start : end + 1] = b"\1" * (end + 1 - start)
        return
    while (end := ends.find(1, start, stop + 1)) >= 0:
        start = max(start, end - limit)
        starts[start : end + 1] = b"\1" * (end + 1 - start)
        start = end + 1


def _occurrences(text: str, units: str) -> Iterator[int]:
    at = units.find(text)
    while at >= 0:
        yield at
        at = units.find(text, at + 1)


def read_unnamed(slot: Slot, text: str) -> Found:
    """Return the variables of one slot, with its text divided among them."""
    if len(slot.variables) == 1 and not slot.variables[0].explode:
        return [(slot.variables[0], text.translate(LOWER))]
    separator = slot.operator.separator
    pieces = text.split(separator) if text or slot.lead else []
    wide = next((at for at, variable in enumerate(slot.variables) if variable.explode), len(slot.variables) - 1)
    spare = max(len(pieces) - len(slot.variables), 0)
    found: Found = []
    for at, variable in enumerate(slot.variables):
        count = 1 + spare if at == wide else 1
        mine, pieces = pieces[:count], pieces[count:]
        if variable.explode:
            found.append((variable, [piece.translate(LOWER) for piece in mine]))
        elif mine:
            found.append((variable, separator.join(mine).translate(LOWER)))
    return found


def read_named(variables: Sequence[TemplateVariable], pieces: Sequence[str]) -> Found:
    """Return the variables of all parameter slots of one kind, by name."""
    given: dict[str, list[str]] = {}
    for piece in filter(None, pieces):
        key, _, text = piece.partition("=")
        given.setdefault(key.translate(LOWER), []).append(text.translate(LOWER))
    keys = [(units_of(variable.name) or "").translate(LOWER) for variable in variables]
    found: Found = []
    others = {key: texts[0] for key, texts in given.items() if key not in keys}
    for variable, key in zip(variables, keys, strict=True):
        if key in given:
            found.append((variable, given[key] if variable.explode else given[key][0]))
        elif variable.explode and others:
            found.append((variable, others))
            others = {}
    return found

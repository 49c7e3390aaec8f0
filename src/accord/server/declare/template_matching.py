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
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from accord.server.declare.template_syntax import LOWER, OPERATORS, Expression, Operator, TemplateVariable, units_of


class Slot(Struct, frozen=True):
    """A part of a URI to match: `lead` and then `run`, or nothing at all if there is a lead."""

    operator: Operator
    variables: tuple[TemplateVariable, ...]
    run: re.Pattern[str]
    inside: bytes
    """For `bytes.translate`: 255 for the characters of a run, 0 for those that end it, and for the end of the URI."""
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
            inside = bytearray(b"\xff" * 256)
            for sign in (*reach, "\0"):
                inside[ord(sign)] = 0
            yield Slot(operator, variables, run, bytes(inside), operator.longest or explode, limit)


def count_slashes(track: Sequence[str | Slot]) -> tuple[int, float]:
    """Return the minimum and maximum number of raw slashes in a matching URI."""
    least = sum(part.count("/") for part in track if isinstance(part, str))
    slots = [part for part in track if not isinstance(part, str)]
    if any(slot.run.match("/") for slot in slots):
        return least, math.inf
    return least, least + sum(slot.lead == "/" for slot in slots)


def locate(track: Sequence[str | Slot], units: str) -> list[tuple[Slot, str]] | None:
    """Return the slots that are present, with their text after the lead; None if the URI does not match."""
    text, size = _bytes_of(units), len(units) + 1
    marks = [1]
    for part in reversed(track):
        marks.append(_mark(part, units, text, marks[-1]))
        if not marks[-1]:
            return None
    if not marks.pop() >> 8 * (size - 1):
        return None
    at, spans = 0, []
    for part in track:
        ends = marks.pop().to_bytes(size, "big")
        if isinstance(part, str):
            at += len(part)
            continue
        start = at + len(part.lead)
        end = _end(part, units, start, ends) if units.startswith(part.lead, at) else -1
        if end >= 0:
            spans.append((part, units[start:end]))
            at = end
    return spans


def _bytes_of(units: str) -> bytes:
    """Return a byte for each unit, 128 for all that are not ASCII, and 0 for the end; no unit is NUL."""
    return units.replace("?", "\0").encode("ascii", "replace").replace(b"?", b"\x80").replace(b"\0", b"?") + b"\0"


def _end(slot: Slot, units: str, start: int, ends: bytes) -> int:
    """Return the end of the slot's run from `start`, -1 if there is none."""
    run = slot.run.match(units, start)
    last = run.end() if run else start
    if slot.limit is not None:
        last = min(last, start + slot.limit)
    return ends.rfind(1, start, last + 1) if slot.longest else ends.find(1, start, last + 1)


def _mark(part: str | Slot, units: str, text: bytes, ends: int) -> int:
    """Return the positions from which a part can reach one of `ends`.

    Positions are an integer with a byte for each, 0 or 1: so a URI with thousands of segments takes no step for each
    of them.
    """
    if isinstance(part, str):
        return _at_each(part, units, text) & ends << 8 * len(part)
    starts = _starts(part, text, ends)
    return ends | _at_each(part.lead, units, text) & starts << 8 if part.lead else starts


def _starts(slot: Slot, text: bytes, ends: int) -> int:
    """Return the positions from which a run can reach one of `ends`."""
    inside = int.from_bytes(text.translate(slot.inside), "big")
    before = ends << 8 & inside
    # In the sum, a carry goes left through bytes of 255, and ends at one of 0.
    carried = (before + inside ^ inside | before) & inside
    starts = ends | carried & int.from_bytes(b"\1" * len(text), "big")
    return starts if slot.limit is None else starts & _near(ends, slot.limit)


def _near(ends: int, limit: int) -> int:
    """Return the positions that are at most `limit` before one of `ends`."""
    step = 1
    while limit > 0:
        ends |= ends << 8 * min(step, limit)
        limit -= step
        step *= 2
    return ends


def _at_each(literal: str, units: str, text: bytes) -> int:
    """Return the positions of a literal."""
    if len(literal) == 1 and literal.isascii():
        return int.from_bytes(text.translate(_only(literal)), "big")
    marks = bytearray(len(text))
    for at in _occurrences(literal, units):
        marks[at] = 1
    return int.from_bytes(marks, "big")


@lru_cache(maxsize=128)
def _only(sign: str) -> bytes:
    """For `bytes.translate`: 1 for this ASCII character, 0 for all others."""
    return bytes(code == ord(sign) for code in range(256))


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

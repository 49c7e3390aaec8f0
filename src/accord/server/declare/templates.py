"""URI templates (RFC 6570, all four levels) and their inverse: from a URI back to the values.

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from msgspec import Struct

from accord.errors import DeclarationError
from accord.lazy_patterns import lazy_pattern
from accord.messages.bounds import normalize

_RESERVED = ":/?#[]@!$&'()*+,;="
_PART = lazy_pattern(r"\{([^{}]*)\}|([^{}]+)|([{}])")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
_FIELD = lazy_pattern(rf"({_NAME}(?:\.{_NAME})*)(?:(\*)|:([1-9][0-9]{{0,3}}))?")
_NOT_LITERAL = lazy_pattern('[\0-\x20"<>\\\\^`|\x7f-\x9f\ud800-\udfff]')
_BARE_PERCENT = lazy_pattern(r"%(?![0-9A-Fa-f]{2})")
_ESCAPES = lazy_pattern(r"(?:%[0-9A-Fa-f]{2})+")

# An escaped ASCII character, or one that has to be, is the unit U+DC00 above it, where text has none.
_LIFT = {code: 0xDC00 + code for code in range(128)}
_LIFT_FORBIDDEN = {code: 0xDC00 + code for code in [*range(33), 127, *b'"<>\\^`{|}']}
_LOWER = {high: low for low, high in _LIFT.items()}


class _Operator(Struct, frozen=True):
    """A row of RFC 6570's appendix A, and the extent of its matches."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    safe: str = ""
    stops: str = "/?#"
    longest: bool = False


_OPERATORS = {
    "": _Operator("", ","),
    "+": _Operator("", ",", safe=_RESERVED, stops="", longest=True),
    "#": _Operator("#", ",", safe=_RESERVED, stops="", longest=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True, longest=True),
    "?": _Operator("?", "&", named=True, if_empty="=", stops="#", longest=True),
    "&": _Operator("&", "&", named=True, if_empty="=", stops="#", longest=True),
}


class _Field(Struct, frozen=True):
    """A variable in an expression: `name`, `name*` or `name:limit`."""

    name: str
    explode: bool
    limit: int | None


class _Expression(Struct, frozen=True):
    operator: _Operator
    fields: tuple[_Field, ...]


class _Slot(Struct, frozen=True):
    """A part of a URI to match: `lead` and then `run`, or nothing at all if there is a lead."""

    operator: _Operator
    fields: tuple[_Field, ...]
    run: re.Pattern[str]
    longest: bool
    limit: int | None

    @property
    def lead(self) -> str:
        return self.operator.first


_Found: TypeAlias = list[tuple[_Field, Any]]


class Template:
    """A URI template: `file:///{+path}`, `issues://{repo}/{number}{?state,labels*}`.

    Attributes: `text`, as written; `variables`, the names in order. `unsafe_variables` allows values that escape a
    folder, see `unsafe_in`. Raises `DeclarationError` for bad syntax.
    """

    def __init__(self, template: str, *, unsafe_variables: bool = False) -> None:
        self.text = template
        self.unsafe_variables = unsafe_variables
        self._parts = list(_parse(template))
        fields = [field for part in self._parts if not isinstance(part, str) for field in part.fields]
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(field.name for field in fields))
        self._track = list(_track(self._parts))
        self.prefix: str = self._track[0] if self._track and isinstance(self._track[0], str) else ""
        """The units that every matching URI begins with."""
        self._slashes = _slashes(self._track)
        self._joins = _joins(self._parts)
        self._parameters = {
            separator: [
                field
                for slot in self._track
                if not isinstance(slot, str) and slot.operator.separator == separator
                for field in slot.fields
            ]
            for separator in "&;"
        }

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI for these strings, numbers, lists and dicts; None, [] and {} count as absent.

        Raises `TypeError` for lists in lists and for `{var:3}` of a list, `UnicodeEncodeError` for a lone surrogate.
        """
        return "".join(
            _quote(part, _RESERVED) if isinstance(part, str) else _expand(part, values) for part in self._parts
        )

    def match(self, uri: str) -> dict[str, Any] | None:
        """Return the values that expand to this URI, or None; the rules are at the head of this module.

        Values are percent-decoded once and otherwise unchanged, `..`, NUL and the `/` of a `%2F` included; `unsafe_in`
        finds those that must not become file paths. A URI with a `%` that is no escape, or with escapes that are not
        UTF-8, does not match.
        """
        units = self.units(uri)
        return None if units is None else self.match_units(units)

    def units(self, uri: str) -> str | None:
        """Return a URI with one character for each unit; the same for all templates. None for invalid escapes."""
        return _units(uri)

    def match_units(self, units: str) -> dict[str, Any] | None:
        """Match the units of a URI. As `match`."""
        least, most = self._slashes
        if not units.startswith(self.prefix) or not least <= units.count("/") <= most:
            return None
        spans = _locate(self._track, units)
        if spans is None:
            return None
        found: _Found = []
        pools: dict[str, list[str]] = {}
        for slot, text in spans:
            if slot.operator.named:
                pools.setdefault(slot.operator.separator, []).extend(text.split(slot.operator.separator))
            else:
                found += _unnamed(slot, text)
        for separator, pieces in pools.items():
            found += _named(self._parameters[separator], pieces)
        return self._agreed(found)

    def plain(self, uri: str) -> str:
        """Return the URI of the same values, without parameters that the template does not read and without duplicates;
        the same URI if it does not match, or if the template has no parameters.
        """
        if not any(self._parameters.values()) or (values := self.match(uri)) is None:
            return uri
        return self.expand(values)

    def unsafe_in(self, values: Mapping[str, Any]) -> str | None:
        """Return why values must not become file paths: `..`, NUL, an absolute path, a drive; also if a handler would
        decode them a second time, or join them as the template does. None for safe values, and always with
        `unsafe_variables`.
        """
        if self.unsafe_variables:
            return None
        for name, value in values.items():
            if (why := _unsafe(value)) is not None:
                return f"{name!r} {why}"
        if self._climbs(values):
            return "its variables together have a segment '..'"
        return "its variables together are an absolute path" if self._is_absolute(values) else None

    def _climbs(self, values: Mapping[str, Any]) -> bool:
        """Return whether literals and values together form a segment `..` that none of them has alone: `{name}.{ext}`
        does with an empty name and `./x`.
        """
        if not self._joins:
            return False
        whole = "".join(part if isinstance(part, str) else _marked(part, values) for part in self._parts)
        for _ in range(_ROUNDS):
            whole = unquote(whole)
            if any("\0" in part and _is_parent(part.replace("\0", "")) for part in _segments(whole)):
                return True
        return False

    def _is_absolute(self, values: Mapping[str, Any]) -> bool:
        """Return whether variables and the slashes after them form an absolute path: `{folder}/{name}` does with an
        empty folder. In `file://{host}/{+path}` the host may be empty (RFC 8089, 2).
        """
        before = ""
        for at, part in enumerate(self._parts):
            if isinstance(part, str):
                before = part
                continue
            given = [values[field.name] for field in part.fields if field.name in values]
            behind = _begins_with_slash(self._parts[at + 1 : at + 2], values)
            is_empty = not _expand(part, values)
            if part.operator.first == "/":
                if "" in given[: None if behind else -1]:
                    return True
            elif behind and is_empty and _begins_a_path(before):
                return True
            before = before if is_empty else ""
        return False

    def _agreed(self, found: _Found) -> dict[str, Any] | None:
        """Return one value for each name, from an untruncated occurrence if there is one; None if two differ."""
        values: dict[str, Any] = {}
        for field, value in sorted(found, key=lambda item: item[0].limit is not None):
            if field.limit is not None and len(value) > field.limit:
                return None
            known = values.setdefault(field.name, value)
            if value != (known[: field.limit] if isinstance(known, str) else known):
                return None
        return {name: values[name] for name in self.variables if name in values}


_DRIVE = lazy_pattern(r"[A-Za-z]:")
_ROUNDS = 3
"""The number of times escapes are decoded in the text of several values."""


def _joins(parts: Sequence[str | _Expression]) -> bool:
    """Return whether a segment consists of more than one variable."""
    text = "".join(part if isinstance(part, str) else f"{part.operator.first}\0" for part in parts)
    return any("\0" in segment and segment != "\0" for segment in text.split("/"))


def _marked(expression: _Expression, values: Mapping[str, Any]) -> str:
    """Return the expansion between two NUL, which no value has; an empty string for a query or fragment."""
    return "" if expression.operator.first in tuple("?&#;") else f"\0{_expand(expression, values)}\0"


def _begins_with_slash(rest: Sequence[str | _Expression], values: Mapping[str, Any]) -> bool:
    """Return whether the next part begins with a slash."""
    return any((part if isinstance(part, str) else _expand(part, values)).startswith("/") for part in rest)


def _begins_a_path(before: str) -> bool:
    """Return whether a segment, rather than the host of a file, follows a literal."""
    return before.endswith(("/", ":")) and before.lower() != "file://"


def _unsafe(value: Any) -> str | None:
    if isinstance(value, str):
        once = unquote(value)
        return _unsafe_path(value) or (None if once == value else _unsafe_path(once) or _unsafe_path(unquote(once)))
    if isinstance(value, Mapping):
        return next(filter(None, map(_unsafe, (*value, *value.values()))), None)
    if len(value) > 1 and not value[0]:
        return "is an absolute path"
    return next(filter(None, map(_unsafe, value)), None)


def _unsafe_path(path: str) -> str | None:
    if "\0" in path:
        return "has a NUL"
    if path.startswith(("/", "\\")):
        return "is an absolute path"
    if _DRIVE.match(path):
        return "begins with the letter of a drive"
    if any(map(_is_parent, _segments(path))):
        return "has a segment '..'"
    return None


def _segments(path: str) -> list[str]:
    """Return the segments of a path, after normalizing characters that look like dots and slashes."""
    return normalize("NFKC", path).replace("\\", "/").split("/")


def _is_parent(segment: str) -> bool:
    """Return whether a segment is `..`, also with blanks around it."""
    return segment.strip(" ") == ".."


def _slashes(track: Sequence[str | _Slot]) -> tuple[int, float]:
    """Return the minimum and maximum number of raw slashes in a matching URI."""
    least = sum(part.count("/") for part in track if isinstance(part, str))
    slots = [part for part in track if not isinstance(part, str)]
    if any(slot.run.match("/") for slot in slots):
        return least, math.inf
    return least, least + sum(slot.lead == "/" for slot in slots)


def _parse(template: str) -> Iterator[str | _Expression]:
    for part in _PART.finditer(template):
        expression, literal, brace = part.groups()
        if brace == "{":
            raise _wrong(template, part.start(), "this `{` is not closed; write `{name}`, or %7B")
        if brace == "}":
            raise _wrong(template, part.start(), "this `}` closes nothing; write `{name}`, or %7D")
        if literal is None:
            yield _expression(template, part.start(1), expression)
        else:
            _check_literal(template, part.start(), literal)
            yield literal


def _check_literal(template: str, start: int, literal: str) -> None:
    if bad := _NOT_LITERAL.search(literal):
        advice = f"write {quote(bad[0])}" if bad[0] < "\ud800" else "it is half a character"
        raise _wrong(template, start + bad.start(), f"{bad[0]!r} cannot stand in a URI; {advice}")
    if bad := _BARE_PERCENT.search(literal):
        raise _wrong(template, start + bad.start(), "`%` needs two hex digits; write %25 for itself")
    if _units(literal) is None:
        raise _wrong(template, start, f"the escapes in {literal!r} are not UTF-8; write the character itself")


def _expression(template: str, start: int, inside: str) -> _Expression:
    sign = inside[:1] if inside[:1] in _OPERATORS else ""
    if inside[:1] and inside[0] in "=,!@|":
        raise _wrong(template, start, f"`{inside[0]}` is no operator; use + # . / ; ? & or none")
    fields = []
    at = start + len(sign)
    for text in inside[len(sign) :].split(","):
        if not (parts := _FIELD.fullmatch(text)):
            raise _wrong(template, at, _advice(text))
        fields.append(_Field(parts[1], bool(parts[2]), int(parts[3]) if parts[3] else None))
        at += len(text) + 1
    return _Expression(_OPERATORS[sign], tuple(fields))


def _advice(text: str) -> str:
    if not text:
        return "a variable's name is missing; write `{name}`, or `{a,b}` for two"
    if ":" in text:
        return f"`{text}` is no variable; write `name:3` for the first 3 characters (1 to 9999, not with `*`)"
    return f"`{text}` is no variable; write letters, digits, `_` and single dots, then perhaps `*` or `:3`"


def _wrong(template: str, at: int, problem: str) -> DeclarationError:
    return DeclarationError(f"URI template {template!r}, character {at + 1}: {problem}")


def _expand(expression: _Expression, values: Mapping[str, Any]) -> str:
    operator = expression.operator
    pieces = [piece for field in expression.fields for piece in _pieces(operator, field, values.get(field.name))]
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _pieces(operator: _Operator, field: _Field, value: Any) -> Iterator[str]:
    """Yield what a variable expands to: nothing, one piece, or one for each member if it is exploded."""
    if isinstance(value, Mapping | list | tuple) and field.limit is not None:
        raise TypeError(f"{{{field.name}:{field.limit}}} takes the beginning of a string, not of {value!r}")
    members = [
        (_quote(key, operator.safe), _quote(text[: field.limit], operator.safe)) for key, text in _members(value)
    ]
    keyed = isinstance(value, Mapping)
    if not field.explode and members:
        text = ",".join(f"{key},{text}" if keyed else text for key, text in members)
        members, keyed = [("", text)], False
    for key, text in members:
        if operator.named:
            yield f"{key or field.name}={text}" if text else (key or field.name) + operator.if_empty
        else:
            yield f"{key}={text}" if keyed else text


def _members(value: Any) -> list[tuple[str, str]]:
    """Return a value as pairs; only those of a mapping have keys."""
    if isinstance(value, Mapping):
        return [(_plain(key), _plain(item)) for key, item in value.items() if item is not None]
    items = value if isinstance(value, list | tuple) else [value]
    return [("", _plain(item)) for item in items if item is not None]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list | tuple):
        raise TypeError(f"{value!r} is nested too deep for a URI; use a list or dict of plain values")
    return str(value)


def _quote(text: str, safe: str) -> str:
    """Percent-encode a text; if reserved characters are safe, existing escapes stay."""
    return quote(_BARE_PERCENT.sub("%25", text), safe=safe + "%") if safe else quote(text, safe="")


def _unescape(run: re.Match[str]) -> str:
    return bytes.fromhex(run[0].replace("%", "")).decode().translate(_LIFT)


def _units(text: str) -> str | None:
    """Return one character for each unit of a URI, see the head of this module; None for invalid escapes."""
    try:
        text.encode()
        units = _ESCAPES.sub(_unescape, text)
    except UnicodeError:
        return None
    return None if "%" in units else units.translate(_LIFT_FORBIDDEN)


def _track(parts: Sequence[str | _Expression]) -> Iterator[str | _Slot]:
    """Yield the literals and slots of a template for matching: the variables of `{/a,b}` and `{.a,b}` are separate
    slots.
    """
    last = {part.operator.first: at for at, part in enumerate(parts) if not isinstance(part, str)}
    for at, part in enumerate(parts):
        if isinstance(part, str):
            yield _units(part) or ""
            continue
        operator, stops = part.operator, part.operator.stops
        if operator is _OPERATORS["+"]:
            stops = "".join(sign for sign in "?#" if last.get(sign, -1) > at)
        alone = [(field,) for field in part.fields] if operator.first in (".", "/") else [part.fields]
        for fields in alone:
            explode = fields[0].explode and operator.first in (".", "/")
            limit = fields[0].limit if len(fields) == 1 and not operator.named else None
            reach = stops.replace(operator.separator, "") if explode else stops
            run = re.compile(f"[^{reach}]+" if reach else "(?s:.+)")
            yield _Slot(operator, fields, run, operator.longest or explode, limit)


def _locate(track: Sequence[str | _Slot], units: str) -> list[tuple[_Slot, str]] | None:
    """Return the slots that are present, with their text after the lead; None if the URI does not match."""
    marks = [bytearray(len(units)) + b"\1"]
    for part in reversed(track):
        marks.append(_mark(part, units, marks[-1]))
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


def _end(slot: _Slot, units: str, start: int, ends: bytearray) -> int:
    """Return the end of the slot's run from `start`, -1 if there is none."""
    run = slot.run.match(units, start)
    last = run.end() if run else start
    if slot.limit is not None:
        last = min(last, start + slot.limit)
    return ends.rfind(1, start, last + 1) if slot.longest else ends.find(1, start, last + 1)


def _mark_literal(literal: str, units: str, ends: bytearray) -> bytearray:
    marks = bytearray(len(ends))
    for at in _occurrences(literal, units):
        marks[at] = ends[at + len(literal)]
    return marks


def _mark(slot: str | _Slot, units: str, ends: bytearray) -> bytearray:
    """Return the positions from which a part can reach one of `ends`."""
    if isinstance(slot, str):
        return _mark_literal(slot, units, ends)
    starts = bytearray(ends)
    for run in slot.run.finditer(units):
        _fill(starts, ends, *run.span(), slot.limit)
    if not slot.lead:
        return starts
    marks = bytearray(ends)
    for at in _occurrences(slot.lead, units):
        marks[at] |= starts[at + 1]
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


def _unnamed(slot: _Slot, text: str) -> _Found:
    """Return the variables of one slot, with its text divided among them."""
    if len(slot.fields) == 1 and not slot.fields[0].explode:
        return [(slot.fields[0], text.translate(_LOWER))]
    separator = slot.operator.separator
    pieces = text.split(separator) if text or slot.lead else []
    wide = next((at for at, field in enumerate(slot.fields) if field.explode), len(slot.fields) - 1)
    spare = max(len(pieces) - len(slot.fields), 0)
    found: _Found = []
    for at, field in enumerate(slot.fields):
        count = 1 + spare if at == wide else 1
        mine, pieces = pieces[:count], pieces[count:]
        if field.explode:
            found.append((field, [piece.translate(_LOWER) for piece in mine]))
        elif mine:
            found.append((field, separator.join(mine).translate(_LOWER)))
    return found


def _named(fields: Sequence[_Field], pieces: Sequence[str]) -> _Found:
    """Return the variables of all parameter slots of one kind, by name."""
    given: dict[str, list[str]] = {}
    for piece in filter(None, pieces):
        key, _, text = piece.partition("=")
        given.setdefault(key.translate(_LOWER), []).append(text.translate(_LOWER))
    keys = [(_units(field.name) or "").translate(_LOWER) for field in fields]
    found: _Found = []
    others = {key: texts[0] for key, texts in given.items() if key not in keys}
    for field, key in zip(fields, keys, strict=True):
        if key in given:
            found.append((field, given[key] if field.explode else given[key][0]))
        elif field.explode and others:
            found.append((field, others))
            others = {}
    return found

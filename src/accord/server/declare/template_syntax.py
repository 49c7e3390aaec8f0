"""URI templates (RFC 6570, all four levels): their syntax, and what they expand to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from accord.errors import DeclarationError
from accord.lazy_patterns import lazy_pattern

RESERVED = ":/?#[]@!$&'()*+,;="
"""The characters that delimit the parts of a URI (RFC 3986, 2.2)."""
_PART = lazy_pattern(r"\{([^{}]*)\}|([^{}]+)|([{}])")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
_VARIABLE = lazy_pattern(rf"({_NAME}(?:\.{_NAME})*)(?:(\*)|:([1-9][0-9]{{0,3}}))?")
_NOT_LITERAL = lazy_pattern('[\0-\x20"<>\\\\^`|\x7f-\x9f\ud800-\udfff]')
_BARE_PERCENT = lazy_pattern(r"%(?![0-9A-Fa-f]{2})")
_ESCAPES = lazy_pattern(r"(?:%[0-9A-Fa-f]{2})+")

# An escaped ASCII character, or one that has to be, is the unit U+DC00 above it, where text has none.
_LIFT = {code: 0xDC00 + code for code in range(128)}
_LIFT_FORBIDDEN = {code: 0xDC00 + code for code in [*range(33), 127, *b'"<>\\^`{|}']}
LOWER = {high: low for low, high in _LIFT.items()}
"""For `str.translate`: from units to the characters that they stand for."""


class Operator(Struct, frozen=True):
    """A row of RFC 6570's appendix A, and the extent of its matches."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    safe: str = ""
    stops: str = "/?#"
    longest: bool = False


OPERATORS = {
    "": Operator("", ","),
    "+": Operator("", ",", safe=RESERVED, stops="", longest=True),
    "#": Operator("#", ",", safe=RESERVED, stops="", longest=True),
    ".": Operator(".", "."),
    "/": Operator("/", "/"),
    ";": Operator(";", ";", named=True, longest=True),
    "?": Operator("?", "&", named=True, if_empty="=", stops="#", longest=True),
    "&": Operator("&", "&", named=True, if_empty="=", stops="#", longest=True),
}


class TemplateVariable(Struct, frozen=True):
    """A variable in an expression: `name`, `name*` or `name:limit`."""

    name: str
    explode: bool
    limit: int | None


class Expression(Struct, frozen=True):
    """An expression in braces: `{+path}`, `{?state,labels*}`."""

    operator: Operator
    variables: tuple[TemplateVariable, ...]


def parse(template: str) -> Iterator[str | Expression]:
    """Yield the literals and expressions of a template. Raises `DeclarationError` for bad syntax."""
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
    if units_of(literal) is None:
        raise _wrong(template, start, f"the escapes in {literal!r} are not UTF-8; write the character itself")


def _expression(template: str, start: int, inside: str) -> Expression:
    sign = inside[:1] if inside[:1] in OPERATORS else ""
    if inside[:1] and inside[0] in "=,!@|":
        raise _wrong(template, start, f"`{inside[0]}` is no operator; use + # . / ; ? & or none")
    variables = []
    at = start + len(sign)
    for text in inside[len(sign) :].split(","):
        if not (parts := _VARIABLE.fullmatch(text)):
            raise _wrong(template, at, _advice(text))
        variables.append(TemplateVariable(parts[1], bool(parts[2]), int(parts[3]) if parts[3] else None))
        at += len(text) + 1
    return Expression(OPERATORS[sign], tuple(variables))


def _advice(text: str) -> str:
    if not text:
        return "a variable's name is missing; write `{name}`, or `{a,b}` for two"
    if ":" in text:
        return f"`{text}` is no variable; write `name:3` for the first 3 characters (1 to 9999, not with `*`)"
    return f"`{text}` is no variable; write letters, digits, `_` and single dots, then perhaps `*` or `:3`"


def _wrong(template: str, at: int, problem: str) -> DeclarationError:
    return DeclarationError(f"URI template {template!r}, character {at + 1}: {problem}")


def expand(expression: Expression, values: Mapping[str, Any]) -> str:
    """Return what an expression stands for, see `Template.expand`."""
    operator = expression.operator
    pieces = [
        piece for variable in expression.variables for piece in _pieces(operator, variable, values.get(variable.name))
    ]
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _pieces(operator: Operator, variable: TemplateVariable, value: Any) -> Iterator[str]:
    """Yield what a variable expands to: nothing, one piece, or one for each member if it is exploded."""
    if isinstance(value, Mapping | list | tuple) and variable.limit is not None:
        raise TypeError(f"{{{variable.name}:{variable.limit}}} takes the beginning of a string, not of {value!r}")
    members = [
        (percent_encode(key, operator.safe), percent_encode(text[: variable.limit], operator.safe))
        for key, text in _members(value)
    ]
    keyed = isinstance(value, Mapping)
    if not variable.explode and members:
        text = ",".join(f"{key},{text}" if keyed else text for key, text in members)
        members, keyed = [("", text)], False
    for key, text in members:
        if operator.named:
            yield f"{key or variable.name}={text}" if text else (key or variable.name) + operator.if_empty
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


def percent_encode(text: str, safe: str) -> str:
    """Percent-encode a text; if reserved characters are safe, existing escapes stay."""
    return quote(_BARE_PERCENT.sub("%25", text), safe=safe + "%") if safe else quote(text, safe="")


@lru_cache(maxsize=8)  # each rule that is a template matches the same URI
def units_of(text: str) -> str | None:
    """Return one character for each unit of a URI, see `template_matching`; None for invalid escapes."""
    try:
        text.encode()
        units = _ESCAPES.sub(_unescape, text)
    except UnicodeError:
        return None
    return None if "%" in units else units.translate(_LIFT_FORBIDDEN)


def _unescape(run: re.Match[str]) -> str:
    return bytes.fromhex(run[0].replace("%", "")).decode().translate(_LIFT)

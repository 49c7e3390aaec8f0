"""One field of a form, and its values: checked as JSON, or parsed from the input of a user.

A `FormField` is the same in every revision; `form_schemas` reads and writes it as the JSON Schema of each. A form is
flat and small (client, Elicitation, "flat objects with primitive properties only"), so its values are checked without a
JSON Schema library, which takes longer to load than all of this to run.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeGuard

import msgspec

from accord.errors import Mismatch
from accord.schema.explain import excerpt, shorten

Kind: TypeAlias = Literal[
    "text", "number", "integer", "boolean", "choice", "choices", "email", "uri", "date", "date-time", "other"
]
"""The kind of a field. "other" is a kind that no revision has: it accepts any value that an answer may hold."""

Scalar: TypeAlias = str | int | float


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a form."""

    name: str
    kind: Kind
    title: str | None = None
    """The displayed name."""
    description: str | None = None
    required: bool = False
    default: Scalar | bool | list[str] | None = None
    """An initial value that is valid, or `None`."""
    choices: tuple[tuple[Scalar, str], ...] = ()
    """The options of a choice, or of several: each value, and its displayed text."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    min_length: int | None = None
    """Characters of a text; items if several may be chosen."""
    max_length: int | None = None


def check_value(field: FormField, value: Any) -> None:
    """Raise `Mismatch` unless a JSON value is valid for its field."""
    if reason := _CHECKS[field.kind](field, value):
        raise Mismatch(f"{reason}, got {excerpt(value)}", f"$.{field.name}")


def parse(field: FormField, text: str) -> Any:
    """Parse the input of a user for a field, and return the JSON value.

    The input is yes or no for a boolean; the value, the title or the position of a choice, several with commas between;
    a time without a zone is local. Raises `Mismatch`, whose `reason` says what to enter.
    """
    read = _READERS.get(field.kind)
    value = read(field, text.strip()) if read else text
    if reason := _why_input_fails(field, value):
        raise Mismatch(f"{reason}, got {excerpt(text, typed=False)}", f"$.{field.name}")
    return value


def text_of(value: Scalar) -> str:
    """Return the value of a choice as it is sent in a form: always a string."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _why_input_fails(field: FormField, value: Any) -> str:
    """Return why an input is invalid; for a boolean in terms of yes and no."""
    reason = _CHECKS[field.kind](field, value)
    return "expected yes or no" if reason and field.kind == "boolean" else reason


# Each check returns the expected value as text, or an empty text for a valid value.


def _text(field: FormField, value: Any) -> str:
    if not isinstance(value, str):
        return "expected string"
    return _encodable(value) or _length(field, value, "characters")


def _encodable(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        return "expected text without lone surrogates"
    return ""


def _length(field: FormField, value: Sequence[Any], what: str) -> str:
    if field.min_length is not None and len(value) < field.min_length:
        return f"expected at least {field.min_length} {what}"
    if field.max_length is not None and len(value) > field.max_length:
        return f"expected at most {field.max_length} {what}"
    return ""


def _number(field: FormField, value: Any) -> str:
    if not is_number(value):
        return "expected number"
    if field.minimum is not None and value < field.minimum:
        return f"expected at least {field.minimum}"
    if field.maximum is not None and value > field.maximum:
        return f"expected at most {field.maximum}"
    return ""


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a number in JSON: finite, and not a boolean."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(field: FormField, value: Any) -> str:
    whole = is_number(value) and (isinstance(value, int) or value.is_integer())
    return _number(field, value) if whole else "expected integer"


def _boolean(field: FormField, value: Any) -> str:
    return "" if isinstance(value, bool) else "expected boolean"


def _choice(field: FormField, value: Any) -> str:
    return "" if _are_choices(field, [value]) else f"expected one of {_list_choices(field)}"


def _choices(field: FormField, value: Any) -> str:
    if not isinstance(value, list | tuple):
        return "expected array"
    if not _are_choices(field, value):
        return f"expected only {_list_choices(field)}"
    return _length(field, value, "items")


def _are_choices(field: FormField, values: Sequence[Any]) -> bool:
    allowed = {choice for choice, _ in field.choices}
    return all((isinstance(value, str) or is_number(value)) and value in allowed for value in values)


def _list_choices(field: FormField) -> str:
    shown = [shorten(text_of(value)) for value, _ in field.choices[:10]]
    more = len(field.choices) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


# RFC 5321 and 3986 as far as needed for a form; both run in linear time.
_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s.\x00-\x1f\x7f]+(\.[^@\s.\x00-\x1f\x7f]+)*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]+")


def _email(field: FormField, value: Any) -> str:
    return _text(field, value) or ("" if _EMAIL.fullmatch(value) else "expected an email address")


def _uri(field: FormField, value: Any) -> str:
    return _text(field, value) or ("" if _URI.fullmatch(value) else "expected a URI such as https://example.com/")


def _date(field: FormField, value: Any) -> str:
    return "" if _convert_date(value, datetime.date) else "expected a date such as 2026-11-21"


def _date_time(field: FormField, value: Any) -> str:
    moment = _convert_date(value, datetime.datetime)
    return "" if moment and moment.tzinfo else "expected a date and time with a zone, such as 2026-11-21T14:00:00Z"


def _convert_date(value: Any, type_: Any) -> Any:
    """Return a string as a date, or None: msgspec parses RFC 3339, as JSON Schema does."""
    try:
        return msgspec.convert(value, type_) if isinstance(value, str) else None
    except msgspec.ValidationError:
        return None


def _other(field: FormField, value: Any) -> str:
    """Check the types of values that any answer may hold (client, Elicitation, `ElicitResult.content`)."""
    if isinstance(value, list | tuple):
        fits = all(isinstance(item, str) and not _encodable(item) for item in value)
    else:
        fits = isinstance(value, bool) or is_number(value) or (isinstance(value, str) and not _encodable(value))
    return "" if fits else "expected string, number, boolean or array of strings"


_CHECKS: dict[Kind, Callable[[FormField, Any], str]] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "choice": _choice,
    "choices": _choices,
    "email": _email,
    "uri": _uri,
    "date": _date,
    "date-time": _date_time,
    "other": _other,
}


# Each reader returns the value of an input, or the input itself, which the check then refuses.

_WORDS = {
    "y": True, "yes": True, "true": True, "on": True, "1": True,
    "n": False, "no": False, "false": False, "off": False, "0": False,
}  # fmt: skip


def _read_boolean(field: FormField, text: str) -> bool | str:
    return _WORDS.get(text.casefold(), text)


def _read_number(field: FormField, text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _read_choice(field: FormField, text: str) -> Scalar:
    """Return the choice with this value, else with this title, else at this position if no choice is itself a
    number."""
    for value, title in field.choices:
        if text in (text_of(value), title):
            return value
    titled = [value for value, title in field.choices if title.casefold() == text.casefold()]
    if len(titled) == 1:
        return titled[0]
    places = {str(place): value for place, (value, _) in enumerate(field.choices, 1)} if is_numbered(field) else {}
    return places.get(text, text)


def is_numbered(field: FormField) -> bool:
    """Return whether a choice may be entered as its position, from 1: no choice is itself a number."""
    return not any(text_of(value).isdecimal() or title.isdecimal() for value, title in field.choices)


def _read_choices(field: FormField, text: str) -> list[Scalar]:
    return [_read_choice(field, piece.strip()) for piece in text.split(",")] if text else []


def _read_date(field: FormField, text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return text


def _read_date_time(field: FormField, text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.astimezone()).isoformat()
    except (ValueError, OverflowError, OSError):  # the range of the system clock is smaller than that of the calendar
        return text


def _read_other(field: FormField, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _read_line(field: FormField, text: str) -> str:
    return text


_READERS: dict[Kind, Callable[[FormField, str], Any]] = {
    "number": _read_number,
    "integer": _read_number,
    "boolean": _read_boolean,
    "choice": _read_choice,
    "choices": _read_choices,
    "email": _read_line,
    "uri": _read_line,
    "date": _read_date,
    "date-time": _read_date_time,
    "other": _read_other,
}

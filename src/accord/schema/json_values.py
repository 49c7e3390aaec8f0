"""Python values as JSON, with an error for values that JSON does not have."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import msgspec
from msgspec import Raw

from accord.schema import pydantic_types


def to_json(value: Any) -> bytes:
    """Encode a value that msgspec or pydantic supports, or a path. Raise `ValueError` for a type without JSON, NaN or
    infinity, half a surrogate pair, and a value that contains itself."""
    try:
        data = msgspec.json.encode(value, enc_hook=pydantic_types.dump)
        if data.find(b"null") >= 0:  # half the time of `in`, which for bytes raises an error first, and drops it
            _check_finite(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    except (TypeError, OverflowError) as exc:
        raise ValueError(str(exc)) from exc
    return data


def _dump(value: Any) -> Any:
    return None if type(value) is Raw else pydantic_types.dump(value)  # raw is JSON already


def _check_finite(value: Any) -> None:
    """Raise `ValueError` for NaN and infinity, which msgspec silently encodes as null."""
    pending = [msgspec.to_builtins(value, enc_hook=_dump)]
    while pending:
        match pending.pop():
            case float(number) if number != number or number in (float("inf"), float("-inf")):
                raise ValueError(f"{number} is not a JSON number")
            case dict(members):
                pending.extend(members.values())
            case list(items) | tuple(items):
                pending.extend(items)


_DIGITS = 100
_EXACT = Context(prec=_DIGITS, Emin=-999_999, Emax=999_999)
"""Numbers of up to this many digits are normalized; longer ones stay as they are written."""
_INTEGER_DIGITS = 19
"""Digits of the largest 64-bit integer: longer numbers are not written as an integer."""


def canonical_json(text: bytes) -> bytes:
    """Return JSON in a canonical spelling: keys in order, `3.0` as `3`. Raises `msgspec.DecodeError`,
    `UnicodeDecodeError`, and `RecursionError`."""
    return _in_order(_plain(text))


def ordered_json(text: bytes) -> bytes:
    """Return JSON with its keys in order, and numbers with a point or an exponent as they are written. Raises the
    errors of `canonical_json`.
    """
    return _in_order(_as_written(text))


def _number(text: str) -> Raw:
    """Return a number with a point or an exponent, exact and in a canonical spelling."""
    if len(text) > _DIGITS:
        return Raw(text.encode())
    if len(text) <= _INTEGER_DIGITS and "e" not in text and "E" not in text and "000000" not in text:
        written = text.rstrip("0").rstrip(".")  # what follows writes the same, in twice the time
        return Raw(b"0" if written == "-0" else written.encode())
    try:
        value = Decimal(text).normalize(_EXACT)
    except ArithmeticError:  # an exponent of more than six digits
        return Raw(text.encode())
    written = str(value) if value else "0"
    if "E+" in written and value.adjusted() < _INTEGER_DIGITS:
        written = format(value, "f")
    return Raw(written.encode())


_as_written = msgspec.json.Decoder(float_hook=lambda text: Raw(text.encode())).decode
_plain = msgspec.json.Decoder(float_hook=_number).decode
_in_order: Callable[[object], bytes] = msgspec.json.Encoder(order="deterministic").encode

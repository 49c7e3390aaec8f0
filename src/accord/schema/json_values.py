"""Python values as JSON, with an error for values that JSON does not have."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.schema import pydantic_types


def to_json(value: Any) -> bytes:
    """Encode a value that msgspec or pydantic supports, or a path. Raise `ValueError` for a type without JSON, NaN or
    infinity, half a surrogate pair, and a value that contains itself."""
    try:
        data = msgspec.json.encode(value, enc_hook=pydantic_types.dump)
        if b"null" in data:
            _check_finite(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    except (TypeError, OverflowError) as exc:
        raise ValueError(str(exc)) from exc
    return data


def _dump(value: Any) -> Any:
    return None if type(value) is msgspec.Raw else pydantic_types.dump(value)  # raw is JSON already


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

"""Conversion of JSON values to any type that a parameter of a tool may have.

convert_to({"days": 3.0}, Trip) -> Trip(days=3)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from accord.errors import DeclarationError, Mismatch
from accord.schema import explain
from accord.schema.arguments import integers_of_floats
from accord.schema.convert import convert, decodable
from accord.schema.hints import HintReader, Node


class TypeConverter:
    """A converter of JSON values to the type of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._type = decodable(node)

    def convert(self, value: Any, path: str = "$") -> Any:
        """Return the value as the type. Raise `Mismatch`; `path` is the place of the value."""
        try:
            return convert(value, self._type)
        except msgspec.ValidationError as exc:
            failure = str(exc)
        try:
            return convert(integers_of_floats(value), self._type)
        except msgspec.ValidationError:
            where, reason = explain.failure(self._node, value, failure)
            raise Mismatch(reason, f"{path}{where}") from None


def convert_to(value: Any, hint: Any) -> Any:
    """Return a JSON value as the type of a hint. Raise `Mismatch` for a value that does not match, `DeclarationError`
    for a hint that is not a type of JSON values or names a type that does not exist at module level."""
    try:
        hash(hint)
    except TypeError:  # metadata without a hash
        return _make_converter(hint).convert(value)
    return _cached(hint).convert(value)


def _make_converter(hint: Any) -> TypeConverter:
    try:
        return TypeConverter(HintReader({}, {}).read(hint))
    except NameError as exc:
        raise DeclarationError(
            f"{hint!r}: an annotation refers to a name that does not exist at module level: {exc}"
        ) from exc


_cached = lru_cache(maxsize=256)(_make_converter)

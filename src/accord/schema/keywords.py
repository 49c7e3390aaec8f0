"""Keywords of JSON Schema that jsonschema-rs checks too slowly, checked here instead.

- `uniqueItems`: jsonschema-rs hashes numbers as floats and arrays without their brackets, so thousands of different
  items can share one hash, and it compares each pair of them.
- `multipleOf`: jsonschema-rs divides fractions of hundreds of digits if an exponent is large.
- `contentEncoding`, `contentMediaType`: annotations in 2020-12; in older drafts they would decode each text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.schema.json_values import canonical_json

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class UniqueItems:
    """`uniqueItems`, in linear time: each item is encoded in its canonical form."""

    def __init__(self, _schema: Any, value: Any, _path: Any) -> None:
        self._applies = value is True

    def validate(self, instance: Any) -> None:
        """Raise `ValueError` for an array with two equal items."""
        if not self._applies or not isinstance(instance, list) or len(instance) < 2:
            return
        items = _items(canonical_json(msgspec.json.encode(instance)))
        if len({bytes(item) for item in items}) < len(items):
            raise ValueError("the array has non-unique elements")


class MultipleOf:
    """`multipleOf`, exact for decimal numbers: 0.3 is a multiple of 0.1."""

    def __init__(self, _schema: Any, value: Any, _path: Any) -> None:
        self._value = value
        self._digits, self._exponent = _decimal(value)

    def validate(self, instance: Any) -> None:
        """Raise `ValueError` for a number that is not a multiple."""
        if type(instance) in (int, float) and not self._divides(*_decimal(instance)):
            raise ValueError(f"{instance} is not a multiple of {self._value}")

    def _divides(self, digits: int, exponent: int) -> bool:
        shift = exponent - self._exponent
        if shift < 0:
            return bool(digits % (self._digits * 10**-shift) == 0)
        return bool(digits * pow(10, shift, self._digits) % self._digits == 0)


class Annotation:
    """A keyword that checks nothing."""

    def __init__(self, _schema: Any, value: Any, _path: Any) -> None:
        pass

    def validate(self, instance: Any) -> None:
        """Accept any value."""


def _decimal(number: float) -> tuple[int, int]:
    """Return a number as digits and a decimal exponent."""
    if isinstance(number, int):
        return number, 0
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


KEYWORDS: dict[str, Any] = {
    "uniqueItems": UniqueItems,
    "multipleOf": MultipleOf,
    "contentEncoding": Annotation,
    "contentMediaType": Annotation,
}
"""The classes for jsonschema-rs, by keyword."""

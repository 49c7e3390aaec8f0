"""The language of filters: `method:tools/call status:error time>500ms "quoted text"`.

    word  "quoted text"          the entry contains the text; letters of ASCII match in both cases
    method:tools/*               * stands for any text
    kind:http,stderr             one of several
    -method:ping                 not
    time>500ms  size<=10kB       comparisons; at:10s..20s is a range

All terms must match. `parse_filter` raises `FilterError`, which says what is wrong and what is possible.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Literal, TypeAlias

import msgspec

from accord.inspector.traffic.index import DIRECTIONS, KINDS, OUTCOMES

Operator: TypeAlias = Literal[":", "<", "<=", ">", ">="]

MAX_CHARACTERS = 1_000
"""The maximum length of a filter."""
MAX_TERMS = 20

TEXTS = ("method", "name", "id")
CHOICES: dict[str, tuple[str, ...]] = {
    "kind": (*KINDS, "message"),
    "direction": DIRECTIONS[1:],
    "status": OUTCOMES[1:],
    "type": ("valid", "invalid"),
}
"""Keys with fixed values; a status is a number, too."""
NUMBERS = ("connection", "row", "span")
QUANTITIES: dict[str, dict[str, float]] = {
    "time": {"ms": 0.001, "s": 1.0, "us": 0.000_001, "µs": 0.000_001, "min": 60.0},
    "at": {"s": 1.0, "ms": 0.001, "min": 60.0},
    "size": {"": 1.0, "b": 1.0, "kb": 1_000.0, "mb": 1_000_000.0, "kib": 1_024.0, "mib": 1_048_576.0},
}
"""Keys with quantities, and their units."""
_KEYS = (*TEXTS, *CHOICES, *NUMBERS, *QUANTITIES)

_TOKEN = re.compile(
    r"""\s*(?P<not>-?)(?:(?P<key>[A-Za-z]+)(?P<operator><=|>=|[:<>]))?(?:"(?P<quoted>(?:[^"\\]|\\.)*)(?P<end>"?)|(?P<plain>[^\s"]*))"""
)
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-zµ]*)", re.IGNORECASE)


class FilterError(ValueError):
    """A filter is not valid; `cure` says what is."""

    def __init__(self, error: str, cure: str) -> None:
        super().__init__(error)
        self.cure: str = cure


class FilterTerm(msgspec.Struct, frozen=True):
    """One condition. `key` is empty for a text that the entry contains."""

    key: str
    values: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")
    """The bounds of a quantity, both included."""
    negated: bool = False


def parse_filter(text: str) -> tuple[FilterTerm, ...]:
    """Return the terms of a filter. Raises `FilterError`."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(f"the filter has {len(text)} characters", f"use at most {MAX_CHARACTERS}")
    terms: list[FilterTerm] = []
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        assert found is not None, "it matches any text"
        if found["quoted"] is not None and not found["end"]:
            raise FilterError(f"the quotation {found['quoted'][:50]!r} has no end", 'add " at its end')
        place = max(found.end(), place + 1)
        terms.append(_term(found))
    if len(terms) > MAX_TERMS:
        raise FilterError(f"the filter has {len(terms)} terms", f"use at most {MAX_TERMS}")
    return tuple(terms)


def _term(found: re.Match[str]) -> FilterTerm:
    negated = bool(found["not"])
    quoted = found["quoted"]
    value = found["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    key, operator = (found["key"] or "").lower(), found["operator"] or ""
    if key and key not in _KEYS:
        if operator == ":" and value.startswith("//"):  # a URL is a text
            return FilterTerm("", (found.group().strip().removeprefix("-"),), negated=negated)
        raise FilterError(f"unknown key {key!r}", f'the keys are {", ".join(_KEYS)}; quote a text: "{key}{operator}…"')
    if not value:
        what = f"{key}{operator} has no value" if key else "a minus sign stands alone"
        raise FilterError(what, f"for example {_EXAMPLES.get(key, '-kind:stderr')}")
    if not key:
        return FilterTerm("", (value,), negated=negated)
    if key in QUANTITIES or key in NUMBERS:
        low, high = _bounds(key, operator, value)
        return FilterTerm(key, low=low, high=high, negated=negated)
    if operator != ":":
        raise FilterError(f"{key} cannot be compared with {operator}", f"for example {_EXAMPLES[key]}")
    values = (value,) if quoted is not None else tuple(part for part in value.split(",") if part)
    for each in values:
        _check_choice(key, each)
    return FilterTerm(key, tuple(each.lower() for each in values), negated=negated)


_EXAMPLES = {
    "method": "method:tools/call", "name": "name:search*", "id": "id:7", "kind": "kind:request,response",
    "direction": "direction:sent", "status": "status:error", "type": "type:invalid", "connection": "connection:2",
    "row": "row>100", "span": "span:3", "time": "time>500ms", "at": "at:10s..20s", "size": "size>10kB",
}  # fmt: skip


def _check_choice(key: str, value: str) -> None:
    choices = CHOICES.get(key)
    if choices is None or value.lower() in choices:
        return
    if key == "status" and re.fullmatch(r"-?\d{1,9}|[1-5]xx", value.lower()):
        return
    more = ", a code such as -32602 or 404, or 4xx" if key == "status" else ""
    raise FilterError(f"unknown {key} {value[:50]!r}", f"choose {', '.join(choices)}{more}")


def _bounds(key: str, operator: str, value: str) -> tuple[float, float]:
    """Return the least and the greatest value that match."""
    if operator == ":" and ".." in value:
        first, _, last = value.partition("..")
        return _quantity(key, first), _quantity(key, last)
    number = _quantity(key, value)
    if operator == ":" and key in ("time", "at"):
        raise FilterError(f"{key} needs a comparison", f"for example {_EXAMPLES[key]}")
    least = abs(number) * 1e-9 + 1e-12
    return {
        ":": (number, number),
        ">": (number + least, float("inf")),
        ">=": (number, float("inf")),
        "<": (float("-inf"), number - least),
        "<=": (float("-inf"), number),
    }[operator]


def _quantity(key: str, value: str) -> float:
    units = QUANTITIES.get(key, {"": 1.0})
    found = _QUANTITY.fullmatch(value)
    if found is None or found[2].lower() not in units:
        names = ", ".join(f"1{unit}" for unit in units)
        raise FilterError(f"{value[:50]!r} is no value of {key}", f"write {names}; for example {_EXAMPLES[key]}")
    return float(found[1]) * units[found[2].lower()]


def pattern(value: str) -> re.Pattern[str]:
    """Return the expression of a value in which `*` stands for any text."""
    return re.compile(translate(value.replace("[", "[[]").replace("?", "[?]")), re.IGNORECASE)

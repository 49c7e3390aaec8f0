"""One change of what a server offers, and what it means for those who use the server already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from accord.messages.base import JSONValue

Kind: TypeAlias = Literal["breaking", "risky", "safe"]
"""`breaking`: what worked fails, or loses its meaning. `risky`: it may, or a model may act in another way. `safe`:
nobody who keeps to the protocol notices, but for what is new.
"""

KINDS: tuple[Kind, ...] = ("breaking", "risky", "safe")
"""The worst first."""

_LONGEST = 120
"""Characters of a value that are shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Where, what, and why it is of this kind."""

    kind: Kind
    place: str
    """Keys from the outside in, joined by dots: `tools.forecast.inputSchema.properties.days`."""
    what: str
    """What changed: `"string" → "integer"`."""
    why: str
    """What follows from it."""


def worst_kind(changes: Iterable[Change]) -> Kind:
    """The worst kind among them; `safe` for none."""
    found = {change.kind for change in changes}
    return next((kind for kind in KINDS if kind in found), "safe")


def change(kind: Kind, path: Sequence[str], what: str, why: str) -> Change:
    """A change at a place, whose keys are given one by one."""
    return Change(kind=kind, place=".".join(path), what=what, why=why)


def describe_change(was: JSONValue, now: JSONValue) -> str:
    """`1 → 2`; what is None was not there."""
    return f"{'none' if was is None else preview_json(was)} → {'none' if now is None else preview_json(now)}"


def preview_json(value: JSONValue) -> str:
    """A value as JSON, shortened."""
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

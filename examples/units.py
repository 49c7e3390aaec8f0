"""Plain functions that know nothing of MCP. `modules.py` makes tools of them."""

from __future__ import annotations

from typing import Annotated

MILES = 1.609344


def to_miles(kilometres: float) -> float:
    """A distance in miles."""
    return round(kilometres / MILES, 3)


def to_kilometres(miles: float) -> float:
    """A distance in kilometres."""
    return round(miles * MILES, 3)


def pace(kilometres: float, minutes: Annotated[float, "how long it took"]) -> str:
    """How fast a run was, in minutes for each kilometre."""
    whole, part = divmod(round(minutes * 60 / kilometres), 60)
    return f"{whole}:{part:02} min/km"


def longest(*kilometres: float) -> float:
    """The longest of some runs. `*kilometres` have no names, so this is no tool."""
    return max(kilometres)

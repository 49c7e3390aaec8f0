"""Plain functions without MCP. `modules.py` makes tools of them."""

from __future__ import annotations

from typing import Annotated

MILES = 1.609344


def to_miles(kilometres: float) -> float:
    """Return a distance in miles."""
    return round(kilometres / MILES, 3)


def to_kilometres(miles: float) -> float:
    """Return a distance in kilometres."""
    return round(miles * MILES, 3)


def pace(kilometres: float, minutes: Annotated[float, "how long it took"]) -> str:
    """Return the pace of a run in minutes per kilometre."""
    whole, part = divmod(round(minutes * 60 / kilometres), 60)
    return f"{whole}:{part:02} min/km"


def longest(*kilometres: float) -> float:
    """Return the longest of some runs. `*kilometres` has no argument names, so this cannot be a tool."""
    return max(kilometres)

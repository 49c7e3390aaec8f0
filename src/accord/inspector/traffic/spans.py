"""Spans: what takes time in a session. A connection, a call with all its rounds, a stream, a subscription.

The table has a column for each property, because there may be a hundred thousand spans.
"""

from __future__ import annotations

from array import array
from math import nan
from typing import Literal, TypeAlias

SpanKind: TypeAlias = Literal["connection", "call", "server request", "subscription", "stream"]

SPAN_KINDS: tuple[SpanKind, ...] = ("connection", "call", "server request", "subscription", "stream")
CONNECTION, CALL, SERVER_REQUEST, SUBSCRIPTION, STREAM = range(5)

NO_SPAN = -1


class SpanTable:
    """The spans of a session, in the order of their beginning."""

    def __init__(self) -> None:
        self.kinds: array[int] = array("B")
        self.connections: array[int] = array("I")
        self.first_rows: array[int] = array("I")
        self.last_rows: array[int] = array("I")
        self.begins: array[float] = array("d")
        self.ends: array[float] = array("d")
        """The seconds of the end; NaN while it is open."""
        self.rounds: array[int] = array("H")
        """How often the request of a call was sent."""
        self.outcomes: array[int] = array("B")

    def __len__(self) -> int:
        return len(self.outcomes)

    def begin(self, kind: int, connection: int, row: int, at: float, outcome: int) -> int:
        """Add a span, and return its number."""
        self.kinds.append(kind)
        self.connections.append(connection)
        self.first_rows.append(row)
        self.last_rows.append(row)
        self.begins.append(at)
        self.ends.append(nan)
        self.rounds.append(1)
        self.outcomes.append(outcome)
        return len(self.outcomes) - 1

    def add_row(self, span: int, row: int) -> None:
        """Add a row to a span."""
        self.last_rows[span] = row

    def add_round(self, span: int, outcome: int) -> None:
        """Open a call again: its request is sent with what was missing."""
        self.rounds[span] = min(self.rounds[span] + 1, 65_535)
        self.ends[span] = nan
        self.outcomes[span] = outcome

    def end(self, span: int, at: float, outcome: int) -> None:
        """End a span."""
        self.ends[span] = at
        self.outcomes[span] = outcome

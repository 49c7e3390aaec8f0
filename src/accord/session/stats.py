"""Counters of the messages of one connection."""

from __future__ import annotations

import msgspec


class Stats(msgspec.Struct):
    """Counters since the start of the connection; read them as `connection.stats`."""

    received: int = 0
    """Incoming messages (a batch counts as one)."""
    requests_received: int = 0
    requests_sent: int = 0
    answers_received: int = 0
    answers_sent: int = 0
    """Results and errors."""
    errors_sent: int = 0
    cancels_received: int = 0
    cancels_sent: int = 0
    progress_received: int = 0
    progress_sent: int = 0
    progress_held: int = 0
    """Progress notifications that were coalesced, did not increase, or came after the end of the request."""
    late_answers: int = 0
    """Responses to requests that this side had cancelled or abandoned."""
    duplicate_answers: int = 0
    unknown_answers: int = 0
    malformed: int = 0
    """Invalid messages."""
    ignored: int = 0
    """Notifications that do not apply here, and responses without an id."""
    dropped_results: int = 0
    """Results of requests that the peer had cancelled."""

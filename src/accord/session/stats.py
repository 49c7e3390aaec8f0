"""What passed, and what was dropped: counters of one connection."""

from __future__ import annotations

import msgspec


class Stats(msgspec.Struct):
    """Counters since the connection began; read them as `connection.stats`."""

    received: int = 0
    """Messages that came in (a batch is one)."""
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
    """Reports coalesced, or not increasing, or after the end."""
    late_answers: int = 0
    """Answers to requests that we had cancelled or given up."""
    duplicate_answers: int = 0
    unknown_answers: int = 0
    malformed: int = 0
    """Messages that were none."""
    ignored: int = 0
    """Notifications without meaning here, and answers without an id."""
    dropped_results: int = 0
    """Results of requests that the peer had cancelled."""

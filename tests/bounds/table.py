"""The table of limits: for each limit one row, which goes up to the limit, and beyond it by one.

A row is a function `(over, extra)`. `over` is the transport, or what else the row is repeated for; `extra` is 0 at the
limit and 1 above it. It returns an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from accord import ClientLimits, HTTPLimits, Limits, TaskLimits

GROUPS: dict[str, Any] = {
    "Limits": Limits,
    "HTTPLimits": HTTPLimits,
    "ClientLimits": ClientLimits,
    "TaskLimits": TaskLimits,
}


class Outcome(NamedTuple):
    """What happened to one request: why it was refused, and the bytes of the request and of its answer."""

    refused: str = ""
    sent: int = 0
    received: int = 0


Work = Callable[[str, int], Awaitable[Outcome]]


class Row(NamedTuple):
    limit: str
    over: str
    work: Work
    name: str
    """What the error names: the limit, or the argument that replaces it. Empty: something is dropped or cut."""

    def __repr__(self) -> str:
        return f"{self.limit} {self.over}".rstrip()


ROWS: list[Row] = []


def refuses(limit: str, *over: str, name: str = "") -> Callable[[Work], Work]:
    """Add a row: above the limit, an error names it, or the argument `name` that replaces it for one call."""
    return _adding(limit, over, name or limit.partition(".")[2])


def drops(limit: str, *over: str) -> Callable[[Work], Work]:
    """Add a row: above the limit, something is dropped, cut, or ended; `Outcome.refused` says what."""
    return _adding(limit, over, "")


def _adding(limit: str, over: tuple[str, ...], name: str) -> Callable[[Work], Work]:
    def add(work: Work) -> Work:
        ROWS.extend(Row(limit, each, work, name) for each in over or ("",))
        return work

    return add


_SERVER, _HTTP = "tests/server/", "tests/server/http/"
ELSEWHERE: dict[str, str] = {
    "Limits.answer_seconds": _SERVER
    + "input/test_limits.py::test_a_handler_waits_as_long_as_the_limit_and_is_ended_then",
    "Limits.parked": _SERVER
    + "input/test_limits.py::test_one_principal_suspends_so_many_handlers_and_one_more_ends_the_oldest",
    "HTTPLimits.parked_per_address": _HTTP
    + "test_quotas.py::test_calls_that_were_ended_to_make_room_hold_no_request_and_leave_one_timer",
    "HTTPLimits.parked": _HTTP + "test_request_body.py::test_anonymous_clients_have_bounds_of_their_own_for_what_waits",
    "HTTPLimits.unsent_bytes": _HTTP
    + "test_connections.py::test_unread_answers_are_bounded_and_the_address_with_most_of_them_is_cut",
    "HTTPLimits.bodies_bytes": _HTTP + "test_body_budget.py::test_a_large_request_counts_until_it_is_answered",
    "HTTPLimits.bodies_bytes_per_address": _HTTP + "test_body_budget.py::test_one_address_does_not_take_it_all",
    "HTTPLimits.events_bytes": "tests/store/test_contract.py::"
    "test_over_the_bytes_of_a_session_its_oldest_events_are_dropped_and_that_is_reported",
    "HTTPLimits.events_total_bytes": "tests/store/test_contract.py::"
    "test_over_the_total_the_session_written_longest_ago_gives_way",
    "HTTPLimits.events_seconds": "tests/store/test_contract.py::"
    "test_a_stream_is_stored_for_a_while_after_it_ended_and_an_open_one_longer",
    "HTTPLimits.session_kept_seconds": "tests/store/test_contract.py::test_an_unused_session_is_dropped_in_the_end",
}
"""Limits whose row is another test, because it needs processes, sockets, or many clients in a certain order."""

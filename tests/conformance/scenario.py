"""What a scenario is, and which of the official suite there are.

A scenario is a function that plays with a `Peer` and asserts what the suite checks, in our words; it is played in each
revision that has what it is about, also in those that the suite leaves out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from accord.messages.revision import REVISIONS, is_in_revision

from tests.conformance.peer import Peer

Play = Callable[[Peer], Awaitable[None]]


class Scenario(NamedTuple):
    """One scenario of the suite, by the suite's name; the docstring of `play` says what it is about."""

    name: str
    play: Play
    revisions: tuple[str, ...]
    opens: bool
    """The opening is not part of it."""


SCENARIOS: dict[str, Scenario] = {}
"""Those that a server plays here, by name."""


def scenario(
    name: str, *, since: str | None = None, until: str | None = None, opens: bool = True
) -> Callable[[Play], Play]:
    """Make a function the scenario of that name, in the revisions from `since` up to, but not with, `until`."""

    def note(play: Play) -> Play:
        revisions = tuple(revision for revision in REVISIONS if is_in_revision(revision, since, until))
        SCENARIOS[name] = Scenario(name, play, revisions, opens)
        return play

    return note


_AUTHORIZATION_SERVER = "authorization servers: `OAuthProxy`, over HTTP"
_TASKS = "tasks extension: test_tasks.py"

ELSEWHERE: dict[str, str] = {
    "dns-rebinding-protection": "Host and Origin headers",
    "http-custom-header-server-validation": "Mcp-Param-* headers",
    "http-custom-headers": "Mcp-Param-* headers",
    "http-header-validation": "MCP-Protocol-Version, Mcp-Method and Mcp-Name headers",
    "http-invalid-tool-headers": "x-mcp-header, which has a meaning only over HTTP",
    "http-standard-headers": "Mcp-Method and Mcp-Name headers",
    "server-session-lifecycle": "Mcp-Session-Id and DELETE",
    "server-sse-multiple-streams": "several SSE streams at once",
    "server-sse-polling": "SSE events, `retry` and Last-Event-ID",
    "sse-retry": "SSE `retry` and Last-Event-ID",
    **dict.fromkeys(
        (
            "tasks-capability-negotiation",
            "tasks-dispatch-and-envelope",
            "tasks-lifecycle",
            "tasks-mrtr-composition",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-request-state-removal",
            "tasks-required-task-error",
            "tasks-status-notifications",
            "tasks-wire-fields",
        ),
        _TASKS,
    ),
    **dict.fromkeys(
        ("authorization-code-grant", "authorization-server-metadata-endpoint"),
        _AUTHORIZATION_SERVER,
    ),
    "auth/*": "OAuth",
    "sep-2640-*": "skills extension: test_skills.py",
}
"""Scenarios that are not played in memory, and what they are about: HTTP, where the suite itself plays them, or what
accord does not have."""

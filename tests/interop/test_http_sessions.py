"""Calls that last, over HTTP, with other people's clients: given up, taken up again, and the end of a session.

The clients play servers/sessions_story.py against servers/accord_sessions.py.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from tests.interop.conftest import RunClient
from tests.interop.peers import PROGRAMS, Sdk, TypeScript
from tests.interop.serving import serving

SERVER = [sys.executable, str(PROGRAMS / "accord_sessions.py")]

SESSION, PER_REQUEST = "2025-11-25", "2026-07-28"

PEERS: list[tuple[Sdk | TypeScript, str | None, str]] = [
    ("mcp2", PER_REQUEST, PER_REQUEST),
    ("mcp2", SESSION, SESSION),
    ("mcp1", None, SESSION),
    ("ts1", None, SESSION),
    ("ts2", SESSION, SESSION),
    ("ts2", None, PER_REQUEST),
]
"""A client, the revision it is told to speak, and the one that is spoken then."""


class Saw(NamedTuple):
    """What a peer client saw, and the access log of the server."""

    sdk: str
    revision: str
    seen: dict[str, Any]
    log: list[dict[str, Any]]

    def answered(self, method: str) -> list[int]:
        """The status of each request with that method."""
        return [entry["status"] for entry in self.log if entry["method"] == method]


RESOLUTION = 0.001
"""Seconds of the time in a log entry."""


def begun(entry: dict[str, Any]) -> float:
    """When a request came: the order of entries is that of the ends."""
    return datetime.fromisoformat(entry["time"]).timestamp() - entry["ms"] / 1000


@pytest.fixture(scope="module", params=PEERS, ids=[f"{sdk}-{told or 'by-itself'}" for sdk, told, _ in PEERS])
def saw(request: pytest.FixtureRequest, run_client: RunClient) -> Saw:
    sdk, told, spoken = request.param
    speaks = ["--revision", told] if told else []
    with serving(SERVER) as server:
        done = run_client(sdk, "sessions_client", *speaks, "--", f"{server.url}/mcp")
        assert done.returncode == 0, f"the {sdk} client failed:\n{done.stderr[-4000:]}\n{server.said}"
        assert server.end() == 0
        log = [json.loads(line) for line in server.said.splitlines() if line.startswith("{")]
    seen = json.loads(done.stdout)
    assert seen["revision"] == spoken
    return Saw(sdk, spoken, seen, log)


def test_a_call_that_is_given_up_is_cancelled_in_the_server(saw: Saw) -> None:
    assert saw.seen["cancelled"] == "cancelled"


def test_a_client_whose_stream_ends_early_comes_back_for_the_answer(saw: Saw) -> None:
    assert saw.seen["polled"] == "polled"
    taken_up = saw.answered("GET")
    if saw.revision == SESSION:
        assert taken_up.count(200) >= 2  # the stream of the session, and that of the call
        (ended,) = [begun(entry) for entry in saw.log if entry["method"] == "DELETE"]
        refused = [entry for entry in saw.log if entry["method"] == "GET" and entry["status"] != 200]
        assert [entry for entry in refused if begun(entry) < ended - RESOLUTION] == []
        # TypeScript may come back once more after DELETE: without its session, or with the one that has ended.
        assert {*taken_up} <= {200, 400, 404}
    else:
        assert taken_up == []


def test_a_session_ends_with_its_client(saw: Saw) -> None:
    assert saw.answered("DELETE") == ([200] if saw.revision == SESSION else [])


@pytest.mark.parametrize("saw", [("ts1", None, SESSION), ("ts2", SESSION, SESSION)], indirect=True)
def test_a_call_goes_on_over_another_connection_and_loses_nothing(saw: Saw) -> None:
    assert saw.seen["resumed"] == {"steps": ["one", "two", "three"], "answer": "all three"}


@pytest.mark.parametrize("saw", [("ts1", None, SESSION), ("ts2", SESSION, SESSION)], indirect=True)
def test_a_session_that_was_ended_is_not_found(saw: Saw) -> None:
    assert "unknown session: it has expired or ended" in saw.seen["afterwards"]["error"]["message"]
    assert saw.answered("POST")[-1] == 404

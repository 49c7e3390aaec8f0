"""The official conformance suite, whole: examples/everything.py as the server, client.py as the client, over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.suite import (
    CLIENT_REVISIONS,
    REVISIONS,
    Report,
    play_alone,
    play_client,
    play_server,
    play_together,
    serving,
    wanted,
)

PATIENCE = pytest.mark.timeout(400)
"""A run takes some 10 s when nothing else does."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for both revisions; it has to end well, too."""
    with serving() as url:
        yield url


def check(report: Report, record_property: Callable[[str, object], None]) -> None:
    """Nothing is missing; the score is shown also where all is well."""
    record_property("told", report.score())
    faults = "\n".join(report.faults())
    assert not faults, faults


@PATIENCE
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_passes_every_scenario(
    revision: str, url: str, record_property: Callable[[str, object], None]
) -> None:
    check(play_server(url, revision), record_property)


@PATIENCE
@pytest.mark.parametrize("revision", CLIENT_REVISIONS)
def test_the_client_passes_every_scenario(revision: str, record_property: Callable[[str, object], None]) -> None:
    report = play_client(revision)
    assert report.played, "the suite has no scenario of this revision"
    check(report, record_property)


EXTENSIONS = 6
"""Scenarios of authorization that are about extensions: they are in both of the newest revisions."""


@pytest.mark.parametrize(
    ("revision", "scenarios"), [("2025-03-26", 2), ("2025-11-25", 14 + EXTENSIONS), ("2026-07-28", 25 + EXTENSIONS)]
)
def test_no_scenario_of_authorization_is_left_out(revision: str, scenarios: int) -> None:
    assert sum(name.startswith("auth/") for name in wanted("client", revision)) == scenarios


# --- what the suite lets through is noticed --------------------------------------------------------------------------


def test_a_client_that_does_nothing_is_noticed() -> None:
    played = play_alone("initialize", "2025-11-25", [sys.executable, "-c", "pass"])
    assert "initialize: nothing was looked at" in [*played.faults()]


def test_a_client_that_fails_says_why() -> None:
    played = play_alone("initialize", "2025-11-25", [sys.executable, "-c", "1/0"])
    assert "ZeroDivisionError" in [*played.faults()][-1]


def test_a_client_that_fails_is_played_again_alone() -> None:
    assert play_together("2025-11-25", ["false"]) == {}


def test_clients_that_do_nothing_are_noticed_together() -> None:
    played = play_together("2025-11-25", ["true"])
    assert "initialize: nothing was looked at" in [*played["initialize"].faults()]
    assert all([*each.faults()] for each in played.values())


def test_a_client_that_never_ends_is_ended() -> None:
    forever = "import threading;threading.Event().wait()"
    played = play_alone("initialize", "2025-11-25", [sys.executable, "-c", forever], seconds=3)
    assert [*played.faults()][-1].startswith("initialize: not over after 3 s")


def test_a_server_that_is_not_there_passes_nothing() -> None:
    report = play_server("http://127.0.0.1:9/mcp", "2026-07-28")
    assert all([*played.faults()] for played in report.played)

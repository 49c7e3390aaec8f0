"""The scenarios of the extension Tasks (SEP-2663) of the official suite: examples/tasks.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.conformance.suite import play_server_alone, serving
from tests.interop.peers import ROOT

REVISION = "2026-07-28"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving((sys.executable, str(ROOT / "examples" / "tasks.py"), "127.0.0.1:0")) as url:
        yield url


@pytest.mark.parametrize(
    "name",
    [
        "capability-negotiation",
        "dispatch-and-envelope",
        "lifecycle",
        "mrtr-composition",
        "mrtr-input",
        "request-headers",
        "request-state-removal",
        "required-task-error",
        "wire-fields",
    ],
)
def test_the_server_passes(name: str, url: str) -> None:
    """The tenth, tasks-status-notifications, is always skipped by the suite: tests/server/tasks has its own test."""
    played = play_server_alone(url, f"tasks-{name}", REVISION)
    assert not [*played.faults()]
    assert not played.count("SKIPPED")

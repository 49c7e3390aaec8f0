"""The time limits of hosts in tests: a busy machine may take longer than 10 s to start two processes."""

from __future__ import annotations

import pytest

from tests.waiting import SECONDS


@pytest.fixture(autouse=True)
def long_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hosts wait for their servers; tests of the limits set their own."""
    for name in ("host._START_SECONDS", "host._LIST_SECONDS", "hosted_server._LIST_SECONDS"):
        monkeypatch.setattr(f"accord.host.{name}", SECONDS)

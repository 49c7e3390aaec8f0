"""A clock that the tests move, for the loop and for the asking machinery."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from accord.server.input import request_state, suspended_calls

from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock to move."""
    made = Clock()
    for module in (suspended_calls, request_state):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time, monotonic=made.monotonic))
    return made

"""A clock that the tests move, for the loop and for the asking machinery."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from accord.server.asking import runs, state

from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock to move."""
    made = Clock()
    for module in (runs, state):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time, monotonic=made.monotonic))
    return made

"""The end of an inspector."""

from __future__ import annotations

import asyncio

import pytest

from accord import Server
from accord.inspector import Inspector
from accord.inspector.servers import InspectedServer


async def test_no_recorded_traffic_stays_if_the_user_does_not_wait_for_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def disconnect(self: InspectedServer) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(InspectedServer, "disconnect", disconnect)
    inspector = Inspector(Server("desk"))
    folder = inspector.workspace.folder
    closing = asyncio.create_task(inspector.close())
    await begun.wait()
    assert folder.exists()
    closing.cancel()  # Ctrl-C
    await asyncio.wait([closing])
    assert not folder.exists()

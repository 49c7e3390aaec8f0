"""gunicorn with two workers: requests of one client reach both of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from accord import Client

from tests.interop.hosting import GUNICORN, Hosted, Place, hosted
from tests.server.http.http_clients import Modern

WEATHER = """
import os
from accord import HTTPOptions, Server

server = Server("weather")
server.tool("worker")(lambda: os.getpid())
stateless = server.asgi(HTTPOptions(stateless=True))
"""


async def workers(serving: Hosted, revision: str) -> set[int]:
    """Call until both workers have answered, each time with connections of its own; who they are."""
    seen: set[int] = set()
    while len(seen) < 2:
        async with Client(f"http://127.0.0.1:{serving.port}/mcp", revisions=[revision], timeout=100) as client:
            for _ in range(4):
                seen.add((await client.call_tool("worker")).data)
    return seen


@pytest.mark.parametrize(("target", "revision"), [("app", "2026-07-28"), ("stateless", "2025-11-25")])
async def test_every_call_succeeds_whichever_worker_it_reaches(target: str, revision: str, tmp_path: Path) -> None:
    program = WEATHER + ("app = server.app\n" if target == "app" else "app = stateless\n")
    (tmp_path / "weather.py").write_text(program)
    with hosted(GUNICORN, Place("weather:app"), tmp_path) as serving:
        found = await workers(serving, revision)
    assert serving.process.pid not in found
    assert len(found) == 2


async def test_an_open_stream_does_not_hold_up_the_end_for_long(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(WEATHER + "app = server.app\n")
    place = Place("weather:app", options=("--graceful-timeout", "1"))
    with hosted(GUNICORN, place, tmp_path) as serving:
        stream = await Modern(serving.raw).ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await stream.message()
        serving.process.terminate()
        assert await asyncio.to_thread(serving.process.wait, 20) == 0  # and not after gunicorn's own 30 s
        await stream.leave()

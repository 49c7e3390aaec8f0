"""Sessions with servers on other people's SDKs are recorded, and replayed: to them, and to their clients."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from accord import Client, ClientLimits, Limits, ProtocolError
from accord.testing import RecordedServer, replay
from accord.testing.recording import read_recorded
from accord.wire.session_file import ConnectedEntry, HTTPEntry, MessageEntry

from tests.interop.conftest import Watch
from tests.interop.peers import SDKS, peer_server
from tests.interop.servers.story import CALLS, URIS
from tests.interop.serving import serving

LIMITS = Limits(client=ClientLimits(probe_seconds=20))


async def tell(target: Any, **options: Any) -> list[str]:
    """Play the story of the peer clients; return what the server said."""
    said: list[str] = []
    async with Client(target, limits=LIMITS, timeout=60, **options) as client:
        said.append(client.revision)
        await client.ping()
        said.append(str(client.server_info))
        said += [str(tool) for tool in await client.list_tools()]
        said += map(str, await client.list_resources())
        said += map(str, await client.list_resource_templates())
        said += map(str, await client.list_prompts())
        for name, arguments in CALLS.items():
            progress: list[float] = []
            result = await client.call_tool(name, arguments, on_progress=lambda done, *_, to=progress: to.append(done))
            said += [str(result.content), str(progress)]
        together = (client.call_tool("echo", {"text": str(number)}) for number in range(20))
        said += [result.text for result in await asyncio.gather(*together)]
        for uri in URIS:
            said.append(str((await client.read_resource(uri)).contents))
        said.append(str(await client.get_prompt("plan", {"city": "Oslo"})))
        for name in ("echo", "nothing"):
            said.append(await outcome(client.call_tool(name, {})))
        said.append(await outcome(client.read_resource("nothing://here")))
        said.append(await outcome(client.get_prompt("nothing", {})))
    return said


async def outcome(work: Awaitable[Any]) -> str:
    """A result, or the error in its place."""
    try:
        return str(await work)
    except ProtocolError as exc:
        return f"{exc.code} {exc.message}"


@pytest.mark.parametrize("sdk", SDKS)
async def test_a_session_over_stdio_is_replayed(sdk: Any, tmp_path: Path) -> None:
    file = tmp_path / "peer.jsonl"
    said = await tell(peer_server(sdk), record=file)
    assert await tell(RecordedServer(file)) == said
    replay(file, peer_server(sdk), timeout=60)


@pytest.mark.parametrize("way", ["mcp", "stateless", "sse"])
@pytest.mark.parametrize("sdk", SDKS)
async def test_a_session_over_http_is_replayed(sdk: Any, way: str, tmp_path: Path) -> None:
    file = tmp_path / "peer.jsonl"
    with serving([*peer_server(sdk), way]) as at:
        said = await tell(f"{at.url}/{'sse' if way == 'sse' else 'mcp'}", record=file)
    entries = read_recorded(file).entries
    assert {type(entry) for entry in entries} >= {ConnectedEntry, HTTPEntry, MessageEntry}
    assert await tell(RecordedServer(file)) == said


@pytest.mark.parametrize("sdk", SDKS)
async def test_a_peer_client_receives_the_recorded_session(sdk: Any, watch: Watch, tmp_path: Path) -> None:
    file = tmp_path / "peer.jsonl"
    command = peer_server(sdk)
    seen = watch(sdk, command)
    await tell(command, revisions=[seen["revision"]], record=file)
    replayed = watch(sdk, [sys.executable, "-m", "accord", "replay", str(file)])
    for each in (seen, replayed):
        if each["revision"] == "2026-07-28":
            del each["ping"]  # not a method of that revision
    assert replayed == seen

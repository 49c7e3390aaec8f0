"""A recording is served over HTTP, in every revision, as the server did it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from accord.client.target import Remote
from accord.limits import DEFAULT_LIMITS
from accord.messages.revision import REVISIONS
from accord.server.http.serving.address import bind, bound_address, parse_address
from accord.server.http.serving.serve import serving
from accord.testing import RecordedServer, served_over_http
from accord.testing.recorded_app import RecordedApp
from accord.wire.session_file import HTTPEntry, SessionHeader, encode_line, message_entry

from tests.testing.shops import shop
from tests.testing.test_transcripts import follow, recorded, talk


@asynccontextmanager
async def served(file: Path) -> AsyncIterator[str]:
    """The URL of a recording."""
    address = parse_address("127.0.0.1:0")
    sockets = bind(address)
    async with serving(RecordedApp(RecordedServer(file)), sockets, DEFAULT_LIMITS):
        yield f"http://{bound_address(address, sockets)}"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_receives_the_same_over_http(revision: str, tmp_path: Path) -> None:
    file = await recorded(tmp_path, revision, "jsonl")
    told = await talk(shop(), revision)
    async with served(file) as url:
        for _ in range(2):
            assert sorted(await talk(f"{url}/mcp", revision)) == sorted(told)


async def test_a_client_receives_the_same_over_sse(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2024-11-05", "jsonl")
    told = await talk(shop(), "2024-11-05")
    async with served(file) as url:
        assert sorted(await talk(Remote(f"{url}/sse", None, True), "2024-11-05")) == sorted(told)


async def test_clients_do_not_share_a_session(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-11-25", "jsonl")
    told = sorted(await talk(shop(), "2025-11-25"))
    async with served(file) as url:
        all_told = await asyncio.gather(*(talk(f"{url}/mcp", "2025-11-25") for _ in range(3)))
    assert [sorted(each) for each in all_told] == [told] * 3


@pytest.mark.parametrize("revision", [REVISIONS[3], REVISIONS[-1]])
async def test_a_subscription_is_held_again_over_http(revision: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    with served_over_http(shop()) as url:
        event = await follow(url, revision, record=file)
    async with served(file) as url:
        assert await follow(f"{url}/mcp", revision) == event


async def test_the_status_of_an_error_is_that_of_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/nothing"}'
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"nothing"}}'
    entries = [
        SessionHeader(version=1, at=""),
        message_entry(request, "sent", connection=1, exchange=1),
        HTTPEntry(connection=1, direction="received", exchange=1, status=404),
        message_entry(error, "received", connection=1, exchange=1),
    ]
    file.write_bytes(b"".join(map(encode_line, entries)))
    async with (
        served(file) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/mcp", data=request) as response,
    ):
        assert response.status == 404
        assert (await response.json())["error"]["code"] == -32601


REFUSED: list[tuple[str, str, dict[str, str], bytes, int]] = [
    ("GET", "/other", {}, b"", 404),
    ("GET", "/mcp", {}, b"", 405),
    ("POST", "/mcp", {}, b"no JSON", 400),
    ("POST", "/mcp", {"Mcp-Session-Id": "unknown"}, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 404),
    ("POST", "/mcp", {"Origin": "https://evil.example"}, b"{}", 403),
    ("POST", "/mcp", {"Host": "evil.example"}, b"{}", 403),
    ("POST", "/messages?session=unknown", {}, b"{}", 404),
    ("POST", "/mcp", {}, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 202),
]


@pytest.mark.parametrize(("method", "path", "headers", "body", "status"), REFUSED)
async def test_other_requests_are_refused(
    method: str, path: str, headers: dict[str, str], body: bytes, status: int, tmp_path: Path
) -> None:
    file = await recorded(tmp_path, "2026-07-28", "jsonl")
    async with (
        served(file) as url,
        aiohttp.ClientSession() as session,
        session.request(method, url + path, headers=headers, data=body) as response,
    ):
        assert response.status == status


async def test_a_batch_is_answered(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-03-26", "jsonl")
    batch: list[dict[str, Any]] = [{"jsonrpc": "2.0", "id": id, "method": "tools/list"} for id in ("a", "b")]
    async with (
        served(file) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/mcp", json=batch) as response,
    ):
        text = await response.text()
    assert text.count('"tools"') == 2
    assert '"id":"a"' in text
    assert '"id":"b"' in text

"""What only `accord dev --http` does."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from accord import Client, Reconnect
from accord.client.target import Command
from accord.dev.attach_socket import default_folder
from accord.dev.http import HTTPReloader
from accord.dev.http_processes import HTTPProcess, HTTPProcesses
from accord.dev.http_proxy import ReloadingProxy
from accord.dev.reporter import Reporter
from accord.dev.settings import DevSettings
from accord.errors import TargetError
from accord.limits import HTTPLimits, Limits

from tests.dev.programs import Program, text_of
from tests.measure import costs_at_most
from tests.waiting import until


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, "http")


async def test_an_address_that_other_machines_reach_is_refused(program: Program) -> None:
    program.write("one")
    reloader = HTTPReloader(program.command, "0.0.0.0:0", DevSettings(), show=print, show_stderr=print)
    with pytest.raises(TargetError, match=r"serves 127\.0\.0\.1 only"):
        await reloader.run()


def test_a_command_is_served_over_stdio_only() -> None:
    with pytest.raises(TargetError, match=r"--http needs FILE\.py"):
        HTTPReloader(Command(("node", "server.js")), ":0", DevSettings(), show=print, show_stderr=print)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_a_page_of_another_site_does_not_read_the_errors_of_the_program(
    program: Program, headers: dict[str, str]
) -> None:
    program.file.write_text("secret of the source (")
    async with program.served() as url, aiohttp.ClientSession() as session:
        async with session.post(url, json={}, headers=headers) as answer:
            assert answer.status == 403
            assert "secret" not in await answer.text()
        async with session.post(url, json={}) as answer:
            assert answer.status == 503


async def test_bodies_that_do_not_end_are_refused_in_time_and_hold_bounded_memory() -> None:
    limits = Limits(http=HTTPLimits(body_seconds=0.2, bodies_bytes=5_000_000))
    proxy = ReloadingProxy(HTTPProcesses("x.py", 1), Reporter("x.py", print), search=False, limits=limits)
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": [(b"host", b"[::1]")]}
    statuses: list[int] = []

    async def post(size: int) -> None:
        parts = [{"type": "http.request", "body": b" " * size, "more_body": True}]

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.sleep(60)

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await proxy(scope | {"client": ("::1", 1)}, receive, send)

    async with asyncio.timeout(20):
        await asyncio.gather(*(post(3_000_000) for _ in range(2)))
        await post(3_000_000)
    assert statuses == [503, 408, 408]


LARGE = """
@server.tool()
async def large(size: int, ctx: Context) -> str:
    ctx.report_progress(1)
    return "x" * size
"""


async def test_a_large_event_takes_linear_time(program: Program) -> None:
    program.write("one", LARGE)
    async with program.connected("2026-07-28") as client:
        with costs_at_most(200):
            result = await client.call_tool("large", {"size": 8 << 20}, on_progress=lambda *_: None)
        assert len(result.text) == 8 << 20


async def test_a_client_of_http_sse_gets_its_answers_and_then_the_new_version(program: Program) -> None:
    """Its session is in one process, and cannot move: the stream ends once its calls are answered."""
    program.write("one")
    go = program.folder / "go"
    lost: list[Any] = []
    async with (
        program.served() as url,
        Client(
            url.replace("/mcp", "/sse"),
            revisions=["2024-11-05"],
            reconnect=Reconnect(),
            on_state=lambda state, exc: lost.append(exc) if exc is not None else None,
        ) as client,
    ):
        waiting = asyncio.create_task(text_of(client, "wait", file=str(go)))
        await until(lambda: _unanswered(program))
        program.write("two")
        await program.until_reloaded()
        assert await text_of(client, "version") == "one"
        await program.until_shown("tools/call version: accepted")
        assert not lost
        go.touch()
        assert await waiting == "one"
        await until(lambda: lost)
        assert await text_of(client, "version") == "two"
        assert [each.generation for each in _processes(program)] == [2]


async def test_no_reload_waits_for_a_cancelled_call_over_http_sse(program: Program) -> None:
    """Nothing answers it."""
    program.write("one")
    async with program.served() as url, Client(url.replace("/mcp", "/sse"), revisions=["2024-11-05"]) as client:
        waiting = asyncio.create_task(text_of(client, "wait", file=str(program.folder / "go")))
        await until(lambda: _unanswered(program))
        waiting.cancel()
        await until(lambda: not _unanswered(program))
        assert await text_of(client, "version") == "one"


def _processes(program: Program) -> list[HTTPProcess]:
    assert isinstance(program.reloader, HTTPReloader)
    processes = program.reloader._processes
    return [*processes.retired, *([processes.current] if processes.current is not None else [])]


def _unanswered(program: Program) -> list[Any]:
    return [id for each in _processes(program) for ids in each.unanswered.values() for id in ids]


@pytest.mark.skipif(os.name != "posix", reason="a process has no other parent after the death of its own")
async def test_the_program_ends_when_accord_dev_is_killed(program: Program) -> None:
    program.write("one", PID)
    command = [sys.executable, "-m", "accord", "dev", str(program.file), "--http", ":0"]
    environment = {**os.environ, "TMPDIR": str(program.folder)}
    dev = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=environment)
    assert dev.stderr is not None
    line = (await dev.stderr.readline()).decode()
    async with Client(line.split()[-1]) as client:
        pid = int(await text_of(client, "pid"))
    dev.kill()
    await dev.wait()
    await until(lambda: not _runs(pid))
    for left in default_folder().glob(f"{dev.pid}-*.sock"):
        left.unlink()


PID = """
@server.tool()
def pid() -> int:
    return os.getpid()
"""


@pytest.mark.skipif(os.name != "posix", reason="a process has no other parent after the death of its own")
@pytest.mark.parametrize("options", [[], ["--http", ":0"]], ids=["stdio", "http"])
async def test_a_program_that_hangs_at_import_ends_when_accord_dev_is_killed(
    program: Program, options: list[str]
) -> None:
    """It has not begun to read its input, whose end would tell it."""
    file = program.folder / "pid"
    program.file.write_text(f"import os, time\nopen({str(file)!r}, 'w').write(f'{{os.getpid()}} ')\ntime.sleep(1000)\n")
    command = [sys.executable, "-m", "accord", "dev", str(program.file), *options]
    environment = {**os.environ, "TMPDIR": str(program.folder)}
    pipe = asyncio.subprocess.PIPE
    dev = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    await until(lambda: file.exists() and file.read_text().endswith(" "))
    dev.kill()
    await dev.wait()
    await until(lambda: not _runs(int(file.read_text())))
    for left in default_folder().glob(f"{dev.pid}-*.sock"):
        left.unlink()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_head_request_is_answered_as_by_the_program(program: Program) -> None:
    program.write("one")
    async with program.served() as url, aiohttp.ClientSession() as session, session.head(url) as answer:
        assert answer.status == 405

"""`run_async(http=...)` on a loop that runs already: it is a guest there, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading

import pytest

from accord import HTTPOptions, Server


async def port_of(serving: asyncio.Task[None], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The port, and what was said, once a server has said its line."""
    said = ""
    while not (found := re.search(r"at http://[\w.]+:(\d+)/mcp", said)):
        if serving.done():
            serving.result()
        said += capfd.readouterr().err
        await asyncio.sleep(0)
    return int(found[1]), said


async def ask(port: int, path: str = "/health", host: str = "localhost") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


async def test_it_serves_until_a_signal_and_puts_the_handlers_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    threads = set(threading.enumerate())
    serving = asyncio.create_task(Server("guest").run_async(http=":0"))
    port, _ = await port_of(serving, capfd)
    assert (await ask(port)).startswith(b"HTTP/1.1 200")
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, 100)
    assert {number: signal.getsignal(number) for number in before} == before
    with pytest.raises(ConnectionError):
        await ask(port)
    started = set(threading.enumerate()) - threads
    for thread in started:  # a thread that was told to end may need a moment to do so
        thread.join(20)
    assert not [thread.name for thread in started if thread.is_alive()]


async def test_it_ends_when_its_task_is_cancelled(capfd: pytest.CaptureFixture[str]) -> None:
    serving = asyncio.create_task(Server("guest").run_async(http=":0"))
    port, _ = await port_of(serving, capfd)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(serving, 100)
    with pytest.raises(ConnectionError):
        await ask(port)


def test_on_another_thread_it_serves_without_signals(capfd: pytest.CaptureFixture[str]) -> None:
    async def short() -> None:
        serving = asyncio.create_task(Server("guest").run_async(http=":0"))
        port, _ = await port_of(serving, capfd)
        assert (await ask(port)).startswith(b"HTTP/1.1 200")
        serving.cancel()
        await asyncio.wait([serving])

    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(short())
        except BaseException as exc:
            failures.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not failures
    assert not thread.is_alive()


async def test_the_line_at_the_start_says_what_a_client_needs(capfd: pytest.CaptureFixture[str]) -> None:
    options = HTTPOptions(public_url="https://tools.example.com/mcp", hosts=["box:*"])
    serving = asyncio.create_task(Server("guest").run_async(http="0.0.0.0:0", options=options))
    port, said = await port_of(serving, capfd)
    (line, warning) = said.splitlines()
    for word in (
        "public https://tools.example.com/mcp",
        "2024-11-05",
        "2026-07-28",
        "HTTP+SSE",
        "box:*",
        "localhost:*",
    ):
        assert word in line
    assert "warning" in warning
    assert "auth=" in warning
    assert (await ask(port, host="tools.example.com")).startswith(b"HTTP/1.1 200")
    assert (await ask(port, host="elsewhere.example")).startswith(b"HTTP/1.1 403")
    serving.cancel()
    await asyncio.wait([serving])


async def test_an_address_in_use_is_an_error_that_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    serving = asyncio.create_task(Server("guest").run_async(http=":0"))
    port, _ = await port_of(serving, capfd)
    with pytest.raises(OSError, match="in use by another program"):
        await Server("second").run_async(http=f":{port}")
    serving.cancel()
    await asyncio.wait([serving])

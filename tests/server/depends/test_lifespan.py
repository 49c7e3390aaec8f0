"""What lasts as long as a server runs: once however many clients there are, over every way it is served."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from accord import AccordError, Client, Context, Depends, LifespanError, Limits, Server

from tests.server.compose.reaching import over_http
from tests.server.http.http_clients import Modern
from tests.server.http.raw import Direct

happened: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_happened() -> None:
    happened.clear()


async def lifespan(server: Server) -> AsyncIterator[dict[str, int]]:
    happened.append(f"start {server.name}")
    yield {"answer": 42}
    happened.append(f"end {server.name}")


def desk(name: str = "desk", **options: object) -> Server:
    server = Server(name, **{"lifespan": lifespan, **options})  # type: ignore[arg-type]

    @server.tool
    def answer(ctx: Context) -> int:
        return ctx.lifespan["answer"]  # type: ignore[no-any-return]

    return server


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
async def test_it_is_entered_once_and_what_it_yields_is_seen(revision: str) -> None:
    server = desk()
    async with Client(server, revisions=[revision]) as one:
        async with Client(server) as other:
            assert [(await client.call_tool("answer")).text for client in (one, other)] == ["42", "42"]
        assert happened == ["start desk"]
    assert happened == ["start desk", "end desk"]
    async with Client(server):
        pass
    assert happened == ["start desk", "end desk"] * 2


async def test_a_context_manager_does_as_well_as_a_generator_and_none_at_all_gives_none() -> None:
    async with Client(desk(lifespan=asynccontextmanager(lifespan))) as client:
        assert (await client.call_tool("answer")).data == 42
    server = Server("bare")

    @server.tool
    def seen(ctx: Context) -> bool:
        return ctx.lifespan is None

    async with Client(server) as client:
        assert (await client.call_tool("seen")).data is True


async def test_it_is_left_in_the_task_that_entered_it() -> None:
    tasks = []

    async def watching(server: Server) -> AsyncIterator[None]:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(60):  # breaks where it is left in another task
            yield
        tasks.append(asyncio.current_task())

    server = desk(lifespan=watching)
    first, second = Client(server), Client(server)
    await asyncio.create_task(first.connect())
    await asyncio.create_task(second.connect())
    await asyncio.create_task(first.close())
    await asyncio.create_task(second.close())
    assert tasks[0] is tasks[1] is not None


async def test_a_server_that_cannot_start_says_why_at_once() -> None:
    async def broken(server: Server) -> AsyncIterator[None]:
        raise RuntimeError("no database")
        yield

    with pytest.raises(AccordError, match="lifespan of 'desk' failed to start: RuntimeError: no database") as failed:
        async with Client(desk(lifespan=broken)):
            pass
    causes = []
    cause: BaseException | None = failed.value
    while cause is not None:
        causes.append(type(cause))
        cause = cause.__cause__
    assert LifespanError in causes
    assert causes[-1] is RuntimeError


async def test_one_that_does_not_end_is_cancelled_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def endless(server: Server) -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    async with Client(desk(lifespan=endless, limits=Limits(grace_seconds=0.05))):
        pass
    assert "did not end within 0.05 s" in caplog.text


async def test_one_that_fails_to_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(server: Server) -> AsyncIterator[None]:
        yield
        raise RuntimeError("cannot close postgres://ann:hunter2@db")

    async with Client(desk(lifespan=broken)) as client:
        assert (await client.call_tool("answer")).is_error  # what it yielded has no answer
    assert "cannot close postgres://ann:[redacted]@db" in caplog.text
    assert "hunter2" not in caplog.text


async def test_the_log_of_a_failed_start_over_http_has_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(server: Server) -> AsyncIterator[None]:
        raise RuntimeError("no database at postgres://ann:hunter2@db")
        yield

    async with over_http(desk(lifespan=broken)) as url:
        with pytest.raises(AccordError):
            async with Client(url):
                pass
    assert "no database at postgres://ann:[redacted]@db" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_receives_no_secrets_of_a_mounted_server_that_cannot_start(revision: str) -> None:
    async def broken(server: Server) -> AsyncIterator[None]:
        raise RuntimeError("no database at postgres://ann:hunter2@db, see '/etc/desk.conf'")
        yield

    inner, outer = Server("inner", lifespan=broken), Server("outer")
    inner.tool("answer")(lambda: 42)
    inner.resource("docs://plan")(lambda: "plan")
    inner.prompt("ask")(lambda: "ask")
    inner.mount(deeper := Server("deeper", lifespan=broken))
    deeper.resource("docs://deep")(lambda: "deep")

    @outer.tool
    async def read(uri: str, ctx: Context) -> str:
        return str(await ctx.read_resource(uri))

    outer.mount(inner)
    async with Client(outer, revisions=[revision]) as client:
        asks: list[Any] = [client.call_tool("answer"), client.read_resource("docs://plan"), client.get_prompt("ask")]
        asks += [client.call_tool("read", {"uri": uri}) for uri in ("docs://plan", "docs://deep")]
        for ask in asks:
            try:
                text = str(await ask)
            except AccordError as error:
                text = str(error)
            assert "no database at postgres://ann:[redacted]@db" in text
            assert "hunter2" not in text
            assert "desk.conf" not in text


PROGRAM = """
from accord import Context, Server

async def lifespan(server):
    print("start", flush=True)
    {begin}
    yield 42
    print("end", flush=True)

server = Server("desk", lifespan=lifespan)

@server.tool
def answer(ctx: Context) -> int:
    return ctx.lifespan

if __name__ == "__main__":
    server.run({run})
"""


async def test_over_stdio_it_begins_and_ends_with_the_process(tmp_path: Path) -> None:
    program = tmp_path / "desk.py"
    program.write_text(PROGRAM.format(begin="pass", run=""))
    told: list[str] = []
    async with Client([sys.executable, str(program)], on_stderr=told.append) as client:
        assert (await client.call_tool("answer")).data == 42
    assert [line for line in told if line in ("start", "end")] == ["start", "end"]


@pytest.mark.parametrize("run", ["", "http='127.0.0.1:0'"])
def test_a_process_that_cannot_start_ends_with_its_traceback(tmp_path: Path, run: str) -> None:
    program = tmp_path / "desk.py"
    program.write_text(PROGRAM.format(begin='raise RuntimeError("no database")', run=run))
    done = subprocess.run(
        [sys.executable, str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "RuntimeError: no database" in done.stderr
    assert "ExceptionGroup" not in done.stderr


async def test_a_mounted_server_has_its_own_and_both_end() -> None:
    outer, inner = desk("outer"), desk("inner")
    outer.mount(inner, "in")
    async with Client(outer) as client:
        assert (await client.call_tool("in_answer")).data == 42
        assert (await client.call_tool("in_answer")).data == 42
    assert happened == ["start outer", "start inner", "end inner", "end outer"]


USER: ContextVar[str] = ContextVar("user", default="nobody")


async def test_what_lasts_knows_nothing_of_who_sent_the_first_request() -> None:
    server = Server("desk", lifespan=lambda server: asking())

    @asynccontextmanager
    async def asking() -> AsyncIterator[str]:
        yield USER.get()

    async def connected() -> str:
        return USER.get()

    @server.tool
    async def users(ctx: Context, connection: str = Depends(connected, scope="lifespan")) -> list[str]:
        return [ctx.lifespan, connection, USER.get()]

    app = server.app

    async def signed_in(scope: Any, receive: Any, send: Any) -> None:
        USER.set("ann")
        await app(scope, receive, send)

    answer = await (await Modern(Direct(signed_in)).call("users")).result()
    assert answer["result"]["structuredContent"] == ["nobody", "nobody", "ann"]
    await app.close()


async def test_an_app_that_nobody_starts_starts_with_its_first_request_and_ends_when_closed() -> None:
    server = desk()
    app = server.app
    assert happened == []
    await app.start()
    assert happened == ["start desk"]
    await app.close()
    assert happened == ["start desk", "end desk"]

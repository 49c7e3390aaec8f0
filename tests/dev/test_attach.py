"""Views that are attached to a running `accord dev`: real processes, real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.client.target import Command
from accord.dev import attach_server
from accord.dev.attach_client import Attachment, attach
from accord.dev.attach_server import QUEUE_BYTES, AttachServer
from accord.dev.attach_socket import check_private, peer_user
from accord.dev.program import Program as WatchedProgram
from accord.dev.reporter import Reporter
from accord.dev.settings import DevSettings
from accord.dev.view_messages import Dropped, EndedCall, Line, StartedCall, ToView, ViewEvent
from accord.dev.viewed_calls import ViewedCalls
from accord.errors import TargetError
from accord.wire.session_redaction import SessionRedaction

from tests.dev.programs import Program, text_of
from tests.waiting import turns, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="asyncio has no Unix sockets on Windows")

LOGIN = "\n@server.tool()\ndef login(password: str) -> dict[str, str]:\n    return {'access_token': password}\n"
SECRET = "correct-horse-battery"


async def received(view: Attachment, count: int) -> list[ToView]:
    """Return the next events, so many or more."""
    found: list[ToView] = []
    while len(found) < count:
        found += await asyncio.to_thread(view.receive)
        assert not view.is_closed, found
    return found


@asynccontextmanager
async def attached(command: Command, folder: Path | None = None) -> AsyncIterator[Attachment]:
    view = await asyncio.to_thread(attach, command, folder=folder)
    try:
        yield view
    finally:
        view.close()


async def test_a_view_receives_each_call_with_its_messages_without_secrets(program: Program) -> None:
    program.write("one", LOGIN)
    async with program.connected() as client:
        await text_of(client, "version")
        async with attached(program.command) as view:
            await client.call_tool("login", {"password": SECRET})
            events = [each for each in await received(view, 4) if not isinstance(each, Line)]
    first, first_end, second, second_end = events
    assert isinstance(first, StartedCall)
    assert first.title == "tools/call version"
    assert isinstance(first_end, EndedCall)
    assert (first_end.number, first_end.outcome) == (first.number, "ok")
    assert '"one"' in first_end.response
    assert isinstance(second, StartedCall)
    assert isinstance(second_end, EndedCall)
    assert '"login"' in second.request
    assert "access_token" in second_end.response
    assert SECRET not in f"{second}{second_end}"


async def test_a_view_asks_for_a_reload(program: Program) -> None:
    program.write("one")
    async with program.connected() as client, attached(program.command) as view:
        await text_of(client, "version")
        view.reload()
        await program.until_reloaded()
        assert await text_of(client, "version") == "one"


async def test_a_view_ends_with_what_it_is_attached_to(program: Program) -> None:
    program.write("one")
    async with program.connected():
        view = await asyncio.to_thread(attach, program.command)
    while await asyncio.to_thread(view.receive):
        pass
    assert view.is_closed
    view.close()


async def test_what_sends_no_command_is_detached(program: Program) -> None:
    program.write("one")
    async with program.connected() as client:
        async with attached(program.command) as view:
            os.write(view.fileno(), b"x" * 100_000)
            while await asyncio.to_thread(view.receive):
                pass
            assert view.is_closed
        assert await text_of(client, "version") == "one"


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder with a short path: that of a socket has at most 103 characters."""
    with tempfile.TemporaryDirectory(prefix="accord-", dir="/tmp") as folder:
        yield Path(folder) / "s"


def watched(folder: Path) -> WatchedProgram:
    return WatchedProgram(Command(("program",), cwd=str(folder)), DevSettings(), folder)


async def test_a_view_that_does_not_read_loses_events_with_their_count(tmp_path: Path, sockets: Path) -> None:
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    command, line = watched(tmp_path).command, Line(1.0, "x" * 10_000)
    count = 3 * QUEUE_BYTES // 10_000
    try:
        async with attached(command, sockets) as slow, attached(command, sockets) as quick:
            for _ in range(count):
                server.publish(line)  # returns at once
            found: list[ToView] = []
            while not found or not isinstance(found[-1], Dropped):
                found += await received(slow, 1)
            dropped = found[-1]
            assert isinstance(dropped, Dropped)
            assert len(found) - 1 + dropped.count == count
            assert dropped.count > 0
            assert sum(len(each.text) for each in found[:-1] if isinstance(each, Line)) <= QUEUE_BYTES
            assert await received(quick, 1)
    finally:
        await server.close()
    assert os.listdir(sockets) == []


async def test_the_history_for_later_views_is_bounded(tmp_path: Path, sockets: Path) -> None:
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    try:
        for number in range(20_000):
            server.publish(Line(1.0, str(number)))
        async with attached(watched(tmp_path).command, sockets) as view:
            found = await received(view, 1_000)
            assert [each.text for each in found if isinstance(each, Line)] == [str(n) for n in range(19_000, 20_000)]
    finally:
        await server.close()


async def test_the_end_of_a_program_with_a_view_is_no_error_of_its_event_loop(tmp_path: Path, sockets: Path) -> None:
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    async with attached(watched(tmp_path).command, sockets) as view:
        await server.close()
        while await asyncio.to_thread(view.receive):
            pass
        assert view.is_closed
    await turns(5)
    assert errors == []


async def test_a_large_message_is_redacted_beside_the_event_loop(
    tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    redact = SessionRedaction.data

    def noting(redaction: SessionRedaction, data: bytes) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return redact(redaction, data)

    monkeypatch.setattr(SessionRedaction, "data", noting)
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    try:
        async with attached(watched(tmp_path).command, sockets) as view:
            for size in (10, 100_000):
                server.publish(StartedCall(1, 1.0, "tools/call a", f'{{"a":"{"x" * size}"}}'))
                assert await received(view, 1)
    finally:
        await server.close()
    assert threads == [True, False]


def test_no_secret_of_a_uri_and_no_long_name_is_shown() -> None:
    lines: list[str] = []
    events: list[ViewEvent] = []
    reporter = Reporter("program", lines.append, events.append)
    uri = f"resources/read https://user:{SECRET}@host/?access_token={SECRET}"
    reporter.call_started(1, uri, b"{}")
    reporter.call_ended(1, f"error -32602: no resource {uri!r}", b"{}")
    reporter.call_started(2, "tools/call " + "x" * 100_000, b"{}")
    reporter.call_ended(2, "error " + "x" * 100_000, b"{}")
    assert SECRET not in f"{lines}{events}"
    assert "resources/read https://" in lines[0]
    assert max(map(len, lines)) < 1_000


@pytest.mark.parametrize("length", [300, 301, 1_200, 1_201, 100_000])
def test_a_text_that_is_cut_has_its_original_length(length: int) -> None:
    events: list[ViewEvent] = []
    reporter = Reporter("program", lambda line: None, events.append)
    reporter.call_started(1, "x" * length, b"{}")
    (started,) = events
    assert isinstance(started, StartedCall)
    assert started.title == "x" * 300 + (f" … ({length:,} characters)" if length > 300 else "")


def test_the_messages_that_a_view_keeps_are_bounded() -> None:
    calls = ViewedCalls()
    message = "x" * (1 << 18)

    def apply(numbers: range) -> None:
        for number in numbers:
            calls.apply([StartedCall(number, 1.0, "a", message), EndedCall(number, 1.0, "ok", message)])

    apply(range(500))
    assert 100 < len(calls.matching()) < 200
    assert calls.matching()[-1].number == 499
    calls.toggle_pause()
    apply(range(500, 1_000))
    assert 100 < calls.waiting < 200
    calls.toggle_pause()
    assert calls.matching()[-1].number == 999


async def test_another_user_is_refused(tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_user(ours) == os.getuid()
    monkeypatch.setattr(attach_server, "peer_user", lambda connection: os.getuid() + 1)
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    try:
        with pytest.raises(TargetError, match="runs; its host starts it"):
            await asyncio.to_thread(attach, watched(tmp_path).command, folder=sockets)
    finally:
        await server.close()


async def test_a_view_too_many_is_refused_and_does_not_remove_the_socket(tmp_path: Path, sockets: Path) -> None:
    server = AttachServer(watched(tmp_path), folder=sockets)
    await server.open()
    command, views = watched(tmp_path).command, []
    try:
        for _ in range(attach_server._MOST_VIEWS):
            views.append(await asyncio.to_thread(attach, command, folder=sockets))
        with pytest.raises(TargetError):
            await asyncio.to_thread(attach, command, folder=sockets)
        assert len(os.listdir(sockets)) == 1
    finally:
        for view in views:
            view.close()
        await server.close()


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    check_private(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("open", "link"):
        with pytest.raises(OSError, match="only you can enter; remove it"):
            check_private(tmp_path / name)


def test_the_socket_of_a_process_that_was_killed_is_removed(tmp_path: Path, sockets: Path) -> None:
    check_private(sockets)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(sockets / "1-a.sock"))
    with pytest.raises(TargetError, match="no `accord dev program` of this user runs"):
        attach(watched(tmp_path).command, folder=sockets)
    assert os.listdir(sockets) == []


async def test_the_error_names_what_runs(program: Program) -> None:
    program.write("one")
    async with program.connected():
        with pytest.raises(TargetError, match=r"these run: .*weather\.py"):
            await asyncio.to_thread(attach, Command(("other",)))


async def test_a_reload_goes_on_while_a_view_does_not_read(program: Program) -> None:
    program.write("one", "\n@server.tool()\ndef big() -> str:\n    return 'x' * 200_000\n")
    async with program.connected() as client, attached(program.command) as view:
        for _ in range(20):
            assert len(await text_of(client, "big")) == 200_000
        program.write("two")
        await program.until_reloaded()
        assert await text_of(client, "version") == "two"
        found: list[ToView] = []
        await until(lambda: view.fileno() > 0)
        while not any(isinstance(each, Dropped) for each in found):
            found += await received(view, 1)

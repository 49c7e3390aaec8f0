"""However a server ends, or says nothing: those who wait are told at once why, and no process is left."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord import Client
from accord.client.connect import CONNECT_METHODS, ConnectMethod
from accord.client.target import identity, parse
from accord.errors import AccordError, ConnectError, ConnectionLost, NotConnected, RequestTimeout
from accord.limits import ClientLimits, Limits

from tests.client import hostile
from tests.client.test_hostile_server import connected, still_there
from tests.limits import limits_of
from tests.measure import slowness
from tests.waiting import turns, until

AT_ONCE = 100.0
"""Seconds in which happens what waits for nothing, however busy the machine is."""

PATIENCE = 1000.0
"""Seconds for which waits what must not: longer than a test may take."""

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")


class Started:
    """A client of a hostile server whose processes can be found again, and what these said on stderr."""

    def __init__(self, opening: str = "fine", **options: Any) -> None:
        self.token = uuid.uuid4().hex
        self.stderr: list[str] = []
        bounds = {"client_probe_seconds": PATIENCE, "client_connect_seconds": PATIENCE, "close_seconds": 0.3}
        limits = limits_of(**{**bounds, **options.pop("bounds", {})})
        target = hostile.command(opening, "one", self.token)
        self.client = Client(target, limits=limits, on_stderr=self.stderr.append, **options)

    def processes(self) -> list[int]:
        return [pid for pid in _pids() if self.token.encode() in _command_line(pid)]

    async def processes_left(self) -> list[int]:
        """Those left after a while; signals take a moment."""
        until = time.monotonic() + AT_ONCE
        while (left := self.processes()) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        return left

    async def start(self) -> asyncio.Task[Client]:
        """Begin to connect; return when the process runs."""
        task = asyncio.create_task(self.client.connect())
        await until(lambda: self.stderr)
        return task


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def fails_to_connect(started: Started, kind: type[AccordError]) -> AccordError:
    with pytest.raises(kind) as raised:
        async with asyncio.timeout(AT_ONCE):
            await started.client.connect()
    assert await started.processes_left() == []
    return raised.value


# --- while it opens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opening", "code", "says"),
    [
        ("exits at once", 3, "cannot find my configuration"),
        ("exits on initialize", 4, "heard initialize"),
    ],
)
async def test_a_server_that_exits_is_named_with_its_code_and_last_output(opening: str, code: int, says: str) -> None:
    lost = await fails_to_connect(Started(opening), ConnectionLost)
    assert isinstance(lost, ConnectionLost)
    assert lost.exit_code == code
    assert says in lost.stderr
    assert re.search(rf'(?s)server ".*hostile.py.* exited with code {code}; last lines of stderr:\n.*{says}', str(lost))


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_is_not_started_again_where_that_could_not_help(revision: str) -> None:
    started = Started("exits at once", revisions=[revision])
    lost = await fails_to_connect(started, ConnectionLost)
    assert "exited with code 3" in str(lost)
    assert started.stderr == ["cannot find my configuration"]


async def test_a_server_that_exits_on_the_probe_is_started_again_and_opened_by_the_handshake() -> None:
    started = Started("exits on discover")
    async with asyncio.timeout(AT_ONCE), started.client as client:
        assert client.revision == "2025-11-25"
        assert await still_there(client)
    assert started.stderr == ["heard server/discover", "heard initialize"]
    assert started.processes() == []


async def test_a_server_that_exits_when_it_is_open_fails_the_next_call() -> None:
    started = Started("exits after initialize")
    async with asyncio.timeout(AT_ONCE), started.client as client:
        for _ in range(3):
            with pytest.raises(ConnectionLost, match="exited with code 5") as raised:
                await client.list_tools()
            assert raised.value.exit_code == 5
        with pytest.raises(ConnectionLost, match="exited with code 5"):
            await client.call_tool("fine")


async def test_a_server_that_closes_its_output_at_once_is_distinguished_from_one_that_exits() -> None:
    lost = await fails_to_connect(Started("closes stdout at once"), ConnectionLost)
    assert "closed its output but still runs; it wrote nothing to stderr" in str(lost)


async def test_a_silent_server_fails_after_the_time_for_the_opening() -> None:
    started = Started("silent", bounds={"client_connect_seconds": 0.4, "client_probe_seconds": 0.1})
    error = await fails_to_connect(started, ConnectError)
    assert re.search(r"hostile.py.* did not answer .*in 0.4 s", str(error))


async def test_a_server_silent_on_the_probe_is_opened_by_the_handshake() -> None:
    started = Started("silent on discover", bounds={"client_probe_seconds": 0.1})
    began = time.monotonic()
    async with asyncio.timeout(AT_ONCE), started.client as client:
        assert client.revision == "2025-11-25"
        assert time.monotonic() - began >= 0.1
        assert await still_there(client)


async def test_the_next_client_of_a_command_that_did_not_answer_the_probe_sends_none() -> None:
    started = Started("silent on discover", bounds={"client_probe_seconds": 0.1})
    async with asyncio.timeout(AT_ONCE), started.client as client:
        assert client.revision == "2025-11-25"
    bounds = Limits(client=ClientLimits(probe_seconds=PATIENCE, connect_seconds=PATIENCE))
    again = Client(hostile.command("silent on discover", "one", started.token), limits=bounds)
    async with asyncio.timeout(AT_ONCE), again as client:  # which a probe would outlast
        assert client.revision == "2025-11-25"


async def test_a_command_that_was_remembered_and_refuses_the_handshake_now_is_probed_again() -> None:
    program = "from accord import Server; Server('x', revisions=['2026-07-28']).run()"
    command = [sys.executable, "-c", program]
    CONNECT_METHODS.set(identity(parse(command)), ConnectMethod.HANDSHAKE)
    async with asyncio.timeout(AT_ONCE), Client(command) as client:
        assert client.revision == "2026-07-28"
    assert CONNECT_METHODS.get(identity(parse(command))) is None


async def test_an_answer_to_the_probe_counts_also_after_the_handshake_was_begun() -> None:
    started = Started("discovers late", bounds={"client_probe_seconds": 0.1})
    async with asyncio.timeout(AT_ONCE), started.client as client:
        assert client.revision == "2026-07-28"
        assert await still_there(client)
    assert started.stderr == ["heard initialize"]


async def test_a_server_that_answers_everything_is_opened_by_the_handshake() -> None:
    async with connected("answers everything") as client:
        assert client.revision == "2025-11-25"
        assert await still_there(client)


async def test_a_server_that_never_agrees_fails_in_the_time_for_the_opening() -> None:
    await fails_to_connect(Started("never agrees", bounds={"client_connect_seconds": 0.5}), AccordError)


@pytest.mark.parametrize(
    ("opening", "says"),
    [
        ("unheard revision", r"answered initialize with revision '2099-01-01'; the client supports .*2025-11-25"),
        pytest.param(
            "initialize is no result",
            r"answer to initialize.*capabilities",
        ),
    ],
)
async def test_an_answer_to_initialize_that_is_none_says_what_came(opening: str, says: str) -> None:
    error = await fails_to_connect(Started(opening), ConnectError)
    assert re.search(says, str(error))


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_an_opening_that_is_given_up_leaves_no_process(how: str) -> None:
    started = Started("ignores the end and never opens")
    task = await started.start()
    assert started.processes()
    if how == "cancelled":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await task
    assert await started.processes_left() == []
    with pytest.raises(NotConnected, match="not connected"):
        await started.client.ping()


async def test_two_tasks_that_connect_share_one_process() -> None:
    started = Started()
    async with asyncio.timeout(AT_ONCE):
        await asyncio.gather(*(started.client.connect() for _ in range(5)))
        assert len(started.processes()) == 1
        await started.client.close()
    assert await started.processes_left() == []


# --- while calls are in flight ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", ["fine", "handshake"])
async def test_all_calls_in_flight_fail_at_once_when_the_server_dies(opening: str) -> None:
    async with connected(opening) as client:
        calls = (client.call_tool("dies", {"calls": 50}) for _ in range(50))
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert len(errors) == 50
        for error in errors:
            assert isinstance(error, ConnectionLost)
            assert (error.exit_code, error.stderr.splitlines()[-1]) == (7, "Traceback: out of luck")
            assert re.search(r'server ".*hostile.py.*" exited with code 7; last lines', str(error))
        assert client.connection.session.outgoing == {}


@pytest.mark.parametrize(
    ("tool", "code", "says"),
    [
        ("dies by a signal", -11, "was ended by SIGSEGV; it wrote nothing to stderr"),
        ("closes stdout", None, "closed its output but still runs"),
    ],
)
async def test_the_error_says_how_the_connection_ended(tool: str, code: int | None, says: str) -> None:
    async with connected() as client:
        with pytest.raises(ConnectionLost, match=says) as raised:
            await client.call_tool(tool)
        assert raised.value.exit_code == code


async def test_a_server_that_closes_its_input_fails_the_next_call() -> None:
    async with connected() as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("closes stdin", timeout=0.1)
        with pytest.raises(ConnectionLost):
            await client.call_tool("fine", timeout=AT_ONCE)


@pytest.mark.parametrize("tool", ["leaves a grandchild", "leaves a stubborn grandchild", "leaves a talking grandchild"])
async def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_calls(tool: str) -> None:
    started = Started()
    async with asyncio.timeout(AT_ONCE), started.client as client:
        calls = [asyncio.create_task(client.call_tool(tool)) for _ in range(50)]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, ConnectionLost)
            assert error.exit_code == 9
    assert await started.processes_left() == []


# --- while we end it -------------------------------------------------------------------------------------------------


async def test_closing_fails_the_calls_in_flight_and_hangs_on_none() -> None:
    started = Started()
    async with asyncio.timeout(AT_ONCE):
        client = await started.client.connect()
        calls = [asyncio.create_task(client.call_tool("says nothing")) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.gather(client.close(), client.close(), client.close())
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(error, NotConnected) for error in errors), errors
    assert {str(error) for error in errors} == {"the connection was closed"}
    assert await started.processes_left() == []


async def test_a_server_that_ignores_the_end_is_killed_within_the_deadlines() -> None:
    started = Started("ignores the end")
    async with asyncio.timeout(AT_ONCE):
        client = await started.client.connect()
        assert (await client.call_tool("fine")).text == "right"
        began = time.monotonic()
        await client.close()
    assert 0.6 <= time.monotonic() - began < 2 * Limits().close_seconds * slowness()
    assert await started.processes_left() == []


async def test_closing_that_is_cancelled_goes_on_to_the_end() -> None:
    started = Started("ignores the end")
    async with asyncio.timeout(AT_ONCE):
        client = await started.client.connect()
        await client.call_tool("fine")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.close()
        assert await started.processes_left() == []


@pytest.mark.parametrize("tool", ["endless line", "endless garbage", "asks and never reads", "says nothing"])
async def test_a_busy_server_is_ended_all_the_same(tool: str) -> None:
    started = Started()
    async with asyncio.timeout(AT_ONCE):
        client = await started.client.connect()
        with pytest.raises(RequestTimeout):
            await client.call_tool(tool, timeout=0.2)
        await client.close()
    assert await started.processes_left() == []


async def test_nothing_is_left_in_the_loop() -> None:
    before = asyncio.all_tasks()
    descriptors = len(os.listdir("/proc/self/fd"))
    for opening in ("fine", "exits on discover", "ignores the end"):
        async with connected(opening) as client:
            await client.call_tool("fine")
    await turns(20)
    assert asyncio.all_tasks() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_calls_that_together_exceed_every_buffer_are_all_answered() -> None:
    """Two peers that each stop reading until the other has read would wait for ever."""
    program = Path(__file__).parent / "example.py"
    async with asyncio.timeout(100), Client([hostile.command()[0], str(program)]) as client:
        texts = [str(n % 10) * 1_200_000 for n in range(30)]
        results = await asyncio.gather(*(client.call_tool("echo", {"text": text}) for text in texts))
        assert [result.data for result in results] == texts

"""accord's application under uvicorn, granian and hypercorn: what works, and what docs/deploy.md says of each."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from tests.interop import asgi_stories as stories
from tests.interop.hosting import Host, Hosted, Place, hosted, programs
from tests.measure import slowness
from tests.server.http.http_clients import Legacy, Modern
from tests.server.http.raw import SECONDS, Answer, Ended, Socket

HOSTS: tuple[Host, ...] = get_args(Host)
GRACE: dict[Host, tuple[str, ...]] = {
    "uvicorn": ("--timeout-graceful-shutdown", "2"),
    "granian": ("--workers-kill-timeout", "2"),
    "hypercorn": ("--graceful-timeout", "2"),
}
ROOT = {"uvicorn": "--root-path", "granian": "--url-path-prefix", "hypercorn": "--root-path"}
EXIT = {"uvicorn": -signal.SIGTERM, "granian": 0, "hypercorn": 0}

hosts = pytest.mark.parametrize("host", HOSTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hosted")
    programs(made)
    return made


@pytest.fixture(scope="module", params=HOSTS)
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Hosted]:
    with hosted(request.param, Place(), folder) as serving:
        yield serving


@pytest.fixture(scope="module", params=HOSTS)
def short_deadlines(request: pytest.FixtureRequest, folder: Path) -> Iterator[Hosted]:
    """A server apart from those whose clients may take their time."""
    with hosted(request.param, Place(), folder, body_seconds=0.5, write_seconds=0.5) as serving:
        yield serving


async def test_everything_works(place: Hosted) -> None:
    await stories.all_of_it(place.raw)


async def test_going_away_cancels_a_call(place: Hosted) -> None:
    await stories.going_away_cancels(place.raw, "hosted")


async def test_the_body_of_a_request_has_a_deadline_and_a_size(short_deadlines: Hosted) -> None:
    late = await short_deadlines.raw.bytes(head(20) + b"{")
    assert (await late.start()).status == 408
    large = await short_deadlines.raw.bytes(head(5 << 20))
    assert (await large.start()).status == 413


async def test_the_call_of_a_client_that_does_not_read_is_cancelled(short_deadlines: Hosted) -> None:
    _, writer = await short_deadlines.raw.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(stories.calling(short_deadlines.raw, "pour", "poured"))
    await stories.until_fate(short_deadlines.raw, "poured", "cancelled")
    writer.transport.abort()


@hosts
async def test_a_client_of_2024_receives_the_path_at_which_a_proxy_has_put_the_server(host: Host, folder: Path) -> None:
    with hosted(host, Place(options=(ROOT[host], "/api")), folder) as serving:
        client = await Legacy.connect(serving.raw)
        assert client.address.startswith("/api/messages?session_id=")
        client.address = client.address.removeprefix("/api")  # as the proxy does
        await client.open()
        await stories.leave(client.stream)


@hosts
async def test_at_sigterm_calls_finish_and_streams_are_cut_after_a_while(
    host: Host, folder: Path, tmp_path: Path
) -> None:
    option, seconds = GRACE[host]
    grace = str(math.ceil(int(seconds) * slowness()))  # in which the server has to notice that the call may go on
    with hosted(host, Place(options=(option, grace)), folder) as serving:
        stream = await Modern(serving.raw).ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await stream.message()
        go_on = tmp_path / "go-on"
        call = asyncio.create_task(stories.said(Modern(serving.raw), "until_exists", name="last", path=str(go_on)))
        await stories.until_fate(serving.raw, "last", "hangs")
        began = time.monotonic()
        serving.process.terminate()
        assert not (await asyncio.wait([call], timeout=0.3))[0]  # not cut when the signal comes
        go_on.touch()
        assert await call == "last"
        await stream.end()
        code = await asyncio.to_thread(serving.process.wait, SECONDS)
        assert time.monotonic() - began > 1
        assert code == EXIT[host]


@pytest.mark.parametrize("host", ["uvicorn", "granian"])
async def test_an_open_stream_holds_up_the_end_where_no_bound_is_given(host: Host, folder: Path) -> None:
    with hosted(host, Place(), folder) as serving:
        stream = await Modern(serving.raw).ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await stream.message()
        serving.process.terminate()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.end(), 1.5)
        assert serving.process.poll() is None
        await stories.leave(stream)
        assert await asyncio.to_thread(serving.process.wait, SECONDS) == EXIT[host]


async def test_uvicorn_refuses_connections_beyond_its_limit(folder: Path) -> None:
    with hosted("uvicorn", Place(options=("--limit-concurrency", "3")), folder) as serving:
        streams = [await Socket(serving.port).connect() for _ in range(3)]
        assert (await Modern(serving.raw).call("echo", {"text": "x"})).status == 503
        for _, writer in streams:
            writer.close()
            await writer.wait_closed()


WAITING = {
    "granian": (("--http1-header-read-timeout", "500"), True, False),
    "hypercorn": (("--keep-alive", "1"), True, True),
    "uvicorn": (("--timeout-keep-alive", "1"), False, False),
}
"""Options, and whether a connection with half a head, and one that says nothing, is closed."""


@hosts
async def test_who_closes_a_connection_that_is_waited_for(host: Host, folder: Path) -> None:
    options, half, silent = WAITING[host]
    with hosted(host, Place(options=options), folder) as serving:
        begun = [b"POST /mcp HTTP/1.1\r\nhost: localh", b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"]
        await asyncio.gather(*map(partial(waits_for_the_rest, serving), begun, [half, silent, True]))


async def test_granian_lets_requests_beyond_its_limit_wait(folder: Path) -> None:
    with hosted("granian", Place(options=("--backpressure", "2")), folder) as serving:
        raw = serving.raw
        first = await raw.bytes(stories.calling(raw, "hang", "first"))
        await stories.until_fate(raw, "first", "hangs")
        second = await raw.bytes(stories.calling(raw, "hang", "second"))
        third = asyncio.create_task(stories.said(Modern(raw), "echo", text="third"))
        assert not (await asyncio.wait([third], timeout=1))[0]
        await stories.leave(second)
        assert await third == "third"
        await stories.leave(first)


@pytest.mark.parametrize(("host", "bounded"), [("uvicorn", False), ("granian", True), ("hypercorn", True)])
async def test_who_bounds_the_head_of_a_request(host: Host, bounded: bool, folder: Path) -> None:
    with hosted(host, Place(), folder) as serving:
        answer = await serving.raw.bytes(head(0, b"x-large: %s\r\n" % (b"x" * 2_000_000)))
        assert (await status(answer) in (431, 0)) == bounded


PARSERS: list[tuple[Host, tuple[str, ...], bool]] = [
    ("uvicorn", ("--http", "httptools", *GRACE["uvicorn"]), False),
    ("uvicorn", ("--http", "h11", *GRACE["uvicorn"]), True),
    ("granian", (), True),
    ("hypercorn", (), True),
]
"""Options, and whether trailers stay trailers and a pipeline is bounded."""


@pytest.mark.parametrize(("host", "options", "apart"), PARSERS)
async def test_who_takes_trailers_for_headers(host: Host, options: tuple[str, ...], apart: bool, folder: Path) -> None:
    with hosted(host, Place(options=options), folder) as serving:
        sent = b"POST /health HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nHost: localhost\r\n\r\n"
        reader, writer = await serving.raw.connect()
        writer.write(sent)
        line = await asyncio.wait_for(reader.readline(), SECONDS)
        assert (line.split()[1] != b"200") == apart
        writer.close()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux says how much of a connection is unread")
@pytest.mark.parametrize(
    ("host", "options", "bounded"),
    [each for each in PARSERS if each[0] != "granian"],  # bounded as well, but then it does not always end at SIGTERM
)
async def test_who_bounds_requests_that_are_sent_before_the_answers_are_read(
    host: Host, options: tuple[str, ...], bounded: bool, folder: Path
) -> None:
    with hosted(host, Place(options=options), folder) as serving:
        reader, writer = await serving.raw.connect()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.transport.set_write_buffer_limits(0)
        sending = asyncio.create_task(send_requests(writer))
        reads_everything = await ends_before_a_pause(sending, serving.process.pid) and sending.result()
        sending.cancel()
        while reads_everything and unread_bytes(serving.port, writer.get_extra_info("sockname")[1]):
            reads_everything = not await is_idle(serving.process.pid)
        writer.transport.abort()
        assert reads_everything != bounded


async def send_requests(writer: asyncio.StreamWriter) -> bool:
    """Send more requests than the buffers of the system hold; whether the server has left the connection open."""
    try:
        for _ in range(300):
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
            await writer.drain()
    except ConnectionError:
        return False
    return True


def unread_bytes(port: int, client: int) -> int:
    """Return how many bytes of a connection the server has received and not read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, remote, _, queues = line.split()[1:5]
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (port, client):
            return int(queues.split(":")[1], 16)
    return 0


async def ends_before_a_pause(work: asyncio.Task[bool], leader: int) -> bool:
    """Wait until this is done, or a server has done nothing for a second; whether it is done."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while asyncio.get_running_loop().time() < deadline:
        idle = asyncio.create_task(is_idle(leader))
        await asyncio.wait([work, idle], return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            idle.cancel()
            return True
        if await idle:
            return False
    raise AssertionError(f"neither within {SECONDS} s")


async def is_idle(leader: int) -> bool:
    """Whether a server does nothing for a second."""
    before = processor_seconds(leader)
    await asyncio.sleep(1)
    return processor_seconds(leader) - before < IDLE and not wants_processor(leader)


IDLE = 0.03
"""Seconds of processor time that a server may take in a second in which it does nothing: it looks at its clock."""


def wants_processor(leader: int) -> bool:
    """Whether a thread of a server could go on, but others keep it from the processor."""
    threads = [thread for process in processes(leader) for thread in (process / "task").iterdir()]
    return any((thread / "stat").read_text().rpartition(")")[2].split()[0] == "R" for thread in threads)


def processes(leader: int) -> list[Path]:
    """A server's process and its children."""
    children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    return [Path(f"/proc/{each}") for each in (leader, *children)]


def processor_seconds(leader: int) -> float:
    """What the processes of a server have taken so far."""
    fields = [(each / "stat").read_text().rpartition(")")[2].split() for each in processes(leader)]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def head(length: int, more: bytes = b"") -> bytes:
    """The head of a POST."""
    fixed = b"host: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
    return b"POST /mcp HTTP/1.1\r\n" + fixed + more + b"content-length: %d\r\n\r\n" % length


async def status(answer: Answer) -> int:
    """The status, or 0 where the connection was closed without one."""
    try:
        return (await answer.start()).status
    except Ended:
        return 0


async def waits_for_the_rest(serving: Hosted, begun: bytes, closes: bool) -> None:
    """Send only this on a connection: the server closes it, or has not done so after a few times the deadline."""
    reader, writer = await serving.raw.connect()
    writer.write(begun)
    try:
        await asyncio.wait_for(reader.read(), SECONDS if closes else 3)
    except TimeoutError:
        assert not closes, begun
    else:
        assert closes, begun
    finally:
        writer.transport.abort()

"""Whatever a client sends, and however it goes: one error for each bad message, answers for the good ones, no trace."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Server
from accord.messages.revision import REVISIONS, RULES
from accord.server import run
from accord.transport import memory
from accord.transport.connection import Connection

from tests.limits import limits_of
from tests.server.raw import META, RawPeer
from tests.server.test_stdio_process import AT_ONCE, INIT, call, end_of, hear, lines, opened, running, say
from tests.waiting import turns, until

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
WITHOUT_ID = ("2025-11-25", "2026-07-28")
"""Where an error for a message without a readable id has none; in older ones, and before the opening, it is null."""


def server(**limits: Any) -> Server:
    made = Server("test", "1", limits=limits_of(**limits))
    made.started = 0  # type: ignore[attr-defined]

    @made.tool
    async def echo(text: str) -> str:
        return text

    @made.tool
    async def waits() -> str:
        made.started += 1  # type: ignore[attr-defined]
        await asyncio.get_running_loop().create_future()
        return "never"

    @made.tool
    def sleeps(seconds: float) -> str:
        made.started += 1  # type: ignore[attr-defined]
        time.sleep(seconds)
        return "slept"

    @made.tool
    async def large(bytes: int) -> str:
        return "x" * bytes

    return made


class Watched(RawPeer):
    """A raw peer that also sees the server's side of the connection."""

    connection: Connection

    async def next_answers(self, count: int) -> list[Any]:
        return [await self.hear() for _ in range(count)]

    async def only(self, message: bytes | dict[str, Any] | list[Any]) -> list[Any]:
        """What is answered to one message, up to the answer to the good one after it."""
        self.say(message)
        good = self.send("tools/call", {"name": "echo", "arguments": {"text": "good"}})
        answers = []
        while (answer := await self.hear()).get("id") != good:
            answers.append(answer)
        assert answer["result"]["content"][0]["text"] == "good"
        return answers


@asynccontextmanager
async def watched(made: Server, revision: str | None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    """A raw peer; at its end nothing may be left: no request, no task, no thread that is not a worker."""
    before = asyncio.all_tasks()
    seen: list[Connection] = []
    monkeypatch.setattr(
        run, "Connection", lambda *args, **options: seen.append(Connection(*args, **options)) or seen[0]
    )
    ours, theirs = memory.pair()
    serving = asyncio.create_task(made.serve(theirs))
    await until(lambda: seen)
    peer = Watched(ours)
    peer.connection = seen[0]
    try:
        if revision is not None:
            await peer.open(revision)
        yield peer
    finally:
        await ours.close()
        async with asyncio.timeout(100):
            await serving
        await turns(5)
    assert peer.connection.session.incoming == {}
    assert asyncio.all_tasks() == before


# --- bad messages ----------------------------------------------------------------------------------------------------


def with_(id: str = "5", params: str = "{}", method: str = '"tools/list"', jsonrpc: str = '"2.0"') -> str:
    return f'{{"jsonrpc":{jsonrpc},"id":{id},"method":{method},"params":{params}}}'


NO_ID = object()
BAD: dict[str, tuple[str | bytes, Any, int]] = {
    "no JSON": ("nonsense", NO_ID, PARSE),
    "half a message": (with_()[:-1], NO_ID, PARSE),
    "no UTF-8": (with_(params='{"a":"?"}').encode().replace(b"?", b"\xff"), NO_ID, PARSE),
    "UTF-16": (with_().encode("utf-16"), NO_ID, PARSE),
    "NaN": (with_(params='{"a":NaN}'), NO_ID, PARSE),
    "Infinity": (with_(params='{"a":-Infinity}'), NO_ID, PARSE),
    "deep": (with_(params='{"a":' + "[" * 50_000 + "]" * 50_000 + "}"), NO_ID, PARSE),
    "no object": ('"text"', NO_ID, INVALID),
    "jsonrpc 1.0": (with_(jsonrpc='"1.0"'), 5, INVALID),
    "jsonrpc a number": (with_(jsonrpc="2.0"), 5, INVALID),
    "no jsonrpc": ('{"id":5,"method":"tools/list"}', 5, INVALID),
    "neither method nor answer": ('{"jsonrpc":"2.0","id":5}', 5, INVALID),
    "id null": (with_(id="null"), NO_ID, INVALID),
    "id a float": (with_(id="1.5"), NO_ID, INVALID),
    "id a bool": (with_(id="true"), NO_ID, INVALID),
    "id a list": (with_(id="[1]"), NO_ID, INVALID),
    "id of 5000 digits": (with_(id="9" * 5000), NO_ID, INVALID),
    "method a number": (with_(method="5"), 5, INVALID),
    "params a list": (with_(params="[]"), 5, PARAMS),
    "params a text": (with_(params='"x"'), 5, PARAMS),
    "no name": (with_(method='"tools/call"'), 5, PARAMS),
    "name a number": (with_(method='"tools/call"', params='{"name":5}'), 5, PARAMS),
    "no such tool": (with_(method='"tools/call"', params='{"name":"nope"}'), 5, PARAMS),
    "cursor a number": (with_(params='{"cursor":5}'), 5, PARAMS),
    "cursor of nobody": (with_(params='{"cursor":"nonsense"}'), 5, PARAMS),
    "no such method": (with_(method='"tools/dance"'), 5, UNKNOWN),
    "case of the method": (with_(method='"Tools/List"'), 5, UNKNOWN),
    "capability not offered": (with_(method='"resources/list"'), 5, UNKNOWN),
    "logging not offered": (with_(method='"logging/setLevel"', params='{"level":"info"}'), 5, UNKNOWN),
}


def in_revision(message: str | bytes, revision: str) -> bytes:
    """A message whose params are an object says its revision there, where the revision has it so."""
    data = message if isinstance(message, bytes) else message.encode()
    if revision != "2026-07-28":
        return data
    meta = b'"params":{"_meta":' + json.dumps(META).encode()
    return data.replace(b'"params":{}', meta + b"}").replace(b'"params":{"', meta + b',"', 1)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_each_bad_message_gets_exactly_one_error(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), revision, monkeypatch) as peer:
        assert await peer.only({"jsonrpc": "2.0", "method": "un/heard"}) == []
        for name, (message, id, code) in BAD.items():
            (answer,) = await peer.only(in_revision(message, revision))
            assert answer["error"]["code"] == code, (name, answer)
            assert answer["error"]["message"], name
            assert "Traceback" not in json.dumps(answer), name
            if id is not NO_ID:
                assert answer["id"] == id, name
            else:
                assert answer.get("id", "absent") == ("absent" if revision in WITHOUT_ID else None), name


def test_each_bad_message_gets_exactly_one_error_over_stdio() -> None:
    with running() as process:
        opened(process)
        for name, (message, _, code) in BAD.items():
            data = message if isinstance(message, bytes) else message.encode()
            if b"\n" in data or "resources" in name:
                continue
            assert process.stdin is not None
            process.stdin.write(data + b"\n" + lines(call(1, "echo", text="good")))
            process.stdin.flush()
            assert hear(process)["error"]["code"] == code, name
            assert hear(process)["result"]["content"][0]["text"] == "good"
        process.stdin.close()
        process.stdin = None
        assert end_of(process)[:2] == (0, [])


SILENT: list[Any] = [
    {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": 5},
    {"jsonrpc": "2.0", "method": "notifications/un/heard"},
    {"jsonrpc": "2.0", "method": "un/heard"},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 5, "result": {}},
    {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "m"}},
    {"jsonrpc": "2.0", "id": 5, "result": {}, "error": {}},
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}},
    {"id": 5, "result": {}},
]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_must_not_be_answered_is_not(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), revision, monkeypatch) as peer:
        for message in SILENT:
            assert await peer.only(message) == [], message


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if not RULES[revision].batches])
async def test_a_batch_is_refused_once_where_there_are_none(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), revision, monkeypatch) as peer:
        for batch in ([], [1], [json.loads(with_())] * 3):
            (answer,) = await peer.only(batch)
            assert answer["error"]["code"] == INVALID


async def test_a_request_before_the_handshake_gets_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), None, monkeypatch) as peer:
        answer = await peer.ask("tools/list")
        assert answer["error"]["code"] == PARAMS
        assert "initialize" in answer["error"]["message"]
        assert "result" in await peer.open("2025-11-25")
        assert await peer.only(b"nonsense") != []


async def test_an_id_in_flight_is_refused_and_the_first_request_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), "2025-11-25", monkeypatch) as peer:
        first = call(7, "waits")
        peer.say(first)
        (answer,) = await peer.only(first)
        assert answer == {"jsonrpc": "2.0", "error": {"code": INVALID, "message": "a request with id 7 is in flight"}}
        assert await peer.only({**first, "id": "7"}) == []
        assert len(peer.connection.session.incoming) == 2
        for id in (7, "7"):
            peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})


# --- too much --------------------------------------------------------------------------------------------------------


async def test_ten_thousand_pipelined_calls_are_all_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), "2025-11-25", monkeypatch) as peer:
        for n in range(10_000):
            peer.say(call(n, "echo", text=str(n)))
        answers = await peer.next_answers(10_000)
    assert [(each["id"], each["result"]["content"][0]["text"]) for each in answers] == [
        (n, str(n)) for n in range(10_000)
    ]


def workers() -> int:
    return sum(thread.name.startswith("accord-worker") for thread in threading.enumerate())


@pytest.mark.parametrize(("tool", "arguments"), [("waits", {}), ("sleeps", {"seconds": 60})])
async def test_a_thousand_calls_cancelled_at_once_are_not_answered(
    tool: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, release = server(workers=4, worker_queue=2_000), threading.Event()
    made.tool(name="holds a thread")(lambda: release.wait(AT_ONCE))
    threads = workers()
    async with watched(made, "2025-11-25", monkeypatch) as peer:
        for n in range(4):
            peer.say(call(2_000 + n, "holds a thread"))
        for n in range(1_000):
            peer.say(call(n, tool, **arguments))
            peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})
        assert await peer.only({"jsonrpc": "2.0", "method": "notifications/un/heard"}) == []
        assert set(peer.connection.session.incoming) == {2_000, 2_001, 2_002, 2_003}
        assert peer.connection.stats.cancels_received == 1_000
        release.set()
        assert {answer["id"] for answer in await peer.next_answers(4)} == {2_000, 2_001, 2_002, 2_003}
        assert (await peer.call("sleeps", seconds=0))["content"][0][
            "text"
        ] == "slept"  # its turn came after all of them
        assert workers() <= threads + 4
    assert tool == "waits" or made.started == 1, "a call that was cancelled while it waited for a thread was made"  # type: ignore[attr-defined]


async def test_requests_over_the_bound_are_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(requests_in_flight=10), "2025-11-25", monkeypatch) as peer:
        for n in range(100, 115):
            peer.say(call(n, "waits"))
        answers = await peer.next_answers(5)
        assert [answer["id"] for answer in answers] == [110, 111, 112, 113, 114]
        assert {answer["error"]["message"] for answer in answers} == {
            "too many requests in flight: the limit is 10 (Limits.requests_in_flight)"
        }
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}})
        assert await peer.only({"jsonrpc": "2.0", "method": "notifications/un/heard"}) == []
        for n in range(101, 110):
            peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})


async def test_a_megabyte_of_garbage_in_one_batch_costs_one_small_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(server(), "2025-03-26", monkeypatch) as peer:
        (answer,) = await peer.only(b"[" + b"1," * 500_000 + b"1]")
        assert "a batch of 500,001 messages; the limit is 1,000" in answer["error"]["message"]
        peer.say(b"[" + b"1," * 999 + b"1]")
        assert len(await peer.hear()) == 1_000


async def test_a_flood_of_notifications_is_dropped_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(server(), "2025-11-25", monkeypatch) as peer:
        for n in range(30_000):
            peer.say(b'{"jsonrpc":"2.0","method":"notifications/un/heard","params":{"n":%d}}' % n)
            if n % 1_000 == 0:
                await asyncio.sleep(0)
        assert await peer.only({"jsonrpc": "2.0", "method": "notifications/un/heard"}) == []
        assert peer.connection.stats.ignored >= 30_001
    assert len(caplog.records) == 1


async def test_two_servers_back_to_back_fall_silent_after_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = memory.pair()
    sent: list[bytes] = []
    monkeypatch.setattr(here, "send", lambda message, send=here.send: (sent.append(message), send(message)))
    serving = [asyncio.create_task(server().serve(end)) for end in (here, there)]
    here._inbox.put([b"garbage"], 7)
    await turns(100)
    assert len(sent) == 1, "garbage was answered, and the answer to it as well"
    await here.close()
    await asyncio.gather(*serving)


# --- real pipes ------------------------------------------------------------------------------------------------------

PROGRAM = """
from accord import Server
from accord.limits import Limits
server = Server("test", "1", limits=Limits(line_bytes=1 << 20, grace_seconds=0.5))
@server.tool
async def echo(text: str) -> str:
    return text
@server.tool
async def large(bytes: int) -> str:
    return "x" * bytes
server.run()
"""


def small() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def peak(process: subprocess.Popen[bytes]) -> int:
    """The most memory it has had, in KB; 0 where the system does not say."""
    status = Path(f"/proc/{process.pid}/status")
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) if status.exists() else 0


def test_a_line_over_the_limit_gets_one_error_at_once_and_the_next_is_answered() -> None:
    with small() as process:
        assert process.stdin is not None
        opened(process)
        process.stdin.write(b'{"jsonrpc":"2.0","id":5,"method":"' + b"x" * (1 << 20))
        process.stdin.flush()
        answer = hear(process)  # before the line has ended
        assert "1,048,576 bytes" in answer["error"]["message"]
        assert (answer["error"]["code"], "id" in answer) == (INVALID, False)
        for _ in range(8):
            process.stdin.write(b"y" * (8 << 20))
        process.stdin.write(b'"}\n' + lines(call(6, "echo", text="good")))
        process.stdin.flush()
        assert hear(process)["id"] == 6
        kilobytes = peak(process)
        process.stdin.close()
        process.stdin = None
        assert end_of(process)[:2] == (0, [])
    assert kilobytes < 100 << 10


@pytest.mark.parametrize(
    "half", [b'{"jsonrpc":"2.0","id":1,"met', lines(call(1, "echo", text="whole"))[:-1], b"\xf0\x9f"]
)
def test_half_a_line_and_the_end_of_the_input_is_one_message(half: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=lines(INIT) + half, capture_output=True, timeout=AT_ONCE, check=False
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(answers) == 2
    assert answers[1].get("id", PARSE) == answers[1].get("error", {"code": 1})["code"]
    assert b"Traceback" not in done.stderr


def test_a_client_that_stops_reading_in_the_middle_of_an_answer_ends_the_server() -> None:
    with small() as process:
        assert process.stdout is not None
        opened(process)
        say(process, call(1, "large", bytes=900_000))
        assert len(process.stdout.read1(1_000)) == 1_000  # type: ignore[attr-defined]
        process.stdout.close()
        assert process.wait(timeout=AT_ONCE) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_a_client_that_never_reads_costs_bounded_memory() -> None:
    with small() as process:
        assert process.stdin is not None
        opened(process)
        message = lines(*(call(n, "large", bytes=1_000_000) for n in range(1, 501)))
        os.set_blocking(process.stdin.fileno(), False)
        until, sent = time.monotonic() + 20, 0
        while time.monotonic() < until and sent < len(message):
            try:
                sent += os.write(process.stdin.fileno(), message[sent:])
            except BlockingIOError:
                time.sleep(0.01)
        assert sent > 500 * 50, "it read none of it"
        kilobytes = peak(process)
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        process.stdin = None
        assert process.wait(timeout=AT_ONCE) == 0
    assert kilobytes < 100 << 10

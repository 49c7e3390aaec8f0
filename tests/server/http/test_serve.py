"""Serving on sockets, as a process of its own: how it ends, and what connections cannot do to it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from accord.server.http.access_log import LogWriter

PROGRAM = [sys.executable, str(Path(__file__).parent / "serving.py")]

KINDS = [{}, {"ASYNCIO": "1"}]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["uvloop", "asyncio"])

AT_ONCE = 100.0
"""Seconds in which happens what waits for nothing, however busy the machine is."""

PATIENCE = 1000
"""Seconds for which waits what must not: longer than a test may take."""


class Serving:
    """The process, and how to talk to it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def ask(self, path: str, *lines: str) -> socket.socket:
        """A connection on which this was asked."""
        sock = self.connect()
        sock.sendall("\r\n".join([f"GET {path} HTTP/1.1", "host: here", *lines, "", ""]).encode())
        return sock

    def get(self, path: str) -> bytes:
        with self.ask(path, "connection: close") as sock:
            return body(rest(sock))

    def refuses_connections(self) -> None:
        """Returns when it does."""
        while True:
            try:
                self.connect().close()
            except ConnectionError:  # refused, or reset where it had not been taken yet
                return

    def serves_again(self) -> None:
        """Returns when it does, after it had no room."""
        until_served = time.monotonic() + AT_ONCE
        while time.monotonic() < until_served:
            with self.ask("/fine", "connection: close") as sock:
                if rest(sock).endswith(b"/fine"):
                    return
        pytest.fail("it does not serve again")

    def end(self, number: signal.Signals = signal.SIGTERM) -> str:
        """Stderr, after this signal; see `ended`."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> str:
        """Stderr; the process must end at once, with 0."""
        _, err = self.process.communicate(timeout=AT_ONCE)
        assert self.process.returncode == 0, err
        return err


@contextmanager
def serving(*arguments: str, **env: str) -> Iterator[Serving]:
    process = subprocess.Popen(
        [*PROGRAM, ":0", f"grace_seconds={PATIENCE}", *arguments],  # of two, the last counts
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        yield Serving(process, int(process.stdout.readline().rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def rest(sock: socket.socket) -> bytes:
    """What comes until the connection is closed, or reset."""
    got = []
    try:
        while data := sock.recv(1 << 16):
            got.append(data)
    except ConnectionResetError:
        pass
    return b"".join(got)


def until(sock: socket.socket, text: bytes) -> bytes:
    """What comes until this text has come."""
    got = b""
    while text not in got:
        data = sock.recv(1 << 16)
        assert data, got
        got += data
    return got


def body(answer: bytes) -> bytes:
    head, _, found = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), answer[:200]
    return found


# --- the end ---------------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_at_once(kind: dict[str, str], number: signal.Signals) -> None:
    with serving(**kind) as it:
        with it.ask("/x") as kept:  # a connection that is kept alive does not keep the server
            until(kept, b"/x")
            err = it.end(number)
            assert rest(kept) == b""
        assert "closed" in err
        assert "after the server" in err


@kinds
def test_what_runs_is_finished_and_nothing_new_is_taken(kind: dict[str, str]) -> None:
    with serving(**kind) as it, ExitStack() as opened:
        calls = [opened.enter_context(it.ask(f"/last/{number}")) for number in range(100)]
        while it.get("/running").count(b"/last") < 100:
            pass
        it.process.send_signal(signal.SIGTERM)
        it.refuses_connections()
        assert [body(rest(call)) for call in calls] == [b"/last/%d" % number for number in range(100)]
        it.ended()


@kinds
def test_streams_are_ended_properly(kind: dict[str, str]) -> None:
    with serving(**kind) as it, ExitStack() as opened:
        streams = [opened.enter_context(it.ask("/stream")) for _ in range(20)]
        for stream in streams:
            until(stream, b"begun")
        it.end()
        for stream in streams:
            assert rest(stream).endswith(b"data: bye\n\n\r\n0\r\n\r\n")


@kinds
def test_what_takes_too_long_is_cut(kind: dict[str, str]) -> None:
    with serving("grace_seconds=0.3", **kind) as it, it.ask("/wait/1000") as call:
        while b"/wait" not in it.get("/running"):
            pass
        err = it.end()
        assert rest(call) == b""
        assert "Traceback" not in err


STARTING = """
import asyncio, os
from contextlib import asynccontextmanager
from accord import Limits, Server

async def lifespan(server):
    print("starting", flush=True)
    try:
        while not os.path.exists({path}):
            await asyncio.sleep(0.01)
        for _ in range(3):
            await asyncio.sleep(0.01)  # the event loop reads the signal, which was sent before the file was made
        print("started", flush=True)
        yield
    finally:
        print("ended", flush=True)

server = Server("starting", lifespan=lifespan, limits=Limits(grace_seconds={grace}))
server.run(http="127.0.0.1:0")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("starts", "said"), [(False, "ended\n"), (True, "started\nended\n")])
def test_a_server_that_is_starting_ends_its_lifespan(
    number: signal.Signals, starts: bool, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "may start"
    program = STARTING.replace("{path}", repr(str(path))).replace("{grace}", str(AT_ONCE if starts else 0.3))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "starting\n"
        process.send_signal(number)
        if starts:
            path.touch()
        out, err = process.communicate(timeout=AT_ONCE)
        assert (process.returncode, out) == (0, said), err
        assert "Traceback" not in err
        assert " at http://" not in err, "it was never ready"
    finally:
        process.kill()
        process.communicate()


@kinds
def test_a_second_signal_ends_at_once(kind: dict[str, str]) -> None:
    with serving(**kind) as it, it.ask("/wait/1000"):
        while b"/wait" not in it.get("/running"):
            pass
        it.process.send_signal(signal.SIGTERM)
        it.refuses_connections()
        it.process.send_signal(signal.SIGTERM)
        assert it.process.wait(timeout=AT_ONCE) == 128 + signal.SIGTERM


@kinds
def test_a_loop_that_is_blocked_does_not_keep_the_process(kind: dict[str, str]) -> None:
    with serving("grace_seconds=0.3", "close_seconds=0.2", **kind) as it, it.ask("/block"):
        assert it.process.stdout is not None
        assert it.process.stdout.readline() == "blocked\n"
        it.process.send_signal(signal.SIGTERM)
        _, err = it.process.communicate(timeout=AT_ONCE)
        assert it.process.returncode == 1
        assert "its event loop is at" in err
        assert "serving.py:" in err


def test_a_thread_that_is_stuck_does_not_keep_the_process() -> None:
    with serving() as it:
        assert it.get("/leave-a-thread") == b"/leave-a-thread"
        assert "after the server" in it.end()


def test_a_client_that_takes_nothing_does_not_keep_the_process() -> None:
    with serving("grace_seconds=0.5") as it, it.ask("/large") as slow:
        until(slow, b"200")
        it.end()


# --- connections -----------------------------------------------------------------------------------------------


@kinds
def test_a_head_that_does_not_come_in_time_is_cut(kind: dict[str, str]) -> None:
    with (
        serving("http_head_seconds=0.5", **kind) as it,
        it.connect() as slow,
        it.connect() as silent,
        it.ask("/x") as later,
    ):
        until(later, b"/x")
        with suppress(ConnectionError):  # it was the first to connect
            slow.sendall(b"GET / HT")
        began = time.monotonic()
        later.sendall(b"GET / HT")
        assert rest(silent) == b""
        rest(slow)
        assert b" 408 " in rest(later)
        assert time.monotonic() - began > 0.4
        assert it.get("/fine") == b"/fine"


def test_bytes_that_trickle_do_not_extend_the_deadline() -> None:
    with serving("http_head_seconds=0.5") as it, it.connect() as slow:
        until_closed = time.monotonic() + AT_ONCE
        while not select.select([slow], [], [], 0.05)[0] and time.monotonic() < until_closed:
            slow.sendall(b"G")
        assert b" 408 " in rest(slow) or time.monotonic() < until_closed


@kinds
def test_slow_connections_by_the_thousand_do_not_disturb_others(kind: dict[str, str]) -> None:
    with serving(f"http_head_seconds={PATIENCE}", **kind) as it, ExitStack() as opened:
        for _ in range(1000):
            opened.enter_context(it.connect()).sendall(b"POST /mcp HTTP/1.1\r\nx-slow: ")
        for _ in range(50):
            assert it.get("/fine") == b"/fine"


@kinds
@pytest.mark.parametrize(
    "begin", ["GET / HTTP/1.1\r\n", "GET /x HTTP/1.1\r\nhost: here\r\n\r\n"], ids=["first", "second"]
)
def test_a_head_without_end_is_refused(kind: dict[str, str], begin: str) -> None:
    with serving("http_head_bytes=10_000", **kind) as it, it.connect() as flood:
        flood.sendall(begin.encode())
        with pytest.raises(ConnectionError):
            flood.sendall((b"x-flood: " + b"x" * 1000 + b"\r\n") * 50_000)
        assert it.get("/fine") == b"/fine"


def test_a_head_over_the_bound_in_one_piece_is_refused() -> None:
    with serving("http_head_bytes=10_000") as it, it.ask("/x", "x-flood: " + "x" * 20_000) as flood:
        answer = rest(flood)
        assert b" 431 " in answer
        assert b"at most 10,000 bytes" in answer


def test_a_large_body_is_no_large_head() -> None:
    sent = os.urandom(300_000)
    with serving("http_head_bytes=10_000") as it, it.connect() as sock:
        for _ in range(2):
            sock.sendall(b"POST /echo HTTP/1.1\r\nhost: here\r\ncontent-length: 300000\r\n\r\n" + sent)
            got = until(sock, b"\r\n\r\n")
            while len(got) < got.index(b"\r\n\r\n") + 4 + len(sent):
                got += sock.recv(1 << 16)
            assert body(got) == sent


def test_a_running_request_learns_of_the_disconnect_though_another_was_sent_behind_it() -> None:
    with serving() as it:
        with it.ask("/until-gone") as first:
            first.sendall(b"GET /second HTTP/1.1\r\nhost: here\r\n\r\n")
            while b"/until-gone" not in it.get("/running"):
                pass
        while b"/until-gone" in it.get("/running"):
            pass


@kinds
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_running_request_learns_of_the_disconnect_though_its_connection_is_not_read(
    kind: dict[str, str], reset: bool
) -> None:
    with serving("http_unread_seconds=1", **kind) as it:
        with it.ask("/until-gone") as first:
            first.sendall(b"GET /second HTTP/1.1\r\nhost: here\r\n\r\n" * 5_000)  # more than is read ahead
            while b"/until-gone" not in it.get("/running"):
                pass
            if reset:
                first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        give_up = time.monotonic() + AT_ONCE
        while b"/until-gone" in it.get("/running"):
            assert time.monotonic() < give_up


@kinds
def test_a_client_that_sends_more_than_is_read_ahead_is_answered_in_full(kind: dict[str, str]) -> None:
    with serving("http_unread_seconds=1", **kind) as it, it.ask("/wait/3") as sock:
        sock.sendall(b"GET /second HTTP/1.1\r\nhost: here\r\n\r\n" * 5_000 + b"GET /end HTTP/1.1\r\nhost: here\r\n\r\n")
        assert until(sock, b"/end").count(b"/second") == 5_000


def test_requests_sent_at_once_are_answered_one_after_the_other() -> None:
    with serving() as it, it.connect() as sock:
        sock.sendall(b"".join(b"GET /%d HTTP/1.1\r\nhost: here\r\n\r\n" % number for number in range(50)))
        got = until(sock, b"/49")
        assert [int(part) for part in got.split(b"\r\n\r\n/")[1:] for part in [part.partition(b"HTTP")[0]]] == [
            *range(50)
        ]


@kinds
@pytest.mark.parametrize("other", ["h2c", "websocket"])
def test_an_offer_of_another_protocol_is_not_taken_and_the_request_is_answered(
    kind: dict[str, str], other: str
) -> None:
    offer = f"POST /echo HTTP/1.1\r\nhost: here\r\nconnection: upgrade\r\nupgrade: {other}\r\n".encode()
    with serving(**kind) as it:
        with it.ask("/x", "connection: upgrade", f"upgrade: {other}") as sock:
            assert until(sock, b"/x").startswith(b"HTTP/1.1 200")
        for framed in (
            b"content-length: 5\r\n\r\nhello",
            b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ):
            for size in (1, 3, 1000):
                with it.connect() as sock:
                    sock.sendall(offer)
                    for start in range(0, len(framed), size):
                        sock.sendall(framed[start : start + size])
                    assert body(until(sock, b"hello")) == b"hello"


@kinds
def test_a_client_that_takes_nothing_of_its_answer_is_cut(kind: dict[str, str]) -> None:
    with serving("http_unread_seconds=0.5", "http_connections=1", **kind) as it, it.ask("/large") as slow:
        until(slow, b"200")
        it.serves_again()  # there is room for one connection, which was that of the slow client
        assert len(rest(slow)) < 50 << 20


def test_an_idle_connection_is_closed() -> None:
    with serving("http_idle_seconds=0.3") as it, it.ask("/x") as idle:
        until(idle, b"/x")
        assert rest(idle) == b""


@kinds
def test_a_connection_too_many_is_refused_and_the_next_is_served_when_there_is_room(kind: dict[str, str]) -> None:
    with serving("http_connections=5", **kind) as it:
        with ExitStack() as opened:
            for _ in range(5):
                until(opened.enter_context(it.ask("/x")), b"/x")
            with it.connect() as sixth:
                answer = rest(sixth)
            assert b" 503 " in answer
            assert b"retry-after: 1" in answer
        it.serves_again()


@kinds
def test_running_out_of_file_descriptors_is_survived(kind: dict[str, str]) -> None:
    with serving("http_connections=1_000", FILES="64", **kind) as it:
        with ExitStack() as opened:
            for _ in range(200):
                opened.enter_context(it.connect())
            assert it.process.poll() is None
        it.serves_again()
        it.end()


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 10 + b"\0", b"{}\n"], ids=repr
)
@kinds
def test_what_is_not_http_is_an_error(kind: dict[str, str], garbage: bytes) -> None:
    with serving(**kind) as it:
        with it.connect() as sock:
            sock.sendall(garbage)
            assert rest(sock).startswith(b"HTTP/1.1 400")
        assert "Traceback" not in it.end()


def test_what_an_application_raises_is_printed_on_stderr() -> None:
    with serving() as it:
        with it.ask("/raise") as sock:
            assert rest(sock).startswith(b"HTTP/1.1 500")
        assert "ValueError: of the application" in it.end()


def test_answers_do_not_say_what_serves_them() -> None:
    with serving() as it, it.ask("/x") as sock:
        assert until(sock, b"/x") == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n/x"


# --- access log ------------------------------------------------------------------------------------------------


def test_the_access_log_has_a_line_for_each_exchange_without_secrets() -> None:
    with serving(LOG="1") as it:
        it.get("/plain?secret=1")
        it.get("/known")
        with it.ask("/stream") as stream:
            until(stream, b"begun")
            err = it.end()
    plain, known, stream = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert {"method", "path", "status", "bytes", "ms", "time", "client"} == set(plain)
    assert (plain["method"], plain["path"], plain["status"], plain["bytes"]) == ("GET", "/plain", 200, 6)
    assert (known["mcp"], known["session"]) == ("tools/call", "…abcdef")
    assert len(known["name"]) == 200
    assert "key" not in known
    assert (stream["path"], stream["bytes"]) == ("/stream", len(b"data: begun\n\ndata: bye\n\n"))


@pytest.mark.parametrize("text", ["\x9b2J", "\u202egpj", "\u200b", "\U000e0041", "\ud800", "\x1b[2J\n{}", "größe 🎉"])
def test_no_line_of_the_access_log_steers_a_terminal_or_is_lost(text: str) -> None:
    read, write = os.pipe()
    writer = LogWriter(write)
    writer({"path": text, "status": 200})
    writer.close(AT_ONCE)
    os.close(write)
    with os.fdopen(read, encoding="utf-8", newline="\n") as log:
        (line,) = log.read().splitlines(keepends=True)
    assert line.rstrip("\n").isprintable()
    assert json.loads(line) == {"path": text, "status": 200}


def test_an_access_log_that_nobody_reads_holds_up_nothing() -> None:
    with serving(LOG="1") as it, it.connect() as sock:
        for _ in range(2000):
            sock.sendall(b"GET /x HTTP/1.1\r\nhost: here\r\n\r\n")
            until(sock, b"/x")
        it.process.send_signal(signal.SIGTERM)
        assert it.process.wait(timeout=AT_ONCE) == 0

"""A server as a process of its own, on real pipes: the wire stays intact, and the process ends when it should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AT_ONCE = 100.0
"""Seconds in which happens what waits for nothing, however busy the machine is."""

PATIENCE = 1000
"""Seconds for which waits what must not: longer than a test may take."""

PROGRAM = [sys.executable, str(Path(__file__).parent / "program.py")]
INIT = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def call(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@contextmanager
def running(**env: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        PROGRAM,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def say(process: subprocess.Popen[bytes], *messages: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(lines(*messages))
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def opened(process: subprocess.Popen[bytes]) -> None:
    say(process, INIT)
    assert hear(process)["id"] == 0


def until_refused(process: subprocess.Popen[bytes], id: int) -> None:
    """Call until that is refused: the server has heard the signal."""
    while True:
        say(process, call(id, "echo", text="too late"))
        answer = hear(process)
        assert answer["id"] == id, "what ran before has ended"
        if "error" in answer:
            return
        id += 1


def end_of(process: subprocess.Popen[bytes]) -> tuple[int, list[Any], str]:
    """Exit code, the messages still to come, and stderr; the process must end at once."""
    out, err = process.communicate(timeout=AT_ONCE)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


TEXTS = {
    "prints": "printed",
    "prints_in_a_thread": "printed",
    "writes_to_descriptor_1": "written",
    "starts_a_child_that_prints": "started",
    "reads_stdin": "nothing to read, nor here: b''",
}


def test_the_wire_stays_intact_whatever_tools_do_with_stdin_and_stdout() -> None:
    with running(GRACE=str(PATIENCE)) as process:
        opened(process)
        for id, (tool, text) in enumerate(TEXTS.items(), 1):
            say(process, call(id, tool))
            answer = hear(process)
            assert (answer["id"], answer["result"]["content"][0]["text"]) == (id, text)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        code, rest, stderr = end_of(process)
    assert (code, rest) == (0, [])
    for said in ("this is not the protocol", "nor is this", "nor that", "raw bytes on descriptor 1", "a child prints"):
        assert said in stderr
    assert "print() at program.py:26 went to stderr" in stderr
    assert "after the server" in stderr


def test_input_from_a_file_is_answered_whole(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_bytes(lines(INIT, call(1, "waits", seconds=0.1), call(2, "sleeps_in_a_thread", seconds=0.1)))
    with script.open("rb") as stdin:
        done = subprocess.run(PROGRAM, stdin=stdin, capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [0, 1, 2]


@pytest.mark.parametrize("stdout", ["pipe", "file"])
def test_no_input_at_all_ends_at_once(stdout: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        target = file if stdout == "file" else subprocess.PIPE
        done = subprocess.run(PROGRAM, stdin=subprocess.DEVNULL, stdout=target, timeout=20, check=False)
    assert done.returncode == 0


def test_a_terminal_is_left_as_it_was() -> None:
    main, terminal = os.openpty()
    try:
        process = subprocess.Popen(PROGRAM, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.write(main, lines(INIT))
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 0
        assert os.get_blocking(terminal)
        os.write(main, b"\x04")
        process.stdout.close()
        assert process.wait(timeout=AT_ONCE) == 0
    finally:
        os.close(main)
        os.close(terminal)


def test_requests_that_were_accepted_are_answered_after_the_input_has_ended() -> None:
    with running() as process:
        opened(process)
        say(
            process,
            call(1, "waits", seconds=0.3),
            call(2, "sleeps_in_a_thread", seconds=0.3),
            call(3, "echo", text="x"),
        )
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        code, rest, _ = end_of(process)
    assert code == 0
    assert sorted(answer["id"] for answer in rest) == [1, 2, 3]


def test_an_answer_after_the_end_of_input_waits_for_no_other_call(tmp_path: Path) -> None:
    with running(GRACE="60") as process:
        opened(process)
        paths = [str(tmp_path / name) for name in ("first", "second")]
        say(process, *(call(id, "waits_for_a_file", path=path) for id, path in enumerate(paths, 1)))
        say(process, call(3, "echo", text="x"))
        assert hear(process)["id"] == 3
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        for id, path in enumerate(paths, 1):
            Path(path).touch()
            answer = hear(process)
            assert (answer["id"], "result" in answer) == (id, True)
        assert end_of(process)[0] == 0


def test_an_idle_server_ends_with_its_input() -> None:
    with running() as process:
        opened(process)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert end_of(process)[0] == 0


@pytest.mark.parametrize("tool", ["waits", "sleeps_in_a_thread", "blocks_the_loop", "swallows_cancellation"])
def test_a_stuck_tool_does_not_keep_the_server(tool: str) -> None:
    with running(GRACE="1") as process:
        opened(process)
        say(process, call(1, tool, seconds=PATIENCE))
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        code, rest, _ = end_of(process)
    assert [answer["error"]["code"] for answer in rest] == ([] if tool == "blocks_the_loop" else [-32603])
    assert code == (1 if tool == "blocks_the_loop" else 0)


def test_a_process_that_was_suspended_for_longer_than_the_grace_period_still_answers() -> None:
    with running(GRACE="2") as process:
        opened(process)
        say(process, call(1, "suspends_the_process"))
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        time.sleep(2.2)
        process.send_signal(signal.SIGCONT)
        code, rest, stderr = end_of(process)
    assert ([answer["result"]["content"][0]["text"] for answer in rest], code) == (["resumed"], 0), stderr


def test_a_thread_of_somebody_else_does_not_keep_the_process() -> None:
    with running() as process:
        opened(process)
        say(process, call(1, "leaves_a_thread", seconds=PATIENCE))
        hear(process)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert end_of(process)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_calls_in_flight_finish(number: signal.Signals, tmp_path: Path) -> None:
    with running() as process:
        opened(process)
        say(process, call(1, "waits_for_a_file", path=str(tmp_path / "go-on")), call(2, "echo", text="x"))
        assert hear(process)["id"] == 2
        process.send_signal(number)
        until_refused(process, 3)
        (tmp_path / "go-on").touch()
        code, rest, stderr = end_of(process)
    assert code == 0, stderr
    assert {answer["id"]: "result" in answer for answer in rest} == {1: True}
    assert "after the server" in stderr


def test_a_second_signal_ends_at_once() -> None:
    with running(GRACE=str(PATIENCE)) as process:
        opened(process)
        say(process, call(1, "waits", seconds=PATIENCE), call(2, "echo", text="x"))
        assert hear(process)["id"] == 2
        process.send_signal(signal.SIGTERM)
        until_refused(process, 3)
        process.send_signal(signal.SIGTERM)
        assert end_of(process)[0] == 128 + signal.SIGTERM


@pytest.mark.parametrize("how", ["SIGTERM", "end of input"])
def test_a_call_that_outlasts_the_grace_is_answered_with_an_error_before_the_pipe_closes(how: str) -> None:
    with running(GRACE="1") as process:
        opened(process)
        say(process, call(1, "waits", seconds=60), call(2, "echo", text="x"))
        assert hear(process)["id"] == 2
        if how == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        answer = hear(process)
        assert (answer["id"], answer["error"]["code"]) == (1, -32603)
        assert "ended" in answer["error"]["message"]
        assert process.wait(timeout=AT_ONCE) == 0


def test_a_peer_that_never_reads_stops_the_reading_but_not_the_end() -> None:
    with running(GRACE="0.5") as process:
        opened(process)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        calls, sent = lines(*(call(id, "echo", text="x" * 60_000) for id in range(500))), 0
        until = time.monotonic() + 1
        while time.monotonic() < until and sent < len(calls):
            try:
                sent += os.write(process.stdin.fileno(), calls[sent : sent + 60_000])
                until = time.monotonic() + 1
            except BlockingIOError:
                time.sleep(0.01)
        assert sent < len(calls), "the server read on although nobody took its answers"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=AT_ONCE) == 0


def test_a_client_that_closes_its_output_and_takes_no_answers_does_not_keep_the_server() -> None:
    with running(GRACE="0.5") as process:
        assert process.stdin is not None
        text = "x" * 60_000
        process.stdin.write(lines(INIT, *(call(id, "echo", text=text) for id in range(1, 21))))
        process.stdin.close()
        process.stdin = None
        assert process.wait(timeout=AT_ONCE) == 0


def test_a_server_over_stdio_loads_nothing_of_authorization() -> None:
    """Neither for its start nor for a call: authorization is for HTTP."""
    program = (
        "import sys\nfrom accord import Server\nserver = Server('one')\n\n"
        "@server.tool\ndef loaded() -> str:\n    return ' '.join(sys.modules)\n\nserver.run()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out, _ = process.communicate(lines(INIT, call(1, "loaded")), timeout=AT_ONCE)
    answer = json.loads(out.splitlines()[-1])
    modules = answer["result"]["content"][0]["text"].split()
    assert "accord.server.server" in modules
    heavy = ("joserfc", "cryptography", "aiohttp", "sqlite3")
    found = [name for name in modules if name.partition(".")[0] in heavy or ".auth" in name]
    assert not found

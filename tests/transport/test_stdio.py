"""A real process with its real stdin and stdout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ECHO = Path(__file__).parent / "echo.py"
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
LINES = b'{"id":1}\n{"id":2}\n'


def run(what: str = "", **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
    kwargs = {"input": LINES, "capture_output": True, "timeout": 20, "env": ENV} | kwargs
    return subprocess.run([sys.executable, str(ECHO), what], check=False, **kwargs)


def shell(redirections: str, **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
    command = f"exec {sys.executable} {ECHO} {redirections}"
    return subprocess.run(["sh", "-c", command], capture_output=True, timeout=20, env=ENV, check=False, **kwargs)


def test_the_wire_stays_intact_whatever_the_program_prints() -> None:
    done = run("noisy")
    assert done.stdout == LINES
    assert done.returncode == 0
    errors = done.stderr.decode()
    for said in (
        "buffered before it opens", "a tool prints", "to the buffer", "to descriptor 1",
        "the child prints", "and reads ''", "the shell prints", "a question?", "input() has ended", "read: ''",
    ):  # fmt: skip
        assert said in errors, said


def test_each_place_that_prints_is_reported_once() -> None:
    reports = [line for line in run("noisy").stderr.decode().splitlines() if "accord: print()" in line]
    source = ECHO.read_text().splitlines()
    place = source.index('        print("a tool prints")') + 1
    assert sum(f"at echo.py:{place} went to stderr; stdout belongs to the protocol" in line for line in reports) == 1


def test_stdout_is_back_after_the_close() -> None:
    assert run("restored").stdout == LINES + b"stdout is back\n"


def test_a_file_can_be_the_input_and_another_the_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(LINES + b'{"no newline":1}')
    shell(f"< {tmp_path}/in > {tmp_path}/out")
    assert (tmp_path / "out").read_bytes() == LINES + b'{"no newline":1}\n'


@pytest.mark.parametrize("redirection", ["< /dev/null", "<&-"])
def test_no_input_at_all_ends_it_quietly(redirection: str) -> None:
    done = shell(redirection)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Traceback" not in done.stderr


def test_a_closed_stdout_is_an_error_that_says_so() -> None:
    done = shell(">&-", input=LINES)
    assert b"ConnectError: stdout is closed" in done.stderr


def test_a_closed_stderr_does_not_put_prints_on_the_wire() -> None:
    assert shell("2>&-", input=LINES).stdout == LINES


def test_a_client_that_stops_reading_is_disconnected() -> None:
    with subprocess.Popen([sys.executable, str(ECHO)], stdin=-1, stdout=-1, stderr=-1, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(LINES)
        process.stdin.flush()  # and stays open
        assert process.wait(100) == 0


def test_a_client_that_never_reads_cannot_stop_it_from_ending() -> None:
    with subprocess.Popen([sys.executable, str(ECHO)], stdin=-1, stdout=-1, stderr=-1, env=ENV) as process:
        assert process.stdin is not None
        process.stdin.write(b'"' + b"x" * (400 << 10) + b'"\n')
        process.stdin.close()
        assert process.wait(100) == 0


def test_it_serves_a_user_at_a_terminal() -> None:
    controller, terminal = os.openpty()
    with subprocess.Popen([sys.executable, str(ECHO)], stdin=terminal, stdout=-1, stderr=-1, env=ENV) as process:
        os.write(controller, b'{"typed":1}\n')
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"typed":1}\n'
        assert os.get_blocking(terminal)
        os.write(controller, b"\x04")  # Ctrl-D
        assert process.wait(100) == 0
    os.close(controller)
    os.close(terminal)


def test_a_server_whose_loop_is_blocked_does_not_outlive_its_client() -> None:
    with subprocess.Popen([sys.executable, str(ECHO), "stuck"], stdin=-1, stdout=-1, stderr=-1, env=ENV) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(LINES)
        process.stdin.flush()
        while process.stderr.readline() != b"stuck\n":
            continue
        process.stdin.close()
        assert process.wait(100) == 1
        said = process.stderr.read().decode()
    assert "the client is gone and the event loop did not react for 0.2 s, blocked at" in said
    assert "echo.py:" in said


def test_a_loop_that_reacts_is_left_to_end_by_itself() -> None:
    assert run("", timeout=100).returncode == 0

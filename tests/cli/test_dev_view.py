"""`accord dev --attach` in a terminal, and in a pipe."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord import Client

from tests.cli.conftest import Run
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no terminals of POSIX on Windows")

SOURCE = """
from accord import Server, ToolError
server = Server('it')

@server.tool
def hello(name: str, password: str = '') -> str:
    return f'hello {name}'

@server.tool
def fail() -> str:
    raise ToolError('sold out')
"""
DOWN, ESCAPE, REDRAW = "\x1b[B", "\x1b", "\x0c"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A program under `accord dev --http`."""
    (tmp_path / "it.py").write_text(SOURCE)
    arguments = [sys.executable, "-m", "accord", "dev", "it.py", "--http", ":0"]
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split()[-1]
        process.terminate()
        process.stderr.read()


def shown(terminal: Terminal, *texts: str) -> None:
    """Expect texts, in this order, on a screen that is drawn anew."""
    for text in texts:
        terminal.expect(text)


def test_calls_are_listed_opened_filtered_and_paused(accord: Run, tmp_path: Path, url: str) -> None:
    accord("call", url, "hello", "name=Ada", "password=correct-horse")
    accord("call", url, "fail")
    with Terminal("dev", "--attach", "it.py", cwd=tmp_path, is_whole=True, LINES="100") as terminal:
        shown(terminal, "it.py (process", "tools/call hello: ok", "tools/call fail: tool error")
        terminal.press("k")
        terminal.press("\n")
        shown(terminal, "Request", '"name": "hello"', '"name": "Ada"', "Response", "hello Ada")
        assert "correct-horse" not in terminal.shown
        terminal.press(ESCAPE)
        terminal.press("/fail\n" + REDRAW)
        shown(terminal, "1 calls", "filter: fail", "tools/call fail")
        terminal.press("/" + ESCAPE)
        terminal.press("p" + REDRAW)
        shown(terminal, "paused, 0 new")
        accord("call", url, "hello", "name=Bob")
        terminal.press(REDRAW)
        terminal.expect("paused, 1 new")
        terminal.press("p" + REDRAW)
        terminal.expect("3 calls")
        terminal.press("r")
        terminal.expect("reloaded in")
        terminal.press("q")
        code, _, _ = terminal.end()
        assert code == 0


def test_a_view_ends_when_the_program_does(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(SOURCE)
    arguments = [sys.executable, "-m", "accord", "dev", "it.py", "--http", ":0"]
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        with Terminal("dev", "--attach", "it.py", cwd=tmp_path, is_whole=True, LINES="100") as terminal:
            terminal.expect("0 calls")
            process.terminate()
            terminal.expect("accord dev it.py has ended")
            assert terminal.end()[0] == 0
        process.stderr.read()


async def test_a_pipe_receives_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(SOURCE)
    file = str(tmp_path / "it.py")
    async with Client(f"{sys.executable} -m accord dev {file}") as client:
        await client.call_tool("hello", {"name": "Ada"})
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "accord", "dev", "--attach", file, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        started, ended = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert (started["type"], started["title"]) == ("call_started", "tools/call hello")
    assert started["request"]["params"]["arguments"] == {"name": "Ada"}
    assert (ended["type"], ended["number"], ended["outcome"]) == ("call_ended", started["number"], "ok")
    assert ended["response"]["result"]["content"][0]["text"] == "hello Ada"
    assert await process.wait() == 0  # the host has closed the connection


def test_a_program_that_does_not_run_cannot_be_attached(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(SOURCE)
    done = accord("dev", "--attach", "it.py")
    assert done.returncode == 2
    assert "no `accord dev it.py` of this user runs; its host starts it" in done.stderr

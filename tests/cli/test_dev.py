"""`accord dev` as a host starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli.conftest import Run

DEV = f"{sys.executable} -m accord dev it.py"
SOURCE = "from accord import Server\nserver = Server('it')\n@server.tool\ndef hello() -> str:\n    return 'hello'\n"


def test_a_host_reaches_the_program(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(SOURCE)
    done = accord("call", DEV, "hello", "--stderr")
    assert done.stdout == "hello\n"
    assert "tools/call hello: ok" in done.stderr


def test_a_broken_program_is_named_with_file_and_line(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(SOURCE + "def broken(:\n")
    done = accord("call", DEV, "hello")
    assert done.returncode != 0
    assert "it.py:6: invalid syntax" in done.stdout + done.stderr


def test_a_url_is_no_program(accord: Run) -> None:
    done = accord("dev", "http://127.0.0.1:9/mcp")
    assert done.returncode == 2
    assert "give FILE.py or the command line of a stdio server" in done.stderr

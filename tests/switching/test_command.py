"""`accord migrate FILE` at a command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = "from fastmcp import FastMCP\n\nmcp = FastMCP('x')\n"


def migrate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "accord", "migrate", *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)


def test_the_difference_is_shown_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    done = migrate(file)
    assert (done.returncode, file.read_text()) == (0, PROGRAM)
    assert "-from fastmcp import FastMCP\n+from accord.compat.fastmcp import FastMCP\n" in done.stdout


def test_it_is_written_where_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_bytes(b"\xef\xbb\xbf" + PROGRAM.replace("\n", "\r\n").encode())
    assert migrate("--write", "--native", file).returncode == 0
    assert file.read_bytes() == b"\xef\xbb\xbffrom accord import Server\r\n\r\nmcp = Server('x')\r\n"


def test_what_is_left_is_listed_by_line_and_the_exit_code_says_so(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import os\nfrom fastmcp.server.auth import JWTVerifier\n")
    done = migrate(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file}:2: fastmcp.server.auth.JWTVerifier: " in done.stderr


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert f"{broken}:1: " in migrate(broken).stderr
    assert "absent.py" in migrate(tmp_path / "absent.py").stderr
    assert migrate(broken).returncode not in (0, 1)

"""`accord run`: the file is found, imported with care, and served; or it is told what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PING = '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}\n'

HEAD = "from accord import Server\n"


@pytest.mark.parametrize("more", [[], ["--traceback"]], ids=["plain", "through the parser"])
def test_only_the_protocol_reaches_stdout(accord: Run, tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "noisy.py").write_text(
        "import os, subprocess, sys\n"
        "print('printed')\n"
        "os.write(1, b'written\\n')\n"
        "subprocess.run([sys.executable, '-c', 'print(\"a child\")'])\n"
        "assert sys.stdin.read() == ''\n"
        "assert __name__ == 'noisy' and sys.modules['noisy'].server is None\n" + HEAD + "server = Server('noisy')\n",
        encoding="utf-8",
    )
    source = (tmp_path / "noisy.py").read_text().replace("import os", "server = None\nimport os", 1)
    (tmp_path / "noisy.py").write_text(source)
    done = accord("run", "noisy.py", *more, stdin=PING)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["id"] == 1
    assert done.returncode == 0
    assert all(word in done.stderr for word in ("printed", "written", "a child", "noisy.py:3"))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("server = Server('it')\nother = Server('other')", "it.py"),
        ("mcp = Server('it')\nother = Server('other')", "it.py"),
        ("app = Server('it')\nother = Server('other')", "it.py"),
        ("anything = Server('it')\nalias = anything", "it.py"),
        ("server = Server('other')\nmine = Server('it')", "it.py:mine"),
        ("from neighbour import server", "it.py"),
    ],
)
def test_the_named_server_is_found(accord: Run, tmp_path: Path, source: str, target: str) -> None:
    (tmp_path / "neighbour.py").write_text(HEAD + "server = Server('it')")
    (tmp_path / "it.py").write_text(HEAD + source)
    done = accord("ping", target, "-n", "1", "--json")
    assert json.loads(done.stdout)["server"]["name"] == "it"


WRONG = [
    ("x = 1", "it.py", 'it.py has no Server: it needs one, as in `server = Server("it")`'),
    ("a = Server('a')\nb = Server('b')", "it.py", "it.py has several servers; name one: it.py:a, it.py:b"),
    ("a = Server('a')\nb = 3", "it.py:b", "it.py: 'b' is of type int, not an accord Server; it has it.py:a"),
    ("a = Server('a')", "it.py:c", "it.py has no 'c'; it has it.py:a"),
    ("def f(:", "it.py", "it.py:2: invalid syntax\n      def f(:"),
    ("import sys; sys.exit(3)", "it.py", "it.py ended the program (3) while it was imported"),
    ("server = Server('a')\n@server.tool\ndef t(*x): ...", "it.py", "it.py:3: t: *x has no names"),
    (
        "server = Server('a')\n@server.tool\ndef t(x: 'X'): ...",
        "it.py",
        "it.py:3: t: an annotation refers to a name that does not",
    ),
    (
        (
            "import typing\nif typing.TYPE_CHECKING: from decimal import Decimal\n"
            "server = Server('a')\n@server.tool\ndef t(x: 'Decimal'): ..."
        ),
        "it.py",
        "it.py:5: t: an annotation refers to a name that does not",
    ),
    (
        "server = Server('a')\nimport threading\n@server.tool\ndef t(x: threading.Lock): ...",
        "it.py",
        "it.py:4: t: 'x': <built-in function allocate_lock> cannot be a JSON value: use a built-in type",
    ),
    (
        "server = Server('a')\n@server.tool\ndef t(): ...\n@server.tool\ndef t(): ...",
        "it.py",
        "it.py:5: tool 't' is declared twice; rename one of them",
    ),
    ("import nowhere_at_all", "it.py", "No module named 'nowhere_at_all'"),
    ("1 / 0", "it.py", "it.py could not be imported\n  Traceback (most recent call last):\n"),
]


@pytest.mark.parametrize(("source", "target", "message"), WRONG)
def test_a_file_that_cannot_be_served_is_an_error_with_the_reason(
    accord: Run, tmp_path: Path, source: str, target: str, message: str
) -> None:
    (tmp_path / "it.py").write_text(HEAD + source)
    done = accord("run", target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "accord/cli" not in done.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:", "it.py:2: invalid syntax"),
        ("server = Server('a')\n@server.tool\ndef t(x: 'X'): ...", "it.py:3: t: an annotation refers to a name"),
    ],
)
def test_the_command_that_started_it_shows_what_was_wrong(
    accord: Run, tmp_path: Path, source: str, message: str
) -> None:
    (tmp_path / "it.py").write_text(HEAD + source)
    done = accord("list", "it.py")
    assert done.returncode == 3
    assert "exited with code 2" in done.stderr
    assert message in done.stderr

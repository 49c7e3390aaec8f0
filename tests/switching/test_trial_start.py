"""A rewritten program is started in a process of its own, and says what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from accord.migrate.trial_start import StartResult, start

HEAD = "from accord.compat.fastmcp import FastMCP\nmcp = FastMCP('x')\n"
TOOL = "@mcp.tool\ndef double(x: int) -> int: return 2 * x\n"


def started(folder: Path, text: str, **others: str) -> StartResult:
    file = folder / "server.py"
    file.write_text("raise RuntimeError('the file as it stands is not started')\n")
    texts = {folder / f"{name}.py": other for name, other in others.items()}
    for path in texts:
        path.write_text("raise RuntimeError('nor is this')\n")
    return start(file, {file: text, **texts})


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        (HEAD + TOOL, {"tool": 1}),
        (HEAD + TOOL + "mcp.run()\nraise RuntimeError('after it has served')\n", {"tool": 1}),
        (HEAD + TOOL + "import asyncio\nasyncio.run(mcp.run_http_async(port=1))\n", {"tool": 1}),
        (
            HEAD + "@mcp.resource('a://{b}')\ndef read(b): ...\n@mcp.prompt\ndef ask(): ...\n",
            {"template": 1, "prompt": 1},
        ),
        ("def make(): ...\nprint('said')\n", None),
        (HEAD + "if __name__ == '__main__': raise RuntimeError('only imported')\n", {}),
    ],
)
def test_a_program_that_starts_says_how_much_it_offers(
    text: str, offers: dict[str, int] | None, tmp_path: Path
) -> None:
    assert started(tmp_path, text) == StartResult(file=str(tmp_path / "server.py"), offers=offers)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("from accord.compat.fastmcp import FastMCP\nmcp = FastMCP('x', auth=1)\n", 2, "write accord.JWT"),
        (HEAD + "mcp.as_proxy('x')\n", 3, r"as_proxy() is not in accord: mcp.mount(other)"),
        (HEAD + "@mcp.tool\ndef f(x: 'Nowhere'): ...\n", 3, "an annotation refers to a name that does not exist"),
        (HEAD + "@mcp.tool\ndef f(x: complex): ...\n", 3, "complex cannot be a JSON value"),
        ("from accord.compat.fastmcp import FastMCP, Nothing\n", 1, "cannot import name 'Nothing'"),
        ("import os\nimport fastmcp.nowhere\n", 2, "has no counterpart in accord"),
        ("import not_installed\n", 1, "not_installed is not installed in accord's environment"),
        ("import sys\nsys.exit('usage')\n", 2, "the import exited the program ('usage')"),
        (HEAD + "mcp.nothing\n", 3, "AttributeError: FastMCP has no attribute 'nothing'; see docs/switching.md"),
        ("import os\nos._exit(3)\n", None, "the import ended the process with exit code 3"),
    ],
)
def test_a_program_that_does_not_start_says_why_and_where(text: str, line: int, says: str, tmp_path: Path) -> None:
    found = started(tmp_path, text)
    assert found.failed is not None
    assert says in found.failed
    assert (found.line, found.file) == (line, str(tmp_path / "server.py"))


def test_the_files_of_a_program_are_all_started_as_they_were_rewritten(tmp_path: Path) -> None:
    other = "from accord.compat.fastmcp import FastMCP\nmcp = FastMCP('x', auth=1)\n"
    found = started(tmp_path, "from things import mcp\n", things=other)
    assert (found.line, found.file) == (2, str(tmp_path / "things.py"))


def test_a_program_that_does_not_end_its_import_is_ended(tmp_path: Path) -> None:
    found = start(tmp_path / "x.py", {tmp_path / "x.py": "import threading\nthreading.Event().wait()\n"}, seconds=1)
    assert "the import did not finish in 1 s" in (found.failed or "")


def test_a_thread_that_goes_on_does_not_keep_the_process(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    assert started(tmp_path, HEAD + thread).offers == {}

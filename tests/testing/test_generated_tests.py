"""Tests that are written from a recording run, whatever the server has sent."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest

from accord import Client, Server
from accord.messages.revision import REVISIONS
from accord.testing import Recording
from accord.testing.generated_tests import call_test, pytest_source

from tests.measure import costs_at_most
from tests.testing.runs import Run, run
from tests.testing.test_transcripts import recorded

HOSTILE = 'x"""\nimport os\nos._exit(1)\n#\u2028\u202e'
ROOT = str(Path(__file__).parents[2])


def run_next_to(recording: Path, folder: Path, source: str) -> Run:
    """Run the tests in a folder with the recording."""
    folder.mkdir(exist_ok=True)
    shutil.copy(recording, folder)
    return run(folder, source, conftest="")


@pytest.mark.parametrize("form", ["jsonl", "transcript"])
@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[3], REVISIONS[-1]])
async def test_the_tests_of_a_recording_pass(revision: str, form: str, tmp_path: Path) -> None:
    file = await recorded(tmp_path, revision, form)
    source = pytest_source(file)
    assert "result = accord_client.call_tool('price', {'item': 'bread'})" in source
    assert "order" not in source  # it asks
    done = run_next_to(file, tmp_path / "tests", source)
    assert (done.passed, done.code) == (3, 0), done.output


async def test_the_tests_of_a_server_find_a_difference(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2026-07-28", "jsonl")
    program = tmp_path / "server.py"
    text = f"import sys\nsys.path.insert(0, {ROOT!r})\nfrom tests.testing.shops import shop\nserver = shop(changed="
    for changed, passed in ((False, 3), (True, 1)):
        program.write_text(f"{text}{changed})")
        done = run_next_to(file, tmp_path / "tests", pytest_source(file, str(program)))
        assert (done.passed, done.failed) == (passed, 3 - passed), done.output


async def test_texts_of_the_server_are_only_literals(tmp_path: Path) -> None:
    server = Server("hostile")

    @server.tool
    def echo(text: str) -> dict[str, Any]:
        """Repeat."""
        return {"text": text, HOSTILE: [text] * 50}

    recording = Recording()
    async with Client(server, record=recording) as client:
        for text in (HOSTILE, "\\", "'", "{}"):
            await client.call_tool("echo", {"text": text})
    file = tmp_path / "hostile's.jsonl"
    recording.save(file)
    source = pytest_source(file, HOSTILE)
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    calls = ["test_echo", "test_echo_2", "test_echo_3", "test_echo_4"]
    assert names == ["accord_server", "test_the_server_sends_the_recorded_messages", *calls]
    assert "\u202e" not in source
    done = run_next_to(file, tmp_path / "tests", pytest_source(file))
    assert (done.passed, done.code) == (5, 0), done.output


def test_a_deep_result_is_written_at_once() -> None:
    deep: Any = [0] * 100_000
    for _ in range(100):
        deep = [deep]
    with costs_at_most(60):
        source = call_test("shop.py", "price", {}, {"content": [], "structuredContent": {"deep": deep}})
    compile(source, "test_deep.py", "exec")

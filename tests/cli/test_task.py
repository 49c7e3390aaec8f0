"""`accord call --detach` and `accord task`: a task that outlives the processes of its client and of its server."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]

DESK = """
import asyncio
from accord import Server

server = Server("desk")


@server.tool(task=True)
async def work() -> None:
    await asyncio.Event().wait()
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    program = ROOT / "examples" / "tasks.py"
    return shlex.join([sys.executable, str(program), "--store", str(tmp_path / "tasks.db")])


def test_a_detached_call_is_continued_by_another_command(accord: Run, target: str) -> None:
    started = accord("call", target, "slow_compute", "seconds=0.2", "label=all", "--detach")
    assert started.returncode == 0, started.stderr
    id = started.stdout.strip()
    assert len(id) == 43
    waited = accord("task", target, id, "--wait")
    assert (waited.returncode, waited.stdout) == (0, "computed all\n"), waited.stderr
    assert accord("task", target, id).stdout.startswith("completed")
    assert '"status": "completed"' in accord("task", target, id, "--json").stdout


def test_a_detached_call_of_a_process_warns_that_the_process_ends(accord: Run, target: str) -> None:
    started = accord("call", target, "slow_compute", "seconds=600", "--detach")
    assert "the server's process ends with this command" in started.stderr
    assert "--http" in started.stderr
    at_once = accord("call", target, "greet", "name=Zoe", "--detach")
    assert "process ends" not in at_once.stderr


def test_a_detached_call_over_http_does_not_warn(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    command = [sys.executable, "-m", "accord", "run", "desk.py", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].split(";")[0]
        started = accord("call", url, "work", "--detach")
        process.terminate()
    assert (started.returncode, started.stderr) == (0, "")
    assert len(started.stdout.strip()) == 43


def test_a_detached_call_that_ends_at_once_prints_its_result(accord: Run, target: str) -> None:
    assert accord("call", target, "greet", "name=Zoe", "--detach").stdout == "Hello, Zoe!\n"


def test_a_task_is_cancelled(accord: Run, target: str) -> None:
    id = accord("call", target, "slow_compute", "seconds=600", "--detach").stdout.strip()
    cancelled = accord("task", target, id, "--cancel")
    assert cancelled.stdout == "cancelled: cancelled by the client\n", cancelled.stderr


def test_mistakes_are_explained(accord: Run, target: str) -> None:
    unknown = accord("task", target, "unknown")
    assert unknown.returncode != 0
    assert "no such task; it may have expired" in unknown.stderr
    both = accord("task", target, "unknown", "--wait", "--cancel")
    assert "--wait and --cancel exclude each other" in both.stderr

"""Programs that share their imports run in processes of their own, as if each were started newly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.forking import ForkedPrograms

PROGRAM = """
import json, os, sys, time

if __name__ == "__main__":
    if sys.argv[1:] == ["forever"]:
        time.sleep(1000)
    print("a warning", file=sys.stderr)
    place = [os.getcwd(), os.environ.get("PLACE"), sys.stdin.read()]
    print(json.dumps([os.getpid(), sys.argv, *place]))
    sys.exit(len(sys.argv))
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    program = tmp_path / "peer.py"
    program.write_text(PROGRAM)
    with ForkedPrograms() as programs:
        yield lambda *arguments, seconds=60.0, **more: programs.run(
            [sys.executable, str(program)], *arguments, seconds=seconds, **more
        )


def test_each_run_is_a_process_with_its_own_arguments_environment_and_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("a", "b c")
    monkeypatch.setenv("PLACE", "here")
    (other := tmp_path / "other").mkdir()
    monkeypatch.chdir(other)
    second = run()
    assert (first.returncode, second.returncode) == (3, 1)
    assert first.stderr == second.stderr == "a warning\n"
    program = str(tmp_path / "peer.py")
    pid, *seen = json.loads(first.stdout)
    assert seen == [[program, "a", "b c"], seen[1], None, ""]
    assert json.loads(second.stdout)[1:] == [[program], str(other), "here", ""]
    assert json.loads(second.stdout)[0] != pid


def test_a_run_may_be_given_input_folder_and_environment(run: Run, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    done = run("a", input="words\n", folder=other, environment={"PLACE": "there"})
    assert json.loads(done.stdout)[2:] == [str(other), "there", "words\n"]


def test_a_program_that_cannot_be_imported_is_an_error_that_says_why(run: Run, tmp_path: Path) -> None:
    (tmp_path / "peer.py").write_text("import nothing_of_this_name")
    with pytest.raises(AssertionError, match="No module named 'nothing_of_this_name'"):
        run()


def test_a_program_that_never_ends_is_ended_and_the_next_one_runs(run: Run) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run("forever", seconds=0.5)
    assert run().returncode == 1

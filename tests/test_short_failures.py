"""A failure of a run is short, and says what failed: an excerpt of the run shows several."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.short_failures import LINES, WIDTH, shortened

ROOT = Path(__file__).parent.parent

FAILS = """
def deep(n):
    if n:
        return deep_too(n - 1)
    print("\\n".join(f"line {each}" for each in range(1_000)))
    assert {"a": list(range(n, n + 5_000))} == {"b": "x" * 100_000}

def deep_too(n):
    try:
        return deep(n)
    except AssertionError as error:
        raise AssertionError(f"at {n}") from error

def test_it():
    deep(40)
"""


def test_a_failure_has_few_lines_and_says_what_failed(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(FAILS)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    command = [sys.executable, "-m", "pytest", "-p", "tests.short_failures", "--tb=short", "-rN"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CI": "1"}  # with which pytest itself shortens nothing
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 1, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) < WIDTH + 50
    for part in ("AssertionError: assert {'a': ", "line 0", "line 999", "AssertionError: at 39", "in test_it"):
        assert part in done.stdout


def test_what_is_short_stays_whole() -> None:
    lines = [str(number) for number in range(LINES)]
    assert shortened(lines) == lines
    assert shortened([*lines, "x"])[LINES // 2] == "... (1 lines) ..."

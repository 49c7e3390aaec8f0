"""Runs of pytest as a user has them: in a folder of their own, with the plugins that are installed."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest

WEATHER = Path(__file__).parents[2] / "examples" / "weather.py"

INSTALLED = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
"""The plugins of pytest that are there."""

CONFTEST = f"""
    import pytest

    @pytest.fixture
    def accord_server():
        return {str(WEATHER)!r}
"""


class Run:
    """What a run of pytest said. `passed` and such are how many tests did."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.output: str = done.stdout + done.stderr
        self.code: int = done.returncode
        summary = self.output.strip().rpartition("\n")[2].replace(",", "").split()
        counts = {word.rstrip("s"): int(count) for count, word in pairwise(summary) if count.isdigit()}
        self.passed: int = counts.get("passed", 0)
        self.failed: int = counts.get("failed", 0)
        self.errors: int = counts.get("error", 0)

    def __repr__(self) -> str:
        return self.output


def run(folder: Path, test: str, *options: str, conftest: str = CONFTEST, ini: str = "") -> Run:
    """Run one file of tests; `options` are those of pytest. pytest-asyncio, and hypothesis, which takes longer to load
    than all the rest, are there where they speak of them."""
    for plugin in ("asyncio", "hypothesispytest"):
        if not any(plugin in option for option in options):
            options = (*options, "-p", f"no:{plugin}")
    files = {"conftest.py": conftest, "test_it.py": test, "pytest.ini": f"[pytest]\n{textwrap.dedent(ini)}"}
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return Run(
        subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=150, check=False
        )
    )


needs_us = pytest.mark.skipif("accord" not in INSTALLED, reason="accord is installed without its pytest plugin")


def needs(plugin: str) -> pytest.MarkDecorator:
    """Skip where this plugin of pytest is not installed."""
    return pytest.mark.skipif(plugin not in INSTALLED, reason=f"needs the pytest plugin {plugin!r}")

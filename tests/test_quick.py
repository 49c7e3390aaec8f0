"""The quick run leaves out tests that need peers or a browser, or that take long; durations are recorded for that."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import durations, quick
from tests.durations import PROCESSOR, Durations

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "tests" / "interop" / "peers.py"


@cache
def imports(module: Path) -> frozenset[Path]:
    """The modules of the tests that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    files = (ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests."))
    return frozenset(file for file in files if file.exists())


def reached(module: Path) -> set[Path]:
    """The modules of the tests that a module imports, itself or through others."""
    found: set[Path] = set()
    new = {module}
    while new:
        found |= new
        new = {each for module in new for each in imports(module)} - found
    return found


def test_only_tests_in_the_folders_that_need_peers_import_them() -> None:
    modules = [module for module in (ROOT / "tests").rglob("*.py") if module.name.startswith(("test_", "conftest"))]
    found = [module for module in modules if PEERS in reached(module)]
    assert len(found) > 20
    assert [module for module in found if not quick.in_peer_folder(module)] == []


def test_the_quick_run_collects_no_test_that_needs_peers_and_none_that_takes_long() -> None:
    folders = [str(folder.relative_to(ROOT)) for folder in quick.PEER_FOLDERS]
    named = [*folders, "tests/interop/test_traces.py", "tests/test_measure.py", "tests/test_sync.py"]
    one_a_line = ["-o", "addopts=--import-mode=importlib -p no:asyncio", "-q"]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "--quick", *one_a_line, *named]
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    collected = [line for line in done.stdout.splitlines() if "::" in line]
    assert {test.partition("::")[0] for test in collected} == {"tests/test_measure.py", "tests/test_sync.py"}
    assert {test.partition("[")[0] for test in collected}.isdisjoint(quick.slow_functions())
    assert any(function.startswith("tests/test_sync.py::") for function in quick.slow_functions())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ([], True),
        (["-k", "sse"], True),
        (["--quick"], False),
        (["tests"], True),
        (["tests/wire", "-k", "sse"], False),
        (["tests/check"], True),
        (["tests/check/fuzz", "tests/check/peers/test_peers.py::test_a_peer"], True),
        (["tests/interop/test_traces.py::test_a_trace"], True),
    ],
)
def test_peers_are_needed_where_a_path_may_hold_a_test_that_needs_them(
    arguments: list[str], needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert quick.needs(quick.PEER_FOLDERS, arguments) == needed


@pytest.mark.parametrize(
    ("arguments", "scripts"),
    [
        ([], ["scripts/peers", "scripts/browser"]),
        (["--quick"], []),
        (["tests/inspector"], ["scripts/peers", "scripts/browser"]),
        (["tests/inspector/static"], []),
        (["tests/interop/test_traces.py", "tests/wire"], ["scripts/peers"]),
        (["tests/interop"], ["scripts/peers", "scripts/browser"]),
    ],
)
def test_the_scripts_that_install_what_tests_need_are_printed(arguments: list[str], scripts: list[str]) -> None:
    command = [sys.executable, ROOT / "tests" / "quick.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == scripts


def test_only_tests_in_the_folders_that_need_a_browser_import_playwright() -> None:
    modules = [module for module in (ROOT / "tests").rglob("*.py") if "import" in module.read_text("utf-8")]
    found = [
        module for module in modules if re.search(r"^\s*(from|import) playwright", module.read_text("utf-8"), re.M)
    ]
    assert found
    assert [each for each in found if not any(each.is_relative_to(folder) for folder in quick.BROWSER_FOLDERS)] == []


def report(id: str, when: Any, seconds: float, processor: float | None = None) -> pytest.TestReport:
    properties = [] if processor is None else [(PROCESSOR, processor)]
    return pytest.TestReport(id, ("", 0, ""), {}, "passed", None, when, duration=seconds, user_properties=properties)


def test_durations_are_those_of_a_function_with_all_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "DURATIONS", tmp_path / "durations.json")
    run = Durations()
    for case, processor in (("1", 0.25), ("2[]", 0.5)):
        run.pytest_runtest_logreport(report(f"tests/test_a.py::test_b[{case}]", "call", 2))
        run.pytest_runtest_logreport(report(f"tests/test_a.py::test_b[{case}]", "teardown", 1, processor))
    run.pytest_runtest_logreport(report("tests/test_a.py::test_c", "teardown", 1, 3.0))
    run.pytest_sessionfinish()
    written = json.loads((tmp_path / "durations.json").read_text("utf-8"))
    assert written["total"] == {"processor_seconds": 3.75, "seconds": 7, "cases": 3}
    assert [*written["slowest"].items()] == [
        ("tests/test_a.py::test_c", {"processor_seconds": 3, "seconds": 1, "cases": 1}),
        ("tests/test_a.py::test_b", {"processor_seconds": 0.75, "seconds": 6, "cases": 2}),
    ]


def test_each_worker_begins_with_the_slowest_files_of_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "tests/b.py::slow": {"processor_seconds": 1, "seconds": 60, "cases": 2},
        "tests/c.py::many": {"processor_seconds": 1, "seconds": 70, "cases": 70},
        "tests/f.py::long": {"processor_seconds": 1, "seconds": 5, "cases": 1},
    }
    monkeypatch.setattr(durations, "recorded", lambda: rows)
    shares = ["a.py::one", "b.py::fast", "b.py::slow[1]", "c.py::many[1]", "d.py::one", "e.py::one", "f.py::long"]
    ids = [f"tests/{each}" for each in shares]
    ordered = [shares[place] for place in durations.slow_files_first(ids, 2)]
    assert ordered[:3] == ["b.py::fast", "b.py::slow[1]", "a.py::one"]
    assert ordered[3:] == ["f.py::long", "c.py::many[1]", "d.py::one", "e.py::one"]


def test_durations_of_a_part_are_not_recorded() -> None:
    record = [sys.executable, "-m", "pytest", "--record-durations", "tests/test_measure.py"]
    done = subprocess.run(record, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--record-durations needs a whole run" in done.stderr

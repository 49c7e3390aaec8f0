"""The rules of the protocol as tests of pytest, in real runs of it."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path

import pytest

from accord.check.engine.baseline import Baseline, save, update
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.testing.runs import WEATHER, needs, needs_us, run

pytestmark = [needs_us, pytest.mark.timeout(300)]

OPTIONS = 'revisions=("2025-11-25",), only=("envelope", "tools/unknown-name"), whole_traffic=False'

IN_MEMORY = f"""
    from accord import Server
    from accord.testing import check_rules

    server = Server("desk")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    test_protocol = check_rules(server, {OPTIONS})
"""

DEAF = """
    import json, sys
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "initialize":
            offered = {"tools": {}}
            info = {"name": "deaf", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}
        else:
            result = {"tools": [], "content": []}
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def deaf(folder: Path) -> str:
    """A command: a server that answers whatever is asked with a result."""
    (folder / "deaf.py").write_text(textwrap.dedent(DEAF))
    return f"{sys.executable} {folder / 'deaf.py'}"


def test_each_rule_is_a_test(tmp_path: Path) -> None:
    ran = run(tmp_path, IN_MEMORY, "-vv", conftest="")
    assert (ran.failed, ran.errors, ran.code) == (0, 0, 0), ran
    assert "test_it.py::test_protocol[tools/unknown-name] PASSED" in ran.output
    assert "test_it.py::test_protocol[envelope/params] " in ran.output


@needs("xdist")
def test_the_rules_are_spread_over_processes(tmp_path: Path) -> None:
    ran = run(tmp_path, IN_MEMORY, "-n", "2", conftest="")
    assert (ran.failed, ran.errors, ran.code) == (0, 0, 0), ran


@needs("asyncio")
def test_it_works_where_another_plugin_runs_the_loops(tmp_path: Path) -> None:
    options = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]
    ran = run(tmp_path, IN_MEMORY, *options, conftest="")
    assert (ran.failed, ran.errors, ran.code) == (0, 0, 0), ran


def test_a_file_is_found_beside_the_test_and_checked_once(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(
        f"{WEATHER.read_text()}\nopen({str(tmp_path / 'started')!r}, 'a').write('x')\n"
    )
    test = f"""
        from accord.testing import check_rules
        test_protocol = check_rules("weather.py", transports=("stdio",), {OPTIONS})
    """
    ran = run(tmp_path, test, conftest="")
    assert (ran.failed, ran.errors, ran.code) == (0, 0, 0), ran
    assert len((tmp_path / "started").read_text()) < ran.passed + 5, "started anew for each rule"


def test_the_server_may_be_the_fixture(tmp_path: Path) -> None:
    test = f"""
        from accord.testing import check_rules
        test_protocol = check_rules(transports=("stdio",), {OPTIONS})
    """
    ran = run(tmp_path, test)
    assert (ran.failed, ran.errors, ran.code) == (0, 0, 0), ran


def test_a_broken_rule_fails_with_what_was_seen_and_how_to_repeat_it(tmp_path: Path) -> None:
    test = f"""
        from accord.testing import check_rules
        test_protocol = check_rules({deaf(tmp_path)!r}, revisions=("2025-11-25",), only=("tools/unknown-name",))
    """
    ran = run(tmp_path, test, conftest="")
    assert (ran.passed, ran.failed) == (0, 1), ran
    for text in (
        "tools/unknown-name (must), in 2025-11-25 over stdio",
        "seen:",
        "wanted:",
        "→ {",
        "← {",
        "repeat: accord check",
    ):
        assert text in ran.output, ran
    assert "Traceback" not in ran.output


def test_a_failure_that_the_baseline_knows_is_expected(tmp_path: Path) -> None:
    known = '{"format": 1, "accepted": [{"rule": "tools/unknown-name", "why": "next year"}]}'
    (tmp_path / "known.json").write_text(known)
    test = """
        from accord.testing import check_rules
        known = dict(baseline="known.json", revisions=("2025-11-25",), only=("tools/unknown-name",))
        test_protocol = check_rules({target!r}, **known)
    """
    ran = run(tmp_path, test.format(target=deaf(tmp_path)), conftest="")
    assert "1 xfailed" in ran.output, ran
    ran = run(tmp_path, test.format(target=str(WEATHER)), conftest="")
    assert "no longer fails; remove it from known.json" in ran.output, ran


def test_a_failure_that_the_baseline_does_not_know_is_reported_beside_one_that_it_knows(tmp_path: Path) -> None:
    test = """
        from accord.testing import check_rules
        known = dict(baseline="known.json", revisions=("2025-11-25",), only=("shapes/messages",))
        test_protocol = check_rules({target!r}, **known)
    """
    target = deaf(tmp_path)
    text = (tmp_path / "deaf.py").read_text()
    (tmp_path / "deaf.py").write_text(text.replace('"version": "1"', "").replace('"tools": []', '"tools": [{}]'))
    settings = CheckSettings(revisions=("2025-11-25",), only=("shapes/messages",))
    first, second = update([asyncio.run(check_server(target, settings))], Baseline()).accepted
    save(Baseline(accepted=(first,)), tmp_path / "known.json")
    assert "1 failed" in run(tmp_path, test.format(target=target), conftest="").output
    save(Baseline(accepted=(first, second)), tmp_path / "known.json")
    assert "1 xfailed" in run(tmp_path, test.format(target=target), conftest="").output


def test_a_rule_that_was_not_judged_is_skipped_with_the_reason(tmp_path: Path) -> None:
    test = """
        from accord import Server
        from accord.testing import check_rules
        test_protocol = check_rules(Server("bare"), revisions=("2025-11-25",), only=("tools/unknown-name",))
    """
    ran = run(tmp_path, test, "-rs", conftest="")
    assert "1 skipped" in ran.output, ran
    assert "tools" in ran.output, ran


def test_a_server_that_cannot_be_checked_fails_every_rule(tmp_path: Path) -> None:
    test = f"""
        from accord.testing import check_rules
        test_protocol = check_rules("/no/such/program", {OPTIONS})
    """
    ran = run(tmp_path, test, conftest="")
    assert (ran.passed, ran.failed > 1) == (0, True), ran
    assert "the server could not be checked: " in ran.output


def test_settings_that_fit_no_rule_are_reported(tmp_path: Path) -> None:
    test = "from accord.testing import check_rules\ntest_protocol = check_rules('x.py', only=('toools',))\n"
    ran = run(tmp_path, test, conftest="")
    assert "no rule is called 'toools'" in ran.output

"""What a check sends, starts and adds up to: by default, in full, passively, and where it is interrupted."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from accord.check.engine.outcomes import NullWatcher
from accord.check.engine.report import Outcome
from accord.check.reports.wording import headline
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.check.wires.child import ChildWire
from accord.cli.check import command

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right
from tests.waiting import until

TWO_ERAS = """
import json, sys
INFO = {"name": "two", "version": "1"}
ABOUT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
SPOKEN = ("2025-03-26", "2025-06-18", "2025-11-25")
for line in sys.stdin:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        continue
    if not isinstance(message, dict) or "id" not in message or not isinstance(message.get("method"), str):
        continue
    method, params = message["method"], message.get("params")
    params = params if isinstance(params, dict) else {}
    if method == "server/discover":
        said = {"result": {**ABOUT, "supportedVersions": ["2026-07-28"], "capabilities": {}}}
    elif method == "initialize":
        wanted = params.get("protocolVersion")
        spoken = wanted if wanted in SPOKEN else SPOKEN[-1]
        said = {"result": {"protocolVersion": spoken, "capabilities": {}, "serverInfo": INFO}}
    elif method == "ping":
        said = {"result": {}}
    else:
        said = {"error": {"code": -32601, "message": "there is no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""
COMMAND = [sys.executable, "-c", TWO_ERAS]
MOST_STARTS = 26
"""Of the default check of a server that is right where it matters: 22, with those that try failures again."""


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[ChildWire]:
    """Every process that is started."""
    found: list[ChildWire] = []
    opened = ChildWire.open

    async def open_and_note(wire: ChildWire) -> None:
        found.append(wire)
        await opened(wire)

    monkeypatch.setattr(ChildWire, "open", open_and_note)
    return found


async def test_by_default_the_newest_handshake_and_the_revision_without_one_are_checked(
    starts: list[ChildWire],
) -> None:
    report = await check_server(COMMAND)
    assert [visit.revision for visit in report.visits] == ["2025-11-25", "2026-07-28"]
    assert len(starts) <= MOST_STARTS
    process, revisions = report.full_adds
    assert process.endswith("rules about the process, again in 2025-11-25 over stdio")
    assert revisions == "2024-11-05, 2025-03-26, 2025-06-18 over stdio, where the server speaks them"


ONE_TOOL = TWO_ERAS.replace('"capabilities": {}', '"capabilities": {"tools": {}}').replace(
    'elif method == "ping":',
    """elif method == "tools/list":
        said = {"result": {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}}
    elif method == "ping":""",
)
"""A server with one page of tools, none of which may be called."""


@pytest.mark.parametrize("rule", ["stdio/cursors-survive", "ping/while-busy"])
async def test_no_process_is_started_for_a_case_that_does_not_apply(starts: list[ChildWire], rule: str) -> None:
    started = {}
    for only in ("ping/answered", rule):
        starts.clear()
        settings = CheckSettings(revisions=("2025-11-25",), only=(only,), whole_traffic=False)
        report = await check_server([sys.executable, "-c", ONE_TOOL], settings)
        started[only] = len(starts)
    assert [each.verdict for each in report.outcomes if each.rule == rule] == ["not-observed"]
    assert started[rule] == started["ping/answered"]


async def test_a_full_check_visits_every_supported_revision() -> None:
    settings = CheckSettings(full=True, only=("ping",), whole_traffic=False)
    report = await check_server(COMMAND, settings)
    assert [visit.revision for visit in report.visits] == ["2025-03-26", "2025-06-18", "2025-11-25"]
    assert report.full_adds == ()


async def test_a_server_that_outlives_its_input_is_reported_once_and_not_in_each_revision() -> None:
    stays = TWO_ERAS + "import time\nwhile True:\n    time.sleep(1)\n"
    settings = CheckSettings(revisions=("2025-06-18", "2025-11-25"), only=("stdio/exits",), timeout=2)
    report = await check_server([sys.executable, "-c", stays], settings)
    assert [visit.revision for visit in report.visits] == ["2025-06-18", "2025-11-25"]
    (finding,) = report.findings
    assert [place.revision for place in finding.places] == ["2025-11-25"]
    older = [each for each in report.outcomes if each.revision == "2025-06-18" and "it was running" in each.text]
    assert {each.verdict for each in older} == {"not-observed"}


def recording() -> tuple[Any, list[str]]:
    """A right server, and the methods that it is sent."""
    change = Change()
    methods: list[str] = []

    @change.heard
    def _(message: Any) -> Any:
        methods.append(message.get("method"))
        return message

    return Changed(right(), change), methods


PASSIVE = {
    *("initialize", "notifications/initialized", "server/discover", "ping"),
    *("tools/list", "resources/list", "resources/templates/list", "prompts/list"),
}


async def test_passively_nothing_is_sent_but_what_opens_pings_and_lists() -> None:
    server, methods = recording()
    report = await check_server(server, CheckSettings(passive=True, full=True, timeout=2))
    assert report.findings == ()
    assert set(methods) == PASSIVE


def test_the_option_for_passive_checks_does_so_too(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    noting = 'for line in sys.stdin:\n    print(json.dumps(line), file=open(sys.argv[1], "a"))'
    program = ONE_TOOL.replace("for line in sys.stdin:", noting)
    CliRunner().invoke(command, [shlex.join([sys.executable, "-c", program, str(heard)]), "--passive"])
    methods = {json.loads(json.loads(line))["method"] for line in heard.read_text().splitlines()}
    assert methods == PASSIVE


LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
OF_AN_SDK = TWO_ERAS.replace(
    '-32601, "message": "there is no such method"', '-32602, "message": FAULT, "data": ""'
).replace('said = {"result": {}}', f'said = {{"result": {{}}}}\n        print({json.dumps(LOG)!r}, flush=True)')
"""It logs without declaring that it does: a fault of mcp 1, which is recognised by the wording of its errors."""


@pytest.mark.parametrize(("wording", "code"), [("Invalid request parameters", 0), ("no such method", 1)])
def test_the_exit_code_for_own_faults_only_is_0_where_all_others_are_of_the_sdk(wording: str, code: int) -> None:
    target = shlex.join([sys.executable, "-c", OF_AN_SDK.replace("FAULT", json.dumps(wording))])
    only = ("capabilities/only-declared", "ping/answered", "errors/method-not-found")
    words = [target, "--revision", "2025-11-25", *(word for rule in only for word in ("--only", rule))]
    assert CliRunner().invoke(command, words, standalone_mode=False).return_value == 1
    done = CliRunner().invoke(command, [*words, "--fail-on", "mine"], standalone_mode=False)
    assert done.return_value == code
    assert "not conformant: 1 MUST broken" in done.output


SAME_OBJECT = """
import json, sys
print("starting", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, dict) and "id" in message:
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "same", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_a_server_that_answers_everything_with_the_same_object_gains_nothing_by_what_it_passes() -> None:
    only = ("lifecycle", "errors", "ping", "tools", "resources", "prompts", "pagination", "completion", "cancel")
    settings = CheckSettings(revisions=("2025-11-25",), only=only, whole_traffic=False, timeout=2)
    report = await check_server([sys.executable, "-c", SAME_OBJECT], settings)
    judged = [each.verdict for each in report.outcomes if each.verdict in ("pass", "fail", "warn")]
    assert headline(report) == f"not conformant: {report.musts_broken} MUSTs broken"
    assert report.score <= 100 * 0.9**report.musts_broken
    assert 100 * judged.count("pass") / len(judged) > report.score, "much passes although it does nothing"


class Stopping(NullWatcher):
    """Stops a check at its first failure."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()

    def case_done(self, outcome: Outcome) -> None:
        if outcome.verdict in ("fail", "warn"):
            self.stop.set()


async def test_a_check_that_is_interrupted_reports_what_it_has_found() -> None:
    watcher = Stopping()
    change = Change()

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32601, "message": "unknown"}}

    settings = CheckSettings(full=True, timeout=2)
    report = await check_server(Changed(right(), change), settings, watcher, stop=watcher.stop)
    assert report.interrupted
    assert report.failed
    assert "ping/answered" in {rule for finding in report.findings for rule in (finding.rule, *finding.also)}
    assert report.score < 100


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ('{"text": NaN}', "not JSON"),
        ('{"text": "\\ud83d"}', "surrogate"),
        ("[" * 9_000 + "]" * 9_000, "nested too deep"),
    ],
    ids=["NaN", "half a character", "nested too deeply"],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_with_the_reason(result: str, why: str) -> None:
    answer = f"line = '{{\"jsonrpc\":\"2.0\",\"id\":' + json.dumps(message['id']) + ',\"result\":' + {result!r} + '}}'"
    program = TWO_ERAS.replace('said = {"result": {}}', f"{answer}\n        print(line, flush=True)\n        continue")
    settings = CheckSettings(revisions=("2025-11-25",), only=("ping/answered",), whole_traffic=False, timeout=60)
    async with asyncio.timeout(50):
        report = await check_server([sys.executable, "-c", program], settings)
    (finding,) = report.findings
    assert finding.text.startswith("the response to ping is invalid: ")
    assert why in finding.text


SILENT_TO_PING = TWO_ERAS.replace('said = {"result": {}}', 'open(sys.argv[1], "w").close(); continue')
"""It creates a file when a ping comes, and does not answer."""


async def test_ctrl_c_prints_what_was_found_and_exits_with_130(tmp_path: Path) -> None:
    pinged = tmp_path / "pinged"
    program = SILENT_TO_PING.replace('"version": "1"', '"version": 1')  # the fault that is found before the ping
    target = shlex.join([sys.executable, "-c", program, str(pinged)])
    words = ["check", target, "--revision", "2025-11-25", "--timeout", "60"]
    words += ["--only", "ping/answered", "--only", "shapes/messages"]
    check = await asyncio.create_subprocess_exec(sys.executable, "-m", "accord", *words, stdout=subprocess.PIPE)
    try:
        async with asyncio.timeout(60):
            await until(pinged.exists)
            check.send_signal(signal.SIGINT)
            printed, _ = await check.communicate()
    finally:
        if check.returncode is None:
            check.kill()
    assert check.returncode == 130
    assert "the check was interrupted" in printed.decode()
    assert "shapes/messages" in printed.decode()

"""`accord check` in the inspector: results while it runs, findings with their messages, and an end on request."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Client, CredentialStore, OAuth, Server
from accord.client.target import Remote, parse
from accord.host.approvers import CallbackApprover
from accord.host.prompts import Prompt
from accord.inspector.check_runs import CheckRun
from accord.inspector.commands import Download, InspectorError
from accord.inspector.conformance import COMMANDS
from accord.inspector.traffic.commands import COMMANDS as TRAFFIC_COMMANDS, RowParams
from accord.inspector.workspace import Workspace

from tests.auth.place import place, stored
from tests.inspector.servers import broken_server
from tests.waiting import until

LAST = "2025-11-25"
STDOUT = {"revisions": [LAST], "transports": ["stdio"], "only": ["stdio/only-messages"], "jobs": 4}
"""Options of a check that finds what is no message."""


@asynccontextmanager
async def inspecting(*targets: Any, **options: Any) -> AsyncIterator[Workspace]:
    """A workspace with these targets."""
    workspace = Workspace(**options)
    workspace.add_targets(targets)
    try:
        yield workspace
    finally:
        await workspace.close()


async def send(workspace: Workspace, name: str, **params: Any) -> Any:
    """Return the result of a command as the page gets it."""
    command = COMMANDS[name]
    result = await command.function(workspace, msgspec.json.decode(msgspec.json.encode(params), type=command.params))
    return result if isinstance(result, Download) else msgspec.json.decode(msgspec.json.encode(result))


async def checked(workspace: Workspace, **options: Any) -> CheckRun:
    """Check the only server to the end, and return the run."""
    (server,) = workspace.servers
    progress = await send(workspace, "check/start", server=server, **options)
    run = workspace.checks.get(progress["run"])
    await until(lambda: not run.is_running, run.progress)
    return run


def topic(workspace: Workspace) -> Any:
    """The value of the topic `check`."""
    return msgspec.to_builtins(workspace.topics._values["check"])


async def test_a_finding_has_its_sentence_its_bytes_and_its_command(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        assert run.state == "done", run.error
        view = await send(workspace, "check/finding", run=run.number, rule="stdio/only-messages")
        assert view["says"]
        (finding,) = view["findings"]
        assert finding["sources"]
        assert r"\u200b" in finding["text"]
        assert "\u200b" not in finding["text"]

        evidence = await send(workspace, "check/evidence", run=run.number, entries=finding["entries"])
        assert any(each["text"] == r"ready\u200b" and each["direction"] == "received" for each in evidence["entries"])

        words = shlex.split(finding["repeat"])
        assert words[:3] == ["accord", "check", f"{sys.executable} {tmp_path / 'broken.py'}"]
        assert words[words.index("--only") + 1] == "stdio/only-messages"


async def test_the_command_of_a_finding_finds_it_again(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        (finding,) = run.findings("stdio/only-messages")
        words = shlex.split(finding.repeat)
        again = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *words, "--json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, _ = await again.communicate()
        assert [each["rule"] for each in msgspec.json.decode(out)["findings"]] == ["stdio/only-messages"]


async def test_results_are_listed_by_rule_and_revision_the_worst_first(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT | {"only": ["stdio/only-messages", "ping"]})
        results = await send(workspace, "check/results", server=run.server)
        assert results["rows"][0]["rule"] == "stdio/only-messages"
        assert results["rows"][0]["cells"] == [{"revision": LAST, "transport": "stdio", "verdict": "fail"}]
        assert results["total"] == results["matching"] == len(results["rows"]) == sum(results["counts"].values())
        assert results["score"] is not None
        passed = await send(workspace, "check/results", server=run.server, verdicts=["pass"], start=1, count=2)
        assert passed["matching"] == results["counts"]["pass"]
        assert passed["rows"] == [each for each in results["rows"] if each["verdict"] == "pass"][1:3]
        named = await send(workspace, "check/results", server=run.server, text="ping/")
        assert {each["rule"].partition("/")[0] for each in named["rows"]} == {"ping"}
        elsewhere = await send(workspace, "check/results", server=run.server, revision="2024-11-05")
        assert elsewhere["rows"] == []


async def test_results_appear_while_the_check_runs_and_it_ends_on_request() -> None:
    async with inspecting("examples/everything.py") as workspace:
        (server,) = workspace.servers
        progress = await send(workspace, "check/start", server=server, full=True)
        await until(lambda: topic(workspace)["runs"][0]["done"] > 5)
        results = await send(workspace, "check/results", server=server)
        assert results["progress"]["state"] == "running"
        assert results["rows"]
        assert results["score"] is None
        await send(workspace, "check/stop", run=progress["run"])
        run = workspace.checks.get(progress["run"])
        await until(lambda: not run.is_running)
        assert run.state == "stopped"
        assert topic(workspace)["runs"][0]["state"] == "stopped"
        stopped = await send(workspace, "check/results", server=server)
        assert stopped["total"] >= results["total"]
        assert any("interrupted" in each for each in stopped["remarks"])


async def test_a_check_has_an_event_loop_of_its_own() -> None:
    async with inspecting("examples/everything.py") as workspace:
        progress = await send(workspace, "check/start", server="everything.py", revisions=[LAST], transports=["http"])
        run = workspace.checks.get(progress["run"])
        await until(lambda: run.progress().done > 0)
        assert run.loop is not None
        assert run.loop is not asyncio.get_running_loop()
        run.stop()
        await until(lambda: not run.is_running)


async def test_no_tool_is_called_unless_it_is_requested(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        options = {"revisions": [LAST], "only": ["tools/case"], "jobs": 4}
        await checked(workspace, **options)
        assert not (tmp_path / "calls").exists()
        await checked(workspace, **options, toolCalls="named", tools=["other"])
        assert not (tmp_path / "calls").exists()
        run = await checked(workspace, **options, toolCalls="named", tools=["greet"], cases=0)
        assert (tmp_path / "calls").exists()
        assert run.settings.call_tools == ("greet",)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"revisions": ["2024-01-01"]}, "is not a revision"),
        ({"only": ["nothing/of-it"]}, "no rule is called"),
        ({"toolCalls": "named"}, "no tool is named"),
        ({"toolCalls": "all", "sequence": "[]"}, "the sequence has no calls"),
    ],
)
async def test_invalid_options_start_nothing(options: dict[str, Any], error: str) -> None:
    async with inspecting("examples/everything.py") as workspace:
        with pytest.raises(InspectorError, match=error):
            await send(workspace, "check/start", server="everything.py", **options)
        assert workspace.checks.last("everything.py") is None


async def test_a_server_has_one_check_at_a_time() -> None:
    async with inspecting("examples/everything.py") as workspace:
        first = await send(workspace, "check/start", server="everything.py")
        with pytest.raises(InspectorError, match="is being checked already"):
            await send(workspace, "check/start", server="everything.py")
        run = workspace.checks.get(first["run"])
        run.stop()
        await until(lambda: not run.is_running)


async def test_a_check_of_a_server_that_cannot_be_started_says_why() -> None:
    async with inspecting("no-such-program-of-mine --fast") as workspace:
        run = await checked(workspace, **STDOUT)
        assert run.state == "failed"
        assert "no-such-program-of-mine" in run.error
        assert (await send(workspace, "check/results", server=run.server))["error"] == run.error


async def test_a_check_ends_with_the_workspace() -> None:
    async with inspecting("examples/everything.py") as workspace:
        progress = await send(workspace, "check/start", server="everything.py")
        run = workspace.checks.get(progress["run"])
        await until(lambda: run.progress().done > 0)
        await workspace.close()
        assert run.loop is not None
        assert run.loop.is_closed()
        assert not run.file.exists()


async def test_a_server_in_this_process_is_checked_in_its_loop() -> None:
    loops = set()
    server = Server("mine", version="1")

    @server.tool
    async def where() -> str:
        """Note the loop."""
        loops.add(asyncio.get_running_loop())
        return "here"

    async with inspecting(server) as workspace:
        run = await checked(workspace, revisions=[LAST], only=["tools/case"], toolCalls="all", cases=0)
        assert run.state == "done", run.error
        assert loops == {asyncio.get_running_loop()}
        assert all(not each.repeat for row in run.results() for each in run.findings(row.rule.id))


async def test_the_whole_session_of_a_check_is_a_file(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        download = await send(workspace, "check/session", run=run.number)
        assert download.path.read_bytes().startswith(b'{"kind":"session"')
        assert download.name == "check-1.jsonl"


async def test_secrets_of_a_server_are_in_no_result_and_no_file(tmp_path: Path) -> None:
    async with inspecting() as workspace:
        file = tmp_path / "secret.py"
        file.write_text(
            'import os\nprint("key", os.environ["API_KEY"], flush=True)\n' + broken_server(tmp_path).read_text()
        )
        configuration = tmp_path / "mcp.json"
        entry = {"command": sys.executable, "args": [str(file)], "env": {"API_KEY": "of-ann-1234567"}}
        configuration.write_bytes(msgspec.json.encode({"mcpServers": {"shop": entry}}))
        workspace.add_targets([], configuration)
        run = await checked(workspace, **STDOUT)
        view = await send(workspace, "check/finding", run=run.number, rule="stdio/only-messages")
        evidence = await send(workspace, "check/evidence", run=run.number, entries=view["findings"][0]["entries"])
        texts = [
            str(view),
            str(evidence),
            run.file.read_text(),
            str(await send(workspace, "check/results", server="shop")),
        ]
        assert "[redacted]" in str(evidence)
        assert not any("of-ann-1234567" in text for text in texts)
        assert shlex.split(view["findings"][0]["repeat"])[2] == f"{configuration}#shop"


async def test_a_command_of_the_page_is_checked_only_after_an_approval(tmp_path: Path) -> None:
    command = f"{sys.executable} {broken_server(tmp_path)}"
    prompts: list[Prompt] = []
    async with inspecting(approver=CallbackApprover(lambda prompt: bool(prompts.append(prompt)))) as workspace:
        workspace.add("typed", parse(command), "page", needs_approval=True)
        with pytest.raises(InspectorError, match="not approved"):
            await send(workspace, "check/start", server="typed", **STDOUT)
        assert len(prompts) == 1
        assert workspace.checks.last("typed") is None


async def test_the_entries_of_a_finding_are_rows_of_a_session_on_the_timeline(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        (finding,) = run.findings("stdio/only-messages")
        opened = await send(workspace, "check/open", run=run.number)
        again = await send(workspace, "check/open", run=run.number)
        rows = [
            await TRAFFIC_COMMANDS["traffic/entry"].function(workspace, RowParams(session=opened["session"], row=row))
            for row in finding.entries
        ]
    assert again == opened
    assert any("ready" in row.raw for row in rows)


async def test_a_check_ends_when_its_server_is_removed() -> None:
    async with inspecting("examples/everything.py") as workspace:
        progress = await send(workspace, "check/start", server="everything.py")
        run = workspace.checks.get(progress["run"])
        await until(lambda: run.progress().done > 0)
        await workspace.remove("everything.py")
        await until(lambda: not run.is_running)
        assert workspace.checks.last("everything.py") is None
        assert topic(workspace)["runs"] == []


async def test_a_server_with_a_login_is_checked_with_a_token_that_the_user_gives(tmp_path: Path) -> None:
    configuration = tmp_path / "mcp.json"
    entry = {"url": "http://127.0.0.1:9/mcp", "oauth": {"clientId": "mine"}}
    configuration.write_bytes(msgspec.json.encode({"mcpServers": {"shop": entry}}))
    async with inspecting() as workspace:
        workspace.add_targets([], configuration)
        with pytest.raises(InspectorError, match="does not log in"):
            await send(workspace, "check/start", server="shop", **STDOUT | {"transports": ["http"]})
        run = await checked(workspace, revisions=[LAST], tokens=["of-ann-1234567"])
        assert "of-ann-1234567" not in run.error
        assert "127.0.0.1:9" in run.error


async def test_a_check_sends_the_token_of_the_stored_login(tmp_path: Path) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place() as at:
        async with Client(at.url, auth=at.login(store)):
            pass
        target = Remote(at.url, auth=OAuth(store=store))
        async with inspecting(target) as workspace:
            options = {"revisions": [LAST], "only": ["ping"], "storedLogin": True}
            run = await checked(workspace, **options)
            assert run.state == "done", run.error
            (row,) = [each for each in run.results() if each.rule.id == "ping/answered"]
            assert row.worst == "pass"
            token = (await stored(store)).tokens.access_token
            assert run.settings.tokens == (token,)
            assert token.encode() not in run.file.read_bytes()


async def test_without_a_stored_login_a_check_says_where_to_log_in(tmp_path: Path) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with inspecting(Remote("http://127.0.0.1:9/mcp", auth=OAuth(store=store))) as workspace:
        with pytest.raises(InspectorError, match="does not log in") as caught:
            await send(workspace, "check/start", server=next(iter(workspace.servers)), storedLogin=True)
    assert "Authorization" in caught.value.cure


async def test_a_baseline_accepts_findings_and_is_saved(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        download = await send(workspace, "check/report", run=run.number, format="baseline")
        content = download.path.read_text("utf-8")
        assert "stdio/only-messages" in content
        run = await checked(workspace, **STDOUT, baseline=content)
        (row,) = [each for each in (await results_of(workspace, run))["rows"] if each["verdict"] == "fail"]
        assert row["accepted"]
        assert run.report is not None
        assert not run.report.fails_on("any")


async def results_of(workspace: Workspace, run: CheckRun) -> Any:
    return await send(workspace, "check/results", server=run.server)


async def test_another_file_is_no_baseline() -> None:
    async with inspecting("examples/everything.py") as workspace:
        with pytest.raises(InspectorError, match="the file is not a baseline"):
            await send(workspace, "check/start", server="everything.py", baseline='{"mcpServers": {}}')
        assert workspace.checks.last("everything.py") is None


@pytest.mark.parametrize(("format", "beginning"), [("html", "<!doctype html>"), ("json", "{"), ("badge", "<svg")])
async def test_the_report_of_a_check_is_a_file(tmp_path: Path, format: str, beginning: str) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        download = await send(workspace, "check/report", run=run.number, format=format)
        assert download.path.read_text("utf-8").lower().startswith(beginning)
        assert download.path.parent == workspace.folder


async def test_a_check_without_an_end_has_no_report() -> None:
    async with inspecting("examples/everything.py") as workspace:
        progress = await send(workspace, "check/start", server="everything.py")
        with pytest.raises(InspectorError, match="no report yet"):
            await send(workspace, "check/report", run=progress["run"])


async def test_entries_that_are_not_in_the_file_are_counted(tmp_path: Path) -> None:
    async with inspecting(f"{sys.executable} {broken_server(tmp_path)}") as workspace:
        run = await checked(workspace, **STDOUT)
        found = await send(workspace, "check/evidence", run=run.number, entries=[0, 1_000_000, -5])
    assert [each["number"] for each in found["entries"]] == [0]
    assert found["leftOut"] == 2


async def test_a_check_ends_when_the_approved_program_changes(tmp_path: Path) -> None:
    file = broken_server(tmp_path)
    async with inspecting(approver=CallbackApprover(lambda prompt: True)) as workspace:
        workspace.add("typed", parse(f"{sys.executable} {file}"), "page", needs_approval=True)
        progress = await send(workspace, "check/start", server="typed", full=True)
        run = workspace.checks.get(progress["run"])
        await until(lambda: run.progress().done > 0)
        file.write_text(f"{file.read_text('utf-8')}\n# changed", encoding="utf-8")
        await until(lambda: not run.is_running)
    assert run.state == "stopped"
    assert "changed" in run.error

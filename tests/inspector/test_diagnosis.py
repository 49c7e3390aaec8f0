"""A failed connection shows the steps of `accord doctor`; what needs an approval is not started without it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Server
from accord.client.target import parse
from accord.host.approvers import CallbackApprover
from accord.host.prompts import Prompt
from accord.inspector.commands import InspectorError
from accord.inspector.diagnosis import COMMANDS
from accord.inspector.servers import InspectedTarget
from accord.inspector.workspace import Workspace


@asynccontextmanager
async def inspecting(target: Any, *, needs_approval: bool = False, **options: Any) -> AsyncIterator[Workspace]:
    """A workspace with one server, named `server`."""
    workspace = Workspace(**options)
    parsed: InspectedTarget = parse(target)  # type: ignore[assignment]
    entry = target if isinstance(target, dict) else None
    workspace.add("server", parsed, "page", entry=entry, needs_approval=needs_approval)
    try:
        yield workspace
    finally:
        await workspace.close()


async def diagnosed(workspace: Workspace) -> Any:
    """Return the diagnosis as the page gets it."""
    command = COMMANDS["servers/diagnose"]
    result = await command.function(workspace, command.params(server="server"))  # type: ignore[call-arg]
    return msgspec.json.decode(msgspec.json.encode(result))


async def test_a_working_server_passes_all_steps() -> None:
    async with inspecting("examples/everything.py") as workspace:
        found = await diagnosed(workspace)
    assert found["failed"] == ""
    assert {each["state"] for each in found["steps"]} <= {"passed", "warning"}
    assert [each["step"] for each in found["steps"]][-2:] == ["lists", "schemas"]


async def test_the_step_that_failed_has_its_evidence_and_a_remedy(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import no_such_module_of_mine\n", encoding="utf-8")
    async with inspecting([sys.executable, str(script)]) as workspace:
        with pytest.raises(InspectorError):
            await workspace.servers["server"].connect()
        found = await diagnosed(workspace)
    assert found["failed"] == "process start"
    (step,) = (each for each in found["steps"] if each["state"] == "failed")
    assert any("no_such_module_of_mine" in line for line in step["evidence"])
    assert "a Python package is missing" in step["remedy"]
    assert found["steps"][-1]["state"] == "not-checked"


async def test_a_url_without_a_server_fails_at_its_step() -> None:
    async with inspecting("http://127.0.0.1:9/mcp") as workspace:
        found = await diagnosed(workspace)
    assert found["failed"]
    assert all(each["remedy"] for each in found["steps"] if each["state"] == "failed")


@pytest.mark.parametrize("has_terminal", [True, False])
async def test_a_command_of_the_page_is_not_started_without_an_approval(tmp_path: Path, has_terminal: bool) -> None:
    started = tmp_path / "started"
    prompts: list[Prompt] = []
    approver = CallbackApprover(lambda prompt: bool(prompts.append(prompt))) if has_terminal else None
    target = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    async with inspecting(target, needs_approval=True, approver=approver) as workspace:
        found = await diagnosed(workspace)
    assert len(prompts) == has_terminal
    assert not started.exists()
    (step,) = (each for each in found["steps"] if each["step"] == "process start")
    assert step["state"] == "not-checked"
    assert step["evidence"] == ["it starts only after you approve it in the terminal"]


async def test_the_servers_that_a_found_login_names_are_shown() -> None:
    auth = {"type": "client_credentials", "client_id": "a", "client_secret": "b", "issuer": "https://evil.example"}
    prompts: list[Prompt] = []
    approver = CallbackApprover(lambda prompt: bool(prompts.append(prompt)))
    entry = {"url": "http://127.0.0.1:9/mcp", "auth": auth}
    async with inspecting(entry, needs_approval=True, approver=approver) as workspace:
        await diagnosed(workspace)
    assert "login: issuer https://evil.example" in prompts[0].text()


async def test_a_server_in_this_process_has_no_diagnosis() -> None:
    async with inspecting(Server("mine", version="1")) as workspace:
        with pytest.raises(InspectorError, match="runs in this process"):
            await diagnosed(workspace)

"""Servers in the files of installed hosts are listed, and none starts unasked."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.host.approvers import CallbackApprover
from accord.host.prompts import Prompt
from accord.inspector.commands import InspectorError
from accord.inspector.found_servers import COMMANDS
from accord.inspector.server_commands import COMMANDS as SERVER_COMMANDS
from accord.inspector.workspace import Workspace

from tests.inspector.servers import broken_server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without files, and a project folder in it, which is the current one."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@asynccontextmanager
async def inspecting(**options: Any) -> AsyncIterator[Workspace]:
    """A workspace without servers."""
    workspace = Workspace(**options)
    try:
        yield workspace
    finally:
        await workspace.close()


async def send(workspace: Workspace, command_name: str, /, **params: Any) -> Any:
    """Return the result of a command as the page gets it."""
    command = {**SERVER_COMMANDS, **COMMANDS}[command_name]
    result = await command.function(workspace, msgspec.json.decode(msgspec.json.encode(params), type=command.params))
    return msgspec.json.decode(msgspec.json.encode(result))


def write(path: Path, servers: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode({"mcpServers": servers}))
    return path


async def test_the_servers_of_all_hosts_are_listed_with_their_file_and_line(home: Path) -> None:
    cursor = write(home / ".cursor" / "mcp.json", {"a": {"command": "npx", "args": ["one"]}})
    project = write(home / "project" / ".mcp.json", {"b": {"type": "http", "url": "https://x.example/mcp"}})
    async with inspecting() as workspace:
        found = await send(workspace, "servers/found")
    listed = {each["name"]: each for each in found["servers"]}
    assert listed["a"]["file"] == str(cursor)
    assert listed["a"]["title"] == "Cursor"
    assert listed["a"]["line"] == 1
    assert (listed["a"]["kind"], listed["a"]["target"]) == ("program", "npx one")
    assert listed["b"]["file"] == str(project)
    assert (listed["b"]["kind"], listed["b"]["target"]) == ("URL", "https://x.example/mcp")


async def test_a_listed_server_has_no_secrets(home: Path) -> None:
    arguments = ["--api-key", "of-ann-1234567"]
    entries = {
        "a": {"command": "shop", "args": arguments, "env": {"API_KEY": "of-bob-1234567"}},
        "b": {"url": "https://me:of-cyd-1234567@x.example/mcp?key=of-dan-1234567", "headers": {"X": "of-eve-1234567"}},
    }
    write(home / ".cursor" / "mcp.json", entries)
    async with inspecting() as workspace:
        found = await send(workspace, "servers/found")
    assert [each["variables"] for each in found["servers"]] == [["API_KEY"], ["X"]]
    assert "1234567" not in str(found)


async def test_a_file_that_cannot_be_read_is_listed_with_its_error(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{", encoding="utf-8")
    async with inspecting() as workspace:
        (found,) = (await send(workspace, "servers/found"))["servers"]
    assert found["name"] == ""
    assert "mcp.json:1" in found["error"]


async def test_listing_and_adding_starts_nothing(home: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"open({str(started)!r}, 'w')"
    file = write(home / ".cursor" / "mcp.json", {"a": {"command": sys.executable, "args": ["-c", script]}})
    async with inspecting() as workspace:
        await send(workspace, "servers/found")
        added = await send(workspace, "servers/add-found", host="cursor", file=str(file), name="a")
        assert added["origin"] == "found"
        assert added["needsApproval"]
        with pytest.raises(InspectorError, match="there is no terminal"):
            await send(workspace, "servers/connect", server=added["name"])
    assert not started.exists()


async def test_an_added_server_starts_after_an_approval(home: Path, tmp_path: Path) -> None:
    server = str(broken_server(tmp_path))
    env = {"TOKEN": "${HOME:-none}"}
    file = write(home / ".cursor" / "mcp.json", {"a b/c": {"command": sys.executable, "args": [server], "env": env}})
    prompts: list[Prompt] = []
    approver = CallbackApprover(lambda prompt: prompts.append(prompt) is None)
    async with inspecting(approver=approver) as workspace:
        added = await send(workspace, "servers/add-found", host="cursor", file=str(file), name="a b/c")
        assert added["name"] == "a-b-c"
        connected = await send(workspace, "servers/connect", server=added["name"])
        assert connected["state"] == "connected"
    (prompt,) = prompts
    assert server in prompt.text()
    assert "receives the values of: ${HOME:-none}" in prompt.text()


@pytest.mark.parametrize(
    ("host", "file", "name", "error"),
    [
        ("cursor", "other.json", "a", "is not a file of Cursor"),
        ("cursor", ".cursor/mcp.json", "z", "has no server 'z'"),
        ("nobody", ".cursor/mcp.json", "a", "unknown host"),
        ("cursor", ".cursor/mcp.json", "bad", "expected an object"),
    ],
)
async def test_only_servers_in_files_of_hosts_can_be_added(
    home: Path, host: str, file: str, name: str, error: str
) -> None:
    write(home / ".cursor" / "mcp.json", {"a": {"command": "x"}, "bad": 3})
    write(home / "other.json", {"a": {"command": "x"}})
    async with inspecting() as workspace:
        with pytest.raises(InspectorError, match=error):
            await send(workspace, "servers/add-found", host=host, file=str(home / file), name=name)
        assert not workspace.servers

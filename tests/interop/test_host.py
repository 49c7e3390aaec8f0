"""One host with the official servers: filesystem, memory, git and everything, in useful work with approvals."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord.host import AuditLog, CallPrompt, CommandPrompt, DefinitionsPrompt, Host
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams
from accord.testing import ScriptedModel

from tests.cli.terminal import Terminal
from tests.interop.peers import npm_server, python_server

POLICY = [
    {"name": "reading", "decision": "allow", "tools": ["read_*", "list_*", "search_*", "git_status", "git_log"]},
    {"name": "no moves", "decision": "deny", "server": "files", "tools": ["move_file"]},
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def processes_of(folder: Path) -> list[int]:
    """The processes with the folder in their command line."""
    found = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in found.split() if int(pid) != os.getpid()]


@asynccontextmanager
async def official_servers(project: Path, approve: Any, **options: Any) -> AsyncIterator[Host]:
    def entry(command: list[str], **more: Any) -> dict[str, Any]:
        return {"command": command[0], "args": command[1:], **more}

    servers = {
        "files": entry([*npm_server("filesystem"), str(project)]),
        "memory": entry(npm_server("memory"), env={"MEMORY_FILE_PATH": str(project.parent / "memory.jsonl")}),
        "git": entry([*python_server("mcp-server-git"), "--repository", str(project)]),
        "everything": entry(npm_server("everything")),
    }
    file = project.parent / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, "accord": {"policy": POLICY}}), encoding="utf-8")
    state = project.parent / "host.db"
    async with Host(file, approve=approve, state=state, found=True, roots=[project], **options) as host:
        await host.settled()
        assert {server.state for server in host.servers.values()} == {"connected"}, [
            server.reason for server in host.servers.values()
        ]
        yield host


async def test_three_servers_do_useful_work_with_approvals(project: Path, tmp_path: Path) -> None:
    prompts: list[Any] = []

    def approve(prompt: Any) -> bool:
        prompts.append(prompt)
        return True

    audit = tmp_path / "audit.jsonl"
    async with official_servers(project, approve, audit=AuditLog(audit)) as host:
        names = {tool.name for tool in await host.list_tools()}
        assert {"files_write_file", "memory_create_entities", "git_git_commit", "everything_echo"} <= names
        entity = {"name": "accord", "entityType": "project", "observations": ["has a host"]}
        await host.call_tool("memory_create_entities", {"entities": [entity]})
        note = project / "note.txt"
        written = await host.call_tool("files_write_file", {"path": str(note), "content": "remember the milk\n"})
        assert not written.is_error, written.text
        where = {"repo_path": str(project)}
        assert "note.txt" in (await host.call_tool("git_git_status", where)).text
        await host.call_tool("git_git_add", {**where, "files": ["note.txt"]})
        assert "committed" in (await host.call_tool("git_git_commit", {**where, "message": "Add a note"})).text
        assert "has a host" in (await host.call_tool("memory_read_graph")).text
        moved = await host.call_tool("files_move_file", {"source": str(note), "destination": str(note) + "2"})
        assert "the rule 'no moves' of the host's policy denies it" in moved.text
        assert note.exists()
    assert sorted(prompt.server for prompt in prompts if isinstance(prompt, CommandPrompt)) == [
        "everything",
        "files",
        "git",
        "memory",
    ]
    assert len([prompt for prompt in prompts if isinstance(prompt, DefinitionsPrompt)]) >= 4
    asked = [prompt.tool for prompt in prompts if isinstance(prompt, CallPrompt)]
    assert asked == ["create_entities", "write_file", "git_add", "git_commit"]
    assert "remember the milk" in audit.read_text("utf-8")


async def test_nothing_is_asked_again_in_the_next_run_and_no_process_remains(project: Path) -> None:
    prompts: list[Any] = []

    def approve(prompt: Any) -> bool:
        prompts.append(prompt)
        return True

    async with official_servers(project, approve):
        pass
    prompts.clear()
    async with official_servers(project, approve) as host:
        assert len(await host.list_tools()) > 30
    assert prompts == []
    assert processes_of(project) == []


async def test_a_model_works_with_the_tools_until_it_has_an_answer(project: Path) -> None:
    note = project / "note.txt"

    def answer(params: CreateMessageParams) -> Any:
        turn = sum(message.role == "assistant" for message in params.messages)
        match turn:
            case 0:
                assert {"files_write_file"} <= {tool.name for tool in params.tools or ()}
                return ToolUseContent(id="1", name="files_write_file", input={"path": str(note), "content": "tea"})
            case 1:
                return [
                    ToolUseContent(id="2", name="files_read_text_file", input={"path": str(note)}),
                    ToolUseContent(id="3", name="git_git_status", input={"repo_path": str(project)}),
                    ToolUseContent(id="4", name="no_such_tool", input={}),
                ]
        text = str(params.messages[-1].content)
        return TextContent(text=f"{'tea' in text} {'note.txt' in text} {'unknown tool' in text}")

    async with official_servers(project, lambda prompt: True) as host:
        result = await host.run(ScriptedModel(answer), "Write a note and check it.")
    assert (result.text, result.stopped, result.turns) == ("True True True", "answered", 3)
    assert note.read_text("utf-8") == "tea"


def test_the_readme_shows_a_host_that_works(project: Path) -> None:
    """As shown, but with the servers of the peers, which npx and uvx would download."""
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text("utf-8")
    (entries,) = re.findall(r"<!-- file: mcp\.json -->\n```json\n(.*?)```", readme, re.DOTALL)
    (program,) = re.findall(r"```python\n(# desk\.py\n.*?)```", readme, re.DOTALL)
    document = json.loads(entries)
    commands = {
        "files": npm_server("filesystem"),
        "memory": npm_server("memory"),
        "git": python_server("mcp-server-git"),
    }
    for name, command in commands.items():
        entry = document["mcpServers"][name]
        kept = [argument for argument in entry["args"][1:] if not re.search(r"^@|^mcp-server", argument)]
        entry |= {"command": command[0], "args": [*command[1:], *kept]}
    document["mcpServers"]["memory"]["env"] = {"MEMORY_FILE_PATH": str(project.parent / "memory.jsonl")}
    (project / "mcp.json").write_text(json.dumps(document), encoding="utf-8")
    (project / "desk.py").write_text(program, encoding="utf-8")
    state = str(project.parent / "host.db")
    with Terminal(cwd=project, python=["desk.py"], NO_COLOR="1", ACCORD_HOST_STATE=state) as user:
        shown = ""
        for _ in range(6):  # the definitions of three servers, and three calls
            shown += user.expect("[no]: ")
            user.type("yes")
        code, out, rest = user.end()
    assert code == 0, rest
    assert "Call 'write_file' on the server 'files'?" in shown
    assert "new file:   notes.md" in out
    assert "in notes.md" in out
    assert "the rule 'no moves' of the host's policy denies it" in out
    assert (project / "notes.md").read_text("utf-8") == "Buy tea.\n"
    asked = re.findall(r"Call '(\w+)' on the server", shown)
    assert asked == ["write_file", "git_add", "create_entities"]

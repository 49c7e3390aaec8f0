"""Inspected servers: every revision, what a failed or lost connection says, and what needs an approval."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from accord import Server
from accord.client.target import Target, parse
from accord.errors import TargetError
from accord.host.approvers import PromptAnswer
from accord.host.prompts import Prompt
from accord.inspector.app_frames import AppFrame
from accord.inspector.commands import InspectorError, NoParams, ServerParams
from accord.inspector.server_commands import (
    AddParams,
    ConnectParams,
    add,
    connect,
    disconnect,
    list_servers,
    read_stderr,
    remove,
)
from accord.inspector.workspace import Workspace, name_of, named_servers
from accord.messages.revision import HANDSHAKE, REVISIONS

from tests.waiting import until

SHOP = """
import os, sys
from accord import Server

print("shop starts", file=sys.stderr, flush=True)
server = Server("shop", version="1.2", instructions="Ask for prices.")


@server.tool
def price(item: str) -> int:
    return len(item)


@server.tool
def end() -> str:
    os._exit(3)
"""
FAILING = "import sys; print('no database\\x1b[31m\\n  at line 3', file=sys.stderr); sys.exit(4)"


class ListedAnswers:
    """Answers prompts from a list, and notes what was asked."""

    is_waited_for = True

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[Prompt] = []

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        self.asked.append(prompt)
        return PromptAnswer(approved=self.answers.pop(0))


@pytest.fixture
def shop(tmp_path: Path) -> str:
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return str(file)


@asynccontextmanager
async def opened(*targets: Target, approver: ListedAnswers | None = None) -> AsyncIterator[Workspace]:
    workspace = Workspace(named_servers(targets, None), approver=approver)
    try:
        yield workspace
    finally:
        await workspace.close()
    assert not workspace.folder.exists()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_is_shown_in_each_revision(shop: str, revision: str) -> None:
    async with opened(shop) as workspace:
        found = await connect(workspace, ConnectParams(server="shop.py", revision=revision))
        assert (found.state, found.revision, found.only_revision) == ("connected", revision, revision)
        assert found.era == ("handshake" if revision in HANDSHAKE else "per-request")
        assert (found.title, found.version, found.instructions) == ("shop", "1.2", "Ask for prices.")
        assert '"tools"' in found.capabilities_json
        while not (await read_stderr(workspace, ServerParams(server="shop.py"))).lines:
            await asyncio.sleep(0.01)
        assert (await read_stderr(workspace, ServerParams(server="shop.py"))).lines == ["shop starts"]


async def test_another_revision_connects_anew(shop: str) -> None:
    async with opened(shop) as workspace:
        await connect(workspace, ConnectParams(server="shop.py"))
        found = await connect(workspace, ConnectParams(server="shop.py", revision="2024-11-05"))
        assert (found.revision, found.connections) == ("2024-11-05", 2)
        with pytest.raises(InspectorError, match="is not a revision"):
            await connect(workspace, ConnectParams(server="shop.py", revision="2020-01-01"))


async def test_a_revision_that_is_chosen_while_another_page_connects_is_used(shop: str) -> None:
    async with opened(shop) as workspace:
        first = asyncio.create_task(connect(workspace, ConnectParams(server="shop.py")))
        while workspace.server("shop.py").state == "idle":
            await asyncio.sleep(0)
        found = await connect(workspace, ConnectParams(server="shop.py", revision="2025-06-18"))
        assert (found.state, found.revision) == ("connected", "2025-06-18")
        assert (await first).state == "connected"


async def test_a_server_that_ends_is_lost_with_its_reason_and_can_be_connected_again(shop: str) -> None:
    async with opened(shop) as workspace:
        await connect(workspace, ConnectParams(server="shop.py"))
        server = workspace.server("shop.py")
        with pytest.raises(Exception, match="exited with code 3"):
            await server.client.call_tool("end")
        while server.state != "lost":
            await asyncio.sleep(0.01)
        assert "exited with code 3" in server.describe().error
        with pytest.raises(InspectorError, match="is not connected"):
            _ = server.client
        assert (await connect(workspace, ConnectParams(server="shop.py"))).error == ""
        assert (await disconnect(workspace, ServerParams(server="shop.py"))).state == "idle"


ENDS_AFTER_THE_HANDSHAKE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "short", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    sys.exit(7)
"""


async def test_a_server_that_ends_right_after_the_handshake_is_not_connected() -> None:
    async with opened([sys.executable, "-c", ENDS_AFTER_THE_HANDSHAKE]) as workspace:
        (name,) = workspace.servers
        server = workspace.server(name)
        for _ in range(5):  # its end may arrive before, while and after it is connected
            with suppress(InspectorError):
                await connect(workspace, ConnectParams(server=name, revision="2025-11-25"))
            await until(lambda: server.state in ("failed", "lost"), server.describe)
            assert "code 7" in server.describe().error


async def test_a_server_that_cannot_start_has_its_stderr_in_the_error() -> None:
    async with opened([sys.executable, "-c", FAILING]) as workspace:
        (name,) = workspace.servers
        with pytest.raises(InspectorError, match="no database"):
            await connect(workspace, ConnectParams(server=name))
        found = workspace.server(name).describe()
        assert found.state == "failed"
        assert "code 4" in found.error
        assert "\x1b" not in found.error
        assert found.error.endswith("\n  at line 3")
        assert found.cure
        assert (await read_stderr(workspace, ServerParams(server=name))).lines[-1] == "  at line 3"


async def test_a_typed_command_is_approved_at_each_start_and_a_url_is_not(shop: str) -> None:
    approver = ListedAnswers(True, False)
    async with opened(approver=approver) as workspace:
        found = await add(workspace, AddParams(target=shop))
        assert found.needs_approval
        assert (await connect(workspace, ConnectParams(server=found.name))).state == "connected"
        await disconnect(workspace, ServerParams(server=found.name))
        with pytest.raises(InspectorError, match="was not approved: denied in the terminal"):
            await connect(workspace, ConnectParams(server=found.name))
        assert all(shop in prompt.text() for prompt in approver.asked)
        assert not (await add(workspace, AddParams(target="http://127.0.0.1:9/mcp"))).needs_approval
        assert len(approver.asked) == 2


async def test_equal_names_get_a_number_and_a_server_can_be_removed(shop: str) -> None:
    async with opened(shop, shop, Server("shop.py")) as workspace:
        assert list(workspace.servers) == ["shop.py", "shop.py-2", "shop.py-3"]
        left = await remove(workspace, ServerParams(server="shop.py-2"))
        assert [each.name for each in left.servers] == ["shop.py", "shop.py-3"]
        assert [each.origin for each in (await list_servers(workspace, NoParams())).servers] == [
            "command line",
            "program",
        ]
        with pytest.raises(InspectorError, match="there is no server"):
            await remove(workspace, ServerParams(server="shop.py-2"))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("npx -y @modelcontextprotocol/server-memory", "server-memory"),
        ("python -m shop --fast", "shop"),
        ("node dist/index.js stdio", "index.js"),
        ("uvx mcp-server-git --repository .", "mcp-server-git"),
        ("https://ann:secret@shop.example:8443/mcp", "shop.example-8443"),
        ("/usr/bin/env", "env"),
    ],
)
def test_a_server_has_a_short_name_without_secrets(target: str, name: str) -> None:
    parsed = parse(target)
    assert not isinstance(parsed, type(None))
    assert name_of(parsed) == name  # type: ignore[arg-type]


def test_an_invalid_target_is_found_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {}}}')
    with pytest.raises(TargetError):
        named_servers([""], None)
    with pytest.raises(TargetError):
        named_servers([], tmp_path / "mcp.json")


SECRET = "sk-proj-abcdefghijklmnop1234567890"


@pytest.mark.parametrize("target", [f"no-such-program run --api-key {SECRET}", f"no-such-program {SECRET}"])
async def test_a_secret_in_a_command_is_not_on_the_page(target: str) -> None:
    workspace = Workspace()
    try:
        server = workspace.add(name_of(parse(target)), parse(target), "command line")
        with pytest.raises(InspectorError) as failed:
            await connect(workspace, ConnectParams(server=server.name))
        await workspace.recording.written()
        found = f"{server.describe()} {failed.value.error}"
        assert "no-such-program" in found
        assert SECRET not in found + workspace.recording.file.read_text("utf-8")
    finally:
        await workspace.close()


async def test_a_server_that_is_removed_before_its_approval_does_not_start(tmp_path: Path) -> None:
    class Approver(ListedAnswers):
        async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
            await remove(workspace, ServerParams(server="python"))
            return await super().ask(prompt, seconds)

    workspace = Workspace(approver=Approver(True))
    try:
        started = tmp_path / "started"
        command = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
        workspace.add("python", parse(command), "page", needs_approval=True)
        with pytest.raises(InspectorError, match="removed"):
            await connect(workspace, ConnectParams(server="python"))
    finally:
        await workspace.close()
    assert not await asyncio.to_thread(started.exists)


async def test_another_server_of_the_same_name_gets_nothing_of_a_removed_one() -> None:
    workspace = Workspace()
    try:
        workspace.add("one", Server("one"), "program")
        workspace.questions.set_roots("one", ["file:///home/ada"], asks=False)
        id = workspace.apps.add(AppFrame("one", "ui://one/app", b"", []))
        await remove(workspace, ServerParams(server="one"))
        workspace.add("one", Server("another"), "program")
        assert workspace.questions.roots("one").roots == []
        assert workspace.apps.find(id) is None
    finally:
        await workspace.close()

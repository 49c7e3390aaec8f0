"""The lists of a server: exact schemas, claims, and invalid entries beside valid ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from accord.client.target import Command
from accord.inspector import catalogue
from accord.inspector.catalogue import CompleteTextParams, ExpandParams
from accord.inspector.commands import InspectorError, ServerParams
from accord.inspector.workspace import Workspace

from tests.inspector.sender import PlayedServer, page

TOOLS = [
    (
        b'{"name":"exact","title":"Exact","inputSchema":{"type":"object","x":1.10,"y":9007199254740993},'
        b'"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":null},'
        b'"icons":[{"src":"javascript:alert(1)"}]}'
    ),
    b'{"name":5,"inputSchema":{"type":"object"}}',
    b'{"name":"none"}',
    b"7",
]
SERVER = f"""
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        info = {{"name": "x", "version": "1"}}
        result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": info}}
        result = json.dumps(result)
    elif message["method"] == "tools/list":
        result = '{{"tools":[' + {",".join(each.decode() for each in TOOLS)!r} + ']}}'
    else:
        continue
    print('{{"jsonrpc":"2.0","id":%s,"result":%s}}' % (json.dumps(message["id"]), result), flush=True)
"""


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Workspace]:
    (folder / "server.py").write_text(SERVER)
    workspace = Workspace()
    try:
        server = workspace.add("x", Command((sys.executable, str(folder / "server.py"))), "command line")
        server.only_revision = "2025-06-18"
        await server.connect()
        yield workspace
    finally:
        await workspace.close()


async def test_an_invalid_entry_does_not_hide_the_others(tmp_path: Path) -> None:
    async with connected(tmp_path) as workspace:
        tools = (await catalogue.list_tools(workspace, ServerParams(server="x"))).items
    exact = tools[0]
    assert exact.input_schema_json == '{"type":"object","x":1.10,"y":9007199254740993}'
    assert exact.item_json == TOOLS[0].decode()
    assert exact.claims == ["read-only", "not destructive"]
    assert exact.icons == ["javascript:alert(1)"]
    assert [bool(tool.problem) for tool in tools] == [False, True, True, True]


async def test_a_server_without_a_list_says_so(tmp_path: Path) -> None:
    async with connected(tmp_path) as workspace:
        prompts = await catalogue.list_prompts(workspace, ServerParams(server="x"))
        assert prompts.items == []
        assert "does not support prompts/list" in prompts.note
        completion = CompleteTextParams(server="x", argument="a", value="", prompt="p")
        assert (await catalogue.complete(workspace, completion)).values == []


async def test_a_server_that_refuses_completion_suggests_nothing() -> None:
    """2024-11-05 has no capability that says so."""
    server = PlayedServer("2024-11-05")
    async with page(server, revision="2024-11-05") as each:
        sent = asyncio.create_task(each.send("completion/complete", server="one", argument="a", value="", prompt="p"))
        server.raw.refuse(await server.raw.hear(), -32601, "Method not found")
        assert await sent == {"values": [], "total": None, "hasMore": False}


async def test_templates_are_expanded() -> None:
    workspace = Workspace()
    try:
        params = ExpandParams(template="x://{a}{?b}", values={"a": "1/2"})
        assert await catalogue.expand(workspace, params) == {"uri": "x://1%2F2"}
        with pytest.raises(InspectorError, match="cannot be expanded"):
            await catalogue.expand(workspace, ExpandParams(template="x://{", values={}))
    finally:
        await workspace.close()


def test_entries_are_small_json() -> None:
    assert msgspec.json.encode(catalogue.CatalogueItem(name="x")) == b'{"name":"x"}'

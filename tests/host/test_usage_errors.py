"""Mistakes of a program that uses a host are errors that say what to do, as early as possible."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from accord import Server
from accord.errors import DeclarationError, InvalidParams, NotConnected, TargetError
from accord.host import AnthropicModel, ApprovalQueue, Host, PromptAnswer, TerminalApprover
from accord.host.prompts import Prompt

from tests.waiting import until


def shop() -> Server:
    server = Server("shop")
    server.tool(lambda item: f"{item}!", name="price", description="The price of an item.")
    return server


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"approve": "terminal"}, r"TerminalApprover\(\) asks at the terminal"),
        ({"approve": True}, "neither a function nor an approver"),
        ({"approve": TerminalApprover}, "neither a function nor an approver"),
        ({"approve": ApprovalQueue}, "neither a function nor an approver"),
        ({"models": ["claude"]}, "'claude' is no model"),
        ({"models": [AnthropicModel]}, "is no model"),
        ({"policy": [{"name": "all", "decision": "allow"}]}, r"Policy\.from_settings"),
        ({"roots": "/srv/project"}, r"is one folder; give a list of folders: roots=\['/srv/project'\]"),
        ({"roots": Path("/srv/project")}, "is one folder"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        Host({"shop": shop()}, **options)


def test_a_whole_document_is_no_mapping_of_servers() -> None:
    with pytest.raises(TargetError, match='give the value of "mcpServers" alone, or the file'):
        Host({"mcpServers": {"shop": {"command": "accord"}}})


async def test_a_host_that_is_not_open_says_so() -> None:
    host = Host({"shop": shop()}, approve=lambda prompt: True, state=":memory:")
    for attempt in (host.list_tools, host.list_prompts, lambda: host.call_tool("shop_price", {"item": "x"})):
        with pytest.raises(NotConnected, match="the host is not open: use it within `async with"):
            await attempt()
    async with host:
        pass
    with pytest.raises(NotConnected, match="the host is closed"):
        await host.call_tool("shop_price", {"item": "x"})


async def test_a_tool_that_waits_for_an_approval_is_not_called_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async with Host({"shop": shop()}, state=":memory:") as host:
        with pytest.raises(InvalidParams, match="'shop_price' waits for an approval: its definition is new"):
            await host.call_tool("shop_price", {"item": "x"})
        with pytest.raises(InvalidParams, match="unknown tool 'shop_other'"):
            await host.call_tool("shop_other")
    assert "1 definitions of shop are not used: the host has no approver" in caplog.text


async def test_a_name_is_no_model_of_a_run() -> None:
    async with Host({"shop": shop()}, approve=lambda prompt: True, state=":memory:") as host:
        with pytest.raises(DeclarationError, match="'claude' is no model"):
            await host.run("claude", "How much is tea?")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["yes", None, 1])
async def test_an_answer_that_is_none_means_no_and_is_warned_about(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Host({"shop": shop()}, approve=lambda prompt: answer, state=":memory:") as host:
        assert await host.list_tools() == []
    assert f"answered a prompt with {answer!r}, which means no: return True or False" in caplog.text


@pytest.mark.parametrize(("answer", "approved"), [(True, True), (False, False), ("yes", False)])
async def test_a_queue_is_answered_with_a_plain_yes_or_no(answer: Any, approved: bool) -> None:
    queue = ApprovalQueue()
    async with Host({"shop": shop()}, approve=queue, state=":memory:") as host:
        await until(lambda: queue.waiting != [])
        queue.answer(queue.waiting[0].id, answer)
        await host.settled()
        await asyncio.sleep(0)
        await until(lambda: host.servers["shop"].unapproved == (0 if approved else 1))
        assert len(await host.list_tools()) == approved


async def test_roots_in_a_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    script = tmp_path / "shows.py"
    script.write_text(
        "from accord import Context, Server\n"
        'server = Server("shows", revisions=["2025-11-25"])\n'
        "@server.tool\n"
        "async def folders(ctx: Context) -> list[str]:\n"
        "    return [str(root.uri) for root in await ctx.list_roots()]\n"
        "server.run()\n",
        encoding="utf-8",
    )
    entry = {"command": sys.executable, "args": [str(script)]}
    settings = {"policy": [{"name": "all", "decision": "allow"}], "servers": {"shows": {"roots": ["data"]}}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shows": entry}, "accord": settings}), encoding="utf-8")

    async def approve(prompt: Prompt) -> PromptAnswer:
        return PromptAnswer(approved=True)

    async with Host(file, approve=approve, state=":memory:") as host:
        assert (await host.call_tool("shows_folders")).data == [(tmp_path / "data").resolve().as_uri()]

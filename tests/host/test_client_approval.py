"""A client of a server that is a host: its elicitation is an approval only where that is configured."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Client, Context, Server
from accord.host import ApprovalQueue, ClientApprover, GrantRequest, Host, PromptAnswer
from accord.host.audit.event import AuditEvent
from accord.host.audit.log import AuditLog
from accord.host.prompts import CallPrompt, DefinitionsPrompt

from tests.host.test_server_isolation import raw
from tests.waiting import until

REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
AGREE = {"approve": True}


class Log(AuditLog):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.approvers: list[tuple[str, str]] = []

    async def append(self, event: AuditEvent) -> str:
        if event.kind == "decision":
            self.approvers.append((event.decision or "", event.approver or ""))
        return await super().append(event)


class Desk:
    """A server whose tool calls that of a host, and whoever answers the prompts of the host."""

    def __init__(self, folder: Path, approve: str | None, approver: Any = None) -> None:
        self.asked: list[Any] = []
        self.file = folder / "mcp.json"
        self.configure(approve)
        self.log = Log(folder / "audit.jsonl")
        self.host = Host(self.file, approve=approver or self.answer, state=folder / "host.db", audit=self.log)

    def server(self, revision: str) -> Server:
        server = Server("desk", revisions=[revision])

        @server.tool
        async def work(ctx: Context) -> str:
            """Work."""
            return (await self.host.call_tool("bad_tool", principal="ann", approve=ClientApprover(ctx))).text

        return server

    def configure(self, approve: str | None) -> None:
        settings = {} if approve is None else {"approve": approve}
        self.file.write_text(json.dumps({"mcpServers": {"bad": raw("works")}, "accord": settings}), encoding="utf-8")

    async def answer(self, prompt: Any) -> bool:
        self.asked.append(prompt)
        return isinstance(prompt, DefinitionsPrompt)


@asynccontextmanager
async def calling(desk: Desk, revision: str, **options: Any) -> AsyncIterator[Client]:
    async with asyncio.timeout(60), desk.host, Client(desk.server(revision), **options) as client:
        yield client


@REVISIONS
async def test_a_client_approves_the_call_that_it_makes(tmp_path: Path, revision: str) -> None:
    shown: list[str] = []

    async def elicit(params: Any) -> dict[str, bool]:
        shown.append(params.message)
        return AGREE

    desk = Desk(tmp_path, "client")
    async with calling(desk, revision, elicitation=elicit) as client:
        assert (await client.call_tool("work")).text == "done"
    assert shown[0].startswith("Call 'tool' on the server 'bad' for 'ann'?")
    assert [type(prompt) for prompt in desk.asked] == [DefinitionsPrompt]
    assert desk.log.approvers == [("allow", "client")]


@REVISIONS
@pytest.mark.parametrize("approve", [None, "host"])
async def test_an_elicitation_is_no_approval_unless_that_is_configured(
    tmp_path: Path, revision: str, approve: str | None
) -> None:
    shown: list[Any] = []
    desk = Desk(tmp_path, approve)
    async with calling(desk, revision, elicitation=lambda params: shown.append(params) or AGREE) as client:
        assert "the user did not approve it" in (await client.call_tool("work")).text
    assert shown == []
    assert [type(prompt) for prompt in desk.asked] == [DefinitionsPrompt, CallPrompt]


@REVISIONS
@pytest.mark.parametrize("answer", [{"approve": False}, None])
async def test_a_client_may_refuse(tmp_path: Path, revision: str, answer: Any) -> None:
    desk = Desk(tmp_path, "client")
    async with calling(desk, revision, elicitation=lambda params: answer) as client:
        assert "the user did not approve it" in (await client.call_tool("work")).text
    assert desk.log.approvers == [("deny", "client")]


@REVISIONS
async def test_a_client_that_cannot_be_asked_approves_nothing(tmp_path: Path, revision: str) -> None:
    async with calling(Desk(tmp_path, "client"), revision) as client:
        assert "the client could not be asked" in (await client.call_tool("work")).text


async def test_a_client_gives_no_grant(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "client")
    asked: list[Any] = []

    async def approve(prompt: Any) -> PromptAnswer:
        asked.append(prompt)
        return PromptAnswer(approved=True, by="owner", grant=GrantRequest(tool="*"))

    async with desk.host as host:
        for _ in range(2):
            assert (await host.call_tool("bad_tool", approve=approve)).text == "done"
    assert len(asked) == 2
    assert {by for _, by in desk.log.approvers} == {"client"}


async def test_an_answer_of_a_client_is_none_after_the_configuration_changed(tmp_path: Path) -> None:
    desk, queue = Desk(tmp_path, "client"), ApprovalQueue()
    async with desk.host as host:
        asking = asyncio.create_task(host.call_tool("bad_tool", approve=queue))
        await until(lambda: queue.waiting != [])
        desk.configure("host")
        await host.reload()
        queue.answer(queue.waiting[0].id, True)
        assert "was not called" in (await asking).text

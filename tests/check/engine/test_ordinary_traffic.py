"""Ordinary traffic is bounded: a server with any number of slow tools does not make a visit endless, and it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from accord import Server, Tool
from accord.check.engine.ordinary_traffic import run_ordinary_traffic
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.session_factory import SessionFactory
from accord.check.probes.probe import Probe
from accord.check.reports.formats import REPORT_FORMATS
from accord.check.reports.terminal import report_lines
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.clock import without_waiting

SETTINGS = CheckSettings(call_tools=True, timeout=10, revisions=("2025-11-25",))
"""Nobody waits so long: the time jumps."""
TOOLS = 100


def slow() -> Server:
    """Each of its tools is at work for ever."""
    server = Server("slow", "1")

    async def work(arguments: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return "done"

    for number in range(TOOLS):
        server.add_tool(Tool(name=f"work{number}", input_schema={"type": "object"}), work)
    return server


@asynccontextmanager
async def talking(server: Server) -> AsyncIterator[Probe]:
    doors = SessionFactory(ServerTarget(server), "2025-11-25", "memory", SETTINGS)
    try:
        yield await doors.open()
    finally:
        await doors.close()


def called(talk: Probe) -> int:
    return sum(message.get("method") == "tools/call" for message in talk.log.sent_messages())


@without_waiting
async def test_what_there_is_no_time_for_is_left_out_and_reported() -> None:
    async with talking(slow()) as talk:
        (left_out,) = await run_ordinary_traffic(talk, 300)
        assert 0 < called(talk) < TOOLS
        assert "reading" not in left_out
        assert "was not whole: calling tools (" in left_out
        assert f"(tools called by then: {called(talk)})" in left_out


async def test_nothing_is_left_out_of_a_server_that_answers() -> None:
    server = Server("quick", "1")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    async with talking(server) as talk:
        assert await run_ordinary_traffic(talk, 30) == ()
        assert called(talk) == 1


@without_waiting
async def test_the_report_says_what_was_left_out() -> None:
    report = await check_server(slow(), replace(SETTINGS, only=("ping", "shapes"), whole_traffic=False))
    (visit,) = report.visits
    assert "ordinary traffic ended after 120 s" in visit.left_out[0]
    assert not visit.error
    texts = [REPORT_FORMATS[form].make(report) for form in ("junit", "sarif", "markdown", "html", "json")]
    for text in ("\n".join(report_lines(report, width=400)), *texts):
        assert "ordinary traffic ended after 120 s" in text

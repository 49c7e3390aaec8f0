"""Clients that crash: what a function in this process cannot do, a program can."""

from __future__ import annotations

import shlex
import sys

from accord.check.clients.client import check_client
from accord.check.settings import CheckSettings

from tests.waiting import SECONDS

CRASHES = """
import asyncio, os, sys
from accord import Client, RequestTimeout

async def main():
    async with Client(sys.argv[1], timeout=1) as client:
        try:
            await client.list_tools()
        except RequestTimeout:
            os.abort()

asyncio.run(main())
"""


async def test_a_client_whose_timer_ends_it_by_a_signal_has_not_given_up_its_request() -> None:
    client = f"{shlex.quote(sys.executable)} -c {shlex.quote(CRASHES)} {{server}}"
    settings = CheckSettings(revisions=("2025-11-25",), only=("client-robust/timeouts",), opening=SECONDS)
    report = await check_client(client, "stdio", settings)
    assert [(each.rule, each.text) for each in report.findings] == [
        ("client-robust/timeouts", "the client crashed (signal 6)")
    ]

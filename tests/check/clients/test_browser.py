"""The browser of a tested client: a client that opens a browser, and listens for the callback, is tested as it is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from accord.check.clients.client import check_client
from accord.check.settings import CheckSettings

from tests.waiting import SECONDS

USER = """
import asyncio, sys
from accord import Client, CredentialStore, OAuth

async def main():
    auth = OAuth(interactive=True, store=CredentialStore(":memory:"))
    async with Client(sys.argv[1], auth=auth) as client:
        await client.list_tools()

asyncio.run(main())
"""


@pytest.mark.parametrize("rule", ["client-auth/login", "client-auth/iss"])
async def test_a_client_with_a_browser_logs_in(tmp_path: Path, rule: str) -> None:
    program = tmp_path / "client.py"
    program.write_text(USER)
    settings = CheckSettings(revisions=("2026-07-28",), only=(rule,), opening=SECONDS)
    report = await check_client(f"{shlex.quote(sys.executable)} {shlex.quote(str(program))} {{url}}", "http", settings)
    assert {each.verdict for each in report.outcomes} == {"pass"}, [each.text for each in report.outcomes]


async def test_rules_do_not_apply_to_a_client_that_does_not_log_in(tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(USER.replace(", auth=auth", ""))
    settings = CheckSettings(revisions=("2026-07-28",), only=("client-auth/iss",), opening=SECONDS)
    report = await check_client(f"{shlex.quote(sys.executable)} {shlex.quote(str(program))} {{url}}", "http", settings)
    assert {(each.verdict, each.text) for each in report.outcomes} == {("not-applicable", "the client does not log in")}


@pytest.mark.parametrize("rule", ["client-auth/given-client-id", "client-auth/client-credentials"])
async def test_a_client_uses_the_credentials_of_its_environment(rule: str) -> None:
    example = Path(__file__).parents[3] / "examples" / "checked_client.py"
    settings = CheckSettings(revisions=("2026-07-28",), only=(rule,), opening=SECONDS)
    report = await check_client(f"{shlex.quote(sys.executable)} {shlex.quote(str(example))} {{url}}", "http", settings)
    assert [each.verdict for each in report.outcomes] == ["pass"]

"""The checker finds in clients of published releases the faults that they are known for."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.check.clients.client import check_client
from accord.check.settings import CheckSettings

from tests.interop.peers import old_client, peer_python

PROGRAM = Path(__file__).parent / "login_client.py"
REVISION = "2025-11-25"


def _now() -> list[str]:
    """The client on the release that other tests have."""
    return [str(peer_python("mcp2")), str(PROGRAM)]


def _before() -> list[str]:
    return old_client(PROGRAM)


class FaultyClient(NamedTuple):
    """One fault of a client, and the rule that must find it. `mended` is a release without it, if there is one."""

    name: str
    fault: str
    rule: str
    command: Callable[[], list[str]]
    mended: Callable[[], list[str]] | None = None


FAULTY: tuple[FaultyClient, ...] = (
    FaultyClient(
        "mcp 2.1.1",
        "The token endpoint redirects: code and verifier are sent to another origin, also on this machine.",
        "client-auth/token-redirect",
        _before,
        _now,
    ),
    FaultyClient(
        "mcp 2.1.1",
        "The MCP server redirects: messages are sent to another origin.",
        "client-http/redirect",
        _before,
        _now,
    ),
    FaultyClient(
        "mcp 2.1.1",
        "Metadata redirects: any URL is fetched, whatever its scheme and host.",
        "client-auth/safe-metadata",
        _before,
    ),
    FaultyClient(
        "mcp 2.3.0",
        "A token expired early: the user has to log in again, although there is a refresh token.",
        "client-auth/refresh",
        _now,
    ),
    FaultyClient(
        "mcp 2.3.0",
        "One lock is held from each request to its response: nothing else is sent meanwhile.",
        "client-auth/concurrent",
        _now,
    ),
    FaultyClient(
        "mcp 2.3.0",
        "An authorization server that does not state PKCE is used.",
        "client-auth/pkce-stated",
        _now,
    ),
    FaultyClient(
        "mcp 2.3.0",
        "The endpoints of an authorization server are used whatever their scheme.",
        "client-auth/https-endpoints",
        _now,
    ),
)


async def rules_found(rule: str, command: list[str]) -> set[str]:
    settings = CheckSettings(revisions=(REVISION,), only=(rule,), opening=30)
    report = await check_client(f"{shlex.join(command)} {{url}}", "http", settings)
    assert {each.verdict for each in report.outcomes} <= {"pass", "warn", "fail"}, report.outcomes
    return {each.rule for each in report.findings}


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: f"{faulty.name}: {faulty.rule}")
async def test_the_fault_of_a_client_is_found(faulty: FaultyClient) -> None:
    assert await rules_found(faulty.rule, faulty.command()) == {faulty.rule}


MENDED = [faulty for faulty in FAULTY if faulty.mended is not None]


@pytest.mark.parametrize("faulty", MENDED, ids=lambda faulty: f"{faulty.name}: {faulty.rule}")
async def test_it_is_not_found_where_it_was_mended(faulty: FaultyClient) -> None:
    assert faulty.mended is not None
    assert await rules_found(faulty.rule, faulty.mended()) == set()

"""Who logs in at a checked authorization server: nobody, a command that prints the callback, or one with a browser."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from accord.check.authorization_servers.check import check_authorization_server
from accord.check.authorization_servers.probe import LoginSettings
from accord.check.clients import browser
from accord.check.settings import CheckSettings
from accord.cli.check import command
from accord.errors import ConnectError, TargetError
from accord.testing import AuthServer
from accord.testing.auth_server.faults import Effect, Fault

SETTINGS = CheckSettings(only=("auth-server/login", "auth-server/code-replay"))
PYTHON = shlex.quote(sys.executable)

VISITS = """
import sys, urllib.error, urllib.request
class Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
try:
    urllib.request.build_opener(Stays).open(sys.argv[1])
except urllib.error.HTTPError as found:
    print("logged in:", found.headers["Location"])
"""


@pytest.mark.parametrize("how", ["prints the callback", "opens a browser"])
async def test_a_command_logs_in(how: str, tmp_path: Path) -> None:
    program = tmp_path / "visits.py"
    program.write_text(VISITS)
    script = str(program) if how == "prints the callback" else str(browser.__file__)
    async with AuthServer() as server:
        login = LoginSettings(authorize=f"{PYTHON} {shlex.quote(script)} {{url}}")
        report = await check_authorization_server(server.issuer, SETTINGS, login=login)
    assert {each.verdict for each in report.outcomes} == {"pass"}, [each.text for each in report.outcomes]


async def test_a_document_of_several_packets_is_read_whole() -> None:
    async with AuthServer() as server:
        server._faults["long"] = Fault("long", (Effect(endpoint="metadata", change={"x": "y" * 900_000}),), False)
        report = await check_authorization_server(server.issuer, CheckSettings(only=("auth-server/metadata",)))
    assert {each.verdict for each in report.outcomes} == {"pass"}, [each.text for each in report.outcomes]


async def test_a_document_without_end_is_cut() -> None:
    async with AuthServer(faults=["metadata_huge"]) as server:
        report = await check_authorization_server(server.issuer, CheckSettings(only=("auth-server/metadata",)))
    assert all(len(line) < 2_000 for each in report.outcomes for line in each.evidence)


async def test_a_given_client_is_used() -> None:
    async with AuthServer(faults=["registration_missing"]) as server:
        server.add_client("given", redirect_uris=["https://client.example/callback"])
        login = LoginSettings(client_id="given", redirect_uri="https://client.example/callback")
        report = await check_authorization_server(server.issuer, SETTINGS, login=login)
    assert {each.verdict for each in report.outcomes} == {"pass"}, [each.text for each in report.outcomes]


async def test_without_a_user_logins_are_not_observed() -> None:
    async with AuthServer() as server:
        server._endpoints._by_path["/authorize"] = ("authorization", server._endpoints._metadata)  # a page
        report = await check_authorization_server(server.issuer, SETTINGS)
    assert {each.verdict for each in report.outcomes} == {"not-observed"}
    assert all("give --authorize" in each.text for each in report.outcomes)


@pytest.mark.parametrize("authorize", ["xdg-open", "form"])
async def test_a_command_without_a_place_for_the_url_is_refused(authorize: str) -> None:
    with pytest.raises(TargetError, match=r"has no \{url\}"):
        await check_authorization_server("http://127.0.0.1:1", SETTINGS, login=LoginSettings(authorize=authorize))


async def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    with pytest.raises(ConnectError, match="Cannot connect"):
        await check_authorization_server("http://127.0.0.1:1", SETTINGS)


async def test_an_issuer_that_is_no_safe_url_is_refused() -> None:
    with pytest.raises(TargetError, match="is http, and not on this machine"):
        await check_authorization_server("http://login.example", SETTINGS)


async def test_the_command_line_checks_an_authorization_server() -> None:
    async with AuthServer(faults=["issuer_slash"]) as server:
        words = ["--authorization-server", server.issuer, "--resource", server.resource, "--json"]
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "accord", "check", *words, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await program.communicate()
    report = json.loads(printed)
    assert program.returncode == 1
    assert report["role"] == "authorization server"
    (finding,) = [each for each in report["findings"] if each["rule"] == "auth-server/issuer"]
    assert finding["repeat"].startswith(f"accord check --authorization-server {server.issuer} --revision 2026-07-28")
    assert finding["repeat"].endswith(f"--resource {server.resource}")


@pytest.mark.parametrize("words", [["weather.py", "--resource", "x"], ["--authorization-server", "x", "--token", "t"]])
def test_options_of_other_checks_are_refused(words: list[str]) -> None:
    assert CliRunner().invoke(command, words).exit_code == 2

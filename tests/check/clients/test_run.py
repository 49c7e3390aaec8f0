"""Clients as commands: where the target stands, how they end, and what is said of them then."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from accord.check.clients.client import check_client, scenarios
from accord.check.clients.client_process import build_argv
from accord.check.settings import CheckSettings
from accord.cli.check import command
from accord.errors import ConnectError, TargetError

from tests.waiting import SECONDS

EXAMPLE = Path(__file__).parents[3] / "examples" / "checked_client.py"
CLIENT = f"{shlex.quote(sys.executable)} {shlex.quote(str(EXAMPLE))}"

QUICK = CheckSettings(revisions=("2025-11-25",), only=("client-envelope/valid",), opening=SECONDS)


def test_a_url_is_put_into_the_command() -> None:
    assert build_argv("client --at={url} x", "http://here") == ["client", "--at=http://here", "x"]


def test_a_server_is_one_word_or_several() -> None:
    assert build_argv("client {server}", "a 'b c'", ["a", "b c"]) == ["client", "a 'b c'"]
    assert build_argv("client -- {server*}", "a 'b c'", ["a", "b c"]) == ["client", "--", "a", "b c"]


@pytest.mark.parametrize("command", ["client", "client 'x", ""])
def test_a_command_without_a_place_for_the_target_is_refused(command: str) -> None:
    with pytest.raises(TargetError):
        build_argv(command, "http://here")


@pytest.mark.parametrize(("place", "over"), [("{url}", "http"), ("{server}", "stdio")])
async def test_a_command_is_run_in_each_scene(place: str, over: str) -> None:
    report = await check_client(f"{CLIENT} {place}", "http" if over == "http" else "stdio", QUICK)
    assert (report.role, report.name, report.score) == ("client", "accord 0.1.0", 100)
    assert [(visit.revision, visit.transport) for visit in report.visits] == [("2025-11-25", over)]


async def test_runs_that_go_on_side_by_side_count_once_in_the_time_of_their_visit() -> None:
    settings = CheckSettings(revisions=("2025-11-25",), only=("client-envelope",), opening=SECONDS, jobs=2)
    report = await check_client(f"{CLIENT} {{url}}", "http", settings)
    (visit,) = report.visits
    assert 0 < visit.seconds <= report.seconds


async def test_a_client_of_the_first_revision_is_served_by_http_with_sse() -> None:
    settings = CheckSettings(revisions=("2024-11-05",), only=("client-sse/endpoint",), opening=SECONDS)
    report = await check_client(f"{CLIENT} {{url}}", "http", settings)
    assert [(visit.revision, visit.transport, visit.score) for visit in report.visits] == [("2024-11-05", "sse", 100)]


async def test_a_client_that_reads_its_environment_is_given_the_url_there() -> None:
    client = "import os, sys, subprocess; sys.exit(subprocess.call([*sys.argv[1:], os.environ['AT']]))"
    command = f"env AT={{url}} {shlex.quote(sys.executable)} -c {shlex.quote(client)} {CLIENT}"
    report = await check_client(command, "http", QUICK)
    assert report.score == 100


CONNECT = "import socket, sys; at = sys.argv[1][7:].split('/')[0].split(':'); s = socket.create_connection(at)"
POST = "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], data=DATA))"
STARTS = "import shlex, subprocess as s, sys; p = s.Popen(shlex.split(sys.argv[1]), stdin=s.PIPE); p.communicate(DATA)"


@pytest.mark.parametrize(
    ("place", "code", "told"),
    [
        ("{url}", "pass", "it never connected, and ended by itself with 0"),
        ("{url}", "import time; time.sleep(60)", "it never connected, and had to be ended after 2 s; does it speak to"),
        ("{url}", "print('usage: client URL'); raise SystemExit(2)", "ended by itself with 2 .*usage: client URL"),
        ("{url}", f"{CONNECT}; s.sendall(b'hello\\r\\n\\r\\n'); s.recv(9)", "it connected, sent no HTTP"),
        ("{url}", POST.replace("DATA", "b'hello'"), "what it sent is no message of MCP: 'hello'"),
        ("{url}", f"{POST.replace('DATA', 'None')}", "its requests led nowhere \\(GET /mcp: 404\\)"),
        ("{server}", "pass", "it never connected, and ended by itself with 0"),
        ("{server}", STARTS.replace("DATA", "b''"), "it started the server, said nothing, and ended by itself"),
        ("{server}", STARTS.replace("DATA", "b'hello'"), "what it sent is no message of MCP: 'hello'"),
        (
            "{server}",
            STARTS.replace("DATA", """b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'"""),
            "in 2025-11-25 it sent initialize, did not go on, and ended by itself",
        ),
    ],
)
async def test_the_reason_why_nothing_was_opened_is_reported(place: str, code: str, told: str) -> None:
    settings = CheckSettings(revisions=("2025-11-25",), opening=2 if "sleep" in code else 20)
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {place}"
    with pytest.raises(ConnectError, match=f"(?s)opened a connection in none of 2025-11-25: .*{told}"):
        await check_client(command, "http" if place == "{url}" else "stdio", settings)


async def test_a_transport_that_does_not_fit_a_revision_is_an_error() -> None:
    settings = CheckSettings(revisions=("2024-11-05",), transports=("http",))
    with pytest.raises(TargetError, match="2024-11-05: served to this client over sse, not over http"):
        await check_client(f"{CLIENT} {{url}}", "http", settings)


def test_options_for_servers_are_not_taken_for_a_client_in_silence() -> None:
    words = ["--client", f"{CLIENT} {{url}}", "--header", "Authorization=x", "--call-tools"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2
    assert "--header, --call-tools: this is for MCP servers" in result.output


async def test_a_program_that_is_no_client_is_an_error_with_its_output() -> None:
    code = "import sys; sys.exit('no such option')"
    with pytest.raises(ConnectError, match=r"(?s)opened a connection in none of 2025-11-25.*no such option"):
        await check_client(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {{url}}", "http", QUICK)


async def test_a_command_without_a_place_for_the_server_is_an_error() -> None:
    with pytest.raises(TargetError, match="does not name the server"):
        await check_client(f"{sys.executable} -c pass", "stdio", QUICK)


async def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(ConnectError, match="cannot start"):
        await check_client("/nowhere/client {url}", "http", QUICK)


async def test_a_missing_rule_is_an_error() -> None:
    with pytest.raises(TargetError, match="no rule"):
        await check_client(f"{CLIENT} {{url}}", "http", CheckSettings(only=("client-unheard-of",)))


def test_every_scene_has_a_name_of_its_own_and_judges_something() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(names) == len(set(names))
    for scenario in scenarios():
        assert scenario.cases, scenario
        assert scenario.handlers or scenario.http or scenario.authorization or scenario.name == "bare", scenario

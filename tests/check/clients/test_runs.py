"""Clients as commands: where the target stands, how they end, and what is said of them then."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from accord.check.clients.client import check_client, scenes
from accord.check.clients.program import argv
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError

EXAMPLE = Path(__file__).parents[3] / "examples" / "checked_client.py"
CLIENT = f"{shlex.quote(sys.executable)} {shlex.quote(str(EXAMPLE))}"

QUICK = CheckSettings(revisions=("2025-11-25",), only=("client-envelope/valid",), opening=20)


def test_a_url_is_put_into_the_command() -> None:
    assert argv("client --at={url} x", "http://here") == ["client", "--at=http://here", "x"]


def test_a_server_is_one_word_or_several() -> None:
    assert argv("client {server}", "a 'b c'", ["a", "b c"]) == ["client", "a 'b c'"]
    assert argv("client -- {server*}", "a 'b c'", ["a", "b c"]) == ["client", "--", "a", "b c"]


@pytest.mark.parametrize("command", ["client", "client 'x", ""])
def test_a_command_without_a_place_for_the_target_is_refused(command: str) -> None:
    with pytest.raises(ConnectError):
        argv(command, "http://here")


@pytest.mark.parametrize(("place", "over"), [("{url}", "http"), ("{server}", "stdio")])
async def test_a_command_is_run_in_each_scene(place: str, over: str) -> None:
    report = await check_client(f"{CLIENT} {place}", "http" if over == "http" else "stdio", QUICK)
    assert (report.role, report.name, report.score) == ("client", "accord 0.1.0", 100)
    assert [(visit.revision, visit.transport) for visit in report.visits] == [("2025-11-25", over)]


async def test_a_program_that_is_no_client_is_told_with_its_words() -> None:
    code = "import sys; sys.exit('no such option')"
    with pytest.raises(ConnectError, match=r"(?s)opened a connection in none of 2025-11-25.*no such option"):
        await check_client(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {{url}}", "http", QUICK)


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(ConnectError, match="cannot start"):
        await check_client("/nowhere/client {url}", "http", QUICK)


async def test_a_rule_that_is_not_there_is_told() -> None:
    with pytest.raises(TargetError, match="no rule"):
        await check_client(f"{CLIENT} {{url}}", "http", CheckSettings(only=("client-unheard-of",)))


def test_every_scene_has_a_name_of_its_own_and_judges_something() -> None:
    names = [scene.name for scene in scenes()]
    assert len(names) == len(set(names))
    assert all(scene.judgements and (scene.handlers or scene.http or scene.name == "bare") for scene in scenes())

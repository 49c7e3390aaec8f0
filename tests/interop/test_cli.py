"""The `accord` command with a published server, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.peers import PEERS, npm_server

NPX = "npx -y @modelcontextprotocol/server-everything"


@pytest.fixture(scope="module")
def everything() -> str:
    return " ".join(npm_server("everything"))


def accord(*arguments: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "accord", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_tool_is_called_through_npx(everything: str) -> None:
    # npx finds what is installed below its directory, and is kept from asking the registry.
    near = ["--cwd", str(PEERS / "npm"), "--env", "npm_config_offline=true"]
    assert accord("call", *near, NPX, "echo", "message=hi") == (0, "Echo: hi\n", "")


def test_values_are_read_as_the_schema_says_and_the_answer_is_json_on_request(everything: str) -> None:
    code, out, err = accord("call", "--json", everything, "get-structured-content", "location=Chicago")
    assert (code, err) == (0, "")
    assert json.loads(out)["structuredContent"]["temperature"] == 36
    assert accord("call", everything, "get-sum", "a=2", "b=3") == (0, "The sum of 2 and 3 is 5.\n", "")


def test_progress_goes_to_stderr(everything: str) -> None:
    code, out, err = accord("call", everything, "trigger-long-running-operation", "duration=0.2", "steps=2")
    assert (code, err.splitlines()) == (0, ["progress: 1/2", "progress: 2/2"])
    assert out == "Long running operation completed. Duration: 0.2 seconds, Steps: 2.\n"


def test_a_picture_is_saved(everything: str, tmp_path: Path) -> None:
    code, _, _ = accord("call", "-o", str(tmp_path / "picture.png"), everything, "get-tiny-image")
    assert code == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_listed_read_and_prompted_is_printed(everything: str) -> None:
    code, out, _ = accord("list", everything)
    assert code == 0
    assert out.startswith("Everything Reference Server 2.0.0 · revision 2025-11-25\n")
    assert "get-sum(a: number, b: number)" in out
    code, out, _ = accord("read", everything, "demo://resource/dynamic/text/1")
    assert (code, out[:12]) == (0, "Resource 1: ")
    code, out, _ = accord("prompt", everything, "args-prompt", "city=Oslo")
    assert (code, out.splitlines()) == (0, ["user:", "What's weather in Oslo?"])


def test_the_exit_code_shows_who_failed(everything: str) -> None:
    code, out, err = accord("call", everything, "nothing")
    assert (code, out) == (1, "")
    assert "Tool nothing not found" in err
    assert accord("read", everything, "demo://nothing")[0] == 4
    assert accord("call", everything, "get-sum", "a=x", "b=3")[0] == 2
    code, _, err = accord("ping", "no-such-program-anywhere")
    assert code == 3
    assert "is not on PATH" in err


def test_requests_of_a_server_are_answered_by_options(everything: str) -> None:
    code, out, err = accord("call", everything, "trigger-elicitation-request", "--answer", "name=Ada")
    assert code == 0
    assert "- Name: Ada" in out
    assert err.startswith("answered: ")
    code, out, _ = accord("call", everything, "trigger-sampling-request", "prompt=hi", "--sample-with", "echo hello")
    assert code == 0
    assert '"text": "hello"' in out
    assert "file:///" in accord("call", everything, "get-roots-list", "--roots", ".")[1]


def test_proposals_and_changes_of_a_published_server(everything: str) -> None:
    words = ("completable-prompt", "name", "", "department=Sales")
    assert accord("complete", everything, *words) == (0, "David\nEve\nFrank\n", "")
    code, _, err = accord("watch", everything, "--for", "0.2")
    assert code == 0
    assert err == (
        "watching (2025-11-25): changes of the tools, changes of the prompts, changes of the resources, log messages\n"
    )

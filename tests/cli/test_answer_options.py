"""What a server asks, answered by options and without a terminal: what goes to the server, and what is told."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ORDER = str(Path(__file__).parents[2] / "examples" / "order.py")
ERAS = ("2025-11-25", "2026-07-28")
ASKS = '"How should we bake your rye?"'


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_without_a_terminal_a_form_is_declined_and_the_way_out_named(accord: Run, era: str) -> None:
    done = accord("call", ORDER, "order", "bread=rye", "--revision", era)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"declined: {ORDER} asks {ASKS} (no terminal to answer at, --answer count=... would answer)\n" in done.stderr
    assert "error: order failed: " in done.stderr


def test_answers_fill_a_form_and_defaults_the_rest(accord: Run, era: str) -> None:
    done = accord("call", ORDER, "order", "bread=rye", "--answer", "count=2", "--revision", era)
    assert (done.returncode, done.stdout) == (0, "2 small rye for nobody in particular\n")
    assert f"answered: {ORDER} asks {ASKS}: count=2, size=small, name=nobody in particular\n" == done.stderr


def test_a_wrong_answer_is_never_replaced_by_a_default(accord: Run) -> None:
    done = accord("call", ORDER, "order", "bread=rye", "--answer", "count=2", "--answer", "size=huge", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert '(--answer size: expected one of small, large, got "huge")' in done.stderr


def test_an_answer_without_a_request_is_reported(accord: Run) -> None:
    done = accord("call", ORDER, "pay", "euros=1", "--answer", "count=2")
    assert (done.returncode, done.stdout) == (0, "paid 1 euros\n")
    assert done.stderr == "warning: --answer count: nobody asked for it\n"


def test_yes_agrees_and_decline_does_not(accord: Run, era: str) -> None:
    said = [
        accord("call", ORDER, "cancel", "number=3", *words, "--revision", era).stdout
        for words in (["--yes"], ["--answer", "value=yes"], ["--answer", "value=no"], ["--decline"], [])
    ]
    assert said == ["order 3 is cancelled\n"] * 2 + ["order 3 stays\n"] * 3


def test_a_page_is_shown_whole_and_agreed_to_only_with_the_option(accord: Run, era: str) -> None:
    for words, code, told in ((["--yes"], 0, ""), ([], 1, "--yes would agree"), (["--decline"], 1, "as --decline")):
        done = accord("call", ORDER, "pay", "euros=200", *words, "--revision", era)
        assert done.returncode == code
        assert ("https://bank.example/confirm?sum=200\n  host: bank.example\n" in done.stderr) == (
            "--decline" not in words
        )
        assert told in done.stderr


def test_a_command_answers_for_the_model(accord: Run, era: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import json, sys\nasked = json.load(sys.stdin)\n"
        "print(asked['messages'][0]['content']['text'].upper(), asked['maxTokens'])"
    )
    command = shlex.join([sys.executable, "model.py"])
    done = accord("call", ORDER, "slogan", "bread=rye", "--sample-with", command, "--revision", era)
    assert (done.returncode, done.stdout) == (0, "rye: PRAISE OUR BREAD IN ONE LINE. 50\n")


ANSWERS = [
    ('{"role": "assistant", "content": {"type": "text", "text": "whole"}, "model": "m"}', "rye: whole\n", ""),
    ('{"bread": "good"}', 'rye: {"bread": "good"}\n', ""),
    ('{"role": "assistant", "content": {"type": "text"}}', "", "is no CreateMessageResult: "),
    ("", "", "wrote no answer"),
]


@pytest.mark.parametrize(("written", "said", "told"), ANSWERS)
def test_a_command_answers_with_a_result_or_a_text(accord: Run, written: str, said: str, told: str) -> None:
    command = shlex.join([sys.executable, "-c", f"print({written!r})"])
    done = accord("call", ORDER, "slogan", "bread=rye", "--sample-with", command)
    assert (done.returncode, done.stdout) == (4 if told else 0, said)
    assert told in done.stderr


def test_a_command_that_fails_declines(accord: Run, era: str) -> None:
    command = shlex.join([sys.executable, "-c", "import sys; sys.exit(3)"])
    done = accord("call", ORDER, "slogan", "bread=rye", "--sample-with", command, "--revision", era)
    assert done.returncode in (1, 4)
    assert "ended with exit code 3)" in done.stderr
    assert "User rejected sampling request" in done.stderr


def test_sampling_without_terminal_or_command_is_declined(accord: Run, era: str) -> None:
    done = accord("call", ORDER, "slogan", "bread=rye", "--revision", era)
    assert done.returncode in (1, 4)
    assert f"declined: {ORDER} asks a model (no terminal to answer at, --sample-with COMMAND" in done.stderr


def test_roots_are_where_the_server_may_work(accord: Run, era: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    done = accord("call", ORDER, "keep", "note=closed", "--roots", "work", "--revision", era)
    assert (done.returncode, done.stdout) == (0, "kept in bakery-note.txt\n")
    assert (tmp_path / "work" / "bakery-note.txt").read_text() == "closed"
    assert accord("call", ORDER, "keep", "note=x", "--revision", era).returncode in (1, 4)


def test_questions_stay_off_stdout(accord: Run) -> None:
    done = accord("call", ORDER, "order", "bread=rye", "--answer", "count=2", "--json")
    assert json.loads(done.stdout)["content"][0]["text"] == "2 small rye for nobody in particular"


def test_questions_of_resources_and_prompts_are_answered_too(accord: Run, era: str, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "from accord import Context, Server\nserver = Server('asks')\n"
        "@server.resource('asks://name')\nasync def name(ctx: Context) -> str:\n"
        "    return str((await ctx.elicit('Name?', str)).data)\n"
        "@server.prompt\nasync def greet(ctx: Context) -> str:\n"
        "    return str((await ctx.elicit('Name?', str)).data)\n"
    )
    for words in (["read", "asks.py", "asks://name"], ["prompt", "asks.py", "greet"]):
        assert "Ada\n" in accord(*words, "--answer", "value=Ada", "--revision", era).stdout

"""`accord complete`: what a server proposes."""

from __future__ import annotations

import json

import pytest

from accord.messages.revision import REVISIONS

from tests.cli.conftest import Run


@pytest.mark.parametrize("revision", REVISIONS)
def test_proposals_for_a_prompt_come_one_a_line(accord: Run, changing: str, revision: str) -> None:
    done = accord("complete", changing, "plan", "city", "Os", "--revision", revision)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Oslo\nOsaka\n", "")


def test_what_is_not_shown_is_counted(accord: Run, changing: str) -> None:
    done = accord("complete", changing, "plan", "city")
    assert len(done.stdout.splitlines()) == 100
    assert done.stderr == "100 of 202\n"
    assert accord("complete", changing, "plan", "city", "x").stderr == "no proposals\n"


def test_arguments_that_have_their_value_go_along(accord: Run, changing: str) -> None:
    done = accord("complete", changing, "plan", "city", "Os", "country=no")
    assert (done.stdout, done.stderr) == ("Oslo (no)\n", "")
    done = accord("complete", changing, "plan", "city", "Os", "country=no", "--revision", "2025-03-26")
    assert done.stdout == "Oslo\nOsaka\n"
    assert done.stderr == "warning: 2025-03-26 completes an argument by itself: country is left out\n"


def test_proposals_for_a_template(accord: Run, changing: str) -> None:
    found = json.loads(accord("complete", changing, "weather://{city}/now", "city", "--json").stdout)
    assert found == {"values": ["Lima\x1b[2J"], "total": 1, "hasMore": False}


@pytest.mark.parametrize("ref", ["nothing", "no://{where}"])
def test_what_does_not_exist_is_an_error(accord: Run, changing: str, ref: str) -> None:
    done = accord("complete", changing, ref, "city")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("error: ")

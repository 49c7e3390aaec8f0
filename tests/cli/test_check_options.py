"""The options of `accord check` about credentials."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from accord.cli.check import command

URL = "http://127.0.0.1:9/mcp"

WRONG = {
    "three principals": (["--token", "a", "--token", "b", "--token", "c"], "for one or two principals"),
    "an issuer and a token": (["--as-issuer", ":9400", "--token", "a"], "leave out --token, --bearer and --passive"),
    "an issuer, and nothing is sent": (["--as-issuer", ":9400", "--passive"], "leave out --token"),
    "tokens for a comparison": (["--token", "a", "--diff", URL], "are for one TARGET"),
    "an audience of nobody": (["--audience", "x"], "--audience is for --as-issuer"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_options_that_exclude_each_other_are_a_wrong_command_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(command, [URL, *words])
    assert result.exit_code == 2
    assert said in result.output


def test_tokens_are_for_servers() -> None:
    result = CliRunner().invoke(command, ["--client", "client {url}", "--token", "a"])
    assert result.exit_code == 2
    assert "--token: this is for MCP servers" in result.output


def test_tokens_in_the_environment_stay_out_of_the_list_of_processes() -> None:
    result = CliRunner().invoke(command, [URL], env={"ACCORD_TOKENS": "a b c"})
    assert result.exit_code == 2
    assert "for one or two principals" in result.output

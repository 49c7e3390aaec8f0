"""Parsing, help and errors of usage, in this process: nothing here reaches a server."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from accord.cli.commands import COMMANDS, accord
from accord.messages.revision import REVISIONS


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(accord, list(arguments))


def test_help_names_every_command_and_the_exit_codes() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.stdout for name in COMMANDS)
    assert "\n    5    timeout\n" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: accord {name} ")


WRONG = [
    (("bogus",), "no command 'bogus'; there are run, list"),
    (("list",), "Missing argument 'TARGET'"),
    (("list", "x.py", "cheeses"), "'cheeses' is not one of 'tools', 'resources', 'templates', 'prompts'"),
    (("list", "x.py", "--timeout", "0"), "give a number of seconds above 0"),
    (("list", "x.py", "--timeout", "nan"), "give a number of seconds above 0"),
    (("list", "x.py", "--revision", "2020-01-01"), "'2020-01-01' is not one of '2024-11-05'"),
    (("list", "x.py", "--env", "novalue"), "novalue is not set here; write novalue=VALUE"),
    (("list", "x.py", "--env", "=value"), "'=value' is not KEY=VALUE"),
    (("list", "x.py", "--cwd", "/does/not/exist"), "does not exist"),
    (("call", "x.py", "tool", "word"), "'word' is not key=value"),
    (("call", "x.py", "tool", "--args", "[1]"), "--args: give a JSON object"),
    (("call", "x.py", "tool", "--args", "{"), "--args: "),
    (("call", "x.py", "tool", "--args", "@/does/not/exist"), "--args: "),
    (("call", "x.py", "tool", "k=\udcff"), "is not valid UTF-8"),
    (("call", "x.py", "tool", "--answer", "novalue"), "'novalue' is not KEY=VALUE"),
    (("call", "x.py", "tool", "--answer", "k=1", "--answer", "k=2"), "'k' is given twice"),
    (("call", "x.py", "tool", "--yes", "--decline"), "--decline goes with neither --answer nor --yes"),
    (("call", "x.py", "tool", "--sample-with", "'"), "is not a command line"),
    (("call", "x.py", "tool", "--sample-with", "no-such-program -x"), "no such program"),
    (("call", "x.py", "tool", "--log-level", "loud"), "'loud' is not one of 'debug', 'info'"),
    (("call", "x.py", "tool", "--roots", "/does/not/exist"), "does not exist"),
    (("watch", "x.py", "--for", "0"), "give a number of seconds above 0"),
    (("complete", "x.py", "plan", "city", "os", "word"), "'word' is not key=value"),
    (("ping", "x.py", "-n", "0"), "0 is not in the range x>=1"),
    (("list", ""), "the target is empty"),
    (("list", "does-not-exist.py"), "does-not-exist.py: no such file"),
    (("list", "'"), "is not a command line"),
    (("run", "does-not-exist.py", "--traceback"), "does-not-exist.py: no such file"),
    (("run", "server.txt"), "give FILE.py or FILE.py:name"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_usage_is_one_error_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "error: " in result.stderr
    assert message in result.stderr


def test_json_prints_an_error_on_stdout_too() -> None:
    result = invoke("list", "does-not-exist.py", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {"error": {"type": "TargetError", "message": "does-not-exist.py: no such file"}}


def test_a_traceback_is_shown_when_asked_for() -> None:
    assert "Traceback" not in invoke("list", "does-not-exist.py").stderr
    assert "Traceback" in invoke("list", "does-not-exist.py", "--traceback").stderr


def test_version() -> None:
    assert invoke("version").stdout.startswith("accord ")
    assert json.loads(invoke("version", "--json").stdout)["revisions"] == list(REVISIONS)


@pytest.mark.parametrize("arguments", [["version"], ["--help"], ["call", "--bogus"]])
def test_what_reaches_no_server_loads_no_client(arguments: list[str]) -> None:
    heavy = ["accord.server.server", "jsonschema_rs"]
    if arguments[0] != "call":
        heavy += ["asyncio", "accord.client.client"]
    script = f"""
import sys
from accord.cli import main
sys.argv[1:] = {arguments}
try:
    main()
finally:
    found = [name for name in {heavy} if name in sys.modules]
    assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
    assert "AssertionError" not in done.stderr


def test_run_loads_neither_the_parser_nor_a_client(tmp_path: object) -> None:
    script = """
import sys
from accord.cli import main
sys.argv[1:] = ["run", "does-not-exist.py"]
try:
    main()
finally:
    print([name for name in ("click", "accord.client.client") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert done.stderr == "error: does-not-exist.py: no such file\n"

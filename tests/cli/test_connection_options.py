"""How the command line reaches a server: headers, tokens, the environment, all servers of a configuration."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import SHOP, Run
from tests.cli.terminal import Terminal

GUARDED = """
from accord import Context, Server

server = Server("guarded")


@server.tool
def headers(name: str, ctx: Context) -> str:
    return ctx.headers.get(name, "none")
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server over HTTP that tells which headers it got."""
    (tmp_path / "guarded.py").write_text(GUARDED, encoding="utf-8")
    command = [sys.executable, "-m", "accord", "run", "guarded.py", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        yield line.split(" at ")[1].split(";")[0]
        process.terminate()


TOKEN = "t0p-Secret-0123456789"


@pytest.mark.parametrize(
    ("options", "environment", "header", "value"),
    [
        (["--header", "X-Key: a: b=c"], {}, "x-key", "a: b=c"),
        (["--header", f"X-Key={TOKEN}", "--header", "X-Other: 1"], {}, "x-key", TOKEN),
        (["--bearer", TOKEN], {}, "authorization", f"Bearer {TOKEN}"),
        ([], {"ACCORD_BEARER": TOKEN}, "authorization", f"Bearer {TOKEN}"),
        (["--header", f"Authorization: Token {TOKEN}"], {"ACCORD_BEARER": "other"}, "authorization", f"Token {TOKEN}"),
    ],
)
def test_headers_and_tokens_reach_a_url_and_nothing_else(
    accord: Run, url: str, options: list[str], environment: dict[str, str], header: str, value: str
) -> None:
    done = accord("call", url, "headers", f"name={header}", "--json", *options, **environment)
    assert json.loads(done.stdout)["content"][0]["text"] == value
    seen = accord("list", url, "-vv", *options, **environment)
    assert seen.returncode == 0
    assert TOKEN not in seen.stdout + seen.stderr
    gone = accord("list", "http://127.0.0.1:9/mcp", "--traceback", *options, **environment)
    assert gone.returncode == 3
    assert TOKEN not in gone.stderr


def test_a_header_that_is_wrong_or_in_vain_is_reported_without_its_value(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "guarded.py").write_text(GUARDED, encoding="utf-8")
    for arguments, message in (
        (["https://x.example/mcp", "--header", TOKEN], "write it as 'Name: value'"),
        (["guarded.py", "--header", f"X-Key: {TOKEN}"], "--header is for a server at a URL"),
    ):
        done = accord("list", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert TOKEN not in done.stderr
    assert accord("list", "guarded.py", ACCORD_BEARER=TOKEN).returncode == 0


def test_a_local_file_gets_the_environment_and_a_command_is_reported_to_lack_it(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    mine = {"ACCORD_TEST_DATABASE": "mine"}
    done = accord("call", "shop.py", "environment", "name=ACCORD_TEST_DATABASE", **mine)
    assert done.stdout.startswith("mine in ")
    command = f"{sys.executable} -m accord run shop.py"
    done = accord("call", command, "environment", "name=ACCORD_TEST_DATABASE", **mine)
    assert done.stdout.startswith("not set in ")
    done = accord("call", command, "environment", "name=ACCORD_TEST_DATABASE", "--env", "ACCORD_TEST_DATABASE", **mine)
    assert done.stdout.startswith("mine in ")
    failing = f"{sys.executable} -c 'raise SystemExit(3)'"
    for arguments in (["list", command, "-v"], ["list", failing]):
        told = accord(*arguments, **mine).stderr
        assert re.search(r"started without these environment variables: .*\bACCORD_TEST_DATABASE\b", told)
        assert "--env NAME passes one on" in told


def test_all_servers_of_a_configuration_are_listed_and_one_that_fails_hides_none(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-m", "accord", "run", "shop.py"]}
    servers = {"one": entry, "bad": {"command": "no-such-program"}, "two": entry}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    done = accord("list", "mcp.json", "tools")
    assert done.returncode == 3
    headings = [line for line in done.stdout.splitlines() if line.startswith("mcp.json")]
    assert headings == ["mcp.json#one", "mcp.json#bad", "mcp.json#two"]
    assert done.stdout.count("echo(text: string)") == 2
    assert "no-such-program" in done.stderr
    found = json.loads(accord("list", "mcp.json", "tools", "--json").stdout)["servers"]
    assert list(found) == ["one", "bad", "two"]
    assert found["two"]["tools"][0]["name"] == "echo"
    assert found["bad"]["error"]["type"] == "ConnectError"
    assert accord("list", "mcp.json#one", "tools").returncode == 0


# --- what the shell completes ----------------------------------------------------------------------------------------


COMPLETED = [
    ("accord call shop.py ", ["echo", "types", "fail"]),
    ("accord call shop.py sl", ["slow"]),
    ("accord read shop.py shop", ["shop://hours"]),
    ("accord prompt shop.py ", ["plan"]),
    ("accord complete shop.py ", ["plan", "shop://{item}/photo"]),
    ("accord list mcp.json#", ["mcp.json#one", "mcp.json#two"]),
    ("accord call ", []),
    ("accord call nowhere.py ", []),
    ("accord call mcp.json ", []),
    ("accord li", ["list"]),
]


@pytest.mark.parametrize(("line", "expected"), COMPLETED)
def test_the_shell_completes_commands_targets_and_names(
    accord: Run, tmp_path: Path, line: str, expected: list[str]
) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"one": {}, "two": {}}}', encoding="utf-8")
    words = line.count(" ")
    asked = {"_ACCORD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(words)}
    done = accord(**asked)
    found = [each.partition(",")[2] for each in done.stdout.split() if each.startswith("plain,")]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)
    assert done.stderr == ""


NAMES = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    known = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"}}
    known["capabilities"] = {"tools": {}}
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in json.loads(sys.argv[1])]
    result = {"initialize": known, "tools/list": {"tools": tools}}.get(asked["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), **answer}), flush=True)
"""


def test_no_name_is_completed_that_a_shell_would_run_or_split(accord: Run, tmp_path: Path) -> None:
    ran = ["a$(touch x)", "a`x`", "a;x", "a&x", "a|x", "a>x", "a<x", "a(x)", "a!x", "a\\x", "a'x", 'a"x', "$HOME", "*"]
    split = [
        "a x",
        "a\tx",
        "a\nplain,x",
        "a\u00a0x",
        "--output=x",
        "{--output=x,a}",
        "{-9..-1}",
        "#x",
        "~x",
        "=x",
        "a=~",
        "a=b:~",
        "",
    ]
    (tmp_path / "names.py").write_text(NAMES, encoding="utf-8")
    server = f"{sys.executable} names.py {shlex.quote(json.dumps([*ran, *split, 'a.b-c_1', 'größe', 'a,b']))}"
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {name: {} for name in (*ran, *split, "one")}}))
    for line, at, expected in (
        (f"accord call {shlex.quote(server)} ", "3", ["a.b-c_1", "größe", "a,b"]),
        ("accord list mcp.json#", "2", ["mcp.json#one"]),
    ):
        asked = {"_ACCORD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": at}
        assert accord(**asked).stdout.splitlines() == [f"plain,{name}" for name in expected]


# --- first words -----------------------------------------------------------------------------------------------------


def test_the_help_names_urls_and_the_version_has_an_option(accord: Run) -> None:
    assert "https://example.com/mcp" in accord("--help").stdout
    assert accord("--version").stdout.startswith("accord ")


def test_help_loads_neither_a_server_nor_a_client() -> None:
    code = "import sys, accord.cli.commands; print(*[m for m in sys.modules if m.startswith('accord.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {each.split(".")[1] for each in done.stdout.split()}
    assert loaded == {"cli", "errors", "lazy_names"}


def test_a_server_at_a_terminal_says_that_it_waits_for_a_client(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    for more in ([], ["--traceback"]):
        with Terminal("run", "shop.py", *more, cwd=tmp_path) as terminal:
            terminal.expect(
                "accord: shop.py serves over stdio and waits for a client on stdin; try `accord list shop.py`"
            )
            terminal.press("\x04")


# --- what steers a terminal ------------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;title\x07 \x1b[2J \r \b \x9b2J \u202e \u2066 \x85"


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    (tmp_path / "hostile.py").write_text(
        "from accord import Server, ResourceNotFound\n"
        "server = Server('hostile')\n"
        f"TEXT = {HOSTILE!r}\n"
        "@server.resource('x://{y}')\n"
        "def fails(y: str) -> str:\n"
        "    raise ResourceNotFound(TEXT)\n",
        encoding="utf-8",
    )
    return "hostile.py"


@pytest.mark.parametrize("options", [["--traceback"], ["-v"], ["-vv"], ["--log-level", "debug", "--stderr"]])
def test_nothing_that_a_server_says_steers_the_terminal(accord: Run, hostile: str, options: list[str]) -> None:
    done = accord("read", hostile, "x://y", *options)
    assert done.returncode == 4
    assert "title" in done.stderr
    assert all(each.isprintable() or each in "\n\t→←" for each in done.stderr), ascii(done.stderr)


def test_json_on_a_terminal_is_the_same_json_without_what_steers_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from accord.cli.content import echo_json

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    echo_json({HOSTILE: [HOSTILE, "plain é", "\U000e0001"]})
    shown = capsys.readouterr().out
    assert all(each.isprintable() or each == "\n" for each in shown), ascii(shown)
    assert json.loads(shown) == {HOSTILE: [HOSTILE, "plain é", "\U000e0001"]}


FORM = """
from dataclasses import dataclass
from typing import Annotated
from accord import Elicit, Server

server = Server("form")


@dataclass
class Login:
    user: str
    password: str
    apiKey: Annotated[str, "A key"] = "k3y-default"


@server.tool
def login(who: Annotated[Login, Elicit("Who are you?")]) -> str:
    return str(len(who.password + who.apiKey))
"""


def test_what_was_answered_is_shown_without_passwords(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "form.py").write_text(FORM, encoding="utf-8")
    done = accord("call", "form.py", "login", "--answer", "user=ann", "--answer", "password=hunter2", "--yes")
    assert done.stdout == "18\n"
    assert "user=ann, password=********, apiKey=********" in done.stderr
    assert "hunter2" not in done.stderr
    assert "k3y-default" not in done.stderr

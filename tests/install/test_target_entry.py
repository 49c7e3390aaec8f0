"""Targets as entries for another program: absolute paths, names, secrets, and hostile texts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.errors import TargetError
from accord.install.target_entry import (
    check_name,
    default_name,
    entry_of,
    is_temporary,
    literal_secrets,
    portable,
    with_settings,
    without_shell,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a program on the PATH and a server."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "npx"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "bin", prepend=os.pathsep)
    (tmp_path / "weather.py").write_text("")
    return tmp_path


def test_a_file_is_run_by_this_python_with_absolute_paths(folder: Path) -> None:
    entry = portable(entry_of("weather.py:app"))
    args = ["-P", "-m", "accord", "run", f"{folder}/weather.py:app"]
    assert entry == {"command": sys.executable, "args": args}


def test_a_program_is_found_on_the_path_once(folder: Path) -> None:
    entry = portable(entry_of("npx -y @scope/some-server ./weather.py . weather.py --file=weather.py weather"))
    assert entry["command"] == f"{folder}/bin/npx"
    absolute = f"{folder}/weather.py"
    assert entry["args"] == [
        "-y", "@scope/some-server", absolute, str(folder), absolute, "--file=weather.py", "weather",
    ]  # fmt: skip


def test_a_program_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(TargetError, match="'no-such-program': no such program on the PATH"):
        portable(entry_of("no-such-program -x"))


def test_an_entry_of_a_file_keeps_its_references(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    (folder / "mcp.json").write_text('{"mcpServers": {"a": {"command": "npx", "env": {"KEY": "${SECRET}"}}, "b": 1}}')
    entry = portable(entry_of("mcp.json#a"))
    assert entry == {"command": f"{folder}/bin/npx", "args": [], "env": {"KEY": "${SECRET}"}}
    with pytest.raises(TargetError, match=r"mcp\.json:1: expected an object, found a number"):
        entry_of("mcp.json#b")
    with pytest.raises(TargetError, match="has no server 'c'; there are a, b"):
        entry_of("mcp.json#c")
    with pytest.raises(TargetError, match=r"name one of mcp\.json#a, mcp\.json#b"):
        entry_of("mcp.json")


def test_a_batch_file_is_replaced_by_what_it_starts_or_refused(tmp_path: Path) -> None:
    script = tmp_path / "node_modules" / "npm" / "bin" / "npx-cli.js"
    script.parent.mkdir(parents=True)
    for file in (script, tmp_path / "node.exe", tmp_path / "npx.cmd", tmp_path / "other.CMD"):
        file.write_text("")
    assert without_shell(str(tmp_path / "npx.cmd")) == [str(tmp_path / "node.exe"), str(script)]
    assert without_shell("/usr/bin/npx") == ["/usr/bin/npx"]
    for name in ("other.CMD", "run.bat"):
        with pytest.raises(TargetError, match="is a batch file, which needs a shell"):
            without_shell(str(tmp_path / name))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("weather.py", "weather"),
        ("weather.py:app", "weather"),
        ("npx -y @modelcontextprotocol/server-memory@1.2", "server-memory"),
        ("npx -y some-server@latest /data", "some-server"),
        ("uvx mcp-server-git --repository x", "mcp-server-git"),
        ("uv run server.py", "server"),
        ("python -m my.server", "my-server"),
        ("/opt/tools/search-server --fast", "search-server"),
        ("https://mcp.example.com/mcp", "example-com"),
        ("http://user:pw@127.0.0.1:8000/mcp", "127-0-0-1-8000"),
    ],
)
def test_a_server_is_named_by_its_target(folder: Path, target: str, name: str) -> None:
    assert default_name(target) == name


@pytest.mark.parametrize(
    ("command", "is_in_cache"),
    [
        ("/home/ann/.cache/uv/archive-v0/x1/bin/python", True),
        ("/home/ann/.npm/_npx/1a/node_modules/.bin/server", True),
        ("/usr/bin/python", False),
    ],
)
def test_a_program_in_a_cache_is_found(command: str, is_in_cache: bool) -> None:
    assert is_temporary({"command": command}) == is_in_cache
    assert not is_temporary({"url": "https://e.com"})


CHARACTERS = [
    *"&|>^()\"'`$;\n\r\t\0<!*?[]{}~#%@=+,:/\\. ",
    "\x1b",
    "\u202e",
    "\u200b",
    "\x7f",
    "é",
    "\u2066",
    "中",
    "\ud800",
]
FORMS = ["{}", "a{}", "{}a", "a{}b", "a{0}{0}b", "-a{}"]
NAMES = [form.format(each) for form in FORMS for each in CHARACTERS]
NAMES += [
    "",
    "-a",
    "--undo",
    "_a",
    "a" * 65,
    "a" * 10_000,
    "__proto__",
    "constructor",
    "prototype",
    "$(calc)",
    "`calc`",
]
NAMES += [
    "a&calc",
    "a|calc",
    "%PATH%",
    "../a",
    "..",
    ".",
    "a/b",
    "C:\\a",
    "a\nb: c",
    "a]\n[x",
    '"',
    "'''",
    "a: b",
    "a = b",
]


def test_there_are_two_hundred_hostile_names() -> None:
    assert len(set(NAMES)) > 200


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(TargetError, match="cannot be used; give 1 to 64 letters, digits, - and _") as caught:
        check_name(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["a", "weather", "server-memory", "A_1", "0", "a" * 64])
def test_an_ordinary_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("character", ["\n", "\0", "\x1b", "\x7f", "\ud800"])
def test_control_characters_are_refused_everywhere(character: str) -> None:
    texts: list[dict[str, Any]] = [
        {"command": f"/bin/sh{character}"},
        {"command": "/bin/sh", "args": [character]},
        {"command": "/bin/sh", "env": {"A": character}},
        {"command": "/bin/sh", "env": {character: "A"}},
        {"url": "https://e.com", "headers": {"A": character}},
    ]
    for entry in texts:
        with pytest.raises(TargetError, match="has a control character"):
            portable(entry)


SECRETS = [
    ({"env": {"API_KEY": "${API_KEY}", "MODE": "fast"}}, []),
    ({"env": {"API_KEY": "abc"}}, ["env.API_KEY"]),
    ({"env": {"API_KEY": ""}}, []),
    ({"env": {"OTHER": "ghp_" + "a1B2" * 9}}, ["env.OTHER"]),
    ({"headers": {"Authorization": "Bearer ${TOKEN}"}}, []),
    ({"headers": {"Authorization": "Bearer abc"}}, ["headers.Authorization"]),
    ({"args": ["--api-key", "abc"]}, ["args"]),
    ({"args": ["--api-key", "${KEY}", "-y"]}, []),
    ({"url": "https://ann:hunter2@e.com/mcp"}, ["url"]),
    ({"url": "https://e.com/mcp?api_key=hunter2"}, ["url"]),
    ({"url": "https://e.com/mcp?api_key=${KEY}"}, []),
]


@pytest.mark.parametrize(("entry", "keys"), SECRETS)
def test_secrets_that_are_written_out_are_found(entry: dict[str, Any], keys: list[str]) -> None:
    assert literal_secrets(entry) == keys


def test_variables_and_headers_are_added_as_references() -> None:
    program = {"command": "x", "env": {"A": "1"}}
    assert with_settings(program, ["KEY", "B=2"], [])["env"] == {"A": "1", "KEY": "${KEY}", "B": "2"}
    url = with_settings({"url": "https://e.com"}, [], [("A", "${B}")])
    assert url["headers"] == {"A": "${B}"}
    for arguments in ((program, [], [("A", "b")]), ({"url": "x"}, ["KEY"], []), (program, ["A-B"], [])):
        with pytest.raises(TargetError):
            with_settings(*arguments)

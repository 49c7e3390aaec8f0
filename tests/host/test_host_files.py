"""Reading the files of hosts: each host's own spelling, invalid entries, and files that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from accord.client.target import Command, Remote, parse
from accord.errors import TargetError
from accord.host.configuration import read_configuration
from accord.host.documents import MAX_PROJECT_BYTES
from accord.host.host_files import MAX_ENTRIES, project_folder, read_host_file
from accord.host.known_hosts import MCP_SERVERS, known_host

DATA = Path(__file__).parent.parent / "data" / "hosts"

FILES = {
    "claude-desktop": "claude_desktop_config.json",
    "claude-code": "claude.json",
    "cursor": "cursor.json",
    "vscode": "vscode.json",
    "windsurf": "windsurf.json",
    "zed": "zed.json",
    "gemini": "gemini.json",
    "codex": "codex.toml",
    "goose": "goose.yaml",
}
PROGRAM = {"command": "/usr/bin/npx", "args": ["-y", "some-server"], "env": {"KEY": "${SOME_KEY}"}}
URL = {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}

ENTRIES: dict[str, dict[str, tuple[int, dict[str, Any] | str]]] = {
    "claude-desktop": {"files": (4, {"command": "/usr/bin/npx", "args": ["-y", "some-server"]})},
    "claude-code": {
        "program": (4, PROGRAM),
        "remote": (10, URL),
        "old": (15, {"url": "https://example.com/sse", "type": "sse"}),
        "socket": (16, 'accord cannot connect to servers of "type" \'ws\''),
    },
    "cursor": {
        "program": (3, {**PROGRAM, "args": ["/project/server.py"]}),
        "remote": (8, URL),
    },
    "vscode": {
        "program": (7, {**PROGRAM, "cwd": "/project/tools"}),
        "remote": (14, URL),
        "asks": (19, "\"env.KEY\" needs the input 'key', for which only the host asks its user"),
        "file": (20, 'accord does not read "envFile"; move the variables to "env"'),
    },
    "windsurf": {"program": (3, PROGRAM), "remote": (8, URL)},
    "zed": {
        "program": (6, {"command": "/usr/bin/npx", "args": ["-y", "some-server"], "env": {"KEY": "x"}}),
        "old": (12, {"command": "/usr/bin/npx", "args": ["-y"]}),
        "remote": (15, {"url": "https://example.com/mcp"}),
        "extension": (16, "an extension of the host provides this server; accord cannot start it"),
    },
    "gemini": {
        "program": (4, {**PROGRAM, "cwd": "/project/tools"}),
        "remote": (10, URL),
        "old": (14, {"url": "https://example.com/sse", "type": "sse"}),
    },
    "codex": {
        "program": (5, {**PROGRAM, "env": {"KEY": "x", "SOME_KEY": "${SOME_KEY}"}}),
        "remote": (13, {**URL, "headers": {"X-Team": "a", "X-Key": "${SOME_KEY}", **URL["headers"]}}),
        "of.names": (19, {"command": "x", "args": []}),
    },
    "goose": {
        "developer": (4, "accord cannot connect to servers of \"type\" 'builtin'"),
        "program": (8, {**PROGRAM, "env": {"PORT": "8080", "SOME_KEY": "${SOME_KEY}"}}),
        "remote": (17, URL),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_each_host_is_read_into_entries_with_their_lines(name: str) -> None:
    file = read_host_file(DATA / FILES[name], known_host(name).format, project=Path("/project"))
    found = {each.name: (each.line, each.error or each.entry) for each in file.entries.values()}
    for entry, (line, expected) in ENTRIES[name].items():
        assert found[entry][0] == line
        if isinstance(expected, str):
            assert str(found[entry][1]).startswith(expected)
        else:
            assert found[entry][1] == expected
    assert found.keys() == ENTRIES[name].keys()


@pytest.mark.parametrize("name", [".vscode/mcp.json", ".mcp.json", "mcp.json", ".codex/config.toml"])
def test_the_project_of_a_file_is_the_folder_that_its_host_opens(tmp_path: Path, name: str) -> None:
    assert project_folder(tmp_path / name) == tmp_path


def test_a_variable_for_the_project_of_an_editor_is_the_project(tmp_path: Path) -> None:
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}/a.py"]}}}', encoding="utf-8")
    assert read_configuration(file).servers["a"].entry["args"] == [f"{tmp_path}/a.py"]


@pytest.mark.parametrize("name", FILES)
def test_each_valid_entry_is_a_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    monkeypatch.setenv("TOKEN", "t")
    file = read_host_file(DATA / FILES[name], known_host(name).format, project=Path("/project"))
    targets = [parse(each.entry) for each in file.entries.values() if each.entry is not None]
    assert targets
    assert all(isinstance(each, Command | Remote) for each in targets)


def test_servers_of_one_project_in_a_user_file_have_priority(tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    file.write_text(
        '{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"a": {"command": "y"}}}}}'
    )
    form = known_host("claude-code").format

    def command(project: Path | None) -> object:
        entry = read_host_file(file, form, project=project).entries["a"].entry
        return entry and entry["command"]

    assert (command(None), command(Path("/p")), command(Path("/q"))) == ("x", "y", "x")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1", "expected an object, found a number"),
        ("null", "expected an object, found null"),
        ("{}", 'the entry needs "command" or "url"'),
        ('{"type": "stdio", "url": "https://x"}', 'the entry needs "command"'),
        ('{"command": "x", "url": "https://x"}', '"command" and "url" are both in the entry'),
        ('{"command": ""}', '"command" must be a string, not an empty string'),
        ('{"command": ["x"]}', '"command" must be a string, not a list'),
        ('{"command": "x", "args": "y"}', '"args" must be a list of strings, not a string'),
        ('{"command": "x", "args": false}', '"args" must be a list of strings, not a boolean'),
        ('{"command": "x", "args": [null]}', '"args[0]" must be a string, not null'),
        ('{"": "y", "env": {}}', 'the entry needs "command" or "url"'),
        ('{"command": "x", "env": []}', '"env" must be an object, not a list'),
        ('{"command": "x", "env": {"A": {"secret": "hunter2"}}}', '"env.A" must be a string, not an object'),
        ('{"command": "x", "args": ["a${hunter2!}"]}', '"args[0]" has a reference that accord does not know'),
        (
            '{"command": "x", "args": ["${command:hunter2}"]}',
            '"args[0]" has a reference that accord does not know: ${command:...}',
        ),
        ('{"url": "https://x", "headers": {"A": true}}', '"headers.A" must be a string, not a boolean'),
        ('{"url": "https://x", "headersHelper": "hunter2"}', 'accord does not read "headersHelper"'),
    ],
)
def test_an_invalid_entry_is_an_error_of_that_entry_only(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(f'{{"mcpServers": {{\n"bad": {text},\n"good": {{"command": "x"}}}}}}')
    file = read_host_file(path, MCP_SERVERS)
    bad, good = file.entries["bad"], file.entries["good"]
    assert bad.entry is None
    assert reason in bad.error
    assert "hunter2" not in bad.error
    assert bad.where == f"{path}:2"
    assert good.entry == {"command": "x", "args": []}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("mcp.json", b'{"mcpServers": {\n  "a" 1}}', ":2:7: expected ':', found '1'"),
        ("mcp.json", b"[]", ":1: expected an object"),
        ("mcp.json", b'{\n"mcpServers": []}', ':2: "mcpServers" must be an object'),
        ("mcp.json", b'{"a": "\xff"}', ":1:8: this is not UTF-8"),
        ("mcp.json", '{"a": 1}'.encode("utf-16"), " is UTF-16; save it as UTF-8"),
        ("mcp.json", b" " * (8 << 20) + b"{}", " is larger than 8,192 KiB"),
        ("config.toml", b"[mcp_servers.a]\ncommand = ", ":2:11: invalid TOML"),
        ("config.toml", b"[mcp_servers\n", ":1:13: invalid TOML"),
        ("config.toml", b"x = 1" + b"1" * 5_000, ": invalid TOML"),
        ("config.toml", b"mcp_servers = 1", ':1: "mcp_servers" must be an object'),
        ("config.yaml", b"extensions:\n  a: [1", ":2:8: invalid YAML"),
        ("config.yaml", b"extensions:\n  a: hunter2\n  a: hunter2", ":3:3: invalid YAML: found duplicate key"),
        ("config.yaml", b"- a", ": expected a mapping"),
        ("config.yaml", b"a: " + b"[" * 5_000, ": invalid YAML"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_place(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    host = {"mcp.json": "claude-code", "config.toml": "codex", "config.yaml": "goose"}[name]
    with pytest.raises(TargetError) as caught:
        read_host_file(path, known_host(host).format)
    assert str(caught.value).startswith(f"{path}{reason}")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["claude-code", "codex", "goose"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b"# c\n"])
def test_an_empty_file_has_no_servers(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content.replace(b"#", b"//") if name == "claude-code" else content)
    assert read_host_file(path, known_host(name).format).entries == {}


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(TargetError, match="is not a regular file"):
            read_host_file(path, MCP_SERVERS)
    with pytest.raises(TargetError, match="No such file or directory"):
        read_host_file(tmp_path / "none", MCP_SERVERS)


def test_the_number_of_servers_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    names = ",".join(f'"s{number}": {{"command": "x"}}' for number in range(MAX_ENTRIES + 1))
    path.write_text(f'{{"mcpServers": {{{names}}}}}')
    with pytest.raises(TargetError, match="has more than 1,000 servers"):
        read_host_file(path, MCP_SERVERS)


def test_the_file_of_a_project_has_a_smaller_limit(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}}' + " " * MAX_PROJECT_BYTES)
    assert read_host_file(path, MCP_SERVERS, project=tmp_path / "other").entries == {}
    with pytest.raises(TargetError, match="is larger than 256 KiB"):
        read_host_file(path, MCP_SERVERS, project=tmp_path)


def test_a_file_of_aliases_is_read_without_expanding_them(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    path.write_text("\n".join([*lines, "extensions:", "  e: {type: stdio, cmd: x, args: *a59}"]))
    assert '"args[0]" must be a string' in read_host_file(path, known_host("goose").format).entries["e"].error


def test_disabled_servers_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        '{"mcpServers": {"a": {"command": "x", "disabled": true}, "b": {"command": "x", "enabled": false},'
        '"c": {"command": "x"}}}'
    )
    entries = read_host_file(path, MCP_SERVERS).entries
    assert [each.enabled for each in entries.values()] == [False, False, True]


def test_no_repr_contains_values(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "x", "env": {"KEY": "hunter2"}}}}')
    file = read_host_file(path, MCP_SERVERS)
    assert "hunter2" not in f"{file!r} {file.entries['a']!r}"

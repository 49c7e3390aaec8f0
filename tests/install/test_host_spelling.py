"""Entries in the spelling of each host: fields, references to secrets, and what a host cannot express."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import TargetError
from accord.host.known_hosts import known_host
from accord.install.host_spelling import spell

PROGRAM = {"command": "/bin/x", "args": ["-y"], "env": {"KEY": "${KEY}", "MODE": "fast"}}
PLAIN = {"command": "/bin/x", "args": ["-y"], "env": {"MODE": "fast"}}
URL = {
    "url": "https://e.com/mcp",
    "headers": {"Authorization": "Bearer ${TOKEN}", "X-Key": "${KEY}", "X-Team": "a"},
}
SSE = {"url": "https://e.com/sse", "type": "sse"}
QUESTION = {"type": "promptString", "id": "new-key", "description": "KEY of new", "password": True}

SPELLED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("claude-desktop", PLAIN, PLAIN),
    ("claude-code", PROGRAM, {"type": "stdio", **PROGRAM}),
    ("claude-code", URL, {"type": "http", **URL}),
    ("claude-code", SSE, {"type": "sse", "url": "https://e.com/sse"}),
    ("claude-code", {"url": "https://${HOST:-e.com}/"}, {"type": "http", "url": "https://${HOST:-e.com}/"}),
    ("cursor", PROGRAM, {**PROGRAM, "env": {"KEY": "${env:KEY}", "MODE": "fast"}}),
    ("cursor", SSE, {"url": "https://e.com/sse"}),
    ("vscode", PROGRAM, {"type": "stdio", **PROGRAM, "env": {"KEY": "${input:new-key}", "MODE": "fast"}}),
    ("vscode", {**PLAIN, "cwd": "/w"}, {"type": "stdio", **PLAIN, "cwd": "/w"}),
    ("windsurf", {"url": "https://e.com/mcp"}, {"serverUrl": "https://e.com/mcp"}),
    ("zed", PLAIN, PLAIN),
    ("gemini", {"url": "https://e.com/mcp"}, {"httpUrl": "https://e.com/mcp"}),
    ("gemini", SSE, {"url": "https://e.com/sse"}),
    ("codex", PROGRAM, {"command": "/bin/x", "args": ["-y"], "env": {"MODE": "fast"}, "env_vars": ["KEY"]}),
    (
        "codex",
        URL,
        {
            "url": "https://e.com/mcp",
            "bearer_token_env_var": "TOKEN",
            "http_headers": {"X-Team": "a"},
            "env_http_headers": {"X-Key": "KEY"},
        },
    ),
    (
        "goose",
        PROGRAM,
        {
            "type": "stdio", "name": "new", "enabled": True, "timeout": 300,
            "cmd": "/bin/x", "args": ["-y"], "envs": {"MODE": "fast"}, "env_keys": ["KEY"],
        },
    ),
    (
        "goose",
        URL,
        {
            "type": "streamable_http", "name": "new", "enabled": True, "timeout": 300,
            "uri": "https://e.com/mcp", "headers": URL["headers"], "env_keys": ["TOKEN", "KEY"],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("host", "entry", "expected"), SPELLED)
def test_an_entry_is_spelled_as_its_host_reads_it(host: str, entry: dict[str, Any], expected: dict[str, Any]) -> None:
    assert spell(entry, "new", known_host(host)).entry == expected


def test_vscode_asks_its_user_for_each_variable_once() -> None:
    entry = {**PROGRAM, "args": ["--key=${KEY}"]}
    spelled = spell(entry, "new", known_host("vscode"))
    assert spelled.inputs == [QUESTION]
    assert spelled.entry["args"] == ["--key=${input:new-key}"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("claude-desktop", {"url": "https://e.com/mcp"}, "Claude Desktop can only start programs"),
    ("claude-desktop", PROGRAM, "env.KEY: Claude Desktop has no reference to an environment variable there"),
    ("claude-desktop", {**PLAIN, "cwd": "/w"}, "Claude Desktop has no working directory in an entry"),
    ("zed", {"url": "https://e.com", "headers": {"A": "${B}"}}, "headers.A: Zed has no reference"),
    ("zed", SSE, "Zed cannot connect to HTTP\\+SSE servers"),
    ("codex", SSE, "Codex cannot connect to HTTP\\+SSE servers"),
    ("codex", {**PLAIN, "env": {"A": "${B}"}}, "env.A: Codex passes a variable of its environment only under the same"),
    ("codex", {**PLAIN, "args": ["${B}"]}, "Codex has no reference to an environment variable there"),
    ("codex", {"url": "https://e.com", "headers": {"A": "x ${B}"}}, "headers.A: Codex has no reference"),
    ("goose", {**PLAIN, "args": ["${B}"]}, "goose has no reference to an environment variable there"),
    ("cursor", {**PLAIN, "env": {"A": "${B:-x}"}}, "env.A: Cursor has no defaults in references"),
    (
        "cursor",
        {**PLAIN, "args": ["${command:x}"]},
        "args\\[0\\]: Cursor would take a part of this text for a reference",
    ),
    ("gemini", {**PLAIN, "args": ["$HOME"]}, "args\\[0\\]: Gemini CLI would take a part of this text for a reference"),
    ("cursor", {**PLAIN, "env": {"A": "keyring:a/b"}}, "env.A: only accord reads the keyring"),
    ("cursor", {"url": "https://e.com", "oauth": {}}, 'the entry has "oauth", a login of accord'),
]


@pytest.mark.parametrize(("host", "entry", "reason"), REFUSED)
def test_what_a_host_cannot_express_is_refused(host: str, entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        spell(entry, "new", known_host(host))

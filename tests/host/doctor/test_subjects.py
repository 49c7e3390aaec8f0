"""What is diagnosed: targets, files of hosts, entries that accord installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accord.errors import TargetError
from accord.host.doctor.configuration_steps import check_entry, check_file
from accord.host.doctor.known_facts import KnownFacts
from accord.host.doctor.subjects import InstalledEntry, check_installed, subjects_of_hosts, subjects_of_target
from accord.host.known_hosts import KNOWN_HOSTS, known_host


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without files."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


async def never(name: str, lines: list[str]) -> bool:
    return False


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_command_and_a_url_are_subjects_without_a_file() -> None:
    for target in ("npx some-server", "https://example.com/mcp"):
        (subject,) = subjects_of_target(target)
        assert subject.path is None
        assert subject.name == target
        assert subject.may_start is None


def test_a_file_without_a_name_has_all_of_its_servers(tmp_path: Path) -> None:
    file = write(tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    assert [subject.name for subject in subjects_of_target(str(file))] == ["a", "b"]
    assert [subject.name for subject in subjects_of_target(f"{file}#b")] == ["b"]


async def test_a_file_is_read_once_for_all_of_its_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's file with a thousand servers took a minute."""
    file = write(tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    subjects = subjects_of_target(str(file))
    monkeypatch.setattr("accord.host.doctor.configuration_steps.read_host_file", None)
    for subject in subjects:
        facts = KnownFacts(subject)
        assert (await check_file(facts)).state == "passed"
        assert (await check_entry(facts)).state == "passed"


def test_a_file_may_have_its_servers_under_servers(tmp_path: Path) -> None:
    file = write(tmp_path / "mcp.json", '{"servers": {"a": {"command": "x"}}}')
    assert [subject.name for subject in subjects_of_target(str(file))] == ["a"]


def test_an_invalid_target_is_an_error() -> None:
    with pytest.raises(TargetError):
        subjects_of_target("gone.py")


def test_the_servers_of_all_hosts_need_permission(home: Path) -> None:
    write(home / ".cursor" / "mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    write(home / ".codex" / "config.toml", '[mcp_servers.b]\ncommand = "x"\n')
    write(home / "project" / ".mcp.json", '{"mcpServers": {"c": {"command": "x"}}}')
    write(home / ".gemini" / "settings.json", "{")
    found = subjects_of_hosts(list(KNOWN_HOSTS.values()), never, project=home / "project")
    assert {(each.host, each.name) for each in found} == {
        ("cursor", "a"),
        ("codex", "b"),
        ("claude-code", "c"),
        ("gemini", ""),
    }
    assert all(each.may_start is never for each in found)
    (only,) = subjects_of_hosts([known_host("codex")], never, project=home / "project")
    assert only.name == "b"


def test_a_file_of_the_user_and_of_the_project_is_read_once(home: Path) -> None:
    write(home / ".cursor" / "mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    assert len(subjects_of_hosts([known_host("cursor")], never, project=home)) == 1


WRITTEN = {"command": "/bin/x", "args": ["a"], "env": {"KEY": "hidden-value-1"}}


@pytest.mark.parametrize(
    ("content", "state", "says"),
    [
        ({"mcpServers": {"a": WRITTEN}}, "present", ":3"),
        ({"mcpServers": {"a": {**WRITTEN, "disabled": True}}}, "present", ":3"),
        (
            {"mcpServers": {"a": {**WRITTEN, "args": ["hidden-value-2"]}}},
            "changed",
            ":3: changed since it was installed: args",
        ),
        ({"mcpServers": {"a": "text"}}, "changed", "command, args, env"),
        ({"mcpServers": {"b": WRITTEN}}, "missing", "is not in"),
        ({}, "missing", "is not in"),
        (None, "missing", "does not exist any more"),
    ],
)
def test_an_installed_entry_is_found_again(tmp_path: Path, content: object, state: str, says: str) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        write(path, json.dumps(content, indent=2))
    found = check_installed(InstalledEntry("cursor", str(path), "a", WRITTEN))
    assert found.state == state
    assert says in found.evidence
    assert bool(found.remedy) == (state != "present")
    assert "hidden-value" not in repr(found)


def test_an_installed_entry_in_a_broken_file_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", '{"mcpServers": ')
    found = check_installed(InstalledEntry("cursor", str(path), "a", WRITTEN))
    assert found.state == "unknown"
    assert "mcp.json:1:" in found.evidence

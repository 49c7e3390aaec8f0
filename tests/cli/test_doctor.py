"""`accord doctor`, in a process of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.install.records import InstallRecord, InstallRecords

from tests.cli.conftest import Run


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without files."""
    folder = tmp_path / "home"
    folder.mkdir()
    unset = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"), "")
    return {**unset, "HOME": str(folder), "USERPROFILE": str(folder), "APPDATA": str(folder)}


def cursor_file(home: dict[str, str], **servers: Any) -> Path:
    path = Path(home["HOME"]) / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_a_healthy_server_has_only_passed_steps(accord: Run, shop: str) -> None:
    done = accord("doctor", shop)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == shop
    assert all(line.startswith(("  ok ", "   ")) for line in lines[1:])
    assert "protocol revision: shop 2.0.0, revision 2026-07-28" in done.stdout
    assert done.stderr == ""


def test_a_failure_ends_with_its_remedy_and_what_was_not_checked(accord: Run) -> None:
    done = accord("doctor", "no-such-program --fast")
    assert done.returncode == 1
    assert "  failed      program: no-such-program is not on PATH" in done.stdout
    assert "remedy: install no-such-program" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "  not checked process start, stderr, protocol revision, lists, schemas: the step before it failed: program"
    )


def test_json_has_this_shape(accord: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    command = {"command": sys.executable, "args": ["-m", "accord", "run", shop]}
    file.write_text(json.dumps({"mcpServers": {"shop": command}}), encoding="utf-8")
    done = accord("doctor", f"{file}#shop", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == {"servers", "installed"}
    assert found["installed"] == []
    (server,) = found["servers"]
    assert {key: server[key] for key in ("name", "host", "file")} == {"name": "shop", "host": "", "file": str(file)}
    assert server.keys() == {"name", "host", "file", "steps"}
    assert [step["step"] for step in server["steps"]] == [
        "file",
        "entry",
        "references",
        "program",
        "process start",
        "stderr",
        "protocol revision",
        "lists",
        "schemas",
    ]
    assert all(step.keys() == {"step", "state", "evidence", "remedy"} for step in server["steps"])
    assert {step["state"] for step in server["steps"]} == {"passed"}
    assert server["steps"][1]["evidence"] == [f"{file}:1: a program"]


def test_json_of_a_failure_is_complete(accord: Run) -> None:
    done = accord("doctor", "http://127.0.0.1:9/mcp", "--json")
    assert done.returncode == 1
    (server,) = json.loads(done.stdout)["servers"]
    assert [(step["step"], step["state"]) for step in server["steps"]] == [
        ("entry", "passed"),
        ("DNS", "passed"),
        ("TCP", "failed"),
        ("TLS", "not-checked"),
        ("HTTP", "not-checked"),
        ("Host header", "not-checked"),
        ("authentication", "not-checked"),
        ("protocol revision", "not-checked"),
        ("lists", "not-checked"),
        ("schemas", "not-checked"),
    ]


def test_nothing_of_a_host_starts_without_being_asked_for(accord: Run, home: dict[str, str], tmp_path: Path) -> None:
    marker = tmp_path / "started"
    cursor_file(home, a={"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"]})
    done = accord("doctor", **home)
    assert done.returncode == 0, done.stderr
    assert "a · cursor" in done.stdout
    assert "--start" in done.stdout.splitlines()[-1]
    assert not marker.exists()
    assert accord("doctor", "--host", "codex", "--start", **home).stdout.startswith("no server is configured")
    assert not marker.exists()
    assert accord("doctor", "--host", "cursor", "--start", **home).returncode == 1  # it is no server
    assert marker.exists()


def test_an_installed_entry_that_is_gone_is_a_failure(
    accord: Run, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cursor_file(home, a={"command": "no-such-program"})
    with monkeypatch.context() as context:
        for name, value in home.items():
            context.setenv(name, value) if value else context.delenv(name, raising=False)
        with InstallRecords().transaction() as records:
            for name in ("a", "b"):
                written = [{"command": "no-such-program"}]
                records.put(InstallRecord(host="cursor", file=str(path), name=name, written=written))
    done = accord("doctor", "--json", **home)
    assert done.returncode == 1
    states = {each["name"]: each["state"] for each in json.loads(done.stdout)["installed"]}
    assert states == {"a": "present", "b": "missing"}
    assert "missing     b · cursor: the entry 'b' is not in" in accord("doctor", **home).stdout
    assert json.loads(accord("doctor", "--host", "codex", "--json", **home).stdout) == {"servers": [], "installed": []}


def test_a_target_and_a_host_exclude_each_other(accord: Run) -> None:
    done = accord("doctor", "x", "--host", "cursor")
    assert done.returncode == 2
    assert "not both" in done.stderr


def test_a_token_is_sent_to_the_target_and_not_shown(accord: Run) -> None:
    done = accord(
        "doctor", "http://127.0.0.1:9/mcp", "--header", "X-Key: some-long-value", ACCORD_BEARER="token-123456"
    )
    assert done.returncode == 1
    assert "some-long-value" not in done.stdout
    assert "token-123456" not in done.stdout
    assert accord("doctor", "no-such-program", "--header", "X-Key: v").returncode == 2

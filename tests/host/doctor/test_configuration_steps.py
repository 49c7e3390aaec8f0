"""The steps that read the configuration."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host.doctor.conftest import Diagnose, failure, states, step, text


def write(tmp_path: Path, **entry: Any) -> str:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"small": entry}}, indent=2), encoding="utf-8")
    return f"{file}#small"


async def test_a_missing_file_fails(doctor: Diagnose, tmp_path: Path) -> None:
    failed = failure(await doctor(f"{tmp_path}/gone.json#small"), "file")
    assert "gone.json" in text(failed)
    assert "No such file" in text(failed)
    assert failed.remedy == "correct the path"


async def test_invalid_json_fails_with_line_and_column(doctor: Diagnose, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{\n  "mcpServers": {\n    "small": {"command" "npx"}\n  }\n}\n', encoding="utf-8")
    failed = failure(await doctor(f"{file}#small"), "file")
    assert f"{file}:3:25: " in text(failed)


async def test_a_file_that_cannot_be_read_is_one_diagnosis(doctor: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{", encoding="utf-8")
    diagnosis = await doctor(str(tmp_path / "mcp.json"))
    assert diagnosis.name == ""
    failure(diagnosis, "file")


async def test_a_server_that_the_file_does_not_have_fails(doctor: Diagnose, tmp_path: Path) -> None:
    failed = failure(await doctor(write(tmp_path, command="npx").replace("#small", "#large")), "entry")
    assert "has no server 'large'; there are small" in text(failed)


async def test_an_invalid_entry_fails_with_its_line(doctor: Diagnose, tmp_path: Path) -> None:
    failed = failure(await doctor(write(tmp_path, args=["x"])), "entry")
    assert 'mcp.json:3: the entry needs "command" or "url"' in text(failed)


async def test_a_disabled_server_is_a_warning(doctor: Diagnose, tmp_path: Path) -> None:
    diagnosis = await doctor(write(tmp_path, command="no-such-program", disabled=True))
    assert step(diagnosis, "entry").state == "warning"
    failure(diagnosis, "program")


async def test_all_missing_variables_are_named(doctor: Diagnose, tmp_path: Path) -> None:
    entry = {"url": "https://example.com/mcp", "headers": {"A": "Bearer ${NO_SUCH_A}", "B": "${NO_SUCH_B}"}}
    failed = failure(await doctor(write(tmp_path, **entry)), "references")
    assert "NO_SUCH_A is not set" in text(failed)
    assert "NO_SUCH_B is not set" in text(failed)
    assert "set NO_SUCH_A and NO_SUCH_B" in failed.remedy


async def test_variables_with_a_value_or_a_default_are_evidence(
    doctor: Diagnose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "a-secret-of-mine")
    env = {"A": "${SOME_API_KEY}", "B": "${NO_SUCH_B:-text}", "C": "${NO_SUCH_C:-}"}
    diagnosis = await doctor(write(tmp_path, command="no-such-program", args=["${SOME_API_KEY}"], env=env))
    assert step(diagnosis, "references").evidence == [
        "the environment variable SOME_API_KEY is set",
        "the environment variable NO_SUCH_B is not set; the default is used",
        "the environment variable NO_SUCH_C is not set; the default is used",
    ]
    assert "a-secret-of-mine" not in repr(diagnosis)


async def test_a_reference_to_a_keyring_that_may_not_be_used_fails(
    doctor: Diagnose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCORD_KEYRING", "0")
    failed = failure(await doctor(write(tmp_path, command="x", env={"KEY": "keyring:work/key"})), "references")
    assert "env.KEY: it cannot be read from the keyring (work/key)" in text(failed)


async def test_an_invalid_value_fails_without_the_value(
    doctor: Diagnose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "line\nbreak")
    entry = {"url": "https://example.com/mcp", "headers": {"Authorization": "${SOME_TOKEN}"}}
    failed = failure(await doctor(write(tmp_path, **entry)), "references")
    assert "header Authorization" in text(failed)
    assert "break" not in text(failed)


async def test_a_program_that_is_not_on_path_fails(doctor: Diagnose) -> None:
    failed = failure(await doctor("no-such-program --fast"), "program")
    assert "no-such-program is not on PATH" in text(failed)
    assert "absolute path" in failed.remedy


async def test_a_path_without_a_program_fails(doctor: Diagnose, tmp_path: Path) -> None:
    assert "does not exist" in text(failure(await doctor(f"{tmp_path}/gone"), "program"))
    assert "is a directory" in text(failure(await doctor(f"{tmp_path}"), "program"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no executable bit")
async def test_a_file_that_is_not_executable_fails(doctor: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "server").write_text("#!/bin/sh\n", encoding="utf-8")
    assert "chmod +x" in failure(await doctor(f"{tmp_path}/server"), "program").remedy


async def test_a_missing_working_directory_fails(doctor: Diagnose, tmp_path: Path) -> None:
    diagnosis = await doctor(write(tmp_path, command=sys.executable, cwd=str(tmp_path / "gone")))
    assert "gone does not exist" in text(failure(diagnosis, "program"))


async def test_a_relative_program_is_found_in_the_working_directory(doctor: Diagnose, tmp_path: Path) -> None:
    file = tmp_path / "bin" / "server"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
    file.chmod(0o755)
    diagnosis = await doctor(write(tmp_path, command="./bin/server", cwd=str(tmp_path)))
    assert states(diagnosis)["program"] == "passed"
    assert "exited with code 7" in text(failure(diagnosis, "process start"))


async def test_a_secret_of_the_keyring_is_evidence_without_its_value(
    doctor: Diagnose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = pytest.importorskip("keyring")
    monkeypatch.delenv("ACCORD_KEYRING", raising=False)
    monkeypatch.setattr(keyring, "get_password", lambda service, name: "the-secret-of-work" if name == "key" else None)
    entry = {"command": "no-such-program", "args": ["the-secret-of-work"], "env": {"A": "keyring:work/key"}}
    diagnosis = await doctor(write(tmp_path, **entry))
    assert step(diagnosis, "references").evidence == ["the keyring has the secret of keyring:work/key"]
    assert "the-secret" not in repr(diagnosis)
    failed = failure(await doctor(write(tmp_path, command="x", env={"A": "keyring:work/other"})), "references")
    assert "the keyring has no entry work/other" in text(failed)

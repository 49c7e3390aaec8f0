"""The diagnosis of servers that people really use, healthy and misconfigured."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from accord.host.doctor.diagnosis import Diagnosis, diagnose
from accord.host.doctor.protocol_steps import STEPS
from accord.host.doctor.subjects import subjects_of_target

from tests.interop.peers import npm_server, python_server

SECONDS = 120


async def diagnosis_of(command: list[str]) -> Diagnosis:
    (subject,) = subjects_of_target(shlex.join(command), seconds=SECONDS)
    return await diagnose(subject, STEPS)


def states(found: Diagnosis) -> dict[str, str]:
    return {step.step: step.state for step in found.steps}


def evidence(found: Diagnosis, name: str) -> str:
    return "\n".join(next(step for step in found.steps if step.step == name).evidence)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    return tmp_path / "project"


async def test_everything_passes_each_step() -> None:
    found = await diagnosis_of(npm_server("everything"))
    assert found.failed is None
    assert set(states(found).values()) == {"passed"}
    assert "revision 2025-11-25" in evidence(found, "protocol revision")
    assert "prompts: 4" in evidence(found, "lists")


async def test_mcp_server_git_passes_each_step(repository: Path) -> None:
    found = await diagnosis_of([*python_server("mcp-server-git"), "--repository", str(repository)])
    assert found.failed is None
    assert set(states(found).values()) == {"passed"}
    assert "tools with valid schemas: " in evidence(found, "schemas")


async def test_mcp_server_git_with_a_wrong_option_fails_at_its_start() -> None:
    found = await diagnosis_of([*python_server("mcp-server-git"), "--no-such-option"])
    assert found.failed is not None
    assert found.failed.step == "process start"
    assert "no such option" in evidence(found, "process start").lower()


async def test_a_package_that_is_not_installed_fails_at_its_start() -> None:
    command = [word.replace("everything", "nothing") for word in npm_server("everything")]
    found = await diagnosis_of(command)
    assert found.failed is not None
    assert found.failed.step in ("program", "process start")
    assert found.failed.remedy

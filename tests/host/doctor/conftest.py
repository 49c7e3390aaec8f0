"""Diagnoses of real processes and servers."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from accord.host.doctor.diagnosis import Diagnosis, StepResult, diagnose
from accord.host.doctor.protocol_steps import STEPS
from accord.host.doctor.subjects import subjects_of_target

SECONDS = 60.0

Diagnose = Callable[..., Awaitable[Diagnosis]]
WriteProgram = Callable[[str], str]


def step(diagnosis: Diagnosis, name: str) -> StepResult:
    """The result of a step; all that a server does not need are absent."""
    return next(each for each in diagnosis.steps if each.step == name)


def states(diagnosis: Diagnosis) -> dict[str, str]:
    return {each.step: each.state for each in diagnosis.steps}


def text(result: StepResult) -> str:
    return "\n".join(result.evidence)


def failure(diagnosis: Diagnosis, name: str) -> StepResult:
    """The step `name`, which failed; all before it passed, none after it was checked, and there is a remedy."""
    names = [each.step for each in diagnosis.steps]
    at = names.index(name)
    assert diagnosis.failed is not None
    assert diagnosis.failed.step == name, diagnosis.failed
    assert {each.state for each in diagnosis.steps[:at]} <= {"passed", "warning"}
    assert {each.state for each in diagnosis.steps[at + 1 :]} <= {"not-checked"}
    assert diagnosis.failed.remedy
    return diagnosis.failed


@pytest.fixture
def doctor() -> Diagnose:
    """`await doctor(target)`: the diagnosis of the only server of a target."""

    async def run(target: str, *, seconds: float = SECONDS, **more: Any) -> Diagnosis:
        (subject,) = subjects_of_target(target, seconds=seconds, **more)
        return await diagnose(subject, STEPS)

    return run


@pytest.fixture
def program(tmp_path: Path) -> WriteProgram:
    """`program(source)`: the command of a Python program."""

    def write(source: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(source, encoding="utf-8")
        return f"{sys.executable} {path}"

    return write


ANSWERING = """
import json, sys

def answer(method, params):
    {body}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = answer(message["method"], message.get("params"))
    member = {{"result": reply}} if "code" not in reply else {{"error": reply}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **member}}), flush=True)
"""


def answering(body: str) -> str:
    """A program that answers each request as the function `answer` says, whose lines are `body`."""
    return ANSWERING.format(body=body.strip().replace("\n", "\n    "))


def initialized(version: str = "2025-11-25", capabilities: str = "{'tools': {}}") -> str:
    """Lines that answer `initialize`, and nothing before it."""
    return f"""
if method == "initialize":
    info = {{"name": "small", "version": "1"}}
    return {{"protocolVersion": "{version}", "capabilities": {capabilities}, "serverInfo": info}}
if method == "server/discover":
    return {{"code": -32601, "message": "unknown method"}}"""

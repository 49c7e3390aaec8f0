"""How a process ends after `run()`: as its program says, and not held up by threads that handlers left behind."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, atexit, sys, threading, time
from accord import Server

server = Server("test")

@server.tool
async def leave(seconds: float, how: str) -> str:
    if how == "thread":
        threading.Thread(target=time.sleep, args=(seconds,)).start()
    if how == "pool":
        asyncio.get_running_loop().run_in_executor(None, time.sleep, seconds)
    return "left"

@atexit.register
def hook():
    time.sleep(1.5)
    print("the hook has ended", file=sys.stderr)

server.run()
{end}
"""


def ended(end: str, how: str = "", seconds: float = 0, program: str = PROGRAM) -> tuple[int, str]:
    """Return the exit code and stderr."""
    init = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "leave", "arguments": {"seconds": seconds, "how": how}}
    asked = [("initialize", init), ("tools/call", call)]
    messages = [
        {"jsonrpc": "2.0", "id": id, "method": name, "params": params} for id, (name, params) in enumerate(asked)
    ]
    done = subprocess.run(
        [sys.executable, "-c", program.replace("{end}", end)],
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("1 / 0", 1)])
def test_without_a_deadline_hooks_take_their_time_and_the_exit_code_stays(end: str, code: int) -> None:
    got, stderr = ended(end)
    assert got == code
    assert "the hook has ended" in stderr


def test_a_thread_that_ends_in_time_changes_nothing() -> None:
    got, stderr = ended("sys.exit(3)", "thread", 0.3)
    assert got == 3
    assert "the hook has ended" in stderr


@pytest.mark.parametrize("how", ["thread", "pool"])
@pytest.mark.parametrize(("end", "code"), [("", 0), ("print('said last', flush=False)", 0), ("1 / 0", 1)])
def test_a_thread_that_is_stuck_is_left_behind(how: str, end: str, code: int) -> None:
    got, _ = ended(end, how, 1000)
    assert got == code


SWALLOWS = """
import asyncio, sys
from accord import Limits, Server

server = Server("test", limits=Limits(grace_seconds=0.1, close_seconds=0.2))
background = []

async def swallows():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass  # the mistake

@server.tool
async def leave(seconds: float, how: str) -> str:
    if how == "handler":
        await swallows()
    background.append(asyncio.create_task(swallows()))
    return "left"

server.run()
{end}
"""


@pytest.mark.parametrize("how", ["handler", "background"])
def test_a_task_that_swallows_its_cancellation_is_reported_with_its_line(how: str) -> None:
    code, stderr = ended("", how, program=SWALLOWS)
    assert code == 0
    line = SWALLOWS.splitlines().index("            await asyncio.Event().wait()") + 1
    assert f"the handler at <string>:{line} does not end when it is cancelled" in stderr
    assert "asyncio.CancelledError" in stderr
    assert len(stderr.splitlines()) == 1, stderr

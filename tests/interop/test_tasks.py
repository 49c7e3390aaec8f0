"""Tasks with other SDKs: accord's client runs tools of their servers, their clients those of examples/tasks.py.

The official SDK 1.x has the experimental tasks of 2025-11-25, fastmcp-tasks the extension of 2026-07-28, and the
official client for TypeScript both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from accord import Client
from accord.errors import InvalidParams, InvalidResult, ProtocolError

from tests.interop.peers import ROOT, task_peer

EXAMPLE = [sys.executable, str(ROOT / "examples" / "tasks.py")]
SECONDS = 100
UNKNOWN = [-32602, "no such task; it may have expired"]

Peer = Literal["mcp1", "fastmcp"]
REVISIONS: dict[Peer, str] = {"mcp1": "2025-11-25", "fastmcp": "2026-07-28"}
both = pytest.mark.parametrize("peer", REVISIONS)


# --- their server, accord's client ---------------------------------------------------------------------------------


@asynccontextmanager
async def client_of(peer: Peer) -> AsyncIterator[Client]:
    def confirm(params: Any) -> dict[str, bool]:
        return {"confirm": params.message == "Delete a.txt?"}

    async with Client(task_peer(peer, "server"), elicitation=confirm, timeout=SECONDS) as client:
        assert client.revision == REVISIONS[peer]
        yield client


@both
async def test_a_task_of_a_peer_is_polled_by_its_id_until_it_ends(peer: Peer) -> None:
    async with client_of(peer) as client:
        assert (await client.call_tool("slow_compute")).text == "computed"
        task = await client.start_tool("slow_compute")
        assert (await task.state()).status == "working"
        again = client.task(task.id)
        assert (await again.result()).text == "computed"
        assert (await again.state()).status == "completed"


@both
async def test_a_question_of_a_peers_task_is_answered(peer: Peer) -> None:
    async with client_of(peer) as client:
        assert (await client.call_tool("confirm_delete")).text == "deleted a.txt"


@both
async def test_a_task_of_a_peer_is_cancelled(peer: Peer) -> None:
    async with client_of(peer) as client:
        task = await client.start_tool("endless")
        await task.cancel()
        assert (await task.state()).status == "cancelled"
        await task.cancel()  # the official SDK answers this with an error, fastmcp-tasks acknowledges it
        with pytest.raises(ProtocolError, match="the task was cancelled"):
            await task.result()


@both
async def test_an_unknown_task_of_a_peer_is_an_error(peer: Peer) -> None:
    async with client_of(peer) as client:
        unknown = client.task("unknown")
        for method in (unknown.state, unknown.cancel, unknown.result):
            with pytest.raises(InvalidParams, match="unknown"):
                await method()


async def test_the_client_accepts_elicitation_and_sampling_of_the_official_sdk_as_tasks() -> None:
    def confirm(params: Any) -> dict[str, bool]:
        return {"confirm": params.message == "Delete a.txt?"}

    handlers: dict[str, Any] = {"elicitation": confirm, "sampling": lambda params: "Hello."}
    async with Client(task_peer("mcp1", "server"), timeout=SECONDS, **handlers) as client:
        assert (await client.call_tool("confirm_as_task")).text == "deleted a.txt"
        assert (await client.call_tool("think_as_task")).text == "Hello."
        states = ["completed", "completed"]
        refused = ["the task is completed already, and cannot be cancelled", UNKNOWN[1]]
    async with Client(task_peer("mcp1", "server"), timeout=SECONDS, **handlers) as client:
        seen = json.loads((await client.call_tool("ask_as_tasks")).text)
        assert seen == ["accept", {"confirm": True}, *states, *refused]


async def test_a_failed_task_of_fastmcp_has_the_text_of_its_error() -> None:
    async with client_of("fastmcp") as client:
        result = await client.call_tool("failing_job")
        assert (result.is_error, result.text) == (True, "the job has failed")


async def test_a_failed_task_of_the_official_sdk_has_its_error_in_the_state() -> None:
    """The peer answers `tasks/result` of a failed task with an empty object instead of the error."""
    async with client_of("mcp1") as client:
        task = await client.start_tool("failing_job")
        with pytest.raises(InvalidResult, match="tasks/result is invalid: Object missing required field `content`"):
            await task.result()
        state = await task.state()
        assert (state.status, state.message) == ("failed", "the job has failed")


# --- accord's server, their client ---------------------------------------------------------------------------------


def seen_by(peer: Literal["mcp1", "fastmcp", "ts"], *options: str) -> dict[str, Any]:
    """Return what the client of the peer saw of examples/tasks.py."""
    command = [*task_peer(peer, "client"), *options, *EXAMPLE]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"the client failed:\n{done.stderr[-4000:]}"
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_the_official_sdk_runs_the_tools_of_the_example_as_tasks() -> None:
    seen = seen_by("mcp1")
    results = {tool: seen.pop(tool) for tool in list(seen) if tool.endswith(("compute", "delete", "job"))}
    assert {tool: told["last"] for tool, told in results.items()} == {
        "slow_compute": "completed",
        "confirm_delete": "completed",
        "failing_job": "failed",
        "protocol_error_job": "failed",
    }
    assert results["slow_compute"]["statuses"][0] == "working"
    assert results["confirm_delete"]["statuses"][-1] == "input_required"
    assert results["protocol_error_job"]["result"] == [-32603, "the job broke"]
    texts = {tool: told["result"]["content"][0]["text"] for tool, told in list(results.items())[:3]}
    assert texts == {
        "slow_compute": "computed x",
        "confirm_delete": "deleted a.txt",
        "failing_job": "the job has failed",
    }
    assert results["failing_job"]["result"]["isError"]
    assert seen == {
        "message": "10 of 10 steps",
        "cancel": "cancelled",
        "cancel again": [-32602, "the task is cancelled already, and cannot be cancelled"],
        "unknown": [UNKNOWN, UNKNOWN],
        "not a task": [-32601, "the tool 'greet' does not run as a task: call it without `task`"],
        "required": [-32601, "the tool 'failing_job' runs only as a task, which this request does not ask for"],
    }


def test_fastmcp_runs_the_tools_of_the_example_as_tasks() -> None:
    assert seen_by("fastmcp") == {
        "confirm_delete": [False, "deleted a.txt"],
        "failing_job": [True, "the job has failed"],
        "protocol_error_job": [True, "the job broke"],
        "first": "working",
        "slow_compute": [False, "computed x"],
        "last": "completed",
        "cancel": "cancelled",
        "cancel again": None,
        "unknown": [UNKNOWN, UNKNOWN],
    }


def test_the_official_client_for_tasks_runs_the_tools_of_the_example() -> None:
    assert seen_by("ts", "2026-07-28") == {
        "revision": "2026-07-28",
        "greet": ["immediate", ["completed"], "Hello, Ada!"],
        "slow_compute": ["task", ["working", "completed"], "computed x"],
        "confirm_delete": ["task", ["working", "input_required", "completed"], "deleted a.txt"],
        "failing_job": ["task", ["working", "completed"], "the job has failed"],
        "protocol_error_job": ["task", ["working", "failed"], [-32603, "the job broke"]],
        "cancel": "cancelled",
        "cancel again": None,
        "unknown": [UNKNOWN, UNKNOWN],
    }


def test_the_official_client_for_tasks_runs_the_experimental_tasks_of_the_example() -> None:
    """The peer calls `tasks/result` only once a task has completed: it never learns what a task asks, and shows the
    status message of a failed one. "The requestor SHOULD preemptively call `tasks/result`" at `input_required`.
    """
    assert seen_by("ts", "2025-11-25") == {
        "revision": "2025-11-25",
        "greet": ["immediate", ["completed"], "Hello, Ada!"],
        "slow_compute": ["task", ["working", "completed"], "computed x"],
        "confirm_delete": [0, "input_required", "cancelled"],
        "failing_job": ["task", ["working", "failed"], [None, "the job has failed"]],
        "protocol_error_job": ["task", ["working", "failed"], [None, "the job broke"]],
        "cancel": "cancelled",
        "cancel again": [-32602, "the task is cancelled already, and cannot be cancelled"],
        "unknown": [UNKNOWN, UNKNOWN],
    }

"""Calls that take a while: to be cancelled, or pinged past, while they are at work.

No server has to have such a tool. Those that test servers have are known by name; any other is not called.
"""

from __future__ import annotations

from accord.check.engine.rule import NotObserved
from accord.check.probes.pending_answer import PendingAnswer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject

SLOW_TOOLS: dict[str, JSONObject] = {
    "trigger-long-running-operation": {"duration": 2, "steps": 8},
    "longRunningOperation": {"duration": 2, "steps": 8},
    "test_tool_with_progress": {},
}
"""By name: arguments with which it reports its progress, and takes from a tenth of a second to a few."""
PROGRESS_TOKEN = "accord-check-slow"


async def require_slow_tool(probe: Probe) -> None:
    """Raises `NotObserved` where no tool may be called that takes long."""
    await _slow_tool(probe)


async def _slow_tool(probe: Probe) -> str:
    tools = [str(tool.get("name")) for tool in await probe.tools() if probe.may_call(tool)]
    name = next((tool for tool in tools if tool in SLOW_TOOLS), None)
    if name is None:
        raise NotObserved(f"no tool may be called that takes long: one of {', '.join(SLOW_TOOLS)}")
    return name


async def start_slow_call(probe: Probe) -> PendingAnswer:
    """Call one, and wait until its first progress says that it is at work. Raises `NotObserved` where there is none."""
    name = await _slow_tool(probe)
    call = probe.begin(
        "tools/call", {"name": name, "arguments": SLOW_TOOLS[name]}, meta={"progressToken": PROGRESS_TOKEN}
    )
    if call.is_done or await probe.wait_for_message(is_progress) is None or call.is_done:
        raise NotObserved(f"{name} was done before it could be told that it is at work")
    return call


def is_progress(message: JSONObject) -> bool:
    """Whether it tells of the call that takes long."""
    params = message.get("params")
    is_told = message.get("method") == "notifications/progress"
    return is_told and isinstance(params, dict) and params.get("progressToken") == PROGRESS_TOKEN

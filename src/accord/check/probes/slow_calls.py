"""Long calls: to cancel them, or to send pings while they run.

Servers need no such tool. The names are those of test servers; other tools are not called.
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
"""For each name, arguments with which it reports progress, and runs from a tenth of a second to a few seconds."""
PROGRESS_TOKEN = "accord-check-slow"


async def require_slow_tool(probe: Probe) -> None:
    """Raise `NotObserved` if no callable tool runs long."""
    await _slow_tool(probe)


async def _slow_tool(probe: Probe) -> str:
    tools = [str(tool.get("name")) for tool in await probe.tools() if probe.may_call(tool)]
    name = next((tool for tool in tools if tool in SLOW_TOOLS), None)
    if name is None:
        raise NotObserved(f"no callable tool runs long: none of {', '.join(SLOW_TOOLS)}")
    return name


async def start_slow_call(probe: Probe) -> PendingAnswer:
    """Call a long tool, and wait until its first progress notification. Raises `NotObserved` if there is none."""
    name = await _slow_tool(probe)
    call = probe.begin(
        "tools/call", {"name": name, "arguments": SLOW_TOOLS[name]}, meta={"progressToken": PROGRESS_TOKEN}
    )
    if call.is_done or await probe.wait_for_message(is_progress) is None or call.is_done:
        raise NotObserved(f"{name} ended before its first progress notification")
    return call


def is_progress(message: JSONObject) -> bool:
    """Return whether it is progress of the long call."""
    params = message.get("params")
    is_told = message.get("method") == "notifications/progress"
    return is_told and isinstance(params, dict) and params.get("progressToken") == PROGRESS_TOKEN

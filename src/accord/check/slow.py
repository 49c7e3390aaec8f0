"""Calls that take a while: to be cancelled, or pinged past, while they are at work.

No server has to have such a tool. Those that test servers have are known by name; any other is not called.
"""

from __future__ import annotations

from accord.check.rule import NotObserved
from accord.check.talk import Talk
from accord.check.waiting import Pending
from accord.messages.base import JSONObject

SLOW: dict[str, JSONObject] = {
    "trigger-long-running-operation": {"duration": 2, "steps": 8},
    "longRunningOperation": {"duration": 2, "steps": 8},
    "test_tool_with_progress": {},
}
"""By name: arguments with which it reports its progress, and takes from a tenth of a second to a few."""
TOKEN = "accord-check-slow"


async def has_slow(talk: Talk) -> None:
    """Raises `NotObserved` where no tool may be called that takes long."""
    await _slow_tool(talk)


async def _slow_tool(talk: Talk) -> str:
    tools = [str(tool.get("name")) for tool in await talk.tools() if talk.may_call(tool)]
    name = next((tool for tool in tools if tool in SLOW), None)
    if name is None:
        raise NotObserved(f"no tool may be called that takes long: one of {', '.join(SLOW)}")
    return name


async def start_slow(talk: Talk) -> Pending:
    """Call one, and wait until its first progress says that it is at work. Raises `NotObserved` where there is none."""
    name = await _slow_tool(talk)
    call = talk.begin("tools/call", {"name": name, "arguments": SLOW[name]}, meta={"progressToken": TOKEN})
    if call.arrived or await talk.hear(is_progress) is None or call.arrived:
        raise NotObserved(f"{name} was done before it could be told that it is at work")
    return call


def is_progress(message: JSONObject) -> bool:
    """Whether it tells of the call that takes long."""
    params = message.get("params")
    is_told = message.get("method") == "notifications/progress"
    return is_told and isinstance(params, dict) and params.get("progressToken") == TOKEN

"""Ordinary traffic for reading rules: all lists, some reads, and calls of tools that may be called.

Nothing is judged here: rules that read the log report invalid responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.engine.rule import NotObserved, Violation
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.probes import extension_tasks, tasks
from accord.check.probes.content import get_object
from accord.check.probes.input_requests import INPUT_METHODS, request_with_input
from accord.check.probes.pending_answer import NO_ANSWER, Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.meta import LOG_LEVEL

_MOST = 5
"""Maximum number of resources and prompts that are read."""


async def run_ordinary_traffic(probe: Probe, seconds: float) -> tuple[str, ...]:
    """Use the server as a client would, for a limited time. Returns what was left out."""
    end = time.monotonic() + seconds
    cut = [what for what, part in _parts().items() if not await _completes_in_time(part, probe, end - time.monotonic())]
    if not cut:
        return ()
    called = {
        get_object(each, "params").get("name")
        for each in probe.log.sent_messages()
        if each.get("method") == "tools/call"
    }
    what = f"{', '.join(cut)} (tools called by then: {len(called)})"
    return (f"ordinary traffic ended after {seconds:g} s, and was not whole: {what}; --timeout gives more",)


def _parts() -> dict[str, Callable[[Probe], Awaitable[object]]]:
    return {
        "turning logs on": _enable_logging,
        "listing": _list_everything,
        "reading resources": _read_resources,
        "getting prompts": _get_prompts,
        "calling tools": call_tools,
        "running tools as tasks": tasks.run_task_tools,
        "following tools that become tasks": extension_tasks.run_task_tools,
    }


async def _completes_in_time(part: Callable[[Probe], Awaitable[object]], probe: Probe, seconds: float) -> bool:
    """Run this work, and return whether there was time for all of it."""
    try:
        async with asyncio.timeout(seconds):
            await part(probe)
    except TimeoutError:
        return False
    except (Violation, NotObserved):  # the rules that the answer breaks will say so
        return True
    return True


async def _enable_logging(probe: Probe) -> None:
    if probe.rules.handshake and probe.has_capability("logging"):
        await probe.request("logging/setLevel", {"level": "debug"})


async def _list_everything(probe: Probe) -> None:
    for list_all in (Probe.tools, Probe.resources, Probe.templates, Probe.prompts):
        with contextlib.suppress(Violation):  # the others may be in order
            await list_all(probe)


async def _read_resources(probe: Probe) -> None:
    for resource in (await probe.resources())[:_MOST]:
        await probe.request("resources/read", {"uri": resource.get("uri")})


async def _get_prompts(probe: Probe) -> None:
    for prompt in (await probe.prompts())[:_MOST]:
        arguments = prompt.get("arguments")
        wanted = [each for each in arguments if isinstance(each, dict)] if isinstance(arguments, list) else []
        await probe.request(
            "prompts/get", {"name": prompt.get("name"), "arguments": {str(each.get("name")): "1" for each in wanted}}
        )


async def call_tools(probe: Probe, tools: list[JSONObject] | None = None) -> list[Answer]:
    """Call these tools, or all that may be called, and answer their input requests; return the final responses.

    A tool that takes longer than a response is not called again: it may still run. Raises `Violation` when the server
    ends, and when no response comes although all its requests were answered.
    """
    found: list[Answer] = []
    for tool in await probe.callable_tools() if tools is None else tools:
        since = len(probe.log.entries)
        try:
            found.append(await _call(probe, tool))
        except Violation as exc:
            if not exc.symptom.startswith(NO_ANSWER) or _has_requested_input(probe, since):
                raise
            probe.exclude_tool(tool)
    return found


def _has_requested_input(probe: Probe, since: int) -> bool:
    return any(each.get("method") in INPUT_METHODS for each in probe.other_messages(since, None))


async def _call(probe: Probe, tool: JSONObject) -> Answer:
    """Call a tool, and answer its input requests (2026-07-28)."""
    meta: JSONObject = {"progressToken": f"exercise-{probe.next_id()}"}
    if not probe.rules.handshake:
        meta[LOG_LEVEL] = "debug"
    return await request_with_input(
        probe, minimal_call_params(tool), lambda params: probe.request("tools/call", params, meta=meta)
    )


def minimal_call_params(tool: JSONObject) -> JSONObject:
    """Return the params of a call with minimal arguments."""
    return {"name": tool.get("name"), "arguments": minimal_arguments(tool)}


def minimal_arguments(tool: JSONObject) -> Any:
    """Return minimal arguments for its schema; empty for an invalid schema."""
    try:
        return smallest(tool.get("inputSchema"))
    except GenerationError:
        return {}

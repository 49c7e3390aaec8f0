"""Ordinary traffic, for the rules that watch: everything is listed, some is read, what may be called is called.

Nothing is judged here; an answer that is wrong is for the rules that read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from accord.check import extension_tasks, tasked
from accord.check.asked import QUESTIONS, in_rounds
from accord.check.blocks import inside
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.rule import Broken, NotObserved
from accord.check.talk import Talk
from accord.check.waiting import SILENT, Answer
from accord.messages.base import JSONObject
from accord.messages.meta import LOG_LEVEL

_MOST = 5
"""Resources that are read, and prompts that are got."""


async def exercise(talk: Talk, seconds: float) -> tuple[str, ...]:
    """Use the server as a client would, for at most so many seconds. Returns what was left out, in words."""
    end = time.monotonic() + seconds
    cut = [what for what, part in _parts().items() if not await _quietly(part, talk, end - time.monotonic())]
    if not cut:
        return ()
    called = {inside(each, "params").get("name") for each in talk.record.sent() if each.get("method") == "tools/call"}
    what = f"{', '.join(cut)} (tools called by then: {len(called)})"
    return (f"ordinary traffic ended after {seconds:g} s, and was not whole: {what}; --timeout gives more",)


def _parts() -> dict[str, Callable[[Talk], Awaitable[object]]]:
    return {
        "turning logs on": _turn_logs_on,
        "listing": _all_lists,
        "reading resources": _reads,
        "getting prompts": _prompts,
        "calling tools": call_all,
        "running tools as tasks": tasked.run_all,
        "following tools that become tasks": extension_tasks.run_all,
    }


async def _quietly(part: Callable[[Talk], Awaitable[object]], talk: Talk, seconds: float) -> bool:
    """Do this work, and return whether there was time for all of it."""
    try:
        async with asyncio.timeout(seconds):
            await part(talk)
    except TimeoutError:
        return False
    except (Broken, NotObserved):  # the rules that the answer breaks will say so
        return True
    return True


async def _turn_logs_on(talk: Talk) -> None:
    if talk.rules.handshake and talk.has("logging"):
        await talk.request("logging/setLevel", {"level": "debug"})


async def _all_lists(talk: Talk) -> None:
    for list_all in (Talk.tools, Talk.resources, Talk.templates, Talk.prompts):
        with contextlib.suppress(Broken):  # the others may be in order
            await list_all(talk)


async def _reads(talk: Talk) -> None:
    for resource in (await talk.resources())[:_MOST]:
        await talk.request("resources/read", {"uri": resource.get("uri")})


async def _prompts(talk: Talk) -> None:
    for prompt in (await talk.prompts())[:_MOST]:
        arguments = prompt.get("arguments")
        wanted = [each for each in arguments if isinstance(each, dict)] if isinstance(arguments, list) else []
        await talk.request(
            "prompts/get", {"name": prompt.get("name"), "arguments": {str(each.get("name")): "1" for each in wanted}}
        )


async def call_all(talk: Talk, tools: list[JSONObject] | None = None) -> list[Answer]:
    """Call these tools, or each that may be called, and answer what it asks; the answers that came in the end.

    A tool that takes longer than an answer may is left out from then on: it may be at work. Raises `Broken` when the
    server ends, and when nothing comes though all its questions were answered.
    """
    found: list[Answer] = []
    for tool in await talk.callable() if tools is None else tools:
        since = len(talk.record.entries)
        try:
            found.append(await _call(talk, tool))
        except Broken as exc:
            if not exc.symptom.startswith(SILENT) or _has_asked(talk, since):
                raise
            talk.leave_out(tool)
    return found


def _has_asked(talk: Talk, since: int) -> bool:
    return any(each.get("method") in QUESTIONS for each in talk.others(since, None))


async def _call(talk: Talk, tool: JSONObject) -> Answer:
    """Call it, and answer what it asks, as often as it asks (2026-07-28)."""
    meta: JSONObject = {"progressToken": f"exercise-{talk.next_id()}"}
    if not talk.rules.handshake:
        meta[LOG_LEVEL] = "debug"
    return await in_rounds(talk, least_params(tool), lambda params: talk.request("tools/call", params, meta=meta))


def least_params(tool: JSONObject) -> JSONObject:
    """Return the params of a call with the fewest arguments that the tool takes."""
    return {"name": tool.get("name"), "arguments": least_arguments(tool)}


def least_arguments(tool: JSONObject) -> Any:
    """The least that its schema takes; nothing where that is no schema."""
    try:
        return smallest(tool.get("inputSchema"))
    except Unserved:
        return {}

"""Ordinary traffic, for the rules that watch: everything is listed, some is read, what may be called is called.

Nothing is judged here; an answer that is wrong is for the rules that read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.asked import QUESTIONS
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.record import objects
from accord.check.rule import Broken
from accord.check.talk import Talk
from accord.check.tasked import run_all
from accord.check.waiting import SILENT, Answer
from accord.messages.base import JSONObject
from accord.messages.meta import LOG_LEVEL
from accord.wire.transcript import RECEIVED

_MOST = 5
"""Resources that are read, and prompts that are got."""


async def exercise(talk: Talk) -> None:
    """Use the server as a client would. Raises nothing but the end of the connection."""
    for part in (_turn_logs_on, _lists, _reads, _prompts, call_all, run_all):
        await _quietly(part, talk)


async def _quietly(part: Callable[[Talk], Awaitable[object]], talk: Talk) -> None:
    try:
        await part(talk)
    except Broken:  # the rules that the answer breaks will say so
        return


async def _turn_logs_on(talk: Talk) -> None:
    if talk.rules.handshake and talk.has("logging"):
        await talk.request("logging/setLevel", {"level": "debug"})


async def _lists(talk: Talk) -> None:
    for list_all in (Talk.tools, Talk.resources, Talk.templates, Talk.prompts):
        await _quietly(list_all, talk)


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
    heard = (said.message for said in talk.record.entries[since:] if said.direction == RECEIVED)
    return any(each.get("method") in QUESTIONS for message in heard for each in objects(message))


async def _call(talk: Talk, tool: JSONObject) -> Answer:
    """Call it, and answer what it asks, as often as it asks (2026-07-28)."""
    meta: JSONObject = {"progressToken": f"exercise-{talk.next_id()}"}
    if not talk.rules.handshake:
        meta[LOG_LEVEL] = "debug"
    params, answer = await first_call(talk, tool, meta)
    for _ in range(_MOST):
        result = answer.result if isinstance(answer.result, dict) else {}
        if result.get("resultType") != "input_required":
            break
        params = {**params, **retried(talk, result)}
        answer = await talk.request("tools/call", params, meta=meta)
    return answer


async def first_call(talk: Talk, tool: JSONObject, meta: JSONObject | None = None) -> tuple[JSONObject, Answer]:
    """Call it once, with the least arguments that it takes: the params, and what came."""
    params: JSONObject = {"name": tool.get("name"), "arguments": least_arguments(tool)}
    return params, await talk.request("tools/call", params, meta=meta)


def least_arguments(tool: JSONObject) -> Any:
    """The least that its schema takes; nothing where that is no schema."""
    try:
        return smallest(tool.get("inputSchema"))
    except Unserved:
        return {}


def retried(talk: Talk, result: JSONObject) -> JSONObject:
    """What the params of a retry have more: good answers to what was asked, and the state as it came."""
    asked = result.get("inputRequests")
    more: JSONObject = {}
    if isinstance(asked, dict):
        more["inputResponses"] = {key: _answer(talk, request) for key, request in asked.items()}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    return more


def _answer(talk: Talk, request: Any) -> Any:
    canned = talk.answers.get(str(request.get("method"))) if isinstance(request, dict) else None
    return canned(request) if callable(canned) else canned

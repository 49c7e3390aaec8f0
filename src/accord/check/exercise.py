"""Ordinary traffic, for the rules that watch: everything is listed, some is read, what may be called is called.

Nothing is judged here; an answer that is wrong is for the rules that read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.rule import Broken
from accord.check.talk import Talk
from accord.messages.base import JSONObject

_MOST = 5
"""Resources that are read, and prompts that are got."""
_LEVEL = "io.modelcontextprotocol/logLevel"


async def exercise(talk: Talk) -> None:
    """Use the server as a client would. Raises nothing but the end of the connection."""
    for part in (_turn_logs_on, _lists, _reads, _prompts, _calls):
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


async def _calls(talk: Talk) -> None:
    for number, tool in enumerate(await talk.callable()):
        await _quietly(partial(_call, tool=tool, number=number), talk)


async def _call(talk: Talk, tool: JSONObject, number: int) -> None:
    """Call it, and answer what it asks, as often as it asks (2026-07-28)."""
    meta: JSONObject = {"progressToken": f"exercise-{number}"}
    if not talk.rules.handshake:
        meta[_LEVEL] = "debug"
    params: JSONObject = {"name": tool.get("name"), "arguments": _arguments(tool)}
    for _ in range(_MOST):
        answer = await talk.request("tools/call", params, meta=meta)
        result = answer.result if isinstance(answer.result, dict) else {}
        if result.get("resultType") != "input_required":
            return
        params = {**params, **retried(talk, result)}


def _arguments(tool: JSONObject) -> Any:
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

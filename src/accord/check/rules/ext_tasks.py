"""The tasks extension (2026-07-28): who may be answered with a task, who is refused, and what went with 2025-11-25."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from accord.check.blocks import inside
from accord.check.extension_tasks import (
    CAPABILITY,
    EXTENSION,
    PAGE,
    PROPOSAL,
    SINCE,
    TASK_METHODS,
    ask,
    begun,
    call,
    could_wait,
    deferring,
    ended,
    give_up,
    is_task,
    usable,
)
from accord.check.reading import answers
from accord.check.record import Record
from accord.check.rule import Broken, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.tasked import call_of
from accord.check.values import shown
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject

_NEGOTIATED = f"{PAGE}#capability-negotiation"
_LEGACY: JSONObject = {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}}
"""What a client of 2025-11-25 declared under `tasks`."""
_FEW = 3
"""Tools that are tried."""

UNDECLARED = Rule(
    "ext-tasks/undeclared",
    "must",
    "Only a request that declares the tasks extension is answered with a task, whatever was declared before.",
    at=_NEGOTIATED,
    since="2025-11-25",
    cause="Capabilities are remembered by connection, or not looked at: read those of each request. In 2025-11-25 the "
    "extension does not exist.",
)


@UNDECLARED.reading("all results", needs=CAPABILITY, since=SINCE)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for answered in answers(records):
        if isinstance(answered.result, dict) and not could_wait(answered.request):
            judged += answered.request["method"] == "tools/call"
            if is_task(answered.result):
                raise answered.broken("a request that does not declare the extension is answered with a task")
    return judged


@UNDECLARED.case("a call, after one that declared it", since=SINCE, needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    tool = (await deferring(talk))[0]
    await give_up(talk, await begun(talk))
    if is_task((await call(talk, tool, ours=talk.declared)).result):
        raise talk.broken("a call that does not declare the extension becomes a task")


@UNDECLARED.case(
    "calls of a client of 2025-11-25 that declares it",
    kind="own",
    until=SINCE,
    needs="tasks",
    calls=True,
    capabilities={"extensions": {EXTENSION: {}}},
)
async def _(talk: Talk) -> None:
    for tool in (await talk.callable())[:_FEW]:
        if is_task((await talk.request("tools/call", call_of(tool))).result):
            raise talk.broken(f"a plain call becomes a task of an extension that {talk.revision} does not have")


NEEDED = Rule(
    "ext-tasks/needed",
    "must",
    "A call that can only be a task, and does not declare the extension, is refused with error -32021, which names it.",
    at=_NEGOTIATED,
    since=SINCE,
    cause="The refusal is a tool error, or has another code (-32003 in drafts): a client cannot know what to declare.",
)


@NEEDED.case("calls that do not declare it, of tools that became tasks", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    for tool in (await deferring(talk))[:_FEW]:
        error = await _refusal(talk, tool)
        if error and (error.get("code") == MISSING_CLIENT_CAPABILITY or await _works(talk, tool)):
            wanted = inside(error, "data", "requiredCapabilities", "extensions")
            if error.get("code") != MISSING_CLIENT_CAPABILITY or EXTENSION not in wanted:
                raise talk.broken(f"a plain call of {tool.get('name')!r} is answered with {shown(error)}")
            return
    raise NotObserved("each tool that becomes a task can be called without one")


async def _refusal(talk: Talk, tool: JSONObject) -> JSONObject:
    """The error of a call that does not declare the extension; empty if there is none, or no answer in time."""
    with contextlib.suppress(NotObserved):
        return (await call(talk, tool, ours=talk.declared)).error or {}
    return {}


async def _works(talk: Talk, tool: JSONObject) -> bool:
    """Whether the same call succeeds as a task."""
    result = (await call(talk, tool)).result
    return is_task(result) and (await ended(talk, str(result.get("taskId")))).get("status") == "completed"


GATED = Rule(
    "ext-tasks/gated",
    "must",
    "tasks/get, tasks/update and tasks/cancel are refused with error -32021 to who does not declare the extension.",
    at=f"{PAGE}#protocol-errors",
    since=SINCE,
    cause="Only the request that made the task was looked at: each request declares anew.",
)


@GATED.case("requests for a task that nobody has", needs=CAPABILITY)
async def _(talk: Talk) -> None:
    # that there is no such task is as true: "Invalid or nonexistent `taskId`: `-32602`"
    await _refuses(talk, talk.nobody, talk.declared, MISSING_CLIENT_CAPABILITY, INVALID_PARAMS)


@GATED.case("requests for a new task", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id = await begun(talk)
    try:
        await _refuses(talk, id, talk.declared, MISSING_CLIENT_CAPABILITY)
    finally:
        await give_up(talk, id)


LEGACY_CLIENT = Rule(
    "ext-tasks/legacy-client",
    "must",
    "A client that declares the tasks of 2025-11-25 has not declared the extension.",
    at=f"{PROPOSAL}#backward-compatibility",
    since=SINCE,
    cause="`tasks` among the capabilities of the client is taken for the extension.",
)


@LEGACY_CLIENT.case("a call, and requests for a task", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    tool, id = (await deferring(talk))[0], await begun(talk)
    legacy = {**talk.declared, "tasks": _LEGACY}
    try:
        await _refuses(talk, id, legacy, MISSING_CLIENT_CAPABILITY)
    finally:
        await give_up(talk, id)
    if is_task((await call(talk, tool, ours=legacy)).result):
        raise talk.broken("a call of such a client becomes a task")


async def _refuses(talk: Talk, id: str, ours: JSONObject, *codes: int) -> None:
    for method in TASK_METHODS:
        more: JSONObject = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = await ask(talk, method, {"taskId": id, **more}, ours=ours, misbehaved=True)
        if answer.code not in codes:
            raise talk.broken(f"{method} is answered with {shown(answer.error or answer.result)}")


LEGACY_DECLARED = Rule(
    "ext-tasks/legacy-declared",
    "must",
    "A server with the tasks extension does not declare `tasks` as 2025-11-25 has it any more.",
    at=f"{PROPOSAL}#backward-compatibility",
    since=SINCE,
    cause="The same capabilities are told in all revisions.",
)


@LEGACY_DECLARED.case("its capabilities", needs=CAPABILITY)
async def _(talk: Talk) -> None:
    if "tasks" in talk.capabilities:
        raise Broken(f"its capabilities are {shown(talk.capabilities)}")


PARAM = Rule(
    "ext-tasks/task-param",
    "must",
    "`task` in the params of a call, which 2025-11-25 has, changes nothing.",
    at=f"{PROPOSAL}#backward-compatibility",
    since=SINCE,
    cause="The field still asks for a task, or is refused.",
)


@PARAM.case("calls with `task`, of tools that do not become tasks", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    done = [each for each in answers(talk.beside, "tools/call") if could_wait(each.request)]
    tasks = {inside(each.request, "params").get("name") for each in done if is_task(each.result)}
    plain = {inside(each.request, "params").get("name") for each in done if "content" in inside(each.result)} - tasks
    for tool in [tool for tool in await usable(talk) if tool.get("name") in plain][:_FEW]:
        answer = await call(talk, tool, task={"ttl": 60_000})
        if answer.error is not None or is_task(answer.result):
            raise talk.broken(f"with `task` the answer is {shown(answer.error or answer.result)}")
    if not plain:
        raise NotObserved("no tool is known to give a plain result")


REMOVED = Rule(
    "ext-tasks/removed",
    "must",
    "tasks/result, which 2025-11-25 has, is no method any more: error -32601.",
    at=f"{PROPOSAL}#backward-compatibility",
    since=SINCE,
    cause="The methods of both revisions stand in one table.",
)


@REMOVED.case("tasks/result of a task that nobody has", needs=CAPABILITY)
async def _(talk: Talk) -> None:
    answer = await ask(talk, "tasks/result", {"taskId": talk.nobody}, misbehaved=True)
    if answer.code != METHOD_NOT_FOUND:
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")

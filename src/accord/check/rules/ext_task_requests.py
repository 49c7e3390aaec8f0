"""The tasks extension (2026-07-28): changing a task, what it asks, and how the requests about it are routed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.asked import good_answers
from accord.check.blocks import inside
from accord.check.extension_tasks import (
    CAPABILITY,
    PAGE,
    SINCE,
    ask,
    begun,
    call,
    deferring,
    give_up,
    is_task,
    looks,
    request,
    requests_of,
    states,
)
from accord.check.posting import refused
from accord.check.reading import answers
from accord.check.record import Record
from accord.check.rule import HTTP, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.tasked import FINISHED
from accord.check.values import shown
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject

EMPTY = Rule(
    "ext-tasks/empty-answers",
    "must",
    "tasks/update and tasks/cancel are answered with an empty result: what became of it is told by tasks/get.",
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-cancellation"),
    since=SINCE,
    cause="The state of the task is given, as tasks/cancel of 2025-11-25 does: it may have changed by then.",
)
_TELLING = frozenset(("taskId", "task", "status", "statusMessage", "createdAt", "lastUpdatedAt", "result", "error"))
"""Fields by which a result is about a task; unknown fields are allowed."""


@EMPTY.reading("all answers to both", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for answered in answers(records, "tasks/update", "tasks/cancel"):
        if isinstance(answered.result, dict):
            judged += 1
            more = sorted(_TELLING & answered.result.keys())
            if more:
                raise answered.broken(f"the result of {answered.request['method']} holds {', '.join(more)}")
    return judged


CANCEL = Rule(
    "ext-tasks/cancel",
    "must",
    "tasks/cancel of a task that is at work is acknowledged, whether it is stopped or not.",
    at=f"{PAGE}#task-cancellation",
    since=SINCE,
    cause="What cannot be stopped is refused: the server owes nothing but the acknowledgment.",
)


@CANCEL.case("a new task", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id = await begun(talk)
    answer = await ask(talk, "tasks/cancel", {"taskId": id})
    if answer.error is not None:
        status = inside((await ask(talk, "tasks/get", {"taskId": id})).result).get("status")
        if status in FINISHED and status != "cancelled":
            raise NotObserved("it was over before it could be cancelled")
        raise talk.broken(f"tasks/cancel is answered with {shown(answer.error)}")


STRAY = Rule(
    "ext-tasks/stray-answers",
    "should",
    "Answers that a task does not wait for are ignored: never asked, or answered before.",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="An unknown key is refused: a client that sends an answer twice, to be sure, is told of an error.",
)


@STRAY.case("an answer to what no task asked", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id = await begun(talk)
    params = {"taskId": id, "inputResponses": {talk.nobody: {"action": "decline"}}}
    answer = await ask(talk, "tasks/update", params, misbehaved=True)
    await give_up(talk, id)
    if answer.error is not None:
        raise talk.broken(f"it is answered with {shown(answer.error)}")


@STRAY.case("the same answers twice", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id, asked = await _asking(talk)
    params = {"taskId": id, "inputResponses": good_answers(talk, asked)}
    first = await ask(talk, "tasks/update", params)
    again = await ask(talk, "tasks/update", params, misbehaved=True)
    await give_up(talk, id)
    if first.error is None and again.error is not None:
        raise talk.broken(f"the second time it is answered with {shown(again.error)}")


PROCEEDS = Rule(
    "ext-tasks/proceeds",
    "must",
    "A task that has all the answers which it asked for goes on.",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    since=SINCE,
    cause="Answers are looked up by another key than they were asked under, or more is wanted than is told.",
)


@PROCEEDS.case("all answers to a task that asks", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    id, asked = await _asking(talk)
    answer = await ask(talk, "tasks/update", {"taskId": id, "inputResponses": good_answers(talk, asked)})
    if answer.error is not None:
        raise talk.broken(f"the answers are refused with {shown(answer.error)}")
    async for state in looks(talk, id):
        if state.get("status") != "input_required" or requests_of(state).keys() - asked.keys():
            await give_up(talk, id)
            return
    await give_up(talk, id)
    raise talk.broken("a task still waits for answers that it got")


async def _asking(talk: Talk) -> tuple[str, JSONObject]:
    """A task that asks something now, and what. Raises `NotObserved` for none."""
    known = {state.id for state in states(talk.beside) if requests_of(state.task)}
    for tool in await _tools_of(talk, known):
        result = (await call(talk, tool)).result
        if is_task(result) and isinstance(result.get("taskId"), str):
            id = str(result["taskId"])
            async for state in looks(talk, id):
                if requests_of(state):
                    return id, requests_of(state)
                if not state or state.get("status") in FINISHED:
                    break
            await give_up(talk, id)
    raise NotObserved("no task asks anything")


async def _tools_of(talk: Talk, ids: set[Any]) -> list[JSONObject]:
    """Return the tools whose calls became these tasks."""
    made = [each for each in answers(talk.beside, "tools/call") if is_task(each.result)]
    names = {inside(each.request, "params").get("name") for each in made if each.result.get("taskId") in ids}
    return [tool for tool in await deferring(talk) if tool.get("name") in names]


KEYS = Rule(
    "ext-tasks/keys",
    "must",
    "A key under which a task asks something stands for that one question, as long as there is the task.",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="The key is the kind of the question, or is counted anew in each round: an old answer meets a new question.",
)


@KEYS.reading("all that tasks asked", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    asked: dict[tuple[str, str], Any] = {}
    for state in states(records):
        for key, question in requests_of(state.task).items():
            before = asked.setdefault((shown(state.id), key), question)
            if before != question:
                raise state.heard.broken(f"the key {key!r} stood for another question before: {shown(before)}")
    return len(asked)


ONCE = Rule(
    "ext-tasks/answered-keys",
    "must",
    "A key whose answer was taken is not used again by the task.",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="The same step is run again after the answer, and asks under the same key.",
)


@ONCE.reading("all that tasks asked, after it was answered", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    answered: set[tuple[str, str]] = set()
    for each in answers(records, "tasks/update"):
        params = inside(each.request, "params")
        answered |= {(shown(params.get("taskId")), key) for key in inside(params, "inputResponses")}
    open_: dict[str, set[str]] = {}
    taken: set[tuple[str, str]] = set()
    for state in sorted(states(records), key=lambda each: each.asked):
        id, now = shown(state.id), set(requests_of(state.task))
        # an answer counts as taken when its key has gone: "The acknowledgement is _eventually consistent_"
        taken |= {(id, key) for key in open_.get(id, set()) - now} & answered
        again = [key for key in now if (id, key) in taken]
        if again:
            raise state.heard.broken(f"the key {again[0]!r} was answered, had gone, and is there again")
        open_[id] = now
    return len(taken)


ROUTED = Rule(
    "ext-tasks/name-header",
    "must",
    "A request about a task whose Mcp-Name is another id than that in its body gets status 400 and error -32020.",
    at=(f"{PAGE}#streamable-http-routing-headers", "basic/transports/streamable-http#server-validation"),
    since=SINCE,
    over=HTTP,
    cause="The header is compared for tools, prompts and resources only: a proxy routes, or allows, by another task.",
)


@ROUTED.case("tasks/get with another Mcp-Name", needs=CAPABILITY)
async def _(talk: Talk) -> None:
    message = request(talk, "tasks/get", {"taskId": talk.nobody})
    reply = await talk.post(message, {"Mcp-Name": "accord-check-another"})
    refused(talk, reply, "tasks/get with another Mcp-Name", status=400, code=HEADER_MISMATCH)

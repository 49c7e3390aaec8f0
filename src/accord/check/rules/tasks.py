"""Tasks (2025-11-25): which calls become one, what is said of it at once, and who gets at it."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.blocks import inside, items
from accord.check.reading import answers, heard
from accord.check.record import Record
from accord.check.rule import HTTP, NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.tasked import CAPABILITY, call_as_task, call_of, created, give_up, support, taking, task_id
from accord.check.values import declares, shown
from accord.errors import INVALID_REQUEST, METHOD_NOT_FOUND

_PLACE = "basic/utilities/tasks"
_SINCE, _UNTIL = "2025-11-25", "2026-07-28"
_SHORTEST_ID = 16
"""Characters: 128 random bits have 22 in Base64, and a UUID has 36."""

CREATED = Rule(
    "tasks/created",
    "must",
    "A call that asks to be a task, of a tool that can be one, is answered with the task, and nothing else.",
    at=(f"{_PLACE}#creating-tasks", f"{_PLACE}#result-retrieval"),
    since=_SINCE,
    until=_UNTIL,
    cause="`task` in the params is not looked at, or the call is finished before it is answered.",
)


@CREATED.reading("all calls that asked to be a task", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        able = _able(record)
        for answered in answers([record], "tools/call"):
            params = inside(answered.request, "params")
            if "task" not in params or params.get("name") not in able or answered.result is None:
                continue
            judged += 1
            id = inside(answered.result, "task").get("taskId")
            if not isinstance(id, str) or not id:
                raise answered.broken(f"it is answered with no task, but with {shown(answered.result)}")
            if "content" in answered.result:
                raise answered.broken("it is answered with a task and with the result of the call")
    return judged


def _able(record: Record) -> set[object]:
    """The names of the tools that were listed as able to be tasks."""
    listed = [tool for each in answers([record], "tools/list") for tool in items(each.result, "tools")]
    return {tool.get("name") for tool in listed if support(tool) != "forbidden"}


BEGINS = Rule(
    "tasks/begins",
    "should",  # they MUST begin as `working`; but a quick one may be further when its first answer is written
    "A new task is at work: its status is `working`.",
    at=f"{_PLACE}#task-status-lifecycle",
    since=_SINCE,
    until=_UNTIL,
    cause="The call is finished before it is answered: a client waits as long as without a task.",
)


@BEGINS.reading("all calls that became a task", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for answered in answers(records, "tools/call"):
        task = inside(answered.result, "task")
        if task and "task" in inside(answered.request, "params"):
            judged += 1
            if task.get("status") != "working":
                raise answered.broken(f"a new task is {shown(task.get('status'))}")
    return judged


REQUIRED = Rule(
    "tasks/required",
    "must",
    "A tool that can only be run as a task refuses a plain call with error -32601.",
    at=f"{_PLACE}#tool-level-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="`execution.taskSupport` is told to clients, and not looked at when the tool is called.",
)


@REQUIRED.case("a call without `task`", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    for tool in await taking(talk, "required"):
        answer = await talk.send(talk.message("tools/call", call_of(tool)), misbehaved=True).answer()
        # "Non-task-augmented request when receiver requires task augmentation for that request type: -32600"
        if answer.code not in (METHOD_NOT_FOUND, INVALID_REQUEST):
            raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")


FORBIDDEN = Rule(
    "tasks/forbidden",
    "should",
    "A tool that cannot be run as a task refuses a call that asks for it with error -32601.",
    at=f"{_PLACE}#tool-level-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="A tool without `execution.taskSupport` cannot be a task: that is the default.",
)


@FORBIDDEN.case("a call with `task`", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    tool = (await taking(talk, "forbidden"))[0]
    message = talk.message("tools/call", {**call_of(tool), "task": {}})
    answer = await talk.send(message, misbehaved=True).answer()
    if answer.code != METHOD_NOT_FOUND:
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")


UNDECLARED = Rule(
    "tasks/undeclared",
    "must",
    "A server that does not declare tasks for calls takes no notice of `task`: the call is a plain one.",
    at=(f"{_PLACE}#task-support-and-handling", f"{_PLACE}#capabilities"),
    since=_SINCE,
    until=_UNTIL,
    cause="Params that are not known are refused, or tasks are made and not declared.",
)


@UNDECLARED.case("a call with `task`", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    if talk.has(CAPABILITY):
        raise NotApplicable("it declares tasks for calls")
    for tool in await taking(talk, "forbidden", "optional"):
        plain = await talk.request("tools/call", call_of(tool))
        if not isinstance(plain.result, dict) or plain.result.get("isError"):
            continue
        message = talk.message("tools/call", {**call_of(tool), "task": {}})
        answer = await talk.send(message, misbehaved=True).answer()
        if answer.error is not None or "task" in answer.result:
            raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")
        return
    raise NotObserved("no plain call succeeds")


UNIQUE = Rule(
    "tasks/unique-ids",
    "must",
    "Each task has an id of its own.",
    at=f"{_PLACE}#task-id-requirements",
    since=_SINCE,
    until=_UNTIL,
    cause="The id is made of the request id or the name of the tool, which come again.",
)


@UNIQUE.case("three tasks of one tool", kind="own", needs=CAPABILITY, calls=True)
async def _(talk: Talk) -> None:
    tool, first = await created(talk)
    more = [task_id(await call_as_task(talk, tool)) for _ in range(2)]
    ids = [first, *(id for id in more if id is not None)]
    await give_up(talk, *ids)
    if len(set(ids)) < len(ids):
        raise talk.broken(f"two tasks have the id {max(ids, key=ids.count)!r}")


UNGUESSABLE = Rule(
    "tasks/unguessable",
    "should",  # a MUST where requestors cannot be told apart, which one of them does not see
    "Nobody can guess the id of a task.",
    at=f"{_PLACE}#task-isolation-and-access-control",
    since=_SINCE,
    until=_UNTIL,
    cause="Tasks are counted: take a random UUID, since whoever knows an id gets at the result.",
)


@UNGUESSABLE.reading("the ids of all new tasks", needs=CAPABILITY)
def _(records: Sequence[Record]) -> int:
    judged = 0
    for answered in answers(records, "tools/call"):
        id = inside(answered.result, "task").get("taskId")
        if isinstance(id, str):
            judged += 1
            if len(id) < _SHORTEST_ID or id.isdigit():
                raise answered.broken(f"the id of a task is {id!r}")
    return judged


LISTED_APART = Rule(
    "tasks/listed-apart",
    "should",
    "A server that cannot tell its clients apart lists nobody's tasks: it does not declare `tasks.list`.",
    at=f"{_PLACE}#task-isolation-and-access-control",
    since=_SINCE,
    until=_UNTIL,
    over=HTTP,
    cause="All tasks are in one list, whoever asks: keep them by session or by principal.",
)


@LISTED_APART.case("a task of one session, and the list of another", kind="own", needs="tasks.list", calls=True)
async def _(talk: Talk) -> None:
    if talk.settings.headers:
        raise NotApplicable("both sessions may be of one principal (--header)")
    if not declares(talk.capabilities, CAPABILITY):
        raise NotApplicable(f"it does not declare {CAPABILITY}")
    _, id = await created(talk)
    other = await talk.reopen()
    listed = [task.get("taskId") for page in await other.pages("tasks/list", "tasks") for task in page["tasks"]]
    await give_up(talk, id)
    if id in listed:
        raise other.broken("the task of another session is in the list")


OWN = Rule(
    "tasks/own-requests",
    "should",
    "The server does not ask its client to run a question as a task, where the client has not declared that.",
    at=f"{_PLACE}#capability-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="`task` is put into each question: look at the `tasks` capability of the client first.",
)


@OWN.reading("all questions of the server")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each in heard(records):
        if "method" in each.message and "id" in each.message:
            judged += 1
            if "task" in inside(each.message, "params") and "tasks" not in each.record.declared:
                raise each.broken(f"{shown(each.message['method'])} asks a client for a task that declared none")
    return judged

"""What a run of a client says of tasks (of the extension): which there were, which it looked at, what it was told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.engine.rule import NotObserved
from accord.messages.base import JSONObject


def created_tasks(run: ClientRun) -> set[Any]:
    """The ids of the tasks that requests became. Raises `NotObserved` for none."""
    run.require_no_crash()
    found = {result.get("taskId") for _, result in sent_results(run) if result.get("resultType") == "task"}
    if not found:
        raise NotObserved("the client does not declare the extension, or calls nothing")
    return found


def polled_tasks(run: ClientRun) -> set[Any]:
    """Those of them that the client looked at. Raises `NotObserved` for none."""
    found = {request.params.get("taskId") for request in run.requests("tasks/get")} & created_tasks(run)
    if not found:
        raise NotObserved("the client looks at no task")
    return found


def tasks_requiring_input(run: ClientRun) -> set[Any]:
    """Those that were seen asking. Raises `NotObserved` for none."""
    found = {state.get("taskId") for state in sent_task_states(run) if state.get("status") == "input_required"}
    if not found:
        raise NotObserved("no task was seen asking")
    return found


def task_updates(run: ClientRun) -> list[ClientMessage]:
    """The answers. Raises `NotObserved` for none."""
    found = run.requests("tasks/update")
    if not found:
        raise NotObserved("no task was answered")
    return found


def task_requests(run: ClientRun, id: Any, *methods: str) -> list[ClientMessage]:
    """The requests about one of them, of these methods."""
    return [request for request in run.requests(*methods) if request.params.get("taskId") == id]


def sent_task_states(run: ClientRun) -> Iterator[JSONObject]:
    """The states that were told of them."""
    return (result for _, result in sent_results(run) if result.get("resultType") == "complete" and "taskId" in result)


def sent_results(run: ClientRun) -> Iterator[tuple[Any, JSONObject]]:
    """Our results, and the ids of what they are for."""
    for conversation in run.conversations:
        for body in conversation.log.sent_messages():
            if isinstance(body.get("result"), dict):
                yield body.get("id"), body["result"]

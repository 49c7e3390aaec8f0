"""Tasks of the extension in a run of a client: those that it got, polled and answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.engine.rule import NotObserved
from accord.messages.base import JSONObject


def created_tasks(run: ClientRun) -> set[Any]:
    """Return the ids of the tasks of all requests. Raises `NotObserved` if there are none."""
    run.require_no_crash()
    found = {result.get("taskId") for _, result in sent_results(run) if result.get("resultType") == "task"}
    if not found:
        raise NotObserved("the client does not declare the extension, or calls nothing")
    return found


def polled_tasks(run: ClientRun) -> set[Any]:
    """Return the tasks that the client polled. Raises `NotObserved` if there are none."""
    found = {request.params.get("taskId") for request in run.requests("tasks/get")} & created_tasks(run)
    if not found:
        raise NotObserved("the client polls no task")
    return found


def tasks_requiring_input(run: ClientRun) -> set[Any]:
    """Return the tasks that required input. Raises `NotObserved` if there are none."""
    found = {state.get("taskId") for state in sent_task_states(run) if state.get("status") == "input_required"}
    if not found:
        raise NotObserved("no task required input")
    return found


def task_updates(run: ClientRun) -> list[ClientMessage]:
    """Return the input responses. Raises `NotObserved` if there are none."""
    found = run.requests("tasks/update")
    if not found:
        raise NotObserved("the client answered no task")
    return found


def task_requests(run: ClientRun, id: Any, *methods: str) -> list[ClientMessage]:
    """Return the requests about a task, with these methods."""
    return [request for request in run.requests(*methods) if request.params.get("taskId") == id]


def sent_task_states(run: ClientRun) -> Iterator[JSONObject]:
    """Return the states of tasks that were sent."""
    return (result for _, result in sent_results(run) if result.get("resultType") == "complete" and "taskId" in result)


def sent_results(run: ClientRun) -> Iterator[tuple[Any, JSONObject]]:
    """Yield the results that were sent, with the ids of their requests."""
    for conversation in run.conversations:
        for body in conversation.log.sent_messages():
            if isinstance(body.get("result"), dict):
                yield body.get("id"), body["result"]

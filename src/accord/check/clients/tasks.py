"""What a run of a client says of tasks (of the extension): which there were, which it looked at, what it was told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.check.clients.run import Message, Run
from accord.check.rule import NotObserved
from accord.messages.base import JSONObject


def made(run: Run) -> set[Any]:
    """The ids of the tasks that requests became. Raises `NotObserved` for none."""
    run.survived()
    found = {result.get("taskId") for _, result in results(run) if result.get("resultType") == "task"}
    if not found:
        raise NotObserved("the client does not declare the extension, or calls nothing")
    return found


def looked(run: Run) -> set[Any]:
    """Those of them that the client looked at. Raises `NotObserved` for none."""
    found = {request.params.get("taskId") for request in run.requests("tasks/get")} & made(run)
    if not found:
        raise NotObserved("the client looks at no task")
    return found


def asking(run: Run) -> set[Any]:
    """Those that were seen asking. Raises `NotObserved` for none."""
    found = {state.get("taskId") for state in told(run) if state.get("status") == "input_required"}
    if not found:
        raise NotObserved("no task was seen asking")
    return found


def updates(run: Run) -> list[Message]:
    """The answers. Raises `NotObserved` for none."""
    found = run.requests("tasks/update")
    if not found:
        raise NotObserved("no task was answered")
    return found


def about(run: Run, id: Any, *methods: str) -> list[Message]:
    """The requests about one of them, of these methods."""
    return [request for request in run.requests(*methods) if request.params.get("taskId") == id]


def told(run: Run) -> Iterator[JSONObject]:
    """The states that were told of them."""
    return (result for _, result in results(run) if result.get("resultType") == "complete" and "taskId" in result)


def results(run: Run) -> Iterator[tuple[Any, JSONObject]]:
    """Our results, and the ids of what they are for."""
    for conversation in run.conversations:
        for body in conversation.record.sent():
            if isinstance(body.get("result"), dict):
                yield body.get("id"), body["result"]

"""Servers whose tasks are wrong (2025-11-25)."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant
from tests.check.mutants.task_server import RELATED, TaskServer

LAST = "2025-11-25"
STATES = ("tasks/get", "tasks/cancel")


def _states(change: Change, edit: Any) -> None:
    """Change each state of a task that is told, but those in lists."""
    for method in STATES:

        @change.answers(method)
        def _(request: Any, answer: Any) -> Any:
            if "result" in answer:
                edit(answer["result"])
            return answer


def _calls(change: Change, edit: Any) -> None:
    """Change the answer to each call that became a task: gets the request and the answer."""

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return edit(request, answer) if "task" in answer.get("result", {}) else answer


def _error(request: Any, code: int) -> Any:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "No"}}


@mutant("tasks/created", revision=LAST, server=TaskServer)
def a_call_is_answered_though_it_asked_for_a_task(change: Change) -> None:
    def edit(request: Any, answer: Any) -> Any:
        return {**answer, "result": {"content": [{"type": "text", "text": "done"}]}}

    _calls(change, edit)


@mutant("tasks/begins", revision=LAST, server=TaskServer)
def a_new_task_is_completed(change: Change) -> None:
    def edit(request: Any, answer: Any) -> Any:
        answer["result"]["task"]["status"] = "completed"
        return answer

    _calls(change, edit)


@mutant("tasks/required", revision=LAST, server=TaskServer)
def a_tool_that_must_be_a_task_need_not(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if request["params"]["name"] == "only" and "task" not in request["params"]:
            return {"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}
        return answer


@mutant("tasks/forbidden", revision=LAST, server=TaskServer)
def a_tool_that_cannot_be_a_task_is_one(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if request["params"]["name"] == "now" and "task" in request["params"]:
            return {"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}
        return answer


@mutant("tasks/undeclared", revision=LAST)
def a_call_that_asks_for_a_task_is_refused(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return _error(request, -32602) if "task" in request["params"] else answer


@mutant("tasks/unique-ids", revision=LAST, server=TaskServer)
def tasks_have_the_name_of_their_tool(change: Change) -> None:
    def edit(request: Any, answer: Any) -> Any:
        answer["result"]["task"]["taskId"] = f"the-task-of-{request['params']['name']}"
        return answer

    _calls(change, edit)


@mutant("tasks/unguessable", revision=LAST, server=TaskServer)
def tasks_are_counted(change: Change) -> None:
    whole: list[str] = []

    @change.heard
    def _(message: Any) -> Any:
        id = message.get("params", {}).get("taskId", "") if isinstance(message, dict) else ""
        if isinstance(id, str) and id.startswith("task-"):
            message["params"]["taskId"] = whole[int(id.removeprefix("task-"))]
        return dict(message) if isinstance(message, dict) else message

    @change.every
    def _(message: Any) -> Any:
        result = message.get("result", {})
        for task in (result.get("task", {}), result, *result.get("tasks", ())):
            if "taskId" in task:
                whole[:] = dict.fromkeys([*whole, task["taskId"]])
                task["taskId"] = f"task-{whole.index(task['taskId'])}"
        for body in (result, message.get("params", {})):
            if RELATED in body.get("_meta", {}):
                body["_meta"][RELATED]["taskId"] = f"task-{whole.index(body['_meta'][RELATED]['taskId'])}"
        return message


@mutant("tasks/listed-apart", revision=LAST, over="http", server=TaskServer)
def all_tasks_are_in_one_list(change: Change) -> None:
    tasks: list[Any] = []

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        tasks.extend(answer["result"]["task"] for _ in range("task" in answer.get("result", {})))
        return answer

    @change.answers("tasks/list")
    def _(request: Any, answer: Any) -> Any:
        return {**answer, "result": {"tasks": tasks}} if "result" in answer else answer


@mutant("tasks/own-requests", revision=LAST, server=TaskServer)
def a_question_asks_for_a_task(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        if message.get("method") == "elicitation/create":
            message["params"]["task"] = {"ttl": 1000}
        return message


@mutant("tasks/times", revision=LAST, server=TaskServer)
def times_have_no_zone(change: Change) -> None:
    _states(change, lambda state: state.update(createdAt=state["createdAt"][:19]))


@mutant("tasks/final", revision=LAST, server=TaskServer)
def a_task_that_is_over_is_at_work_again(change: Change) -> None:
    over: set[str] = set()

    def edit(state: Any) -> None:
        if state["taskId"] in over:
            state["status"] = "failed"
        elif state["status"] == "completed":
            over.add(state["taskId"])

    _states(change, edit)


@mutant("tasks/result", revision=LAST, server=TaskServer)
def the_result_of_a_task_is_wrapped(change: Change) -> None:
    @change.answers("tasks/result")
    def _(request: Any, answer: Any) -> Any:
        result = answer.get("result")
        return {**answer, "result": {"result": result, "_meta": result["_meta"]}} if result else answer


@mutant("tasks/waits", revision=LAST, server=TaskServer)
def the_result_of_a_task_comes_too_soon(change: Change) -> None:
    asked: list[str] = []

    def edit(state: Any) -> None:
        asked.append(state["taskId"])
        if asked.count(state["taskId"]) < 3 and state["status"] == "completed":
            state["status"] = "working"

    _states(change, edit)


@mutant("tasks/related", revision=LAST, server=TaskServer)
def a_result_does_not_name_its_task(change: Change) -> None:
    @change.answers("tasks/result")
    def _(request: Any, answer: Any) -> Any:
        answer.get("result", {}).pop("_meta", None)
        return answer


@mutant("tasks/related-questions", revision=LAST, server=TaskServer)
def a_question_does_not_name_its_task(change: Change) -> None:
    @change.every
    def _(message: Any) -> Any:
        if message.get("method") == "elicitation/create":
            message["params"].pop("_meta", None)
        return message


@mutant("tasks/named-once", revision=LAST, server=TaskServer)
def a_state_names_its_task_twice(change: Change) -> None:
    _states(change, lambda state: state.update(_meta={RELATED: {"taskId": state["taskId"]}}))


@mutant("tasks/failed", revision=LAST, server=TaskServer)
def a_task_that_failed_is_completed(change: Change) -> None:
    def edit(state: Any) -> None:
        state["status"] = "completed" if state["status"] == "failed" else state["status"]

    _states(change, edit)


@mutant("tasks/failed-why", revision=LAST, server=TaskServer)
def nobody_says_why_a_task_failed(change: Change) -> None:
    _states(change, lambda state: state.pop("statusMessage", None))


@mutant("tasks/unknown", revision=LAST, server=TaskServer)
def an_unknown_task_is_an_internal_error(change: Change) -> None:
    @change.answers("tasks/result")
    def _(request: Any, answer: Any) -> Any:
        return _error(request, -32603) if "error" in answer else answer


@mutant("tasks/cursor", revision=LAST, server=TaskServer)
def an_unknown_cursor_begins_anew(change: Change) -> None:
    @change.answers("tasks/list")
    def _(request: Any, answer: Any) -> Any:
        return {**answer, "error": None, "result": {"tasks": []}} if "error" in answer else answer

    @change.every
    def _(message: Any) -> Any:
        return {name: value for name, value in message.items() if value is not None}


@mutant("tasks/listed", revision=LAST, server=TaskServer)
def the_list_has_only_what_is_over(change: Change) -> None:
    @change.answers("tasks/list")
    def _(request: Any, answer: Any) -> Any:
        tasks = answer.get("result", {}).get("tasks", [])
        tasks[:] = [task for task in tasks if task["status"] != "working"]
        return answer


@mutant("tasks/by-its-id", revision=LAST, server=TaskServer)
def the_related_task_is_the_one_that_is_meant(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        params = message.get("params", {}) if isinstance(message, dict) else {}
        if RELATED in params.get("_meta", {}):
            return {**message, "params": params["_meta"][RELATED]}
        return message


@mutant("tasks/cancelled", revision=LAST, server=TaskServer)
def a_cancelled_task_is_still_at_work(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            answer["result"]["status"] = "working"
        return answer


@mutant("tasks/cancel-finished", revision=LAST, server=TaskServer)
def a_task_that_is_over_is_cancelled(change: Change) -> None:
    states: dict[str, Any] = {}

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        states[request["params"]["taskId"]] = answer.get("result")
        return answer

    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        state = states.get(request["params"]["taskId"])
        return {"jsonrpc": "2.0", "id": request["id"], "result": state} if "error" in answer and state else answer


@mutant("tasks/result-again", revision=LAST, server=TaskServer)
def a_result_is_handed_out_once(change: Change) -> None:
    asked: list[str] = []

    @change.answers("tasks/result")
    def _(request: Any, answer: Any) -> Any:
        asked.append(request["params"]["taskId"])
        return _error(request, -32602) if asked.count(asked[-1]) > 1 else answer

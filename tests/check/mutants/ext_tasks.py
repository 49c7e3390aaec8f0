"""Servers whose tasks of the extension are wrong (2026-07-28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.ext_task_server import CAPABILITIES, EXTENSION, SUBSCRIPTION, ExtTaskServer
from tests.check.mutants.table import mutant
from tests.check.mutants.task_server import TaskServer

EMPTY = {"resultType": "complete"}
DONE = {**EMPTY, "content": []}
Edit = Callable[[dict[str, Any]], Any]


def result(request: Any, value: Any) -> Any:
    return {"jsonrpc": "2.0", "id": request["id"], "result": value}


def error(request: Any, code: int) -> Any:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "No"}}


def declared(message: Any) -> Any:
    """What a request says that its client can do."""
    return message["params"]["_meta"][CAPABILITIES]


def made(change: Change, edit: Edit) -> None:
    """Change each new task."""

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if answer.get("result", {}).get("resultType") == "task":
            edit(answer["result"])
        return answer


def told(change: Change, edit: Edit, *statuses: str) -> None:
    """Change each state that tasks/get tells; those of these statuses."""

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer and (not statuses or answer["result"]["status"] in statuses):
            edit(answer["result"])
        return answer


def able(change: Change, wanted: Callable[[Any], bool]) -> None:
    """The server takes such requests for those of clients that can wait."""

    @change.heard
    def _(message: Any) -> Any:
        if not wanted(message):
            return message
        meta = {**message["params"]["_meta"], CAPABILITIES: {"extensions": {EXTENSION: {}}}}
        return {**message, "params": {**message["params"], "_meta": meta}}


@mutant("ext-tasks/undeclared", server=ExtTaskServer)
def every_client_gets_tasks(change: Change) -> None:
    able(change, lambda message: message.get("method") == "tools/call")


@mutant("ext-tasks/undeclared", revision="2025-11-25", server=TaskServer)
def the_extension_is_used_in_a_revision_that_has_none(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return result(request, {"resultType": "task", "taskId": "1", "status": "working"})


@mutant("ext-tasks/needed", server=ExtTaskServer)
def who_cannot_wait_is_refused_with_the_code_of_a_draft(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32003) if answer.get("error", {}).get("code") == -32021 else answer


@mutant("ext-tasks/needed", server=ExtTaskServer)
def who_cannot_wait_is_told_of_another_capability(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if answer.get("error", {}).get("code") == -32021:
            answer["error"]["data"] = {"requiredCapabilities": {"tasks": {}}}
        return answer


@mutant("ext-tasks/gated", server=ExtTaskServer)
def who_declared_nothing_can_look_at_tasks(change: Change) -> None:
    able(change, lambda message: message.get("method") == "tasks/get")


@mutant("ext-tasks/gated", server=ExtTaskServer, calls=False)
def who_declared_nothing_is_told_that_there_is_no_such_method(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        return answer if "extensions" in declared(request) else error(request, -32601)


@mutant("ext-tasks/legacy-client", server=ExtTaskServer)
def a_client_of_an_older_revision_gets_tasks(change: Change) -> None:
    able(change, lambda message: "method" in message and "tasks" in declared(message))


@mutant("ext-tasks/legacy-declared", server=ExtTaskServer, calls=False)
def tasks_are_declared_in_both_ways(change: Change) -> None:
    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["capabilities"] = {**answer["result"]["capabilities"], "tasks": {"cancel": {}}}
        return answer


@mutant("ext-tasks/task-param", server=ExtTaskServer)
def a_call_with_task_is_refused(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32602) if "task" in request["params"] else answer


@mutant("ext-tasks/removed", server=ExtTaskServer, calls=False)
def results_are_still_fetched(change: Change) -> None:
    @change.answers("tasks/result")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32602)


@mutant("ext-tasks/marked", server=ExtTaskServer)
def a_new_task_says_that_it_is_complete(change: Change) -> None:
    made(change, lambda task: task.update(resultType="complete"))


@mutant("ext-tasks/marked", server=ExtTaskServer)
def a_new_task_stands_inside_the_result(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        task = answer.get("result", {})
        return result(request, {**EMPTY, "task": task}) if task.get("resultType") == "task" else answer


@mutant("ext-tasks/calls-only", server=ExtTaskServer, calls=False)
def a_list_becomes_a_task(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["resultType"] = "task"
        return answer


@mutant("ext-tasks/complete", server=ExtTaskServer)
def a_state_says_that_it_is_a_new_task(change: Change) -> None:
    told(change, lambda state: state.update(resultType="task"))


@mutant("ext-tasks/complete", server=ExtTaskServer)
def an_acknowledgment_says_nothing_of_its_type(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        return result(request, {}) if "result" in answer else answer


@mutant("ext-tasks/shapes", server=ExtTaskServer)
def a_task_has_a_ttl_of_the_older_revision(change: Change) -> None:
    made(change, lambda task: task.update(ttl=task.pop("ttlMs")))


@mutant("ext-tasks/shapes", server=ExtTaskServer)
def a_failed_task_has_no_error(change: Change) -> None:
    told(change, lambda state: state.pop("error"), "failed")


@mutant("ext-tasks/shapes", server=ExtTaskServer)
def a_task_does_not_say_what_it_asks(change: Change) -> None:
    told(change, lambda state: state.pop("inputRequests"), "input_required")


@mutant("ext-tasks/shapes", server=ExtTaskServer)
def a_completed_task_has_no_result(change: Change) -> None:
    told(change, lambda state: state.pop("result"), "completed")


@mutant("ext-tasks/result", server=ExtTaskServer)
def a_result_is_the_bare_value(change: Change) -> None:
    told(change, lambda state: state.update(result={"value": "done"}), "completed")


@mutant("ext-tasks/times", server=ExtTaskServer)
def a_time_is_written_for_people(change: Change) -> None:
    told(change, lambda state: state.update(createdAt="Sun Nov 22 03:21:00 2026"))


@mutant("ext-tasks/final", server=ExtTaskServer)
def a_late_cancellation_is_written_over_the_end(change: Change) -> None:
    cancelled: set[str] = set()

    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        cancelled.add(request["params"]["taskId"])
        return answer

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        if request["params"]["taskId"] in cancelled and "result" in answer:
            answer["result"]["status"] = "cancelled"
        return answer


@mutant("ext-tasks/failed", server=ExtTaskServer)
def a_tool_that_fails_makes_a_failed_task(change: Change) -> None:
    def edit(state: dict[str, Any]) -> None:
        if state["result"]["isError"]:
            del state["result"]
            state.update(status="failed", statusMessage="it failed", error={"code": -32603, "message": "it failed"})

    told(change, edit, "completed")


@mutant("ext-tasks/failed-why", server=ExtTaskServer)
def a_failed_task_says_nothing(change: Change) -> None:
    told(change, lambda state: state.pop("statusMessage"), "failed")


@mutant("ext-tasks/unique-ids", server=ExtTaskServer)
def all_tasks_of_a_visit_have_one_id(change: Change) -> None:
    made(change, lambda task: task.update(taskId="786512e2-9e0d-44bd-8f29-789f320fe840"))


@mutant("ext-tasks/unguessable", server=ExtTaskServer)
def tasks_are_numbered_behind_a_long_name(change: Change) -> None:
    whole: list[str] = []

    @change.heard
    def _(message: Any) -> Any:
        id = message.get("params", {}).get("taskId")
        if isinstance(id, str) and id.startswith("the-long-name-of-a-task-"):
            params = {**message["params"], "taskId": whole[int(id.rpartition("-")[2])]}
            return {**message, "params": params}
        return message

    @change.every
    def _(message: Any) -> Any:
        for body in (message.get("result", {}), message.get("params", {})):
            if "taskId" in body:
                whole[:] = dict.fromkeys([*whole, body["taskId"]])
                body["taskId"] = f"the-long-name-of-a-task-{whole.index(body['taskId'])}"
        return message


@mutant("ext-tasks/durable", server=ExtTaskServer)
def a_new_task_is_not_found_at_first(change: Change) -> None:
    known: set[str] = set()

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        id = request["params"].get("taskId")
        if "error" in answer or id in known:
            return answer
        known.add(id)
        return error(request, -32602)


@mutant("ext-tasks/kept", server=ExtTaskServer)
def a_task_is_gone_when_its_result_was_fetched(change: Change) -> None:
    fetched: set[str] = set()

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        id = request["params"].get("taskId")
        if id in fetched:
            return error(request, -32602)
        fetched.update([id] * (answer.get("result", {}).get("status") == "completed"))
        return answer


@mutant("ext-tasks/unknown", server=ExtTaskServer, calls=False)
def an_unknown_task_is_an_internal_error(change: Change) -> None:
    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32603) if answer.get("error", {}).get("code") == -32602 else answer


@mutant("ext-tasks/unknown-changed", server=ExtTaskServer, calls=False)
def a_cancellation_of_no_task_is_acknowledged(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        return result(request, EMPTY) if answer.get("error", {}).get("code") == -32602 else answer


@mutant("ext-tasks/served", server=ExtTaskServer, calls=False)
def tasks_cannot_be_updated(change: Change) -> None:
    @change.answers("tasks/update")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32601)


@mutant("ext-tasks/empty-answers", server=ExtTaskServer)
def a_cancellation_is_answered_with_the_task(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        state = {"taskId": request["params"]["taskId"], "status": "cancelled"}
        return result(request, {**EMPTY, **state}) if "result" in answer else answer


@mutant("ext-tasks/cancel", server=ExtTaskServer)
def tasks_cannot_be_cancelled(change: Change) -> None:
    @change.answers("tasks/cancel")
    def _(request: Any, answer: Any) -> Any:
        return error(request, -32600) if "result" in answer else answer


@mutant("ext-tasks/stray-answers", server=ExtTaskServer)
def answers_to_nothing_are_refused(change: Change) -> None:
    @change.answers("tasks/update")
    def _(request: Any, answer: Any) -> Any:
        stray = set(request["params"]["inputResponses"]) - {"first", "second", "third"}
        return error(request, -32602) if stray else answer


@mutant("ext-tasks/stray-answers", server=ExtTaskServer)
def answers_that_come_twice_are_refused(change: Change) -> None:
    taken: set[Any] = set()

    @change.answers("tasks/update")
    def _(request: Any, answer: Any) -> Any:
        keys = {(request["params"]["taskId"], key) for key in request["params"]["inputResponses"]}
        again = keys & taken
        taken.update(keys)
        return error(request, -32602) if again else answer


@mutant("ext-tasks/proceeds", server=ExtTaskServer)
def answers_are_acknowledged_and_lost(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        if message.get("method") == "tasks/update":
            return {**message, "params": {**message["params"], "inputResponses": {}}}
        return message


@mutant("ext-tasks/keys", server=ExtTaskServer)
def each_round_asks_something_else_under_the_same_key(change: Change) -> None:
    def edit(state: dict[str, Any]) -> None:
        for key, each in list(state["inputRequests"].items()):
            state["inputRequests"][key] = {**each, "params": {**each["params"], "message": state["lastUpdatedAt"]}}
        if "third" in state["inputRequests"]:
            state["inputRequests"] = {"first": state["inputRequests"]["third"]}

    told(change, edit, "input_required")


@mutant("ext-tasks/answered-keys", server=ExtTaskServer)
def a_key_that_was_answered_comes_again(change: Change) -> None:
    rounds: dict[str, Any] = {}

    @change.answers("tasks/get")
    def _(request: Any, answer: Any) -> Any:
        state = answer.get("result", {})
        id = state.get("taskId")
        if "third" in state.get("inputRequests", {}):
            rounds[id] = state["inputRequests"]["third"]
        elif id in rounds:
            asked = {"first": rounds.pop(id)}
            known = {key: each for key, each in state.items() if key != "result"}
            return result(request, {**known, "status": "input_required", "inputRequests": asked})
        return answer


@mutant("ext-tasks/name-header", server=ExtTaskServer, over="http", calls=False)
def any_name_stands_before_a_task(change: Change) -> None:
    @change.request_headers
    def _(headers: Any) -> None:
        headers.pop("mcp-name", None)


@mutant("ext-tasks/listen-gated", server=ExtTaskServer, calls=False)
def who_declared_nothing_can_listen(change: Change) -> None:
    able(change, lambda message: message.get("method") == "subscriptions/listen")


@mutant("ext-tasks/granted", server=ExtTaskServer)
def a_subscription_is_granted_what_it_did_not_want(change: Change) -> None:
    @change.notifications("notifications/subscriptions/acknowledged")
    def _(message: Any) -> Any:
        message["params"]["notifications"]["taskIds"].append("another")
        return message


@mutant("ext-tasks/told", server=ExtTaskServer)
def nothing_is_told_of_tasks(change: Change) -> None:
    change.notifications("notifications/tasks")(lambda message: None)


@mutant("ext-tasks/wanted-only", server=ExtTaskServer)
def news_bear_no_subscription(change: Change) -> None:
    @change.notifications("notifications/tasks")
    def _(message: Any) -> Any:
        return {**message, "params": {key: each for key, each in message["params"].items() if key != "_meta"}}


@mutant("ext-tasks/news-whole", server=ExtTaskServer)
def news_tell_the_status_alone(change: Change) -> None:
    @change.notifications("notifications/tasks")
    def _(message: Any) -> Any:
        message["params"].pop("result", None)
        return message


@mutant("ext-tasks/no-progress", server=ExtTaskServer)
def logs_come_with_the_news(change: Change) -> None:
    @change.notifications("notifications/tasks")
    def _(message: Any) -> Any:
        params = {"level": "info", "data": "a step", "_meta": {SUBSCRIPTION: message["params"]["_meta"][SUBSCRIPTION]}}
        return [{"jsonrpc": "2.0", "method": "notifications/message", "params": params}, message]

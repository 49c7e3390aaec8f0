"""Two principals: the tasks, the requests for input and the running requests of one, which the other names."""

from __future__ import annotations

from functools import partial

from accord.check.engine.ordinary_traffic import minimal_call_params
from accord.check.engine.rule import HTTP, NotObserved, Violation, rule
from accord.check.probes.client_messages import elicitation_result
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY as EXTENSION_CAPABILITY,
    TASK_METHODS as EXTENSION_METHODS,
    call_tool as call_as_extension_task,
    cancel_tasks,
    is_task,
    send_request,
    task_tools,
)
from accord.check.probes.input_requests import INPUT_REQUIRED, retry_params
from accord.check.probes.pending_answer import Answer, PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.probes.probe_connection import WITHHELD
from accord.check.probes.subscriptions import ALL_LISTS, require_subscriptions, subscribe, wait_for_acknowledgment
from accord.check.probes.tasks import CAPABILITY as TASK_CAPABILITY, start_task
from accord.check.rules.principals import PLACES, other_principal
from accord.messages.base import JSONObject


@rule(
    "principals/tasks",
    "must",
    case="tasks/get, tasks/result, tasks/cancel and tasks/list by another principal",
    kind="own",
    needs=TASK_CAPABILITY,
    calls=True,
    at="basic/utilities/tasks#task-isolation-and-access-control",
    since="2025-11-25",
    until="2026-07-28",
    over=HTTP,
    principals=2,
    cause="A task is looked up by its id alone.",
)
async def principals_tasks(probe: Probe) -> None:
    """A task belongs to its principal: another one cannot read, cancel or list it."""
    _, id = await start_task(probe)
    async with other_principal(probe) as other:
        for method in ("tasks/get", "tasks/cancel", "tasks/result"):
            if method == "tasks/cancel" and not probe.has_capability("tasks.cancel"):
                continue
            answer = await other.send(other.build_request(method, {"taskId": id})).wait()
            if answer.error is None:
                raise other.violation(f"{method} by another principal returned {preview_json(answer.result)}")
        if probe.has_capability("tasks.list"):
            pages = await other.pages("tasks/list", "tasks")
            if any(task.get("taskId") == id for page in pages for task in get_objects(page, "tasks")):
                raise other.violation("tasks/list has the task of another principal")


@rule(
    "principals/ext-tasks",
    "must",
    case="tasks/get, tasks/update and tasks/cancel by another principal",
    kind="own",
    needs=EXTENSION_CAPABILITY,
    calls=True,
    at="https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md",
    since="2026-07-28",
    over=HTTP,
    principals=2,
    cause="A task is looked up by its id alone.",
)
async def principals_ext_tasks(probe: Probe) -> None:
    """A task of the extension belongs to its principal: another one can do nothing with it."""
    tool = (await task_tools(probe))[0]
    result = (await call_as_extension_task(probe, tool)).result
    if not is_task(result):
        raise NotObserved("the call did not become a task")
    id = str(result.get("taskId"))
    try:
        async with other_principal(probe) as other:
            for method in EXTENSION_METHODS:
                more: JSONObject = {"inputResponses": {}} if method == "tasks/update" else {}
                answer = await send_request(other, method, {"taskId": id, **more}, misbehaved=True)
                if answer.error is None:
                    raise other.violation(f"{method} by another principal returned {preview_json(answer.result)}")
    finally:
        await cancel_tasks(probe, id)


@rule(
    "principals/request-state",
    "must",
    case="the request state of another principal",
    kind="own",
    needs="tools",
    calls=True,
    at=("client/elicitation#security-considerations", "basic/patterns/mrtr#server-requirements"),
    since="2026-07-28",
    over=HTTP,
    principals=2,
    cause="The state is signed, but not bound to the principal: sign who the state is for, too.",
)
async def principals_request_state(probe: Probe) -> None:
    """A request state is bound to its principal: another one cannot use it."""
    params, asked = await _call_requiring_input(probe)
    async with other_principal(probe) as other:
        other.schemas.update(probe.schemas)
        request = other.build_request("tools/call", {**params, **retry_params(other, asked)})
        answer = await other.send(request).wait()
    if _has_succeeded(answer):
        raise other.violation(f"{params['name']} succeeded with the request state of another principal")


async def _call_requiring_input(probe: Probe) -> tuple[JSONObject, JSONObject]:
    """Return the params of a call that requires input with a state, and its result. Raises `NotObserved`."""
    for tool in await probe.callable_tools():
        params = minimal_call_params(tool)
        result = get_object((await probe.request("tools/call", params)).result)
        if result.get("resultType") == INPUT_REQUIRED and result.get("requestState"):
            return params, result
    raise NotObserved("no callable tool returns a request state")


@rule(
    "principals/responses",
    "must",
    case="the response of another principal to an elicitation",
    kind="own",
    needs="tools",
    calls=True,
    at="client/elicitation#security-considerations",
    since="2025-06-18",
    until="2026-07-28",
    over=HTTP,
    principals=2,
    cause="Responses are matched by JSON-RPC id alone, across sessions.",
)
async def principals_responses(probe: Probe) -> None:
    """Only the principal whom the server asks can respond to an elicitation."""
    probe.canned_results["elicitation/create"] = WITHHELD
    call, asked = await _call_that_elicits(probe)
    response = {"jsonrpc": "2.0", "id": asked["id"], "result": elicitation_result(asked.get("params"))}
    async with other_principal(probe) as other:
        await other.post(response)
        await probe.fence()
        if call.is_done and _has_succeeded(await call.wait()):
            raise probe.violation("a call succeeded with the response of another principal to its elicitation")
    probe.send(response, misbehaved=False)
    await call.wait()


@rule(
    "principals/cancellation",
    "must",
    at=PLACES,
    since="2025-06-18",
    over=HTTP,
    cause="Requests are looked up by JSON-RPC id alone, across sessions.",
)
async def principals_cancellation(probe: Probe) -> None:
    """Another principal cannot cancel a request, although it names its id."""
    probe.canned_results["elicitation/create"] = WITHHELD
    call, asked = await _call_that_elicits(probe)
    async with other_principal(probe) as other:
        await other.post(_cancellation(call))
        await probe.fence()
    response = {"jsonrpc": "2.0", "id": asked["id"], "result": elicitation_result(asked.get("params"))}
    probe.send(response, misbehaved=False)
    try:
        answer = await call.wait()
    except Violation as exc:
        raise probe.violation(f"a call that another principal cancelled has no response: {exc}") from exc
    if answer.error is not None:
        raise probe.violation(f"another principal cancelled a call: {preview_json(answer.error)}")


principals_cancellation.case(
    "the cancellation of a call by another principal",
    kind="own",
    needs="tools",
    calls=True,
    until="2026-07-28",
    principals=2,
)(principals_cancellation.check)


@principals_cancellation.case(
    "the cancellation of a subscription by another principal", kind="own", since="2026-07-28", principals=2
)
async def principals_cancellation_of_subscription(probe: Probe) -> None:
    await require_subscriptions(probe)
    subscription = await subscribe(probe, ALL_LISTS)
    await wait_for_acknowledgment(probe, subscription)
    stream = probe.http_response(subscription.stream)
    async with other_principal(probe) as other:
        await other.post(_cancellation(subscription))
        await other.fence()
        await probe.fence()
    if subscription.is_done or stream is None or stream.is_closed:
        raise probe.violation("another principal ended a subscription", since=subscription.since)


def _cancellation(request: PendingAnswer) -> JSONObject:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request.id}}


async def _call_that_elicits(probe: Probe) -> tuple[PendingAnswer, JSONObject]:
    """Return a call that waits for an elicitation, and the request of the server. Raises `NotObserved`."""
    for tool in await probe.callable_tools():
        call = probe.begin("tools/call", minimal_call_params(tool))
        found = await probe.wait_for_message(partial(_ends_wait, call))
        if found is not None and "method" in found:
            return call, found
    raise NotObserved("no callable tool elicits input")


def _ends_wait(call: PendingAnswer, message: JSONObject) -> bool:
    """Return whether a message is an elicitation, or the response to the call."""
    method = message.get("method")
    return method == "elicitation/create" or (method is None and message.get("id") == call.id)


def _has_succeeded(answer: Answer) -> bool:
    """Return whether a call returned its final result, without an error."""
    result = get_object(answer.result)
    return answer.error is None and result.get("resultType") != INPUT_REQUIRED and not result.get("isError")

"""Requests for input from a server: its own requests until 2025-11-25, and in results after that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import Violation
from accord.check.probes.content import get_object
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, ObservedMessage, answered_requests, received_messages
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.revision import RULES

INPUT_METHODS = ("elicitation/create", "sampling/createMessage", "roots/list")
INPUT_REQUIRED = "input_required"
_ROUNDS = 5
"""Maximum number of rounds of a request."""


class ServerInputRequest(NamedTuple):
    """One request for input, with the message that contains it and its key (2026-07-28)."""

    received: ObservedMessage
    method: str
    params: JSONObject
    key: str = ""

    @property
    def is_url(self) -> bool:
        """Whether it is a URL elicitation."""
        return self.method == "elicitation/create" and self.params.get("mode") == "url"

    @property
    def is_form(self) -> bool:
        """Whether it is an elicitation with a form."""
        return self.method == "elicitation/create" and not self.is_url

    def violation(self, text: str, symptom: str = "") -> Violation:
        """Return a `Violation` with the request as evidence."""
        return self.received.violation(text, symptom=symptom)


def input_requests(logs: Iterable[MessageLog]) -> Iterator[ServerInputRequest]:
    """Yield all requests for input from the server."""
    listed = list(logs)
    by_request = [log for log in listed if RULES[log.revision].server_requests]
    for each in received_messages(by_request):
        method = each.message.get("method")
        if isinstance(method, str) and method in INPUT_METHODS and "id" in each.message:
            yield ServerInputRequest(each, method, get_object(each.message.get("params")))
    by_result = [log for log in listed if not RULES[log.revision].server_requests]
    for answered in (*input_required_results(by_result), *_tasks_awaiting_input(by_result)):
        for key, request in get_object(answered.result.get("inputRequests")).items():
            inner = get_object(request)
            yield ServerInputRequest(answered.received, str(inner.get("method")), get_object(inner.get("params")), key)


def sampling_requests(logs: Iterable[MessageLog]) -> Iterator[ServerInputRequest]:
    """Yield the sampling requests."""
    return (question for question in input_requests(logs) if question.method == "sampling/createMessage")


def input_required_results(logs: Iterable[MessageLog]) -> Iterator[AnsweredRequest]:
    """Yield the results that require input."""
    for answered in answered_requests(logs):
        if isinstance(answered.result, dict) and answered.result.get("resultType") == INPUT_REQUIRED:
            yield answered


def _tasks_awaiting_input(logs: Iterable[MessageLog]) -> Iterator[AnsweredRequest]:
    """Yield the states of tasks of the extension that require input."""
    for answered in answered_requests(logs, "tasks/get"):
        if get_object(answered.result).get("status") == INPUT_REQUIRED:
            yield answered


def had_input_requests(answer: Answer) -> bool:
    """Return whether the server requested input before this response."""
    return "inputResponses" in get_object(answer.request.get("params")) or any(
        each.get("method") in INPUT_METHODS for each in answer.other_messages
    )


async def request_with_input(
    probe: Probe, params: JSONObject, send: Callable[[JSONObject], Awaitable[Answer]]
) -> Answer:
    """Send a request, and repeat it with valid input responses while it requires input (2026-07-28), a few times."""
    answer = await send(params)
    for _ in range(_ROUNDS):
        result = get_object(answer.result)
        if result.get("resultType") != INPUT_REQUIRED:
            break
        params = {**params, **retry_params(probe, result)}
        answer = await send(params)
    return answer


def input_responses(probe: Probe, asked: JSONObject) -> JSONObject:
    """Return valid responses to input requests, by their keys."""
    return {key: _input_response(probe, request) for key, request in asked.items()}


def retry_params(probe: Probe, result: JSONObject) -> JSONObject:
    """Return the additional params of a repeated request: input responses, and the unchanged state."""
    asked = result.get("inputRequests")
    more: JSONObject = {}
    if isinstance(asked, dict):
        more["inputResponses"] = input_responses(probe, asked)
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    return more


def _input_response(probe: Probe, request: Any) -> Any:
    canned = probe.canned_results.get(str(request.get("method"))) if isinstance(request, dict) else None
    return canned(request) if callable(canned) else canned

"""What a server asks its client: by requests of its own through 2025-11-25, inside results from then on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.blocks import inside
from accord.check.reading import Answered, Heard, answers, heard
from accord.check.record import Record
from accord.check.rule import Broken
from accord.check.talk import Talk
from accord.check.waiting import Answer
from accord.messages.base import JSONObject
from accord.messages.revision import RULES

QUESTIONS = ("elicitation/create", "sampling/createMessage", "roots/list")
INPUT_REQUIRED = "input_required"
_ROUNDS = 5
"""A request may want input so many times."""


class Question(NamedTuple):
    """One question. `heard` is the message it came in, `key` its name there (2026-07-28)."""

    heard: Heard
    method: str
    params: JSONObject
    key: str = ""

    @property
    def is_url(self) -> bool:
        """Whether a person is asked to visit a page."""
        return self.method == "elicitation/create" and self.params.get("mode") == "url"

    @property
    def is_form(self) -> bool:
        """Whether a person is asked to fill in a form."""
        return self.method == "elicitation/create" and not self.is_url

    def broken(self, text: str, symptom: str = "") -> Broken:
        """A `Broken` with the question as evidence."""
        return self.heard.broken(text, symptom=symptom)


def questions(records: Iterable[Record]) -> Iterator[Question]:
    """All that the server has asked."""
    listed = list(records)
    by_request = [record for record in listed if RULES[record.revision].server_requests]
    for each in heard(by_request):
        method = each.message.get("method")
        if isinstance(method, str) and method in QUESTIONS and "id" in each.message:
            yield Question(each, method, inside(each.message.get("params")))
    by_result = [record for record in listed if not RULES[record.revision].server_requests]
    for answered in (*required(by_result), *_waiting(by_result)):
        for key, request in inside(answered.result.get("inputRequests")).items():
            inner = inside(request)
            yield Question(answered.heard, str(inner.get("method")), inside(inner.get("params")), key)


def to_models(records: Iterable[Record]) -> Iterator[Question]:
    """What was asked of models."""
    return (question for question in questions(records) if question.method == "sampling/createMessage")


def required(records: Iterable[Record]) -> Iterator[Answered]:
    """The answers that want input first."""
    for answered in answers(records):
        if isinstance(answered.result, dict) and answered.result.get("resultType") == INPUT_REQUIRED:
            yield answered


def _waiting(records: Iterable[Record]) -> Iterator[Answered]:
    """The states of tasks (of the extension) that want input."""
    for answered in answers(records, "tasks/get"):
        if inside(answered.result).get("status") == INPUT_REQUIRED:
            yield answered


def was_asked(answer: Answer) -> bool:
    """Whether the server asked anything of us before it gave this answer."""
    return "inputResponses" in inside(answer.request.get("params")) or any(
        each.get("method") in QUESTIONS for each in answer.others
    )


async def in_rounds(talk: Talk, params: JSONObject, send: Callable[[JSONObject], Awaitable[Answer]]) -> Answer:
    """Send a request with these params, and again with good answers while it wants input (2026-07-28), a few times."""
    answer = await send(params)
    for _ in range(_ROUNDS):
        result = inside(answer.result)
        if result.get("resultType") != INPUT_REQUIRED:
            break
        params = {**params, **retried(talk, result)}
        answer = await send(params)
    return answer


def good_answers(talk: Talk, asked: JSONObject) -> JSONObject:
    """What a good client answers to what was asked, by its keys."""
    return {key: _answer(talk, request) for key, request in asked.items()}


def retried(talk: Talk, result: JSONObject) -> JSONObject:
    """What the params of a retry have more: good answers to what was asked, and the state as it came."""
    asked = result.get("inputRequests")
    more: JSONObject = {}
    if isinstance(asked, dict):
        more["inputResponses"] = good_answers(talk, asked)
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    return more


def _answer(talk: Talk, request: Any) -> Any:
    canned = talk.answers.get(str(request.get("method"))) if isinstance(request, dict) else None
    return canned(request) if callable(canned) else canned

"""What a server asks its client: by requests of its own through 2025-11-25, inside `input_required` from then on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.check.blocks import inside
from accord.check.reading import Answered, Heard, answers, heard
from accord.check.record import Record
from accord.check.rule import Broken
from accord.messages.base import JSONObject
from accord.messages.revision import RULES

QUESTIONS = ("elicitation/create", "sampling/createMessage", "roots/list")
INPUT_REQUIRED = "input_required"


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
    for answered in required(by_result):
        for key, request in inside(answered.result.get("inputRequests")).items():
            inner = inside(request)
            yield Question(answered.heard, str(inner.get("method")), inside(inner.get("params")), key)


def required(records: Iterable[Record]) -> Iterator[Answered]:
    """The answers that want input first."""
    for answered in answers(records):
        if isinstance(answered.result, dict) and answered.result.get("resultType") == INPUT_REQUIRED:
            yield answered

"""What can be wrong with the answer to one generated call; each trouble names the rule that it breaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from accord.check.blocks import inside
from accord.check.fitting import mismatch
from accord.check.generated.leaks import leaked
from accord.check.generated.sequences import Step
from accord.check.generated.subjects import Subject
from accord.check.values import shown
from accord.check.waiting import Answer
from accord.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from accord.messages.base import JSONObject
from accord.messages.revision import lives_in

CRASH = "generated/crash"
HANG = "generated/hang"
UNANSWERED = "generated/unanswered"
OUTPUT = "generated/output"
REFUSED = "generated/refused"
ACCEPTED = "generated/accepted"
LIMITS = "generated/limits"
ARGUMENT_ERRORS = "generated/argument-errors"
INTERNALS = "generated/internals"
CODES = "generated/codes"
PROMPT_ARGUMENTS = "generated/prompt-arguments"

_NOT_THE_TOOL = frozenset((-32021, -32042))
"""Errors by which a server asks for something before it calls a tool: a capability, a visit to a page."""
_NOT_THE_REQUEST = frozenset((PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND))
"""Errors that say that the message is broken, or nobody knows its method."""
_LIMITED = re.compile(r"rate.?limit|too many|quota|slow down|try again later|overloaded|busy", re.I)
_TOO_MANY = 429
_KIND_WORDS = ("missing", "kind")
_KIND_ALLOWED = re.compile(r"^a boolean instead of (?:an integer|a fraction)")
"""Some languages have it that true is 1."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One thing wrong. `detail` tells troubles with one rule and one tool apart."""

    rule: str
    text: str
    detail: str = ""


def troubles(subject: Subject, step: Step, arguments: Any, answer: Answer, revision: str) -> Iterator[Trouble]:
    """All that is wrong with an answer to a call with these arguments."""
    failed = answer.error is not None or is_error(answer)
    leak = leaked(answer.error if answer.error is not None else answer.result, failed=failed, sent=arguments)
    if leak:
        yield Trouble(rule=INTERNALS, text=f"its answer has {leak}", detail=leak[:20])
    if subject.kind == "tool":
        yield from _of_tool(subject.item, step, answer, revision)
    elif step.wrong is None:
        yield from _of_request(answer)
    elif subject.kind == "prompt":
        yield from _of_wrong_prompt(step, answer)


def _of_tool(tool: JSONObject, step: Step, answer: Answer, revision: str) -> Iterator[Trouble]:
    if step.wrong is not None:
        yield from _of_wrong(step, answer, revision)
    elif answer.error is not None:
        yield from _refused(answer.error, revision)
    elif not is_error(answer) and not asks(answer):
        yield from _of_result(tool, answer.result, revision)


def _of_request(answer: Answer) -> Iterator[Trouble]:
    """A prompt, a template, a completion may refuse what it likes: not as if the request were none."""
    if answer.code in _NOT_THE_REQUEST:
        yield Trouble(rule=CODES, text=f"a good request gets {shown(answer.error)}", detail=str(answer.code))


def _of_wrong_prompt(step: Step, answer: Answer) -> Iterator[Trouble]:
    if answer.error is None and not asks(answer):
        yield Trouble(rule=PROMPT_ARGUMENTS, text=f"a result, though there is {step.what}: {shown(answer.result)}")


def is_error(answer: Answer) -> bool:
    """Whether the tool itself says that it failed."""
    return isinstance(answer.result, dict) and answer.result.get("isError") is True


def asks(answer: Answer) -> bool:
    """Whether the result is not there yet: the server asks for something, or made a task of it."""
    return isinstance(answer.result, dict) and answer.result.get("resultType", "complete") != "complete"


def is_limited(answer: Answer) -> bool:
    """Whether the server has had enough: it MUST limit how often its tools are called."""
    said: Any = answer.error if answer.error is not None else answer.result if is_error(answer) else None
    return answer.status == _TOO_MANY or (said is not None and _LIMITED.search(shown(said, 2_000)) is not None)


def _refused(error: JSONObject, revision: str) -> Iterator[Trouble]:
    """Errors of a tool belong into its result. Up to 2025-06-18 what a tool thinks of its arguments may be -32602."""
    code = error.get("code")
    if code in _NOT_THE_TOOL or (code == INVALID_PARAMS and not _tells_in_results(revision)):
        return
    yield Trouble(rule=REFUSED, text=f"a JSON-RPC error: {shown(error)}", detail=str(code))


def _of_result(tool: JSONObject, result: Any, revision: str) -> Iterator[Trouble]:
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict) or not isinstance(result, dict) or not lives_in(revision, "2025-06-18", None):
        return
    structured = result.get("structuredContent", UNSET)
    if structured is UNSET:
        yield Trouble(rule=OUTPUT, text="it has an outputSchema, and its result no structuredContent")
    elif fault := mismatch(schema, structured):
        yield Trouble(rule=OUTPUT, text=f"structuredContent does not fit the outputSchema: {fault}")


def _of_wrong(step: Step, answer: Answer, revision: str) -> Iterator[Trouble]:
    if answer.error is not None:
        if _tells_in_results(revision) and answer.code == INVALID_PARAMS:
            yield Trouble(rule=ARGUMENT_ERRORS, text=f"a JSON-RPC error: {shown(answer.error)}")
    elif not is_error(answer) and not asks(answer) and step.wrong != "extra" and not _KIND_ALLOWED.match(step.what):
        text = f"a result, though there is {step.what}: {shown(inside({'r': answer.result}, 'r'))}"
        yield Trouble(rule=ACCEPTED if step.wrong in _KIND_WORDS else LIMITS, text=text)


def _tells_in_results(revision: str) -> bool:
    """Whether arguments that do not fit are told of in results only."""
    return lives_in(revision, "2025-11-25", None)

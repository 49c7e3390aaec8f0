"""Check the response to one generated call; each problem names the rule that it breaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from accord.check.fuzz.fuzz_targets import FuzzTarget
from accord.check.fuzz.leaks import find_leak
from accord.check.fuzz.sequences import CallStep
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.pending_answer import Answer
from accord.check.probes.schemas import schema_mismatch
from accord.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from accord.messages.base import JSONObject
from accord.messages.revision import is_in_revision

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
"""Errors before the call of a tool: a missing capability, a URL elicitation."""
_NOT_THE_REQUEST = frozenset((PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND))
"""Errors for an invalid message or an unknown method."""
_RATE_LIMITED = re.compile(r"rate.?limit|too many|quota|slow down|try again later|overloaded|busy", re.I)
_TOO_MANY = 429
_KIND_WORDS = ("missing", "kind")
_KIND_ALLOWED = re.compile(r"^a boolean instead of (?:an integer|a fraction)")
"""Accepted because in some languages `true` is 1."""


class ResponseProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of a response. `detail` distinguishes problems of one target with the same rule."""

    rule: str
    text: str
    detail: str = ""


def check_response(
    target: FuzzTarget, step: CallStep, arguments: Any, answer: Answer, revision: str
) -> Iterator[ResponseProblem]:
    """Yield the problems of a response to a call with these arguments."""
    failed = answer.error is not None or is_error(answer)
    leak = find_leak(answer.error if answer.error is not None else answer.result, failed=failed, sent=arguments)
    if leak:
        yield ResponseProblem(rule=INTERNALS, text=f"the response contains {leak}", detail=leak[:20])
    if target.kind == "tool":
        yield from _check_tool_response(target.item, step, answer, revision)
    elif step.wrong is None:
        yield from _check_request_response(answer)
    elif target.kind == "prompt":
        yield from _check_invalid_prompt(step, answer)


def _check_tool_response(tool: JSONObject, step: CallStep, answer: Answer, revision: str) -> Iterator[ResponseProblem]:
    if step.wrong is not None:
        yield from _check_invalid_call(step, answer, revision)
    elif answer.error is not None:
        yield from _check_tool_error(answer.error, revision)
    elif not is_error(answer) and not is_unfinished(answer):
        yield from _check_tool_result(tool, answer.result, revision)


def _check_request_response(answer: Answer) -> Iterator[ResponseProblem]:
    """Check that a valid request is not answered as an invalid message; other errors are allowed."""
    if answer.code in _NOT_THE_REQUEST:
        yield ResponseProblem(
            rule=CODES, text=f"a valid request gets {preview_json(answer.error)}", detail=str(answer.code)
        )


def _check_invalid_prompt(step: CallStep, answer: Answer) -> Iterator[ResponseProblem]:
    if answer.error is None and not is_unfinished(answer):
        yield ResponseProblem(
            rule=PROMPT_ARGUMENTS, text=f"a result for invalid arguments ({step.what}): {preview_json(answer.result)}"
        )


def is_error(answer: Answer) -> bool:
    """Return whether the result is a tool error (`isError`)."""
    return isinstance(answer.result, dict) and answer.result.get("isError") is True


def is_unfinished(answer: Answer) -> bool:
    """Return whether the call continues: the server requires input, or runs the call as a task."""
    return isinstance(answer.result, dict) and answer.result.get("resultType", "complete") != "complete"


def is_rate_limited(answer: Answer) -> bool:
    """Return whether the server limits the rate of calls: servers MUST "rate limit tool invocations"."""
    entry: Any = answer.error if answer.error is not None else answer.result if is_error(answer) else None
    return answer.status == _TOO_MANY or (
        entry is not None and _RATE_LIMITED.search(preview_json(entry, 2_000)) is not None
    )


def _check_tool_error(error: JSONObject, revision: str) -> Iterator[ResponseProblem]:
    """Check that a tool reports errors in its result; through 2025-06-18 invalid arguments may be -32602."""
    code = error.get("code")
    if code in _NOT_THE_TOOL or (code == INVALID_PARAMS and not _reports_in_results(revision)):
        return
    yield ResponseProblem(rule=REFUSED, text=f"a JSON-RPC error: {preview_json(error)}", detail=str(code))


def _check_tool_result(tool: JSONObject, result: Any, revision: str) -> Iterator[ResponseProblem]:
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict) or not isinstance(result, dict) or not is_in_revision(revision, "2025-06-18", None):
        return
    structured = result.get("structuredContent", UNSET)
    if structured is UNSET:
        yield ResponseProblem(rule=OUTPUT, text="it has an outputSchema, but its result has no structuredContent")
    elif mismatch := schema_mismatch(schema, structured):
        yield ResponseProblem(rule=OUTPUT, text=f"structuredContent does not match the outputSchema: {mismatch}")


def _check_invalid_call(step: CallStep, answer: Answer, revision: str) -> Iterator[ResponseProblem]:
    if answer.error is not None:
        if _reports_in_results(revision) and answer.code == INVALID_PARAMS:
            yield ResponseProblem(rule=ARGUMENT_ERRORS, text=f"a JSON-RPC error: {preview_json(answer.error)}")
    elif (
        not is_error(answer)
        and not is_unfinished(answer)
        and step.wrong != "extra"
        and not _KIND_ALLOWED.match(step.what)
    ):
        result = preview_json(get_object({"r": answer.result}, "r"))
        text = f"a result for invalid arguments ({step.what}): {result}"
        yield ResponseProblem(rule=ACCEPTED if step.wrong in _KIND_WORDS else LIMITS, text=text)


def _reports_in_results(revision: str) -> bool:
    """Return whether invalid arguments are reported in results only."""
    return is_in_revision(revision, "2025-11-25", None)

"""Through 2025-11-25: what a client declares that it can be asked for: roots, the model, the person; or does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run, code_of
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.rule import Broken, NotApplicable, NotObserved, Rule
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from accord.messages.base import JSONObject

_UNTIL = "2026-07-28"
_FORMS = "2025-06-18"
_PAGES = "2025-11-25"
_PERSON = 5.0
"""Seconds that a person or a model may take."""

UNDECLARED = Rule(
    "client-answers/undeclared",
    "must",
    "A request for what the client did not declare is answered with an error.",
    at=("basic/lifecycle#operation", "client/roots#error-handling"),
    role="client",
    until=_UNTIL,
    cause="It is answered as if it were declared, or not at all.",
)

ROOTS = Rule(
    "client-answers/roots",
    "must",
    "A client that declares roots answers with a list of them, each a file: URI.",
    at="client/roots#data-types",
    role="client",
    until=_UNTIL,
    cause="Paths are sent in place of URIs, or nothing is there that answers.",
)

SAMPLING = Rule(
    "client-answers/sampling",
    "must",
    "A client that declares sampling answers with a message of the model, or with an error.",
    at="client/sampling#creating-messages",
    role="client",
    until=_UNTIL,
    cause="The result has no role, content or model.",
)

FORM = Rule(
    "client-answers/elicitation",
    "must",
    "A client that declares elicitation answers with what the person did, and what they filled in only if they agreed.",
    at="client/elicitation#response-actions",
    role="client",
    since=_FORMS,
    until=_UNTIL,
    cause="The action is missing, or is none of accept, decline and cancel.",
)

FITS = Rule(
    "client-answers/form",
    "should",
    "What is filled in fits the schema of the form.",
    at="client/elicitation#security-considerations",
    role="client",
    since=_FORMS,
    until=_UNTIL,
    cause="The fields are sent as text, or required ones are left out.",
)

NO_MODE = Rule(
    "client-answers/no-mode",
    "must",
    "An elicitation that names no mode is a form.",
    at="client/elicitation#elicitation-requests",
    role="client",
    since=_PAGES,
    until=_UNTIL,
    cause="The mode is required when the request is read.",
)

_QUESTION: JSONObject = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}],
    "maxTokens": 10,
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["small", "large"]},
    },
    "required": ["name", "count", "sure", "size"],
}
_FORM = {"message": "Who, how many, how large?", "requestedSchema": _SCHEMA}

ASKED = Scene("asks", "the server asks for roots, for the model, and the person", until=_UNTIL, asks=True)


@ASKED.on(FIRST)
async def _(ask: Ask) -> Answer:
    await ask.ask("roots/list", seconds=_PERSON)
    await ask.ask("sampling/createMessage", _QUESTION, seconds=_PERSON)
    await ask.ask("elicitation/create", _FORM, seconds=_PERSON)
    return await ask.usual()


@ASKED.judges(ROOTS, "a list of roots")
def _(run: Run) -> None:
    result = _result_of(run, "roots/list", "roots")
    roots = result.get("roots")
    if not isinstance(roots, list):
        raise Broken("the result has no list of roots")
    for root in roots:
        if not isinstance(root, dict) or not str(root.get("uri")).startswith("file://"):
            raise Broken(f"{root!r} is no root with a file: URI")


@ASKED.judges(SAMPLING, "a question for the model")
def _(run: Run) -> None:
    result = _result_of(run, "sampling/createMessage", "sampling")
    if not isinstance(result.get("role"), str) or not result.get("content") or not isinstance(result.get("model"), str):
        raise Broken("the result has no role, content and model")


@ASKED.judges(FORM, "a form", since=_FORMS)
def _(run: Run) -> None:
    result = _result_of(run, "elicitation/create", "elicitation")
    if result.get("action") not in ("accept", "decline", "cancel"):
        raise Broken(f"the action is {result.get('action')!r}")
    if result.get("action") == "accept" and not isinstance(result.get("content"), dict):
        raise Broken("the person agreed, and there is no content")


@ASKED.judges(FITS, "a form with four fields", since=_FORMS)
def _(run: Run) -> None:
    content = _result_of(run, "elicitation/create", "elicitation").get("content")
    if not isinstance(content, dict):
        raise NotObserved("the form was not filled in")
    for name, fits in _FIELDS.items():
        if not fits(content.get(name)):
            raise Broken(f"{name} is {content.get(name)!r}")


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str) and bool(value),
    "count": lambda value: type(value) is int and 1 <= value <= 9,
    "sure": lambda value: isinstance(value, bool),
    "size": lambda value: value in ("small", "large"),
}


@ASKED.judges(NO_MODE, "a form that does not say it is one", since=_PAGES)
def _(run: Run) -> None:
    run.reached()
    if not run.declares("elicitation") or (
        run.declares("elicitation", "url") and not run.declares("elicitation", "form")
    ):
        raise NotApplicable("the client does not declare forms")
    for request in run.asked("elicitation/create"):
        answer = run.answer_to(request["id"])
        if answer is None:
            raise NotObserved("no answer came in time; it may be that a person is asked")
        if code_of(answer) in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise Broken("a form without a mode was refused", evidence=run.exchanged(request))


def _undeclared(method: str, capability: str, since: str | None) -> None:
    """One request for what may be not declared."""

    @ASKED.judges(UNDECLARED, f"{method} without {capability}", since=since)
    def _(run: Run) -> None:
        run.reached()
        if run.declares(capability):
            raise NotApplicable(f"the client declares {capability}")
        for request in run.asked(method):
            if "error" not in (run.answer_to(request["id"]) or {}):
                text = f"{method} was not answered with an error, although {capability} is not declared"
                raise Broken(text, evidence=run.exchanged(request))


_undeclared("roots/list", "roots", None)
_undeclared("sampling/createMessage", "sampling", None)
_undeclared("elicitation/create", "elicitation", _FORMS)


def _result_of(run: Run, method: str, capability: str) -> JSONObject:
    """The result for a request for what is declared."""
    run.reached()
    if not run.declares(capability):
        raise NotApplicable(f"the client does not declare {capability}")
    for request in run.asked(method):
        answer = run.answer_to(request["id"])
        if answer is None:
            raise NotObserved("no answer came in time; it may be that a person is asked")
        if "error" in answer:
            if code_of(answer) == METHOD_NOT_FOUND:
                text = f"{capability} is declared, and {method} is answered with {METHOD_NOT_FOUND}"
                raise Broken(text, evidence=run.exchanged(request))
            raise NotObserved("the answer is an error, as it may be")
        result = answer.get("result")
        if isinstance(result, dict):
            return result
        raise Broken("the result is no object")
    raise NotObserved("it did not come to that")

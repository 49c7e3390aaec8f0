"""Pages to visit and tools for the model: what a client answers where that is declared, and where it is not."""

from __future__ import annotations

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run, code_of
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.rule import Broken, NotApplicable, Rule
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES

_PAGES = "2025-11-25"
_UNTIL = "2026-07-28"
_PERSON = 5.0
"""Seconds that a person or a model may take."""
_MAY_ASK = ("tools/call", "prompts/get", "resources/read")
_QUESTION: JSONObject = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}],
    "maxTokens": 10,
}

MODE = Rule(
    "client-answers/undeclared-mode",
    "must",
    "A page to visit is refused with -32602 by a client that declares only forms.",
    at="client/elicitation#error-handling",
    role="client",
    since=_PAGES,
    until=_UNTIL,
    cause="The mode is not looked at.",
)

PREFETCH = Rule(
    "client-answers/no-prefetch",
    "must",
    "The page of an elicitation is not fetched before the person agrees.",
    at="client/elicitation#safe-url-handling",
    role="client",
    since=_PAGES,
    until=_UNTIL,
    cause="A preview is made of every link.",
)

UNVISITED = Rule(
    "client-rounds/no-prefetch",
    "must",
    "The page of an elicitation is not fetched before the person agrees.",
    at="client/elicitation#safe-url-handling",
    role="client",
    since=_UNTIL,
    cause="A preview is made of every link.",
)

TOOLS = Rule(
    "client-answers/sampling-tools",
    "must",
    "A client that does not declare sampling.tools answers a request that has tools with an error.",
    at="client/sampling#tools-in-sampling",
    role="client",
    since=_PAGES,
    until=_UNTIL,
    cause="Fields that the client cannot do anything with are passed over.",
)

CONTENT = Rule(
    "client-answers/sampling-content",
    "should",
    "A conversation in which a tool was used and its result is missing is refused with -32602.",
    at="client/sampling#error-handling",
    role="client",
    since=_PAGES,
    until=_UNTIL,
    cause="The messages go to the model as they are.",
)

_TOOL = {"name": "add", "inputSchema": {"type": "object"}}
_CHOICE = {"mode": "auto"}
_USE = {"type": "tool_use", "id": "use-1", "name": "add", "input": {}}

NEWER = Scene(
    "asks-more",
    "the server asks for pages to be visited, and gives the model tools",
    since=_PAGES,
    until=_UNTIL,
    asks=True,
)


@NEWER.on(FIRST)
async def _(ask: Ask) -> Answer:
    page = {"mode": "url", "message": "Sign in.", "elicitationId": "page-1", "url": ask.trap}
    await ask.ask("elicitation/create", page, id="page", seconds=_PERSON)
    await ask.ask("sampling/createMessage", {**_QUESTION, "tools": [_TOOL]}, id="tools", seconds=_PERSON)
    await ask.ask("sampling/createMessage", {**_QUESTION, "toolChoice": _CHOICE}, id="choice", seconds=_PERSON)
    used = [*_QUESTION["messages"], {"role": "assistant", "content": _USE}, *_QUESTION["messages"]]
    await ask.ask("sampling/createMessage", {**_QUESTION, "messages": used}, id="missing", seconds=_PERSON)
    return await ask.usual()


@NEWER.judges(MODE, "a page, for a client that has only forms")
def _(run: Run) -> None:
    run.reached()
    if not run.declares("elicitation") or run.declares("elicitation", "url"):
        raise NotApplicable("the client declares pages too, or no elicitation at all")
    if code_of(run.answer_to("page")) != INVALID_PARAMS:
        raise Broken(f"the answer has the code {code_of(run.answer_to('page'))}")


@NEWER.judges(PREFETCH, "a page to visit")
def _(run: Run) -> None:
    run.reached()
    answered = [each.said.at for each in run.answers() if each.body.get("id") == "page"]
    for stray in run.strays:
        if not answered or stray.at < answered[0]:
            raise Broken("the page was fetched", evidence=[stray.line()])


@NEWER.judges(TOOLS, "tools for the model, and a choice of them, where that is not declared")
def _(run: Run) -> None:
    run.reached()
    if not run.declares("sampling") or run.declares("sampling", "tools"):
        raise NotApplicable("the client declares sampling.tools, or no sampling at all")
    for id, what in (("tools", "tools for the model"), ("choice", "a choice of tools for the model")):
        if "error" not in (run.answer_to(id) or {}):
            raise Broken(f"{what}: not answered with an error")


@NEWER.judges(CONTENT, "the use of a tool without its result")
def _(run: Run) -> None:
    run.reached()
    if not run.declares("sampling", "tools"):
        raise NotApplicable("the client does not declare sampling.tools")
    if code_of(run.answer_to("missing")) != INVALID_PARAMS:
        raise Broken(f"the answer has the code {code_of(run.answer_to('missing'))}")


PAGE = Scene("page-required", "a result asks for a page to be visited", since=_UNTIL)


@PAGE.on(*_MAY_ASK)
async def _(ask: Ask) -> Answer:
    elicitation = ask.declared.get("elicitation")
    if ask.turn or not isinstance(elicitation, dict) or "url" not in elicitation:
        return await ask.usual()
    page = {"mode": "url", "message": "Sign in.", "url": ask.trap}
    asks = {"page": {"method": "elicitation/create", "params": page}}
    return ask.dressed({"resultType": "input_required", "inputRequests": asks})


@PAGE.judges(UNVISITED, "a page to visit")
def _(run: Run) -> None:
    run.reached()
    answered = [each.said.at for each in run.requests(*_MAY_ASK) if "inputResponses" in each.params]
    for stray in run.strays:
        if not answered or stray.at < answered[0]:
            raise Broken("the page was fetched", evidence=[stray.line()])
    if not any("url" in (each.meta.get(CLIENT_CAPABILITIES) or {}).get("elicitation", {}) for each in run.requests()):
        raise NotApplicable("the client does not declare pages")

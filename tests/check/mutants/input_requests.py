"""Servers that ask what they may not, or not so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant

LAST = "2025-11-25"


def asks(change: Change, method: str, params: Any) -> None:
    """Each call of `add` asks first."""

    @change.before("tools/call")
    def _(request: Any) -> list[Any]:
        if request["params"]["name"] != "add":
            return []
        return [{"jsonrpc": "2.0", "id": f"q-{request['id']}", "method": method, "params": params}]


def _wants(change: Change, asked: Any) -> None:
    """Each call of `add` wants input first (2026-07-28)."""

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if request["params"]["name"] != "add" or "inputResponses" in request["params"]:
            return answer
        result = {"resultType": "input_required", **asked}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}


FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def _form(properties: Any) -> Any:
    return {"message": "What?", "requestedSchema": {"type": "object", "properties": properties}}


def page(**more: Any) -> Any:
    return {"mode": "url", "message": "Go", "url": "https://example.com", "elicitationId": "1", **more}


SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5}


@mutant("asking/declared", revision=LAST)
def it_asks_whoever_calls(change: Change) -> None:
    asks(change, "roots/list", {})


@mutant("asking/declared")
def it_wants_to_know_from_whoever_calls(change: Change) -> None:
    _wants(change, {"inputRequests": {"a": {"method": "roots/list"}}})


@mutant("asking/by-results")
def it_asks_by_a_request(change: Change) -> None:
    asks(change, "roots/list", {})


@mutant("asking/missing-capability")
def the_lack_is_not_named(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if answer.get("error", {}).get("code") == -32021:
            answer["error"]["data"]["requiredCapabilities"] = ["roots"]
        return answer


@mutant("asking/modes", revision=LAST)
def everybody_is_sent_to_a_page(change: Change) -> None:
    asks(change, "elicitation/create", page())


@mutant("asking/sampling-tools", revision=LAST)
def every_model_is_given_tools(change: Change) -> None:
    asks(change, "sampling/createMessage", {**SAMPLE, "tools": [{"name": "a", "inputSchema": {"type": "object"}}]})


@mutant("asking/include-context", revision=LAST)
def every_model_is_given_context(change: Change) -> None:
    asks(change, "sampling/createMessage", {**SAMPLE, "includeContext": "thisServer"})


@mutant("asking/declined", revision=LAST)
def to_decline_is_an_internal_error(change: Change) -> None:
    _fails_after(change, lambda result: result.get("action") == "decline")


@mutant("asking/refused", revision=LAST)
def an_error_of_the_client_is_waited_for(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        return None if isinstance(message, dict) and "error" in message else message


@mutant("asking/form", revision="2025-06-18")
def a_form_has_lists(change: Change) -> None:
    asks(change, "elicitation/create", _form({"names": {"type": "array", "items": {"type": "string"}}}))


@mutant("asking/no-secrets", revision=LAST)
def a_form_asks_for_a_password(change: Change) -> None:
    asks(change, "elicitation/create", _form({"userPassword": {"type": "string"}}))


@mutant("asking/url", revision=LAST)
def a_page_has_no_url(change: Change) -> None:
    asks(change, "elicitation/create", page(url="not a url"))


@mutant("asking/url-safe", revision=LAST)
def a_page_lets_in_whoever_has_its_url(change: Change) -> None:
    asks(change, "elicitation/create", page(url="https://ada:secret@example.com"))


@mutant("asking/url-https", revision=LAST)
def a_page_is_not_secure(change: Change) -> None:
    asks(change, "elicitation/create", page(url="http://example.com"))


@mutant("asking/completed", revision=LAST)
def a_page_is_done_that_nobody_was_sent_to(change: Change) -> None:
    @change.before("tools/list")
    def _(request: Any) -> list[Any]:
        params = {"elicitationId": "somebody-else"}
        return [{"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}]


@mutant("asking/url-required", revision=LAST)
def the_pages_to_visit_are_not_listed(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32042, "message": "Visit a page", "data": {"elicitations": []}}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}


@mutant("asking/tool-results", revision=LAST)
def a_result_of_no_tool(change: Change) -> None:
    block = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "a"}]}
    asks(change, "sampling/createMessage", {**SAMPLE, "messages": [{"role": "user", "content": [block]}]})


@mutant("rounds/where")
def a_list_wants_input_first(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        result = {"resultType": "input_required", "requestState": "a", "tools": answer["result"]["tools"]}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}


@mutant("rounds/something")
def it_wants_input_and_says_nothing(change: Change) -> None:
    _wants(change, {})


@mutant("rounds/kinds")
def it_wants_a_ping(change: Change) -> None:
    _wants(change, {"inputRequests": {"a": {"method": "ping"}}})


@mutant("rounds/finished")
def answers_are_refused(change: Change) -> None:
    _refuses_retries(change, lambda params: True)


@mutant("rounds/extra-answers")
def one_answer_more_is_refused(change: Change) -> None:
    _refuses_retries(change, lambda params: "accord-check-extra" in params.get("inputResponses", {}))


@mutant("rounds/missing-answers")
def one_answer_less_is_refused(change: Change) -> None:
    _refuses_retries(change, lambda params: params.get("inputResponses") == {})


@mutant("rounds/bad-answers")
def any_answer_is_taken(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        given = request["params"].get("inputResponses", {})
        if any(value == 7 for value in given.values()):
            result = {"resultType": "complete", "content": [{"type": "text", "text": "fine"}]}
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return answer


@mutant("rounds/state")
def any_state_is_taken(change: Change) -> None:
    states: set[str] = set()

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        state = request["params"].get("requestState")
        states.add(answer.get("result", {}).get("requestState"))
        if state is not None and state not in states:
            result = {"resultType": "complete", "content": [{"type": "text", "text": "fine"}]}
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return answer


@mutant("asking/no-links", revision=LAST)
def a_form_has_a_link(change: Change) -> None:
    asks(change, "elicitation/create", _form({"name": {"type": "string", "description": "see https://a.test/help"}}))


@mutant("asking/bad-forms", revision=LAST)
def any_form_is_taken(change: Change) -> None:
    asks(change, "elicitation/create", FORM)


@mutant("rounds/state-elsewhere")
def the_state_of_any_tool_is_taken(change: Change) -> None:
    given: dict[str, str] = {}

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        name, state = request["params"]["name"], request["params"].get("requestState")
        if state is not None and given.get(state, name) != name:
            result = {"resultType": "complete", "content": [{"type": "text", "text": "fine"}]}
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}
        given[answer.get("result", {}).get("requestState")] = name
        return answer


def _refuses_retries(change: Change, which: Callable[[Any], bool]) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        params = request["params"]
        if ("inputResponses" in params or "requestState" in params) and which(params):
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "No"}}
        return answer


def _fails_after(change: Change, which: Callable[[Any], bool]) -> None:
    seen: list[bool] = []

    @change.heard
    def _(message: Any) -> Any:
        if isinstance(message, dict) and isinstance(message.get("result"), dict) and which(message["result"]):
            seen.append(True)
        return message

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        # conversations go on side by side: it is the tool that asks, whichever of them
        if seen and request["params"]["name"] == "ask":
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "Oops"}}
        return answer

"""What a server makes of the answers to its questions (to 2025-11-25; later ones are rounds)."""

from __future__ import annotations

from accord.check.content import get_object
from accord.check.input_requests import input_requests
from accord.check.ordinary_traffic import call_tools
from accord.check.probe import Probe
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.messages.base import JSONObject

BAD_FORMS = Rule(
    "asking/bad-forms",
    "should",
    "What is filled into a form is checked: fields of the wrong type do not make a call succeed.",
    at="client/elicitation#security-considerations",
    since="2025-06-18",
    until="2026-07-28",
    cause="The content of an answer is used as it comes: check it against the schema that was asked for.",
)


@BAD_FORMS.case("every field is an object", kind="own", needs="tools", calls=True)
async def check_bad_forms(talk: Probe) -> None:
    asked: list[JSONObject] = []

    def answer(request: JSONObject) -> JSONObject:
        fields = get_object(request, "params", "requestedSchema", "properties")
        asked.extend([request] if fields else [])
        return {"action": "accept", "content": {name: {"accord-check": []} for name in fields}}

    talk.canned_results["elicitation/create"] = answer
    for tool in await talk.callable_tools():
        asked.clear()
        found = await call_tools(talk, [tool])
        if asked and any(each.error is None and not get_object(each.result).get("isError") for each in found):
            raise talk.violation(f"{tool.get('name')} succeeds with objects in the fields of its form")
    if not any(question.is_form for question in input_requests([talk.log])):
        raise NotObserved("no tool that may be called asks for a form")


ROOTS_AGAIN = Rule(
    "asking/roots-again",
    "should",
    "A server that asks for the roots when it is opened asks again when it is told that they have changed.",
    at=("client/roots#root-list-changes", "schema#rootslistchangednotification"),
    until="2026-07-28",
    cause="The roots of the beginning are kept: handle `notifications/roots/list_changed`.",
)

_ROOTS = "roots/list"


async def _require_roots_request(talk: Probe) -> None:
    await talk.fence()  # what a server asks at the beginning has come
    if not any(question.method == _ROOTS for question in input_requests([talk.log])):
        raise NotApplicable("it does not ask for the roots by itself")


@ROOTS_AGAIN.case("roots that change once the server has asked for them", kind="own", applies=_require_roots_request)
async def check_roots_again(talk: Probe) -> None:
    await talk.fence()  # what a server asks at the beginning has come
    since = len(talk.log.entries)
    if not any(question.method == _ROOTS for question in input_requests([talk.log])):
        raise NotApplicable("it does not ask for the roots by itself")
    talk.notify("notifications/roots/list_changed")
    if await talk.wait_for_message(lambda message: message.get("method") == _ROOTS) is None:
        raise talk.violation("the roots have changed, and it does not ask for them again", since=since)

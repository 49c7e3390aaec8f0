"""What a server makes of the answers to its questions (to 2025-11-25; later ones are rounds)."""

from __future__ import annotations

from accord.check.asked import questions
from accord.check.blocks import inside
from accord.check.exercise import call_all
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
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
async def _(talk: Talk) -> None:
    asked: list[JSONObject] = []

    def answer(request: JSONObject) -> JSONObject:
        fields = inside(request, "params", "requestedSchema", "properties")
        asked.extend([request] if fields else [])
        return {"action": "accept", "content": {name: {"accord-check": []} for name in fields}}

    talk.answers["elicitation/create"] = answer
    for tool in await talk.callable():
        asked.clear()
        found = await call_all(talk, [tool])
        if asked and any(each.error is None and not inside(each.result).get("isError") for each in found):
            raise talk.broken(f"{tool.get('name')} succeeds with objects in the fields of its form")
    if not any(question.is_form for question in questions([talk.record])):
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


async def _asks_for_roots(talk: Talk) -> None:
    await talk.tide()  # what a server asks at the beginning has come
    if not any(question.method == _ROOTS for question in questions([talk.record])):
        raise NotApplicable("it does not ask for the roots by itself")


@ROOTS_AGAIN.case("roots that change once the server has asked for them", kind="own", applies=_asks_for_roots)
async def _(talk: Talk) -> None:
    await talk.tide()  # what a server asks at the beginning has come
    since = len(talk.record.entries)
    if not any(question.method == _ROOTS for question in questions([talk.record])):
        raise NotApplicable("it does not ask for the roots by itself")
    talk.notify("notifications/roots/list_changed")
    if await talk.hear(lambda message: message.get("method") == _ROOTS) is None:
        raise talk.broken("the roots have changed, and it does not ask for them again", since=since)

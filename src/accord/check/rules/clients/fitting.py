"""What a client says, held against what was said before: what was subscribed to, listed, agreed to; and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.blocks import inside, items
from accord.check.clients.conversation import Conversation
from accord.check.clients.run import Message, Run
from accord.check.reading import key, messages
from accord.check.rule import Broken, Rule
from accord.check.rules.meta import NAME, PREFIX
from accord.check.values import shown
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_ACTIONS = ("accept", "decline", "cancel")

UNSUBSCRIBE = Rule(
    "client-changes/unsubscribe",
    "should",
    "A client unsubscribes only from what it has subscribed to.",
    at=("server/resources#subscriptions", "schema#unsubscriberequest"),
    role="client",
    until=_SINCE,
    cause="Everything that is closed is unsubscribed from, or the URI is written in another way.",
)

LISTED = Rule(
    "client-opening/listed-version",
    "should",
    "Once server/discover has listed revisions, requests are in one of these.",
    at=("server/discover", "schema#discoverresult"),
    role="client",
    since=_SINCE,
    cause="The answer to server/discover is not looked at.",
)

CONTENT = Rule(
    "client-answers/content",
    "should",
    "What was filled in is sent only where the person agreed to send a form.",
    at="schema#elicitresult",
    role="client",
    since="2025-06-18",
    cause="The fields are sent whatever the person chose, or for a page to visit.",
)

EXTENSIONS = Rule(
    "client-meta/extension-names",
    "must",
    "The name of an extension is a prefix, a slash and a name: com.example/thing.",
    at=("basic/versioning#extension-negotiation", "schema#clientcapabilities"),
    role="client",
    since=_SINCE,
    cause="Extensions are declared by a plain name, without the domain of who defines them.",
)

ROOTS = Rule(
    "client-rounds/roots",
    "must",
    "A root is a file: URI.",
    at="client/roots#root",
    role="client",
    since=_SINCE,
    cause="Paths are sent in place of URIs.",
)


@UNSUBSCRIBE.reading("every end of a subscription")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        watched: set[Any] = set()
        for each in run.requests("resources/subscribe", "resources/unsubscribe"):
            uri = key(each.params.get("uri"))
            if each.method == "resources/subscribe":
                watched.add(uri)
                continue
            judged += 1
            if uri not in watched:
                text = f"{each.params.get('uri')!r} was never subscribed to"
                raise Broken(text, evidence=[each.said.line()])
    return judged


@LISTED.reading("every request after server/discover")
def _(runs: Sequence[Run]) -> int:
    return sum(_in_listed_revisions(conversation) for run in runs for conversation in run.conversations)


def _in_listed_revisions(conversation: Conversation) -> int:
    """How many requests came after a list of revisions. Raises `Broken` for one in another."""
    judged = 0
    listed: list[Any] = []
    for said, message in messages(conversation.record):
        if said.direction == SENT:
            found = inside(message, "result").get("supportedVersions")
            listed = found if isinstance(found, list) else listed
        elif listed and PROTOCOL_VERSION in inside(message, "params", "_meta"):
            judged += 1
            version = message["params"]["_meta"][PROTOCOL_VERSION]
            if version not in listed:
                text = f"{message.get('method')} is in {version}, and {shown(listed)} was listed"
                raise Broken(text, evidence=[said.line()])
    return judged


@CONTENT.reading("every answer of a person")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        for asked, answer, message in (*_answered(run), *_responses(run)):
            if answer.get("action") in _ACTIONS:
                judged += 1
                if answer.get("content") and answer["action"] != "accept":
                    text = f"the action is {answer['action']!r}, and there is content"
                    raise Broken(text, evidence=[message.said.line()])
                if answer.get("content") and asked.get("mode") == "url":
                    raise Broken("a page was to be visited, and there is content", evidence=[message.said.line()])
    return judged


@EXTENSIONS.reading("every request that declares extensions")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        for each in run.requests():
            for name in inside(each.meta, CLIENT_CAPABILITIES, "extensions"):
                judged += 1
                prefix, slash, rest = name.rpartition("/")
                if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)):
                    raise Broken(f"{name!r} is declared as an extension", evidence=[each.said.line()])
    return judged


@ROOTS.reading("every root")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run in runs:
        for _, answer, message in _responses(run):
            for root in items(answer, "roots"):
                judged += 1
                if not str(root.get("uri")).startswith("file://"):
                    raise Broken(f"{root.get('uri')!r} is no file: URI", evidence=[message.said.line()])
    return judged


# --- what was asked, what came for it, and in which message ------------------------------------------------------


def _answered(run: Run) -> Iterator[tuple[JSONObject, JSONObject, Message]]:
    """Params and result of every request of ours that was answered."""
    asked: dict[Any, JSONObject] = {
        (conversation.number, key(message["id"])): inside(message, "params")
        for conversation in run.conversations
        for message in conversation.record.sent()
        if "method" in message and "id" in message
    }
    for answer in run.answers():
        params = asked.get((answer.conversation.number, key(answer.body.get("id"))))
        if params is not None:
            yield params, inside(answer.body, "result"), answer


def _responses(run: Run) -> Iterator[tuple[JSONObject, JSONObject, Message]]:
    """Params and result of all that our results have asked for, and a next try has answered (2026-07-28)."""
    asked: dict[Any, JSONObject] = {
        (conversation.number, name): inside(request, "params")
        for conversation in run.conversations
        for message in conversation.record.sent()
        for name, request in inside(message, "result", "inputRequests").items()
    }
    for each in run.requests():
        for name, answer in inside(each.params, "inputResponses").items():
            yield asked.get((each.conversation.number, name), {}), inside(answer), each

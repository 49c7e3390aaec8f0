"""What a client says, held against what was said before: what was subscribed to, listed, agreed to; and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.engine.rule import Rule, Violation
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.message_reader import id_key, logged_messages
from accord.check.rules.meta import NAME, PREFIX
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

LISTED_VERSION = Rule(
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

EXTENSION_NAMES = Rule(
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
def read_unsubscribe(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        watched: set[Any] = set()
        for each in run.requests("resources/subscribe", "resources/unsubscribe"):
            uri = id_key(each.params.get("uri"))
            if each.method == "resources/subscribe":
                watched.add(uri)
                continue
            judged += 1
            if uri not in watched:
                text = f"{each.params.get('uri')!r} was never subscribed to"
                raise Violation(text, evidence=[each.entry.line()])
    return judged


@LISTED_VERSION.reading("every request after server/discover")
def read_listed_version(runs: Sequence[ClientRun]) -> int:
    return sum(_require_listed_revisions(conversation) for run in runs for conversation in run.conversations)


def _require_listed_revisions(conversation: ClientConversation) -> int:
    """How many requests came after a list of revisions. Raises `Violation` for one in another."""
    judged = 0
    listed: list[Any] = []
    for said, message in logged_messages(conversation.log):
        if said.direction == SENT:
            found = get_object(message, "result").get("supportedVersions")
            listed = found if isinstance(found, list) else listed
        elif listed and PROTOCOL_VERSION in get_object(message, "params", "_meta"):
            judged += 1
            version = message["params"]["_meta"][PROTOCOL_VERSION]
            if version not in listed:
                text = f"{message.get('method')} is in {version}, and {preview_json(listed)} was listed"
                raise Violation(text, evidence=[said.line()])
    return judged


@CONTENT.reading("every answer of a person")
def read_content(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        for asked, answer, message in (*_answered_requests(run), *_input_responses(run)):
            if answer.get("action") in _ACTIONS:
                judged += 1
                if answer.get("content") and answer["action"] != "accept":
                    text = f"the action is {answer['action']!r}, and there is content"
                    raise Violation(text, evidence=[message.entry.line()])
                if answer.get("content") and asked.get("mode") == "url":
                    raise Violation("a page was to be visited, and there is content", evidence=[message.entry.line()])
    return judged


@EXTENSION_NAMES.reading("every request that declares extensions")
def read_extension_names(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        for each in run.requests():
            for name in get_object(each.meta, CLIENT_CAPABILITIES, "extensions"):
                judged += 1
                prefix, slash, rest = name.rpartition("/")
                if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)):
                    raise Violation(f"{name!r} is declared as an extension", evidence=[each.entry.line()])
    return judged


@ROOTS.reading("every root")
def read_roots(runs: Sequence[ClientRun]) -> int:
    judged = 0
    for run in runs:
        for _, answer, message in _input_responses(run):
            for root in get_objects(answer, "roots"):
                judged += 1
                if not str(root.get("uri")).startswith("file://"):
                    raise Violation(f"{root.get('uri')!r} is no file: URI", evidence=[message.entry.line()])
    return judged


# --- what was asked, what came for it, and in which message ------------------------------------------------------


def _answered_requests(run: ClientRun) -> Iterator[tuple[JSONObject, JSONObject, ClientMessage]]:
    """Params and result of every request of ours that was answered."""
    asked: dict[Any, JSONObject] = {
        (conversation.number, id_key(message["id"])): get_object(message, "params")
        for conversation in run.conversations
        for message in conversation.log.sent_messages()
        if "method" in message and "id" in message
    }
    for answer in run.responses():
        params = asked.get((answer.conversation.number, id_key(answer.body.get("id"))))
        if params is not None:
            yield params, get_object(answer.body, "result"), answer


def _input_responses(run: ClientRun) -> Iterator[tuple[JSONObject, JSONObject, ClientMessage]]:
    """Params and result of all that our results have asked for, and a next try has answered (2026-07-28)."""
    asked: dict[Any, JSONObject] = {
        (conversation.number, name): get_object(request, "params")
        for conversation in run.conversations
        for message in conversation.log.sent_messages()
        for name, request in get_object(message, "result", "inputRequests").items()
    }
    for each in run.requests():
        for name, answer in get_object(each.params, "inputResponses").items():
            yield asked.get((each.conversation.number, name), {}), get_object(answer), each

"""What a client says, held against what was said before: what was subscribed to, listed, agreed to; and its names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.engine.rule import JudgedItems, Violation, rule
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.message_reader import id_key, logged_messages
from accord.check.rules.meta import NAME, PREFIX
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_ACTIONS = ("accept", "decline", "cancel")


@rule(
    "client-changes/unsubscribe",
    "should",
    case="every end of a subscription",
    role="client",
    at=("server/resources#subscriptions", "schema#unsubscriberequest"),
    until=_SINCE,
    cause="Everything that is closed is unsubscribed from, or the URI is written in another way.",
)
def client_changes_unsubscribe(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client unsubscribes only from what it has subscribed to."""
    for run in runs:
        watched: set[Any] = set()
        for each in run.requests("resources/subscribe", "resources/unsubscribe"):
            uri = id_key(each.params.get("uri"))
            if each.method == "resources/subscribe":
                watched.add(uri)
                continue
            yield
            if uri not in watched:
                text = f"{each.params.get('uri')!r} was never subscribed to"
                raise Violation(text, evidence=[each.entry.line()])


@rule(
    "client-opening/listed-version",
    "should",
    case="every request after server/discover",
    role="client",
    at=("server/discover", "schema#discoverresult"),
    since=_SINCE,
    cause="The answer to server/discover is not looked at.",
)
def client_opening_listed_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """Once server/discover has listed revisions, requests are in one of these."""
    for run in runs:
        for conversation in run.conversations:
            yield from _require_listed_revisions(conversation)


def _require_listed_revisions(conversation: ClientConversation) -> JudgedItems:
    """Yield for each request after a list of revisions. Raises `Violation` for one in another."""
    listed: list[Any] = []
    for entry, message in logged_messages(conversation.log):
        if entry.direction == SENT:
            found = get_object(message, "result").get("supportedVersions")
            listed = found if isinstance(found, list) else listed
        elif listed and PROTOCOL_VERSION in get_object(message, "params", "_meta"):
            yield
            version = message["params"]["_meta"][PROTOCOL_VERSION]
            if version not in listed:
                text = f"{message.get('method')} is in {version}, and {preview_json(listed)} was listed"
                raise Violation(text, evidence=[entry.line()])


@rule(
    "client-answers/content",
    "should",
    case="every answer of a person",
    role="client",
    at="schema#elicitresult",
    since="2025-06-18",
    cause="The fields are sent whatever the person chose, or for a page to visit.",
)
def client_answers_content(runs: Sequence[ClientRun]) -> JudgedItems:
    """What was filled in is sent only where the person agreed to send a form."""
    for run in runs:
        for asked, answer, message in (*_answered_requests(run), *_input_responses(run)):
            if answer.get("action") in _ACTIONS:
                yield
                if answer.get("content") and answer["action"] != "accept":
                    text = f"the action is {answer['action']!r}, and there is content"
                    raise Violation(text, evidence=[message.entry.line()])
                if answer.get("content") and asked.get("mode") == "url":
                    raise Violation("a page was to be visited, and there is content", evidence=[message.entry.line()])


@rule(
    "client-meta/extension-names",
    "must",
    case="every request that declares extensions",
    role="client",
    at=("basic/versioning#extension-negotiation", "schema#clientcapabilities"),
    since=_SINCE,
    cause="Extensions are declared by a plain name, without the domain of who defines them.",
)
def client_meta_extension_names(runs: Sequence[ClientRun]) -> JudgedItems:
    """The name of an extension is a prefix, a slash and a name: com.example/thing."""
    for run in runs:
        for each in run.requests():
            for name in get_object(each.meta, CLIENT_CAPABILITIES, "extensions"):
                yield
                prefix, slash, rest = name.rpartition("/")
                if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)):
                    raise Violation(f"{name!r} is declared as an extension", evidence=[each.entry.line()])


@rule(
    "client-rounds/roots",
    "must",
    case="every root",
    role="client",
    at="client/roots#root",
    since=_SINCE,
    cause="Paths are sent in place of URIs.",
)
def client_rounds_roots(runs: Sequence[ClientRun]) -> JudgedItems:
    """A root is a file: URI."""
    for run in runs:
        for _, answer, message in _input_responses(run):
            for root in get_objects(answer, "roots"):
                yield
                if not str(root.get("uri")).startswith("file://"):
                    raise Violation(f"{root.get('uri')!r} is no file: URI", evidence=[message.entry.line()])


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

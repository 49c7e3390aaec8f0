"""Consistency of a client: subscriptions, revisions, content of forms, extensions and roots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.engine.rule import JudgedItems, Violation, client_rule
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.message_log import id_key
from accord.check.rules.meta import NAME, PREFIX
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from accord.wire.transcript import SENT

_SINCE = "2026-07-28"
_ACTIONS = ("accept", "decline", "cancel")


@client_rule(
    "client-changes/unsubscribe",
    "should",
    case="all resources/unsubscribe requests",
    at=("server/resources#subscriptions", "schema#unsubscriberequest"),
    until=_SINCE,
    cause="All closed resources are unsubscribed, or the URI is written differently.",
)
def client_changes_unsubscribe(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client unsubscribes only from resources that it has subscribed to."""
    for run in runs:
        watched: set[Any] = set()
        for each in run.requests("resources/subscribe", "resources/unsubscribe"):
            uri = id_key(each.params.get("uri"))
            if each.method == "resources/subscribe":
                watched.add(uri)
                continue
            yield
            if uri not in watched:
                text = f"the client has not subscribed to {each.params.get('uri')!r}"
                raise Violation(text, evidence=[each.entry.line()])


@client_rule(
    "client-opening/listed-version",
    "should",
    case="all requests after server/discover",
    at=("server/discover", "schema#discoverresult"),
    since=_SINCE,
    cause="The result of server/discover is not read.",
)
def client_opening_listed_version(runs: Sequence[ClientRun]) -> JudgedItems:
    """After server/discover, requests use one of the listed revisions."""
    for run in runs:
        for conversation in run.conversations:
            yield from _require_listed_revisions(conversation)


def _require_listed_revisions(conversation: ClientConversation) -> JudgedItems:
    """Yield for each request after a list of revisions. Raises `Violation` if it has another one."""
    listed: list[Any] = []
    for entry, message in conversation.log.messages:
        if entry.direction == SENT:
            found = get_object(message, "result").get("supportedVersions")
            listed = found if isinstance(found, list) else listed
        elif listed and PROTOCOL_VERSION in get_object(message, "params", "_meta"):
            yield
            version = message["params"]["_meta"][PROTOCOL_VERSION]
            if version not in listed:
                text = (
                    f"the revision of {message.get('method')} is {version}, but the server listed "
                    f"{preview_json(listed)}"
                )
                raise Violation(text, evidence=[entry.line()])


@client_rule(
    "client-answers/content",
    "should",
    case="all results of elicitations",
    at="schema#elicitresult",
    since="2025-06-18",
    cause="The content is sent for all actions, or for URL elicitations.",
)
def client_answers_content(runs: Sequence[ClientRun]) -> JudgedItems:
    """A client sends the content of a form only if the user accepted it."""
    for run in runs:
        for asked, answer, message in (*_answered_requests(run), *_input_responses(run)):
            if answer.get("action") in _ACTIONS:
                yield
                if answer.get("content") and answer["action"] != "accept":
                    text = f"the action is {answer['action']!r}, but the result has content"
                    raise Violation(text, evidence=[message.entry.line()])
                if answer.get("content") and asked.get("mode") == "url":
                    raise Violation(
                        "the elicitation has a URL, but the result has content", evidence=[message.entry.line()]
                    )


@client_rule(
    "client-meta/extension-names",
    "must",
    case="all requests that declare extensions",
    at=("basic/versioning#extension-negotiation", "schema#clientcapabilities"),
    since=_SINCE,
    cause="The name of the extension has no domain as its prefix.",
)
def client_meta_extension_names(runs: Sequence[ClientRun]) -> JudgedItems:
    """The name of an extension is a prefix, a slash and a name: com.example/thing."""
    for run in runs:
        for each in run.requests():
            for name in get_object(each.meta, CLIENT_CAPABILITIES, "extensions"):
                yield
                prefix, slash, rest = name.rpartition("/")
                if not (slash and PREFIX.fullmatch(prefix) and NAME.fullmatch(rest)):
                    raise Violation(f"the client declares the extension {name!r}", evidence=[each.entry.line()])


@client_rule(
    "client-rounds/roots",
    "must",
    case="all roots",
    at="client/roots#root",
    since=_SINCE,
    cause="Paths are sent instead of URIs.",
)
def client_rounds_roots(runs: Sequence[ClientRun]) -> JudgedItems:
    """A root has a file: URI."""
    for run in runs:
        for _, answer, message in _input_responses(run):
            for root in get_objects(answer, "roots"):
                yield
                if not str(root.get("uri")).startswith("file://"):
                    raise Violation(f"the URI {root.get('uri')!r} is not a file: URI", evidence=[message.entry.line()])


# --- what was asked, what came for it, and in which message ------------------------------------------------------


def _answered_requests(run: ClientRun) -> Iterator[tuple[JSONObject, JSONObject, ClientMessage]]:
    """Yield the params and the result of each answered request from the server."""
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
    """Yield the params and the result of each input request that the client answered (2026-07-28)."""
    asked: dict[Any, JSONObject] = {
        (conversation.number, name): get_object(request, "params")
        for conversation in run.conversations
        for message in conversation.log.sent_messages()
        for name, request in get_object(message, "result", "inputRequests").items()
    }
    for each in run.requests():
        for name, answer in get_object(each.params, "inputResponses").items():
            yield asked.get((each.conversation.number, name), {}), get_object(answer), each

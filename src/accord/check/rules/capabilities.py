"""Negotiation: both sides use only the negotiated revision and the declared capabilities."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, rule
from accord.check.probes.client_messages import LIST_METHODS
from accord.check.probes.content import declares, get_object, preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import ObservedMessage, received_messages
from accord.check.probes.probe import Probe
from accord.check.rules.lifecycle import ENDS
from accord.errors import METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.messages.methods import METHODS, SERVER, table

OPERATION = "basic/lifecycle#operation"
STRICT = "2025-06-18"
"""From this revision on, both sides MUST respect the negotiation; before, they SHOULD."""

_CAUSE = (
    "The server sends the same messages to all clients: before sending, check the capabilities "
    "of this client, and your own."
)


@rule(
    "capabilities/only-declared",
    "must",
    case="all requests and notifications from the server",
    at=OPERATION,
    since=STRICT,
    until=ENDS,
    cause=_CAUSE,
)
def capabilities_only_declared(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends only messages that its own capabilities and those of the client allow."""
    return _require_declared(logs)


@rule(
    "capabilities/declared-early",
    "should",
    case="all requests and notifications from the server",
    at=OPERATION,
    until=STRICT,
    cause=_CAUSE,
)
def capabilities_declared_early(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends only messages that its own capabilities and those of the client allow."""
    return _require_declared(logs)


def _require_declared(logs: Sequence[MessageLog]) -> JudgedItems:
    for log in logs:
        ours, theirs = negotiated_capabilities(log)
        for each in received_messages([log]):
            row = table(log.revision, SERVER).get(str(each.message.get("method")))
            if row is not None and (row.needs or row.offers):
                yield
                _require_capability(each, "the server", theirs, row.offers)
                _require_capability(each, "the client", ours, row.needs)


def _require_capability(each: ObservedMessage, who: str, capabilities: JSONObject, path: str | None) -> None:
    if path is not None and not declares(capabilities, _json_path(path)):
        method = each.message["method"]
        text = f"the server sent {method}, but {who} did not declare {_json_path(path)}"
        raise each.violation(text, symptom=f"undeclared:{method}")


_KNOWN = frozenset(row.name for row in METHODS if row.sender != "client")


@rule(
    "capabilities/revision",
    "must",
    case="all requests and notifications from the server",
    at=OPERATION,
    since=STRICT,
    until=ENDS,
    cause="The server sends messages of a newer or older revision to every client.",
)
def capabilities_revision(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends only requests and notifications of the negotiated revision."""
    return _require_known_methods(logs)


@rule(
    "capabilities/revision-early",
    "should",
    case="all requests and notifications from the server",
    at=OPERATION,
    until=STRICT,
    cause="The server sends messages of a newer revision to every client.",
)
def capabilities_revision_early(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends only requests and notifications of the negotiated revision."""
    return _require_known_methods(logs)


def _require_known_methods(logs: Sequence[MessageLog]) -> JudgedItems:
    for each in received_messages(logs):
        method = str(each.message.get("method"))
        if method in _KNOWN:
            yield
            if method not in table(each.log.revision, SERVER):
                raise each.violation(
                    f"in {each.log.revision}, a server does not send {method}", symptom=f"revision:{method}"
                )


@rule(
    "capabilities/served",
    "must",
    case="the list of each declared capability",
    at=("basic/lifecycle#capability-negotiation", "schema#servercapabilities"),
    cause="The capability is declared, but no handler is registered.",
)
async def capabilities_served(probe: Probe) -> None:
    """For each declared capability, the list method succeeds."""
    declared = [capability for capability in LIST_METHODS if probe.has_capability(capability)]
    if not declared:
        raise NotApplicable("the server declares no capability with a list")
    for capability in declared:
        answer = await probe.request(LIST_METHODS[capability])
        if answer.code == METHOD_NOT_FOUND:
            raise probe.violation(
                f"the server declares {capability}, but answers {LIST_METHODS[capability]} with "
                f"{preview_json(answer.error)}"
            )


@rule(
    "capabilities/gated",
    "should",
    case="the list of each undeclared capability",
    at="schema#methodnotfounderror",
    since="2026-07-28",
    cause="Handlers are registered for all methods, and the capabilities are written by hand.",
)
async def capabilities_gated(probe: Probe) -> None:
    """A method of an undeclared capability returns error -32601."""
    missing = [capability for capability in LIST_METHODS if not probe.has_capability(capability)]
    if not missing:
        raise NotApplicable("the server declares tools, resources and prompts")
    for capability in missing:
        answer = await probe.request(LIST_METHODS[capability])
        probe.require_error(answer, METHOD_NOT_FOUND)


def negotiated_capabilities(log: MessageLog) -> tuple[JSONObject, JSONObject]:
    """Return what each side declared in a session: the checker, and the server."""
    ours: JSONObject = {}
    theirs: JSONObject = log.handshake_result
    for _, message in log.messages:
        if message.get("method") == "initialize":
            ours = get_object(message.get("params"))
        elif "protocolVersion" in get_object(message.get("result")):
            theirs = message["result"]
    return get_object(ours.get("capabilities")), get_object(theirs.get("capabilities"))


def _json_path(path: str) -> str:
    """Return the path of a capability with the names of the JSON fields."""
    return ".".join(_camel(part) for part in path.split("."))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return "".join((first, *(word.capitalize() for word in rest)))

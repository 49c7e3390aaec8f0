"""Ids: a response has the id of its request, with the same type; a request from the server has a unique id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import CaseVariant, JudgedItems, rule
from accord.check.probes.content import NOTIFICATION_ANSWERED, get_object, preview_json
from accord.check.probes.message_log import LogEntry, MessageLog, id_key, is_response, message_objects
from accord.check.probes.message_reader import ObservedMessage, received_messages, was_refused_by_http
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_TWIN = 7_000_070
"""Larger than all ids that the checker assigns in a session: "The request ID MUST NOT have been previously used"."""
IDS: dict[str, tuple[Any, ...]] = {
    "numbers": (0, -1, 7_000_001, 2**31, 2**53 - 1),
    "texts": ("", "0", "null", "7000001", "a b/ü\u2028\n\"'{}", "x" * 300),
}


async def _require_same_ids(probe: Probe, ids: Sequence[Any]) -> None:
    for id in ids:
        pending = probe.begin(probe.harmless_method, id=id)
        entry = await probe.fence()
        taken = (str(id),) if pending.is_done else (str(id), "None")  # a GET may be refused without an id meanwhile
        for each in entry:
            if is_response(each) and id_key(each.get("id")) != id_key(id) and str(each.get("id")) in taken:
                raise probe.violation(
                    f"the response to {preview_json(id)} has the id {preview_json(each.get('id'))}", since=pending.since
                )
        await pending.wait()


@rule(
    "ids/same",
    "must",
    variants=[
        CaseVariant("numeric ids, among them 0", ids="numbers"),
        CaseVariant("string ids, among them the empty string", ids="texts"),
    ],
    at=("basic/index#responses", "basic/messages#responses"),
    cause="Ids are stored as strings or floats, or a falsy id (0, an empty string) is taken for a "
    "missing id: keep the JSON value.",
)
async def ids_same(probe: Probe, ids: str) -> None:
    """A response has the id of its request, with the same value and type."""
    await _require_same_ids(probe, IDS[ids])


@ids_same.case("a number and the same number as a string at the same time")
async def ids_same_number_and_string(probe: Probe) -> None:
    number, text = probe.begin(probe.harmless_method, id=_TWIN), probe.begin(probe.harmless_method, id=str(_TWIN))
    await number.wait()
    await text.wait()


@ids_same.case("all responses")
def ids_same_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for log in logs:
        known: set[tuple[type, Any]] = set()
        is_lawful, streams = True, set[int]()
        for entry in log.entries:
            is_lawful = is_lawful and not entry.misbehaved
            if entry.direction == SENT:
                known.update(
                    id_key(each["id"]) for each in message_objects(entry.message) if "method" in each and "id" in each
                )
                streams.add(entry.stream)
                continue
            for answer in _answers_in(log, entry, streams):
                yield
                if id_key(answer.get("id")) not in known and (is_lawful or "result" in answer):
                    _raise_unknown_id(ObservedMessage(log, entry, answer))


def _answers_in(log: MessageLog, entry: LogEntry, streams: set[int]) -> list[JSONObject]:
    """Yield the responses in a message. Over HTTP, a stream that no request opened repeats earlier messages."""
    if log.transport == "http" and entry.stream not in streams:
        return []
    return [each for each in message_objects(entry.message) if is_response(each)]


def _raise_unknown_id(answer: ObservedMessage) -> None:
    if not ("error" in answer.message and was_refused_by_http(answer)):
        id = answer.message.get("id")
        raise answer.violation(
            f"no request has the id {preview_json(id)}", symptom=NOTIFICATION_ANSWERED if id is None else ""
        )


@rule(
    "ids/one-answer",
    "must",
    case="all responses",
    at=("basic/index#responses", "basic/messages#responses"),
    cause="The handler continues after an error was sent, and its result is sent as well.",
)
def ids_one_answer(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends one response for each request."""
    # not for cancelled requests: a second answer depends on timing, and `cancel/race` judges that
    for log in logs:
        asked: Counter[tuple[type, Any]] = Counter()
        cancelled: set[tuple[type, Any]] = set()
        streams: set[int] = set()
        for entry in log.entries:
            if entry.direction == SENT:
                streams.add(entry.stream)
                asked.update(id_key(each["id"]) for each in message_objects(entry.message) if _has_id(each))
                cancelled.update(id_key(get_object(each, "params").get("requestId")) for each in _cancellations(entry))
                continue
            for answer in _answers_in(log, entry, streams):
                id = id_key(answer.get("id"))
                if id in asked:
                    yield
                    asked.subtract([id])
                if asked[id] < 0 and id not in cancelled:
                    raise ObservedMessage(log, entry, answer).violation(
                        f"the server answered {preview_json(answer.get('id'))} before"
                    )


def _cancellations(entry: LogEntry) -> list[JSONObject]:
    return [each for each in message_objects(entry.message) if each.get("method") == "notifications/cancelled"]


def _has_id(message: JSONObject) -> bool:
    return "method" in message and message.get("id") is not None


@rule(
    "ids/of-requests",
    "must",
    case="all requests from the server",
    at=("basic/index#requests", "basic/messages#requests"),
    until="2026-07-28",
    cause="JSON-RPC allows null as an id, but MCP does not.",
)
def ids_of_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """The id of a request from the server is a string or an integer."""
    for each in received_messages(logs):
        if _is_request(each.message):
            yield
            if type(each.message["id"]) not in (int, str):
                raise each.violation(f"{each.message['method']} has the id {preview_json(each.message['id'])}")


@rule(
    "ids/unused",
    "must",
    case="all requests from the server",
    at=("basic/index#requests", "basic/messages#requests"),
    until="2026-07-28",
    cause="Ids are counted for each stream or call, not for the session.",
)
def ids_unused(logs: Sequence[MessageLog]) -> JudgedItems:
    """The id of a request from the server was not used before in this session."""
    for log in logs:
        used: dict[tuple[type, Any], Any] = {}
        for each in received_messages([log]):
            id = id_key(each.message.get("id"))
            if _is_request(each.message) and each.entry.stream not in _resumed_streams(log):
                yield
                if id in used:
                    raise each.violation(
                        f"an earlier request had the id {preview_json(each.message['id'])}", about=[used[id]]
                    )
                used[id] = each.entry


def _resumed_streams(log: MessageLog) -> set[int]:
    """Return the streams that repeat earlier messages."""
    return {response.stream for response in log.responses if "last-event-id" in response.request_headers}


@rule(
    "ids/again",
    "must",
    case="the same id three times in sequence",
    at="basic/index#requests",
    since="2026-07-28",
    cause="All ids are stored, as for sessions of earlier revisions.",
)
async def ids_again(probe: Probe) -> None:
    """A client may reuse an id after the response."""
    for _ in range(3):
        await probe.result(probe.harmless_method, id="accord-check-again")


def _is_request(message: JSONObject) -> bool:
    return "id" in message and "method" in message and not str(message["method"]).startswith("notifications/")

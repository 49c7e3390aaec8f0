"""Cancellation: a cancelled request ends without a response, and an invalid cancellation is ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, CaseVariant, JudgedItems, rule
from accord.check.probes.content import NOTIFICATION_ANSWERED, preview_json
from accord.check.probes.message_log import MessageLog, id_key, is_response
from accord.check.probes.message_reader import ObservedMessage
from accord.check.probes.probe import Probe
from accord.check.probes.slow_calls import require_slow_tool, start_slow_call
from accord.check.rules.progress import PROGRESS, token_of
from accord.messages.base import JSONObject
from accord.messages.methods import CLIENT, table
from accord.wire.transcript import SENT

OLD, NEW = "basic/utilities/cancellation", "basic/patterns/cancellation"
BEHAVIOUR = (f"{OLD}#behavior-requirements", f"{NEW}#behavior-requirements")
TIMING = (f"{OLD}#timing-considerations", f"{NEW}#timing-considerations")
CANCELLED = "notifications/cancelled"
PER_REQUEST_SINCE = "2026-07-28"
_LONGEST = 3.0
"""Seconds in which a call that is not cancelled would end."""


@rule(
    "cancel/no-answer",
    "should",
    variants=[
        CaseVariant("a running call, over stdio", since=PER_REQUEST_SINCE, over=LINE_TRANSPORTS),
        CaseVariant("a running call", until=PER_REQUEST_SINCE, needs="tools"),
    ],
    kind="own",
    calls=True,
    applies=require_slow_tool,
    at=BEHAVIOUR,
    cause="The handler is stopped and its exception is sent as an error, or the handler is not stopped at all.",
)
async def cancel_no_answer(probe: Probe) -> None:
    """The server does not answer a request that was cancelled while it ran."""
    call = await start_slow_call(probe)
    _cancel(probe, call.id)
    await probe.fence()
    if await probe.wait_for_message(lambda message: is_response(message) and message.get("id") == call.id, _LONGEST):
        raise probe.violation("the server answered the call after the cancellation", since=call.since)


@rule(
    "cancel/stops",
    "should",
    case="progress of cancelled requests",
    at=BEHAVIOUR,
    cause="Cancellation only discards the response: stop the handler, too.",
)
def cancel_stops(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server stops work on a cancelled request."""
    for log in logs:
        ended = _CancelledTokens()
        for entry, message in log.messages:
            if entry.direction == SENT:
                ended.add_sent(message)
                continue
            if message.get("method") == PROGRESS and id_key(_params(message).get("progressToken")) in ended.ended:
                raise ObservedMessage(log, entry, message).violation("progress came after the cancellation")
            ended.add_received(message)
        yield from ended.ended


class _CancelledTokens:
    """Tokens of cancelled requests whose cancellation the server has read, since it answered a later request."""

    def __init__(self) -> None:
        self.ended: set[Any] = set()
        self._tokens: dict[Any, Any] = {}
        self._cancelled: list[Any] = []
        self._after: dict[Any, list[Any]] = {}

    def add_sent(self, message: JSONObject) -> None:
        """Process a message from the checker."""
        if message.get("method") == CANCELLED and id_key(_cancelled_id(message)) in self._tokens:
            self._cancelled.append(self._tokens[id_key(_cancelled_id(message))])
        elif "method" in message and "id" in message:
            self._after[id_key(message["id"])], self._cancelled = self._cancelled, []
            if (token := token_of(message)) is not None:
                self._tokens[id_key(message["id"])] = id_key(token)

    def add_received(self, message: JSONObject) -> None:
        """Process a message from the server."""
        if is_response(message):
            self.ended.update(self._after.pop(id_key(message.get("id")), ()))


@rule(
    "cancel/ignored",
    "should",
    case="cancellations with unknown ids, ids of finished requests, and invalid params",
    at=(f"{OLD}#error-handling", f"{NEW}#error-handling"),
    cause="A cancellation that cannot be applied is answered with an error, or ends the connection.",
)
async def cancel_ignored(probe: Probe) -> None:
    """The server ignores a cancellation that names no request in flight."""
    done = await probe.request(probe.harmless_method)
    ids: tuple[Any, ...] = (probe.unknown_name, 999_999_999, done.id, "", None, {}, [1])
    wrong: list[Any] = [{"requestId": id, "reason": "accord check"} for id in ids]
    for params in (*wrong, {}, [], None):
        await _require_ignored(probe, {"jsonrpc": "2.0", "method": CANCELLED, "params": params})
    await _require_ignored(probe, {"jsonrpc": "2.0", "method": CANCELLED})


async def _require_ignored(probe: Probe, message: JSONObject) -> None:
    since = len(probe.log.entries)
    probe.send(message)
    entry = [each for each in await probe.fence() if is_response(each)]
    if entry and (probe.http is None or "result" in entry[0]):
        raise probe.violation(
            f"the server sent {preview_json(entry[0])} after {preview_json(message)}",
            since=since,
            symptom=NOTIFICATION_ANSWERED,
        )


@cancel_ignored.case("ids of requests that are sent after their cancellation", over=LINE_TRANSPORTS)
async def cancel_ignored_early(probe: Probe) -> None:
    for number in range(3):
        _cancel(probe, f"accord-check-early-{number}")
        await probe.fence()
        await probe.result(probe.harmless_method, id=f"accord-check-early-{number}")


_FIFTY = "fifty requests that are cancelled at once, and one that is not"


@rule(
    "cancel/race",
    "must",
    variants=[
        CaseVariant(_FIFTY, since=PER_REQUEST_SINCE, over=LINE_TRANSPORTS),
        CaseVariant(_FIFTY, until=PER_REQUEST_SINCE),
    ],
    kind="own",
    shares=True,
    at=TIMING,
    cause="The request is removed from the table twice, or the cancelled task is the one that reads messages.",
)
async def cancel_race(probe: Probe) -> None:
    """If a cancellation and a response cross, the server answers at most once, and other requests are not affected."""
    since = len(probe.log.entries)
    for number in range(50):
        probe.begin(probe.harmless_method, id=f"accord-check-race-{number}")
        _cancel(probe, f"accord-check-race-{number}")
    kept = probe.begin(probe.harmless_method)
    await kept.wait()
    await probe.fence()
    counted: dict[Any, int] = {}
    for each in probe.other_messages(since, kept.id):
        if is_response(each) and each.get("id") is not None:  # what has no id answers a notification
            counted[id_key(each.get("id"))] = counted.get(id_key(each.get("id")), 0) + 1
    if max(counted.values(), default=0) > 1:
        raise probe.violation("the server answered a request twice after its cancellation", since=since)


@rule(
    "cancel/initialize",
    "must",
    case="a cancellation of initialize after its response",
    at=(BEHAVIOUR[0], TIMING[0]),
    until=PER_REQUEST_SINCE,
    cause="initialize is one of the requests that can be cancelled, and the session ends with it.",
)
async def cancel_initialize(probe: Probe) -> None:
    """A cancellation of initialize, which a client must not send, does not affect the session."""
    for message in probe.log.sent_messages():
        if message.get("method") == "initialize":
            probe.send({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": message["id"]}})
    await probe.fence()


@rule(
    "cancel/own-requests",
    "must",
    case="all cancellations from the server",
    at=BEHAVIOUR[0],
    until=PER_REQUEST_SINCE,
    cause="The server cancels the request of the client: send an error response instead.",
)
def cancel_own_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server cancels only requests that it sent, and no tasks."""
    for log in logs:
        issued: dict[tuple[type, Any], JSONObject] = {}
        for entry, message in log.messages:
            if entry.direction == SENT:
                continue
            if "method" in message and "id" in message:
                issued[id_key(message["id"])] = message
            elif message.get("method") == CANCELLED:
                yield
                request = issued.get(id_key(_cancelled_id(message)))
                if request is None:
                    raise ObservedMessage(log, entry, message).violation(
                        f"the server sent no request with the id {preview_json(_cancelled_id(message))}"
                    )
                if "task" in _params(request):
                    raise ObservedMessage(log, entry, message).violation(
                        "the server cancelled a task by notifications/cancelled: the method is tasks/cancel"
                    )


@rule(
    "cancel/only-subscriptions",
    "must",
    case="all cancellations from the server",
    at=(NEW, BEHAVIOUR[1]),
    since=PER_REQUEST_SINCE,
    cause="The server cancels a request that takes too long: send an error response instead.",
)
def cancel_only_subscriptions(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends notifications/cancelled only to end a subscription, with the id of its request."""
    for log in logs:
        staying = [name for name, row in table(log.revision, CLIENT).items() if row.stays]
        listens = {id_key(message.get("id")) for message in log.sent_messages() if message.get("method") in staying}
        for entry, message in log.messages:
            if entry.direction != SENT and message.get("method") == CANCELLED:
                yield
                if id_key(_cancelled_id(message)) not in listens:
                    raise ObservedMessage(log, entry, message).violation(
                        f"no subscription has the id {preview_json(_cancelled_id(message))}"
                    )


def _cancelled_id(message: JSONObject) -> Any:
    return _params(message).get("requestId")


def _params(message: JSONObject) -> JSONObject:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _cancel(probe: Probe, id: Any) -> None:
    probe.notify(CANCELLED, {"requestId": id, "reason": "a test of accord check"})

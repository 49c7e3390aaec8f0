"""Log messages: their capability, their levels, and secrets in their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from accord.check.engine.rule import HTTP, CaseVariant, JudgedItems, rule
from accord.check.probes import lists
from accord.check.probes.content import declares, get_object, preview_json
from accord.check.probes.message_log import LogEntry, MessageLog, id_key, is_response
from accord.check.probes.message_reader import ObservedMessage, received_messages
from accord.check.probes.probe import Probe
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject, LoggingLevel
from accord.messages.meta import LOG_LEVEL
from accord.wire.transcript import SENT

LEVELS: tuple[str, ...] = get_args(LoggingLevel)
"""From the least severe to the most severe."""
MESSAGE = "notifications/message"
_MOST = 10


@rule(
    "logging/declared",
    "must",
    case="all log messages",
    at="server/utilities/logging#capabilities",
    cause="A part of the server logs to the client, but the capabilities are without `logging`.",
)
def logging_declared(logs: Sequence[MessageLog]) -> JudgedItems:
    """A server that sends log messages declares the capability `logging`."""
    for each in _log_messages(logs):
        yield
        if not declares(get_object(each.log.handshake_result, "capabilities"), "logging"):
            raise each.violation(
                "the server sent a log message, but does not declare `logging`", symptom=f"undeclared:{MESSAGE}"
            )


@rule(
    "logging/set-level",
    "must",
    case="each level",
    needs="logging",
    at=("server/utilities/logging#setting-log-level", "server/utilities/logging#log-levels"),
    until="2026-07-28",
    cause="No handler answers `logging/setLevel`, or it has the levels of another library, without notice and alert.",
)
async def logging_set_level(probe: Probe) -> None:
    """A server that declares `logging` accepts all eight levels."""
    for level in reversed(LEVELS):  # debug at last: nothing is kept from those who read
        await probe.result("logging/setLevel", {"level": level})


@rule(
    "logging/unknown-level",
    "should",
    variants=[CaseVariant("an unknown level", until="2026-07-28")],
    needs="logging",
    at="server/utilities/logging#error-handling",
    cause="The level is not validated.",
)
async def logging_unknown_level(probe: Probe) -> None:
    """An unknown level returns error -32602."""
    for params in ({"level": probe.unknown_name}, {"level": 5}, {}):
        answer = await probe.request("logging/setLevel", params)
        probe.require_error(answer, INVALID_PARAMS, preview_json(params))


@logging_unknown_level.case("an unknown level in _meta", needs="logging", since="2026-07-28")
async def logging_unknown_level_in_meta(probe: Probe) -> None:
    answer = await probe.request("server/discover", meta={LOG_LEVEL: probe.unknown_name})
    probe.require_error(answer, INVALID_PARAMS)


@rule(
    "logging/level-kept",
    "should",
    case="calls of tools that may log, after the level was set to emergency",
    kind="own",
    needs="logging",
    calls=True,
    at="server/utilities/logging#setting-log-level",
    until="2026-07-28",
    cause="The level is accepted, but not compared with messages.",
)
async def logging_level_kept(probe: Probe) -> None:
    """The server sends no messages below the level that the client set."""
    await probe.result("logging/setLevel", {"level": LEVELS[-1]})
    since = len(probe.log.entries)
    await _call_logging_tools(probe)
    await probe.fence()
    for message in probe.other_messages(since, None):
        if message.get("method") == MESSAGE and _severity(message) < len(LEVELS) - 1:
            raise probe.violation(f"the server sent {preview_json(message)}")


@logging_level_kept.case("all log messages after a level was set", needs="logging")
def logging_level_kept_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for log in logs:
        for each, floor in _floors(log):
            yield
            if _severity(each.message) < floor:
                raise each.violation(f"the client had set the level {LEVELS[floor]!r}")


@rule(
    "logging/only-asked",
    "must",
    case="calls of tools that may log, without a level",
    kind="own",
    needs="logging",
    calls=True,
    at="server/utilities/logging#per-request-log-level",
    since="2026-07-28",
    cause="The level of an earlier request is stored, or messages are sent without regard to the request.",
)
async def logging_only_asked(probe: Probe) -> None:
    """The server sends log messages only for requests with a log level."""
    since = len(probe.log.entries)
    await _call_logging_tools(probe)
    await probe.fence()
    for message in probe.other_messages(since, None):
        if message.get("method") == MESSAGE:
            raise probe.violation(f"no request had {LOG_LEVEL}, but the server sent {preview_json(message)}")


@logging_only_asked.case("a subscription stream", kind="own", needs="logging", over=HTTP, calls=True)
async def logging_only_asked_subscription(probe: Probe) -> None:
    listening = probe.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await probe.wait_for_message(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
    await _call_logging_tools(probe, {LOG_LEVEL: LEVELS[0]})
    await probe.fence()
    for each in _log_messages([probe.log]):
        if each.entry.stream == listening.stream:
            raise each.violation("the server sent a log message on a stream of subscriptions/listen")


@logging_only_asked.case("all log messages")
def logging_only_asked_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    found = [each for log in logs for each in _with_requested_levels(log)]
    for each, floors in found:
        yield
        if not floors:
            raise each.violation(f"no request in flight has {LOG_LEVEL}")


@rule(
    "logging/severe-enough",
    "must",
    case="all log messages",
    at="server/utilities/logging#per-request-log-level",
    since="2026-07-28",
    cause="Only the presence of the level is checked, not its value.",
)
def logging_severe_enough(logs: Sequence[MessageLog]) -> JudgedItems:
    """Log messages for a request are at least as severe as its level."""
    found = [each for log in logs for each in _with_requested_levels(log)]
    for each, floors in found:
        yield
        if floors and _severity(each.message) < min(floors):
            raise each.violation(f"the level of the request is {LEVELS[min(floors)]!r}")


@logging_severe_enough.case(
    "calls of tools that may log, with the level emergency", kind="own", needs="logging", calls=True
)
async def logging_severe_enough_emergency(probe: Probe) -> None:
    since = len(probe.log.entries)
    await _call_logging_tools(probe, {LOG_LEVEL: LEVELS[-1]})
    for message in probe.other_messages(since, None):
        if message.get("method") == MESSAGE and _severity(message) < len(LEVELS) - 1:
            raise probe.violation(f"the server sent {preview_json(message)}")


_SECRET_NAMES = re.compile(
    r"(?:passw(?:or)?d|secret|api_?key|private_?key|(?:access|refresh)_?token|authorization)$", re.I
)
_MASKED = re.compile(r"^\W*$|\*\*|redact|hidden|mask|filter|remov|omit|secret|xxx", re.I)
_TOKENS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bxox[abpr]-[\w-]{20,}"
    r"|\bsk-[\w-]{24,}|(?<![\w-])eyJ[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}"
)


@rule(
    "logging/secrets",
    "must",
    case="all log messages",
    at="server/utilities/logging#security",
    cause="Whole requests, headers or settings are logged: redact secrets before you send them.",
)
def logging_secrets(logs: Sequence[MessageLog]) -> JudgedItems:
    """Log messages contain no passwords, keys or tokens."""
    for each in _log_messages(logs):
        yield
        for name, value in _members("", get_object(each.message, "params").get("data")):
            if _TOKENS.search(value) or (_SECRET_NAMES.search(name) and not _MASKED.search(value)):
                raise each.violation(f"{name or 'the text'} looks like a secret")


def _members(name: str, data: Any) -> Iterator[tuple[str, str]]:
    """Yield each string in a value, with the name of its field."""
    if isinstance(data, str):
        yield name, data
    elif isinstance(data, dict):
        for inner, value in data.items():
            yield from _members(inner, value)
    elif isinstance(data, list):
        for value in data:
            yield from _members(name, value)


async def _call_logging_tools(probe: Probe, meta: JSONObject | None = None) -> None:
    """Call the tools that may log: those with such a description, else the first ones."""
    tools = await probe.callable_tools()
    likely = [
        tool for tool in tools if "log" in preview_json([tool.get("name"), tool.get("description")], 1 << 16).lower()
    ]
    for tool in (likely or tools)[:_MOST]:
        await lists.call_tool(probe, tool, meta=meta)


def _log_messages(logs: Sequence[MessageLog]) -> Iterator[ObservedMessage]:
    return (each for each in received_messages(logs) if each.message.get("method") == MESSAGE)


def _severity(message: JSONObject) -> int:
    """Return the rank of a level; the highest for an unknown one, which another rule reports."""
    level = get_object(message, "params").get("level")
    return LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1


def _floors(log: MessageLog) -> Iterator[tuple[ObservedMessage, int]]:
    """Yield the log messages after a level was set, each with the least severe level that may apply."""
    asked: dict[Any, int] = {}
    floor: int | None = None
    for entry, message in log.messages:
        if entry.direction == SENT and message.get("method") == "logging/setLevel":
            level = get_object(message, "params").get("level")
            asked[id_key(message.get("id"))] = LEVELS.index(level) if level in LEVELS else 0
        elif is_response(message) and id_key(message.get("id")) in asked:
            wanted = asked.pop(id_key(message.get("id")))
            floor = wanted if "result" in message else floor
        elif message.get("method") == MESSAGE and floor is not None:
            yield ObservedMessage(log, entry, message), min(floor, *asked.values(), floor)


def _with_requested_levels(log: MessageLog) -> Iterator[tuple[ObservedMessage, list[int]]]:
    """Yield log messages, each with the levels of the requests in flight that they may belong to."""
    flying: dict[Any, tuple[LogEntry, JSONObject]] = {}
    for entry, message in log.messages:
        if entry.direction == SENT and "method" in message and "id" in message:
            flying[id_key(message["id"])] = entry, message
        elif is_response(message):
            flying.pop(id_key(message.get("id")), None)
        elif message.get("method") == MESSAGE:
            wanted = [_level(request) for ours, request in flying.values() if entry.stream in (0, ours.stream)]
            yield ObservedMessage(log, entry, message), [level for level in wanted if level is not None]


def _level(request: JSONObject) -> int | None:
    level = get_object(request, "params", "_meta").get(LOG_LEVEL)
    return LEVELS.index(level) if level in LEVELS else None

"""Faults: the server answers valid messages after an invalid one, and under load.

The rules in `errors` judge the response to the invalid message itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from accord.check.engine.rule import Violation, rule
from accord.check.probes.client_messages import request_body
from accord.check.probes.content import preview_json
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.methods import CLIENT, table

MESSAGES = ("basic/index#messages", "basic/messages")


_TIMEOUT_FACTOR = 4
"""Reading all invalid messages may take this many times the timeout."""


async def _require_survival(probe: Probe, bad: Mapping[str, Any]) -> None:
    """Send all invalid messages, then a valid request; if it gets no response, find the message that is the cause."""
    since = len(probe.log.entries)
    for message in bad.values():
        probe.send(message)
    try:
        await probe.fence(_TIMEOUT_FACTOR * probe.settings.timeout)
    except Violation as exc:
        alone = await probe.open_another()
        what = await _find_culprit(alone, bad)
        text = f"after {what}, the server does not respond: {exc}"
        where, start = (alone, None) if what in bad else (probe, since)
        raise where.violation(text, since=start, symptom=f"faults:{what}") from exc


async def _find_culprit(probe: Probe, bad: Mapping[str, Any]) -> str:
    for what, message in bad.items():
        probe.send(message)
        try:
            await probe.fence(_TIMEOUT_FACTOR * probe.settings.timeout)
        except Violation:
            return what
    return "all invalid messages together"


NO_JSON: dict[str, Any] = {
    "a word": b"nobody",
    "half an object": b'{"jsonrpc":"2.0","id":',
    "an object with a comma too many": b'{"jsonrpc":"2.0",}',
    "single quotes": b"{'jsonrpc':'2.0'}",
    "NaN": b'{"jsonrpc":"2.0","method":"notifications/nobody","params":{"a":NaN}}',
    "bytes that are no UTF-8": b'{"jsonrpc":"2.0","method":"notifications/\xff\xfe"}',
    "a NUL": b"\x00",
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/nobody"}',
    "control characters": b'{"jsonrpc":"2.0","method":"notifications/\x01\x1b[2J"}',
}
NO_MESSAGE: dict[str, Any] = {
    "null": None,
    "a number": 7,
    "a text": "nobody",
    "true": True,
    "an empty object": {},
    "an empty array": [],
    "a number instead of a message": [1, 2],
    "a string instead of a message": {"jsonrpc": "2.0"},
    "nothing but an id": {"jsonrpc": "2.0", "id": "accord-check-7"},
    "all fields at once": {"jsonrpc": "2.0", "id": "accord-check-8", "method": "x", "result": {}, "error": {}},
}
STRAY_ANSWERS: dict[str, Any] = {
    "a result nobody asked for": {"jsonrpc": "2.0", "id": "accord-check-nobody", "result": {}},
    "an error nobody asked for": {"jsonrpc": "2.0", "id": 999_999_999, "error": {"code": 1, "message": "x"}},
    "an error without an id": {"jsonrpc": "2.0", "error": {"code": -32700, "message": "x"}},
    "an error with the id null": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
    "a result of null": {"jsonrpc": "2.0", "id": "accord-check-nobody", "result": None},
    "an error that is a text": {"jsonrpc": "2.0", "id": "accord-check-nobody", "error": "x"},
}


_PARAMS: tuple[Any, ...] = (None, 7, [], {"requestId": {}, "progressToken": [], "progress": "x", "taskId": 7})


@rule(
    "faults/survives",
    "must",
    case="invalid JSON, JSON that is not a message, unexpected responses, and wrong types in each field",
    kind="own",
    shares=True,
    at=MESSAGES,
    cause="An exception while reading ends the read loop: catch it for each message.",
)
async def faults_survives(probe: Probe) -> None:
    """The server answers a valid request after an invalid message."""
    good: JSONObject = {"jsonrpc": "2.0", "id": "accord-check-9", **_body(probe)}
    values: tuple[Any, ...] = (None, True, 7_777, 1.5, "", [], {})
    wrong = NO_JSON | NO_MESSAGE | STRAY_ANSWERS
    wrong |= {
        f"a request whose {field} is {preview_json(value)}": {**good, field: value}
        for field in (*good, "params")
        for value in values
    }
    names = [probe.unknown_name, *(name for name in table(probe.revision, CLIENT) if name.startswith("notifications/"))]
    for name in names:
        for params in _PARAMS:
            message = {"jsonrpc": "2.0", "method": name, "params": params}
            wrong[f"{name} with the params {preview_json(params)}"] = message
    await _require_survival(probe, wrong)


_DEEP = 20_000


@faults_survives.case("deep nesting, huge numbers, long strings and lone surrogates", kind="own", shares=True)
async def faults_survives_extreme_values(probe: Probe) -> None:
    inside = b'{"jsonrpc":"2.0","method":"notifications/accord-check-nobody","params":{"a":%s}}'
    named = b'{"jsonrpc":"2.0","id":%s,"method":"accord-check-nobody"}'
    wrong: dict[str, Any] = {
        f"{_DEEP:,} arrays in each other": inside % (b"[" * _DEEP + b"]" * _DEEP),
        f"{_DEEP:,} objects in each other": inside % (b'{"a":' * _DEEP + b"1" + b"}" * _DEEP),
        f"{_DEEP:,} brackets that are never closed": b"[" * _DEEP,
        "a number of 5,000 digits": inside % (b"9" * 5_000),
        "a number beyond all floating point": inside % b"1e999",
        "an id of 400 digits": named % (b"9" * 400),
        "an id beyond 64 bits": named % b"18446744073709551616",
        "an id with a fraction": named % b"1.5",
        "a text that is half a character": inside % rb'"\ud800"',
        "an id of 100,000 characters": named % (b'"' + b"x" * 100_000 + b'"'),
        "a method of 100,000 characters": {"jsonrpc": "2.0", "id": "accord-check-10", "method": "x" * 100_000},
        "a field that is there twice": b'{"jsonrpc":"2.0","method":"x","method":"notifications/nobody"}',
        "50,000 fields": inside % (b"{" + b",".join(b'"k%d":0' % at for at in range(50_000)) + b"}"),
    }
    await _require_survival(probe, wrong)


@faults_survives.case("the same id for two concurrent requests", kind="own", shares=True)
async def faults_survives_duplicate_id(probe: Probe) -> None:
    twice = {"jsonrpc": "2.0", "id": "accord-check-twice", **_body(probe)}
    for _ in range(2):
        probe.send(twice)
    await probe.fence()


def _body(probe: Probe) -> JSONObject:
    """Return the method and params of a harmless request."""
    return request_body(probe, probe.harmless_method, None, None)


WRONG: tuple[JSONObject, ...] = (
    {"cursor": 7, "name": 7, "uri": 7, "level": 7, "ref": 7, "arguments": 7, "notifications": 7, "taskId": 7},
    {"cursor": {}, "name": None, "uri": [], "level": "", "ref": {"type": "nobody"}, "argument": None},
)


@rule(
    "faults/wrong-params",
    "must",
    case="each method with fields of wrong types",
    at=MESSAGES,
    cause="The error of decoding the params is raised before the id is known.",
)
async def faults_wrong_params(probe: Probe) -> None:
    """The server answers a request with invalid params, usually with an error."""
    rows = [row for row in table(probe.revision, CLIENT).values() if not row.notification and not row.stays]
    for params in WRONG:
        waiting = [probe.begin(row.name, params) for row in rows if row.name != "initialize"]
        for pending in waiting:
            await pending.wait()
    await probe.fence()


MANY, MANY_BY_HTTP = 1_000, 200
_STALL_FACTOR = 3
"""While a flood is processed, no response may come for this many times the timeout."""


@rule(
    "faults/flood",
    "must",
    case="a thousand concurrent harmless requests (over HTTP, 200)",
    kind="own",
    shares=True,
    at=MESSAGES,
    cause="A queue is bounded and discards requests: answer them with an error.",
)
async def faults_flood(probe: Probe) -> None:
    """The server answers each of a thousand concurrent requests."""
    count = MANY if probe.http is None else MANY_BY_HTTP
    since = len(probe.log.entries)
    left = {probe.begin(probe.harmless_method, id=f"accord-check-flood-{number}").future for number in range(count)}
    while left:
        done, left = await asyncio.wait(left, timeout=_STALL_FACTOR * probe.settings.timeout)
        if not done or any(future.exception() for future in done):
            raise probe.violation(f"{len(left):,} of {count:,} requests got no response", since=since)

"""Error codes: each is used for its meaning, and none of the reserved ranges is used for other errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog, id_key
from accord.check.probes.message_reader import ObservedMessage, is_web_server_error, received_messages
from accord.check.probes.probe import UNKNOWN_NAME, Probe
from accord.errors import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
)
from accord.messages.base import JSONObject
from accord.messages.meta import PROTOCOL_VERSION
from accord.wire.transcript import SENT

CODES = "basic/index#error-codes"

DEFINED = frozenset((HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION))
RETIRED = frozenset((RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED))


@rule(
    "codes/reserved",
    "must",
    case="all errors",
    at=CODES,
    since="2026-07-28",
    cause="An error of the server itself has a code in the range of the specification: use one "
    "outside -32768 to -32000.",
)
def codes_reserved(logs: Sequence[MessageLog]) -> JudgedItems:
    """Of the codes from -32099 to -32020, the server uses only those that the specification defines."""
    return _require_no_code(logs, lambda code: -32099 <= code <= -32020 and code not in DEFINED | RETIRED)


@rule(
    "codes/retired",
    "must",
    case="all errors",
    at=CODES,
    since="2026-07-28",
    cause="The error of the earlier revision is used in every revision.",
)
def codes_retired(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server does not use the codes -32002 and -32042 of earlier revisions."""
    return _require_no_code(logs, RETIRED.__contains__)


@rule(
    "codes/closed-range",
    "may",
    case="all errors",
    at=CODES,
    since="2026-07-28",
    cause="An error of the server itself has a code in a reserved range: use one outside -32768 to -32000.",
)
def codes_closed_range(logs: Sequence[MessageLog]) -> JudgedItems:
    """New implementations do not use codes from -32019 to -32000."""
    return _require_no_code(logs, lambda code: -32019 <= code <= -32000 and code not in RETIRED)


_STANDARD = frozenset((PARSE_ERROR, *range(-32603, INVALID_REQUEST + 1)))


@rule(
    "codes/own",
    "should",
    case="all errors",
    at=CODES,
    cause="An error of the server itself has a code in the reserved range.",
)
def codes_own(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server uses codes from -32768 to -32100 only as JSON-RPC defines them."""
    return _require_no_code(logs, lambda code: -32768 <= code <= -32100 and code not in _STANDARD)


_DATA: dict[int, dict[str, type]] = {
    MISSING_CLIENT_CAPABILITY: {"requiredCapabilities": dict},
    UNSUPPORTED_VERSION: {"supported": list, "requested": str},
}


@rule(
    "codes/defined-data",
    "must",
    case="all errors with these codes",
    at=(CODES, "basic/versioning#protocol-version-negotiation"),
    since="2026-07-28",
    cause="The code is used for another purpose, or `data` is missing.",
)
def codes_defined_data(logs: Sequence[MessageLog]) -> JudgedItems:
    """The `data` of errors -32021 and -32022 has the fields that the specification defines."""
    for each in received_messages(logs):
        if _code(each) in _DATA:
            yield
            data = each.message["error"].get("data")
            for field, type_ in _DATA[_code(each)].items():
                if not isinstance(data, dict) or not isinstance(data.get(field), type_):
                    raise each.violation(f"the data of error {_code(each)} has no {field}: {preview_json(data)}")


_LONG = 500
_ECHO_LENGTH = 40
"""Minimum number of characters of a text of ours that does not count if an error repeats it."""


@rule(
    "codes/one-sentence",
    "should",
    case="all errors",
    at="schema#error",
    cause="The message is a traceback or the output of a validator: put details into `data`.",
)
def codes_one_sentence(logs: Sequence[MessageLog]) -> JudgedItems:
    """The message of an error is one short sentence."""
    for log in logs:
        requests: dict[Any, JSONObject] = {}
        for entry, message in log.messages:
            if entry.direction == SENT:
                requests[id_key(message.get("id"))] = message
                continue
            error = message.get("error")
            text = error.get("message") if isinstance(error, dict) else None
            each = ObservedMessage(log, entry, message)
            if isinstance(text, str) and not is_web_server_error(log, entry, message):
                yield
                text = text.strip()
                if _is_long(text):  # only then, since a request may have many texts
                    text = _without_request_text(text, requests.get(id_key(message.get("id")), {}))
                if _is_long(text):
                    lines = len(text.splitlines())
                    counted = "1 line" if lines == 1 else f"{lines:,} lines"
                    raise each.violation(f"the message has {counted} and {len(text):,} characters")


def _is_long(text: str) -> bool:
    return "\n" in text or len(text) > _LONG


def _without_request_text(text: str, request: Any) -> str:
    """Return the text without the long texts that it repeats from the request."""
    if isinstance(request, str):
        return text.replace(request, "...") if len(request) > _ECHO_LENGTH else text
    for value in request.values() if isinstance(request, dict) else request if isinstance(request, list) else ():
        text = _without_request_text(text, value)
    return text


@codes_own.case("a request for each feature that the server must refuse")
async def codes_own_refused_requests(probe: Probe) -> None:
    for method, params in _REFUSED.items():
        await probe.request(method, params)  # there are errors to read then
    if not probe.rules.handshake:
        unknown = "1900-01-01"
        await probe.request(
            probe.harmless_method, meta={PROTOCOL_VERSION: unknown}, headers={"MCP-Protocol-Version": unknown}
        )


_REFUSED: dict[str, JSONObject] = {
    UNKNOWN_NAME: {},
    "tools/call": {"name": UNKNOWN_NAME, "arguments": {}},
    "tools/list": {"cursor": UNKNOWN_NAME},
    "resources/read": {"uri": f"accord-check://{UNKNOWN_NAME}"},
    "prompts/get": {"name": UNKNOWN_NAME},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": UNKNOWN_NAME},
        "argument": {"name": "a", "value": ""},
    },
}


def _require_no_code(logs: Sequence[MessageLog], is_wrong: Callable[[int], bool]) -> JudgedItems:
    for each, code in _codes(logs):
        yield
        if is_wrong(code):
            raise each.violation(f"the error code is {code}", symptom=f"code:{code}")


def _codes(logs: Sequence[MessageLog]) -> Iterator[tuple[ObservedMessage, int]]:
    return ((each, code) for each in received_messages(logs) if (code := _code(each)))


def _code(each: ObservedMessage) -> int:
    """Return the code of an error; 0 if there is none."""
    error = each.message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else 0

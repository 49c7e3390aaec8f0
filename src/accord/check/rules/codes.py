"""The codes of errors: each is used for what it means, and none lies where others have a say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accord.check.reading import Heard, heard, is_foreign, key, messages
from accord.check.record import Record
from accord.check.rule import Rule
from accord.check.talk import NOBODY, Talk
from accord.check.values import shown
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

RESERVED = Rule(
    "codes/reserved",
    "must",
    "Of the codes from -32099 to -32020 only those are used that the specification defines.",
    at=CODES,
    since="2026-07-28",
    cause="A code of the server's own lies in the range of the specification: take one outside -32768 to -32000.",
)


@RESERVED.reading("all errors")
def _(records: Sequence[Record]) -> int:
    return _no(records, lambda code: -32099 <= code <= -32020 and code not in DEFINED | RETIRED)


RETIRED_CODES = Rule(
    "codes/retired",
    "must",
    "The codes -32002 and -32042 of earlier revisions are not used any more.",
    at=CODES,
    since="2026-07-28",
    cause="The error of the earlier revision is raised whatever revision the request has.",
)


@RETIRED_CODES.reading("all errors")
def _(records: Sequence[Record]) -> int:
    return _no(records, RETIRED.__contains__)


LEGACY = Rule(
    "codes/legacy",
    "may",
    "Codes from -32019 to -32000 are not used by new implementations.",
    at=CODES,
    since="2026-07-28",
    cause="A code of the server's own lies in a range that is closed: take one outside -32768 to -32000.",
)


@LEGACY.reading("all errors")
def _(records: Sequence[Record]) -> int:
    return _no(records, lambda code: -32019 <= code <= -32000 and code not in RETIRED)


OWN = Rule(
    "codes/own",
    "should",
    "Codes that JSON-RPC reserves, from -32768 to -32100, are used as it defines them, and others not at all.",
    at=CODES,
    cause="A code of the server's own lies in the reserved range.",
)
_STANDARD = frozenset((PARSE_ERROR, *range(-32603, INVALID_REQUEST + 1)))


@OWN.reading("all errors")
def _(records: Sequence[Record]) -> int:
    return _no(records, lambda code: -32768 <= code <= -32100 and code not in _STANDARD)


MEANING = Rule(
    "codes/defined-data",
    "must",
    "The errors -32021 and -32022 say in data what they are about.",
    at=(CODES, "basic/versioning#protocol-version-negotiation"),
    since="2026-07-28",
    cause="The code is used for another purpose, or data was forgotten.",
)
_DATA: dict[int, dict[str, type]] = {
    MISSING_CLIENT_CAPABILITY: {"requiredCapabilities": dict},
    UNSUPPORTED_VERSION: {"supported": list, "requested": str},
}


@MEANING.reading("all errors with these codes")
def _(records: Sequence[Record]) -> int:
    found = [each for each in heard(records) if _code(each) in _DATA]
    for each in found:
        data = each.message["error"].get("data")
        for field, type_ in _DATA[_code(each)].items():
            if not isinstance(data, dict) or not isinstance(data.get(field), type_):
                raise each.broken(f"data of {_code(each)} has no {field}: {shown(data)}")
    return len(found)


SENTENCE = Rule(
    "codes/one-sentence",
    "should",
    "The message of an error is one short sentence.",
    at="schema#error",
    cause="A whole traceback, or the dump of a validator, is the message: put details into data.",
)
_LONG = 500
_OURS = 40
"""A text of ours that is longer, in characters, does not count when an error repeats it."""


@SENTENCE.reading("all errors")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        requests: dict[Any, JSONObject] = {}
        for said, message in messages(record):
            if said.direction == SENT:
                requests[key(message.get("id"))] = message
                continue
            error = message.get("error")
            text = error.get("message") if isinstance(error, dict) else None
            each = Heard(record, said, message)
            if isinstance(text, str) and not is_foreign(record, said, message):
                judged += 1
                text = _without_ours(text.strip(), requests.get(key(message.get("id")), {}))
                if "\n" in text or len(text) > _LONG:
                    lines = len(text.splitlines())
                    counted = "1 line" if lines == 1 else f"{lines:,} lines"
                    raise each.broken(f"a message of {counted} and {len(text):,} characters")
    return judged


def _without_ours(text: str, request: Any) -> str:
    """Return the text without the long texts of our request that it repeats."""
    if isinstance(request, str):
        return text.replace(request, "...") if len(request) > _OURS else text
    for value in request.values() if isinstance(request, dict) else request if isinstance(request, list) else ():
        text = _without_ours(text, value)
    return text


@OWN.case("what every feature has to refuse")
async def _(talk: Talk) -> None:
    for method, params in _REFUSED.items():
        await talk.request(method, params)  # there are errors to read then
    if not talk.rules.handshake:
        unknown = "1900-01-01"
        await talk.request(talk.harmless, meta={PROTOCOL_VERSION: unknown}, headers={"MCP-Protocol-Version": unknown})


_REFUSED: dict[str, JSONObject] = {
    NOBODY: {},
    "tools/call": {"name": NOBODY, "arguments": {}},
    "tools/list": {"cursor": NOBODY},
    "resources/read": {"uri": f"accord-check://{NOBODY}"},
    "prompts/get": {"name": NOBODY},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": NOBODY}, "argument": {"name": "a", "value": ""}},
}


def _no(records: Sequence[Record], is_wrong: Callable[[int], bool]) -> int:
    """Return how many codes were judged. Raises `Broken` for the first that is wrong."""
    judged = 0
    for each, code in _codes(records):
        judged += 1
        if is_wrong(code):
            raise each.broken(f"the code is {code}", symptom=f"code:{code}")
    return judged


def _codes(records: Sequence[Record]) -> Iterator[tuple[Heard, int]]:
    return ((each, code) for each in heard(records) if (code := _code(each)))


def _code(each: Heard) -> int:
    """The code of an error; 0 where there is none."""
    error = each.message.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else 0

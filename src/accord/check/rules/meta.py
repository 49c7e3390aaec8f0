"""`_meta`: its keys, and the fields that all results of 2026-07-28 have: `resultType` and the server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.engine.rule import JudgedItems, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, ObservedMessage, answered_requests, received_messages
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject
from accord.messages.meta import SERVER_INFO

META = "basic/index#meta"

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
PREFIX = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_AUTHOR_FIELDS = frozenset(("structuredContent", "data", "inputSchema", "outputSchema", "requestedSchema", "arguments"))
"""Fields whose content belongs to the author of the server, not to the protocol."""


@rule(
    "meta/keys",
    "must",
    case="all _meta from the server",
    at=META,
    since="2025-06-18",
    cause="A key begins or ends with a punctuation mark, has two slashes or a space, or a label of "
    "its prefix begins with a digit.",
)
def meta_keys(logs: Sequence[MessageLog]) -> JudgedItems:
    """A key of `_meta` is a name with an optional prefix: labels with dots, and a slash."""
    for each, found in _metas(logs):
        yield
        for name in found:
            prefix, slash, rest = name.rpartition("/")
            if not NAME.fullmatch(rest) or (slash and not PREFIX.fullmatch(prefix)):
                raise each.violation(f"the key {name!r} is invalid", symptom=f"meta:{name}")


_TOP = frozenset(("com", "org", "net", "io", "dev", "edu", "gov", "ai", "app"))


@rule(
    "meta/reverse-dns",
    "should",
    case="all _meta from the server",
    at=META,
    since="2025-11-25",
    cause="The prefix is a domain name as in a URL.",
)
def meta_reverse_dns(logs: Sequence[MessageLog]) -> JudgedItems:
    """The prefix of a key in `_meta` is a reversed domain name: com.example, not example.com."""
    for each, found in _metas(logs):
        for name in found:
            labels = name.rpartition("/")[0].lower().split(".")
            if len(labels) > 1:
                yield
                if labels[-1] in _TOP and labels[0] not in _TOP:
                    raise each.violation(f"the prefix of the key {name!r} is not reversed", symptom=f"meta:{name}")


_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_MEMBERS = {
    "tracestate": re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,256}"),
    "baggage": re.compile(r"[!#-'*+.0-9A-Z^_`a-z|~-]+[ \t]*=[\x20-\x7e\t]*"),
}


@rule(
    "meta/trace-context",
    "must",
    case="all _meta from the server",
    at=META,
    since="2026-07-28",
    cause="An id of the server itself has a name that is reserved for the trace context.",
)
def meta_trace_context(logs: Sequence[MessageLog]) -> JudgedItems:
    """traceparent, tracestate and baggage in `_meta` have the format of W3C."""
    for each, found in _metas(logs):
        for name in found.keys() & {"traceparent", *_MEMBERS}:
            yield
            if not isinstance(found[name], str) or not _is_trace(name, found[name]):
                raise each.violation(f"{name} is {preview_json(found[name])}", symptom=f"meta:{name}")


def _is_trace(name: str, value: str) -> bool:
    if name == "traceparent":
        return _PARENT.fullmatch(value) is not None
    members = [member.strip(" \t") for member in value.split(",")]
    return all(not member or _MEMBERS[name].fullmatch(member) for member in members)


_KEYS: dict[str, Any] = {
    "com.example/accord-check": {"any": [None, 1.5, "x"]},
    "io.modelcontextprotocol/accord-check-nobody": [None],
    "accord-check": None,
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    "": True,
}


@rule(
    "meta/unknown-keys",
    "must",
    case="keys with a prefix, a reserved prefix, no prefix and an empty name, and a trace",
    at=META,
    cause="_meta is decoded with a closed type, or a type of value is required for all keys.",
)
async def meta_unknown_keys(probe: Probe) -> None:
    """The server ignores unknown keys in `_meta`, including reserved ones."""
    for name, value in _KEYS.items():
        answer = await probe.request(probe.harmless_method, meta={name: value})
        if answer.error is not None:
            raise probe.violation(f"a request with {name!r} in _meta returned {preview_json(answer.error)}")


@rule(
    "meta/result-type",
    "must",
    case="all results",
    at="basic/index#result-responses",
    since="2026-07-28",
    cause='Results have the form of earlier revisions: an ordinary result has the resultType "complete".',
)
def meta_result_type(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each result has a `resultType`."""
    for each in _results(logs):
        yield
        if not isinstance(each.result.get("resultType"), str):
            raise each.violation(
                f"resultType is {preview_json(each.result.get('resultType'))}", symptom="no resultType"
            )


@rule(
    "meta/known-result-type",
    "must",
    case="all results",
    at="basic/index#resulttype",
    since="2026-07-28",
    cause="resultType is a name of the server itself: a client must treat the result as invalid.",
)
def meta_known_result_type(logs: Sequence[MessageLog]) -> JudgedItems:
    """`resultType` is "complete" or "input_required", or defined by an extension that both sides declared."""
    for each in _results(logs):
        kind = each.result.get("resultType")
        yield
        if isinstance(kind, str) and kind not in ("complete", "input_required") and not _has_extensions(each):
            raise each.violation(f"resultType is {kind!r}")


def _has_extensions(answer: AnsweredRequest) -> bool:
    """Return whether both sides declared an extension, which may define its own results."""
    theirs = answer.received.log.handshake_result.get("capabilities", {})
    ours = answer.request.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
    return bool(isinstance(theirs, dict) and theirs.get("extensions") and ours.get("extensions"))


@rule(
    "meta/server-info",
    "should",
    case="all results",
    at=(META, "server/discover#discoverresult"),
    since="2026-07-28",
    cause="The server identifies itself only once, as in the handshake, which no longer exists.",
)
def meta_server_info(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each result has the name and version of the server in `_meta`."""
    for each in _results(logs):
        yield
        found = each.result.get("_meta")
        info = found.get(SERVER_INFO) if isinstance(found, dict) else None
        if not isinstance(info, dict) or not all(isinstance(info.get(name), str) for name in ("name", "version")):
            raise each.violation(f"_meta is {preview_json(found)}", symptom="no serverInfo")


def _results(logs: Sequence[MessageLog]) -> Iterator[AnsweredRequest]:
    return (each for each in answered_requests(logs) if isinstance(each.result, dict))


def _metas(logs: Sequence[MessageLog]) -> Iterator[tuple[ObservedMessage, JSONObject]]:
    """Yield each `_meta` from the server, except in content of its author."""
    for each in received_messages(logs):
        for field in ("params", "result"):
            yield from ((each, found) for found in _metas_in(each.message.get(field)))


def _metas_in(value: Any) -> Iterator[JSONObject]:
    if isinstance(value, list):
        for item in value:
            yield from _metas_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "_meta" and isinstance(item, dict):
                yield item
            elif name not in _AUTHOR_FIELDS:
                yield from _metas_in(item)

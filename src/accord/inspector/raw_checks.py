"""The faults of a raw message: its JSON, its envelope, its method, and the exact types of a revision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_validation import type_mismatches
from accord.messages import envelope
from accord.messages.methods import table
from accord.messages.revision import RULES
from accord.wire.transcript import RECEIVED

_MAX_PROBLEMS = 50


def message_problems(raw: bytes, revision: str) -> list[str]:
    """Return why these bytes are not a valid message of a client in a revision."""
    try:
        value = json.loads(raw.decode(), parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as exc:
        return [f"it is not JSON: {exc}"]
    if isinstance(value, list) and not RULES[revision].batches:
        return [f"{revision} has no batches"]
    found = [*envelope_problems(raw), *_type_problems(raw, revision), *_method_problems(value, revision)]
    return found[:_MAX_PROBLEMS]


def envelope_problems(raw: bytes) -> Iterator[str]:
    """Yield why these bytes are no JSON-RPC message, or batch of messages."""
    if envelope.is_array(raw):
        try:
            items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except (msgspec.DecodeError, RecursionError) as exc:
            yield f"accord cannot read it: {exc}"
            return
        if not items:
            yield "an empty batch is not valid"
        for number, item in enumerate(items[:_MAX_PROBLEMS], 1):
            yield from (f"message {number} of the batch: {problem}" for problem in envelope_problems(bytes(item)))
        return
    try:
        envelope.read(raw)
    except envelope.MalformedMessage as exc:
        yield str(exc)


def _type_problems(raw: bytes, revision: str) -> Iterator[str]:
    log = MessageLog(revision, "stdio")
    log.add(RECEIVED, raw)
    for mismatch in type_mismatches(log, sender="client"):
        yield f"{mismatch.what}: {mismatch.why} - at {mismatch.where}"


def _method_problems(value: Any, revision: str) -> Iterator[str]:
    methods = table(revision, "client")
    for each in value if isinstance(value, list) else [value]:
        method = each.get("method") if isinstance(each, dict) else None
        if isinstance(method, str) and method not in methods:
            yield f"{method[:100]!r} is not a method of a client in {revision}"

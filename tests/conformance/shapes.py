"""Whether messages have exactly the shape that a revision prescribes: each part by the strict view of its type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from accord.messages.input_required import INPUT_RESPONSES, InputRequiredResult
from accord.messages.methods import CLIENT, SERVER, Sender, table
from accord.messages.views import view
from accord.wire.transcript import SENT, Transcript


class Misshapen(AssertionError):
    """A message that its revision does not have."""


def check(transcript: Transcript, revision: str, *, client: bool = True, server: bool = True) -> int:
    """Hold what a client (who sent) and a server (who was heard) said against the revision; how many parts fit.

    Raises `Misshapen` with the message.
    """
    count = 0
    for message, sender, value, type_ in _parts(transcript, revision):
        if not (client if sender == CLIENT else server):
            continue
        if type_ is None:
            raise Misshapen(f"{revision} has no such method: {message}")
        try:
            msgspec.convert(value, view(type_, revision, strict=True))
        except msgspec.ValidationError as exc:
            raise Misshapen(f"{exc}: {message}") from exc
        count += 1
    return count


def _parts(transcript: Transcript, revision: str) -> Iterator[tuple[Any, Sender, Any, Any]]:
    """Params and results, each with who said it and its type."""
    asked: dict[tuple[Sender, Any], Any] = {}
    inside: dict[str, Any] = {}
    for entry in transcript:
        assert isinstance(entry.message, bytes)
        message = json.loads(entry.message)
        sender, other = (CLIENT, SERVER) if entry.direction == SENT else (SERVER, CLIENT)
        if "method" in message:
            row = asked[sender, message.get("id")] = table(revision, sender).get(message["method"])
            params = message.get("params", {})
            yield message, sender, params, row and row.params
            for key, answer in (params.get("inputResponses") or {}).items():
                if key in inside:
                    yield message, sender, answer, INPUT_RESPONSES[inside[key]]
        elif "result" in message:
            asks = message["result"].get("resultType") == "input_required"
            inside |= {key: each["method"] for key, each in message["result"].get("inputRequests", {}).items()}
            yield (
                message,
                sender,
                message["result"],
                InputRequiredResult if asks else asked[other, message["id"]].result,
            )

"""The outcome of a call, for the line that the developer sees."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from accord.messages.base import JSONObject


class _Outcome(msgspec.Struct):
    result: dict[str, Raw] | None = None
    error: JSONObject | None = None


_decode = msgspec.json.Decoder(_Outcome).decode


def outcome(answer: bytes) -> str:
    """Return `ok`, `tool error`, or the code and the message of an error."""
    if b'"isError"' not in answer and b'"error"' not in answer:
        return "ok"
    try:
        found = _decode(answer)
    except msgspec.DecodeError:
        return "ok"
    if found.error is not None:
        return f"error {found.error.get('code')}: {found.error.get('message')}"
    return "tool error" if found.result is not None and found.result.get("isError") == Raw(b"true") else "ok"

"""JSON values of peers: shown in a line, and asked for a capability."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.messages.base import JSONObject


def declares(capabilities: JSONObject, path: str) -> bool:
    """Whether a capability, or one inside it, is there: `resources.subscribe`, `extensions:com.example/search`."""
    value: Any = capabilities
    group, _, name = path.partition(":")
    for key in (*group.split("."), *([name] if name else [])):
        if not isinstance(value, dict) or value.get(key) in (None, False):
            return False
        value = value[key]
    return True


def preview_json(value: Any, longest: int = 300) -> str:
    """A JSON value in one line, shortened."""
    text = msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= longest else f"{text[:longest]}…"

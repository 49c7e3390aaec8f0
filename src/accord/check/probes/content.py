"""What is inside the results of a server, and what can be wrong with it: base64, MIME types, URIs, blocks of content.

Each `..._fault` says in words what is wrong, or gives None. Types are the business of `shapes`.

JSON values of peers: shown in a line, and asked for a capability.

Symptoms that several rules share: what fails for one cause is one finding, told by the rule of this name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import datetime
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


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MIME = re.compile(rf'{_TOKEN}/{_TOKEN}(?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|"[^"\r\n]*"))*').fullmatch
"""RFC 9110: `type/subtype`, and perhaps parameters."""

_HEX = "%[0-9A-Fa-f]{2}"
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*+:"
    rf"(?://(?:[A-Za-z0-9._~!$&'()*+,;=:@\[\]-]|{_HEX})*+)?"
    rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_HEX})*+"
    rf"(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_HEX})*+)?"
).fullmatch
"""RFC 3986, appendix A; the possessive `*+` keep it linear."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.,]\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII).fullmatch
_BLANKS = str.maketrans("", "", " \t\r\n")
_SHOWN = 80


def get_object(value: Any, *path: str) -> JSONObject:
    """The object that stands there; an empty one where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_objects(value: Any, key: str) -> list[JSONObject]:
    """The objects of the array that stands there; none where there is no array."""
    found = value.get(key) if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def complete_result(result: Any) -> JSONObject:
    """A result as it is; empty where it is an error, or asks for input (2026-07-28)."""
    found = result if isinstance(result, dict) else {}
    return found if found.get("resultType", "complete") == "complete" else {}


def all_strings(value: Any) -> Iterator[str]:
    """Every text in a value. What we said ourselves is often given back, and is not to be judged."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from all_strings(inner)


def mime_fault(mime_type: Any) -> str | None:
    """What is wrong with a MIME type."""
    if not isinstance(mime_type, str):
        return "has no MIME type"
    return None if _MIME(mime_type) else f"has {mime_type[:_SHOWN]!r} for a MIME type, which is no `type/subtype`"


def base64_fault(data: Any) -> str | None:
    """What is wrong with data in base64. Line breaks in it are let pass."""
    if not isinstance(data, str):
        return "has no data"
    try:
        base64.b64decode(data.translate(_BLANKS), validate=True)
    except (binascii.Error, ValueError) as exc:
        return f"has data that is not base64 ({exc}): {data[:_SHOWN]!r}"
    return None


def uri_fault(uri: Any) -> str | None:
    """What is wrong with a URI."""
    if not isinstance(uri, str):
        return "has no URI"
    return None if _URI(uri) else f"has {uri[:_SHOWN]!r} for a URI, which RFC 3986 does not allow"


def time_fault(value: Any, *, zoned: bool = False) -> str | None:
    """What is wrong with a time of ISO 8601; with `zoned` it must say its zone."""
    found = _TIME(value) if isinstance(value, str) else None
    if found is None:
        return f"is {preview_json(value)}, which is no time of ISO 8601"
    if zoned and not found[2]:
        return f"is {preview_json(value)}, which has no zone"
    try:
        datetime.fromisoformat(f"{value[:10]}T{value[11:19]}")
    except ValueError:
        return f"is {preview_json(value)}, which no calendar has"
    return None


def media_fault(block: JSONObject) -> str | None:
    """What is wrong with an image or a sound."""
    return base64_fault(block.get("data")) or mime_fault(block.get("mimeType"))


def embedded_fault(resource: JSONObject) -> str | None:
    """What is wrong with a resource that a message of a prompt holds, apart from its URI."""
    fault = mime_fault(resource.get("mimeType"))
    if fault is None and not isinstance(resource.get("text"), str):
        fault = base64_fault(resource.get("blob"))
    return fault


def content_blocks(result: JSONObject) -> list[JSONObject]:
    """The blocks of content in the result of a tool or of a prompt."""
    entry = [get_object(each, "content") for each in get_objects(result, "messages")]
    return [each for each in (*get_objects(result, "content"), *entry) if each]


def resource_contents(result: JSONObject) -> Iterator[JSONObject]:
    """The contents of resources in any result: those that were read, and those inside blocks."""
    yield from get_objects(result, "contents")
    yield from (found for block in content_blocks(result) if (found := get_object(block, "resource")))


ENDLESS = "pagination/ends"
"""A list has no end, whoever asks for it."""

NOTIFICATION_ANSWERED = "errors/notification-answered"
"""What has no id is answered all the same."""

UNACKNOWLEDGED = "subscriptions/acknowledged"
"""A subscription does not begin as it should, whatever was to come of it."""

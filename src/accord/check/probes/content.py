"""The content of results: base64, MIME types, URIs, times and content blocks.

Each `..._fault` describes what is wrong, or returns None. The rules `shapes` judge the types. Constants at the end are
symptoms that several rules share, so that one cause is one finding, reported by the rule of this name.
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
from accord.redaction import redact_beginning


def declares(capabilities: JSONObject, path: str) -> bool:
    """Return whether a capability is declared: `resources.subscribe`, `extensions:com.example/search`."""
    value: Any = capabilities
    group, _, name = path.partition(":")
    for key in (*group.split("."), *([name] if name else [])):
        if not isinstance(value, dict) or value.get(key) in (None, False):
            return False
        value = value[key]
    return True


def preview_json(value: Any, longest: int = 300) -> str:
    """Return a JSON value in one line, without what looks secret, shortened."""
    text = redact_beginning(msgspec.json.encode(value).decode(errors="replace"))
    return text if len(text) <= longest else f"{text[:longest]}…"


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MIME = re.compile(rf'{_TOKEN}/{_TOKEN}(?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|"[^"\r\n]*"))*').fullmatch
"""RFC 9110: `type/subtype`, with optional parameters."""

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
    """Return the object at a path; an empty one if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_objects(value: Any, key: str) -> list[JSONObject]:
    """Return the objects of an array; none if there is no array."""
    found = value.get(key) if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def complete_result(result: Any) -> JSONObject:
    """Return a result; empty if it is an error, or requires input (2026-07-28)."""
    found = result if isinstance(result, dict) else {}
    return found if found.get("resultType", "complete") == "complete" else {}


def all_strings(value: Any) -> Iterator[str]:
    """Yield each string in a value. Strings of a request are often repeated in its response, and are not judged."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from all_strings(inner)


def mime_fault(mime_type: Any) -> str | None:
    """Describe what is wrong with a MIME type."""
    if not isinstance(mime_type, str):
        return "has no MIME type"
    return None if _MIME(mime_type) else f"has the MIME type {mime_type[:_SHOWN]!r}, which is not `type/subtype`"


def base64_fault(data: Any) -> str | None:
    """Describe what is wrong with base64 data. Line breaks are allowed."""
    if not isinstance(data, str):
        return "has no data"
    try:
        base64.b64decode(data.translate(_BLANKS), validate=True)
    except (binascii.Error, ValueError) as exc:
        return f"has data that is not base64 ({exc}): {data[:_SHOWN]!r}"
    return None


def uri_fault(uri: Any) -> str | None:
    """Describe what is wrong with a URI."""
    if not isinstance(uri, str):
        return "has no URI"
    return None if _URI(uri) else f"has the URI {uri[:_SHOWN]!r}, which RFC 3986 does not allow"


def time_fault(value: Any, *, zoned: bool = False) -> str | None:
    """Describe what is wrong with a time in ISO 8601; with `zoned`, it must have a zone."""
    found = _TIME(value) if isinstance(value, str) else None
    if found is None:
        return f"is {preview_json(value)}, which is not a time in ISO 8601"
    if zoned and not found[2]:
        return f"is {preview_json(value)}, which has no zone"
    try:
        datetime.fromisoformat(f"{value[:10]}T{value[11:19]}")
    except ValueError:
        return f"is {preview_json(value)}, which does not exist"
    return None


def media_fault(block: JSONObject) -> str | None:
    """Describe what is wrong with an image or audio block."""
    return base64_fault(block.get("data")) or mime_fault(block.get("mimeType"))


def embedded_fault(resource: JSONObject) -> str | None:
    """Describe what is wrong with a resource in a prompt, except its URI."""
    fault = mime_fault(resource.get("mimeType"))
    if fault is None and not isinstance(resource.get("text"), str):
        fault = base64_fault(resource.get("blob"))
    return fault


def content_blocks(result: JSONObject) -> list[JSONObject]:
    """Return the content blocks in the result of a tool or a prompt."""
    entry = [get_object(each, "content") for each in get_objects(result, "messages")]
    return [each for each in (*get_objects(result, "content"), *entry) if each]


def resource_contents(result: JSONObject) -> Iterator[JSONObject]:
    """Yield the contents of resources in any result: of resources/read, and in content blocks."""
    yield from get_objects(result, "contents")
    yield from (found for block in content_blocks(result) if (found := get_object(block, "resource")))


ENDLESS = "pagination/ends"
"""A list has no end."""

NOTIFICATION_ANSWERED = "errors/notification-answered"
"""The server answers a notification."""

UNACKNOWLEDGED = "subscriptions/acknowledged"
"""A subscription is not acknowledged."""

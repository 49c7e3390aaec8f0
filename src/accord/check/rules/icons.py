"""Icons of servers, tools, prompts and resources: pictures that a client may show without danger."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

from accord.check.message_log import MessageLog
from accord.check.message_reader import ObservedMessage, received_messages
from accord.check.rule import Rule
from accord.check.values import preview_json
from accord.messages.base import JSONObject

ICONS = "basic/index#icons"
SINCE = "2025-11-25"
_OWNERS = ("tools", "prompts", "resources", "resourceTemplates")
_SIZE = re.compile(r"[1-9]\d*x[1-9]\d*|any")

SOURCE = Rule(
    "icons/source",
    "should",
    "An icon is at an http or https URL, or is a data URI.",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="A path or a scheme of the server's own is given: clients must refuse it.",
)
DATA = Rule(
    "icons/data",
    "should",
    "The data URI of an icon is a picture in base64.",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="The bytes are written as they are, or the part before the comma does not say what they are.",
)
SIZES = Rule(
    "icons/sizes",
    "should",
    "The sizes of an icon are texts such as 48x48, or any.",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="One text holds all sizes, or a size is one number.",
)


@SOURCE.reading("all icons")
def read_source(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each, icon in _icons(records):
        judged += 1
        if not str(icon.get("src")).lower().startswith(("https://", "http://", "data:")):
            raise each.violation(f"src is {preview_json(icon.get('src'))}")
    return judged


@DATA.reading("all icons that are data URIs")
def read_data(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each, icon in _icons(records):
        source = str(icon.get("src"))
        if source.lower().startswith("data:"):
            judged += 1
            kind, _, data = source[5:].partition(",")
            if not kind.lower().startswith("image/") or not kind.lower().endswith(";base64") or not _is_base64(data):
                raise each.violation(f"src is {preview_json(source)}")
    return judged


@SIZES.reading("all icons that say their sizes")
def read_sizes(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each, icon in _icons(records):
        if "sizes" in icon:
            judged += 1
            sizes = icon["sizes"]
            if not isinstance(sizes, list) or not all(
                isinstance(size, str) and _SIZE.fullmatch(size) for size in sizes
            ):
                raise each.violation(f"sizes are {preview_json(sizes)}")
    return judged


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _icons(records: Sequence[MessageLog]) -> Iterator[tuple[ObservedMessage, JSONObject]]:
    """Every icon of the server and of what it lists."""
    for each in received_messages(records):
        result = each.message.get("result")
        if isinstance(result, dict):
            for owner in _owners(result):
                icons = owner.get("icons") if isinstance(owner, dict) else None
                yield from ((each, icon) for icon in icons or () if isinstance(icon, dict))


def _owners(result: JSONObject) -> Iterator[Any]:
    yield result.get("serverInfo")
    meta = result.get("_meta")
    yield meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
    for field in _OWNERS:
        listed = result.get(field)
        yield from listed if isinstance(listed, list) else ()

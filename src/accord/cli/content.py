"""What tools, resources and prompts hold, for people: text as it is, pictures and sound in one line each."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from msgspec import UNSET

from accord.cli.columns import one_line
from accord.cli.failures import printable
from accord.client.results import ToolResult
from accord.errors import RemoteProtocolError
from accord.messages.bounds import REMARK_LENGTH, URI_LENGTH
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)


class BinaryContent(NamedTuple):
    """Something to save: bytes, and what they are."""

    data: bytes
    mime_type: str


def echo_json(value: Any) -> None:
    """A value as one JSON document."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(printable(text, as_json=True) if sys.stdout.isatty() else text)


def result_lines(result: ToolResult) -> Iterator[str]:
    """What a tool answered: its structured content, or else its blocks; text that only repeats it is left out."""
    blocks: list[Any] = list(result.content)
    if result.structured_content is not UNSET:
        blocks = [block for block in blocks if not isinstance(block, TextContent)]
        yield pretty(result.data)
    for block in blocks:
        yield block_text(block)


def pretty(value: Any) -> str:
    """A JSON value, laid out; a string as it is."""
    return for_terminal(
        value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    )


def block_text(block: Any) -> str:
    """One block of content as text."""
    match block:
        case TextContent():
            return for_terminal(block.text)
        case ImageContent():
            return _summary("image", block.mime_type, block.data)
        case AudioContent():
            return _summary("audio", block.mime_type, block.data)
        case EmbeddedResource():
            return f"[resource] {one_line(block.resource.uri, URI_LENGTH)}\n{contents_text(block.resource)}"
        case ResourceLink():
            about = " · ".join(filter(None, (block.title or block.name, block.mime_type, block.description)))
            return f"[link] {one_line(block.uri, URI_LENGTH)}  {one_line(about, REMARK_LENGTH)}"
    return _unknown(block)


def _unknown(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    return f"[{one_line(str(kind))}] {pretty(block)}"


def contents_text(contents: ResourceContents) -> str:
    """What a resource holds as text."""
    if contents.blob is not None:
        return _summary("binary", contents.mime_type or "application/octet-stream", contents.blob)
    return for_terminal(contents.text or "")


def for_terminal(text: str) -> str:
    """Text of others: as it is for a file or a pipe, without what would steer a terminal for a terminal."""
    return printable(text) if sys.stdout.isatty() else text


def _summary(kind: str, mime_type: str, data: str) -> str:
    size = len(data.rstrip("=")) * 3 // 4
    return click.style(f"[{kind}] {one_line(mime_type)}, {size:,} bytes; --output FILE saves it", dim=True)


# --- saving ----------------------------------------------------------------------------------------------------


def binaries(blocks: Iterable[Any]) -> Iterator[BinaryContent]:
    """What is worth a file in the content of a tool or a prompt."""
    for block in blocks:
        if isinstance(block, ImageContent | AudioContent):
            yield BinaryContent(_decode_base64(block.data), block.mime_type)
        elif isinstance(block, EmbeddedResource):
            yield all_of(block.resource)


def all_of(contents: ResourceContents) -> BinaryContent:
    """All that a resource holds."""
    if contents.blob is not None:
        return BinaryContent(_decode_base64(contents.blob), contents.mime_type or "application/octet-stream")
    return BinaryContent((contents.text or "").encode(errors="backslashreplace"), contents.mime_type or "text/plain")


def save(found: Iterable[BinaryContent], output: str) -> None:
    """Write to a file, `-` for stdout; a second one becomes `FILE-2.png`."""
    items = list(found)
    if not items:
        raise click.UsageError("--output: the answer holds nothing to save")
    for number, item in enumerate(items, 1):
        if output == "-":
            click.echo(item.data, nl=False)
            continue
        path = Path(output)
        path = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            path.write_bytes(item.data)
        except OSError as exc:
            raise click.UsageError(f"--output: {exc}") from exc
        click.echo(f"{path}: {one_line(item.mime_type)}, {len(item.data):,} bytes", err=True)


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        pass
    try:
        return base64.b64decode(data + "==")  # not quite base64; what can be read is better than nothing
    except (binascii.Error, ValueError) as exc:
        raise RemoteProtocolError(f"the server gave content that is no base64: {exc}") from exc

"""Content of tools, resources and prompts for the terminal: text as it is, images and audio in one line each."""

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
from accord.file_replacement import write_file
from accord.messages.bounds import REMARK_LENGTH, URI_LENGTH
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from accord.visible_text import readable


class BinaryContent(NamedTuple):
    """Bytes to save, and their MIME type."""

    data: bytes
    mime_type: str


def echo_json(value: Any) -> None:
    """Print a value as one JSON document."""
    text = readable(msgspec.json.encode(value))
    click.echo(printable(text, as_json=True) if sys.stdout.isatty() else text)


def result_lines(result: ToolResult) -> Iterator[str]:
    """Yield the lines of a tool result: its structured content, or its content blocks, without text that repeats it."""
    blocks: list[Any] = list(result.content)
    if result.structured_content is not UNSET:
        blocks = [block for block in blocks if not isinstance(block, TextContent)]
        yield pretty(result.data)
    for block in blocks:
        yield block_text(block)


def pretty(value: Any) -> str:
    """Return a JSON value, indented; a string as it is."""
    return for_terminal(value if isinstance(value, str) else readable(msgspec.json.encode(value)))


def block_text(block: Any) -> str:
    """Return one content block as text."""
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
            description = " · ".join(filter(None, (block.title or block.name, block.mime_type, block.description)))
            return f"[link] {one_line(block.uri, URI_LENGTH)}  {one_line(description, REMARK_LENGTH)}"
    return _unknown(block)


def _unknown(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    return f"[{one_line(str(kind))}] {pretty(block)}"


def contents_text(contents: ResourceContents) -> str:
    """Return the content of a resource as text."""
    if contents.blob is not None:
        return _summary("binary", contents.mime_type or "application/octet-stream", contents.blob)
    return for_terminal(contents.text or "")


def for_terminal(text: str) -> str:
    """Return untrusted text; for a terminal, with its control characters escaped."""
    return printable(text) if sys.stdout.isatty() else text


def _summary(kind: str, mime_type: str, data: str) -> str:
    size = len(data.rstrip("=")) * 3 // 4
    return click.style(f"[{kind}] {one_line(mime_type)}, {size:,} bytes; --output FILE saves it", dim=True)


# --- saving ----------------------------------------------------------------------------------------------------


def binaries(blocks: Iterable[Any]) -> Iterator[BinaryContent]:
    """Yield the binary content of a tool result or a prompt."""
    for block in blocks:
        if isinstance(block, ImageContent | AudioContent):
            yield BinaryContent(_decode_base64(block.data), block.mime_type)
        elif isinstance(block, EmbeddedResource):
            yield all_of(block.resource)


def all_of(contents: ResourceContents) -> BinaryContent:
    """Return the whole content of a resource."""
    if contents.blob is not None:
        return BinaryContent(_decode_base64(contents.blob), contents.mime_type or "application/octet-stream")
    return BinaryContent((contents.text or "").encode(errors="backslashreplace"), contents.mime_type or "text/plain")


def save(contents: Iterable[BinaryContent], output: str) -> None:
    """Write the content to a file, or to stdout for `-`; the second item goes to `FILE-2.png`."""
    items = list(contents)
    if not items:
        raise click.UsageError("--output: the answer holds nothing to save")
    for number, item in enumerate(items, 1):
        if output == "-":
            click.echo(item.data, nl=False)
            continue
        path = Path(output)
        path = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            write_file(path, item.data)
        except OSError as exc:
            raise click.UsageError(f"--output: {exc}") from exc
        click.echo(f"{path}: {one_line(item.mime_type)}, {len(item.data):,} bytes", err=True)


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        pass
    try:
        return base64.b64decode(data + "==")  # incomplete base64: decode as much as possible
    except (binascii.Error, ValueError) as exc:
        raise RemoteProtocolError(f"the server gave content that is no base64: {exc}") from exc

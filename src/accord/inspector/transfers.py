"""Files between the page and the inspector: uploads are stored in a folder, downloads are read while they are sent."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from accord.inspector.assets import PRIVATE_HEADERS
from accord.inspector.commands import Download
from accord.transport.asgi.request import ASGIRequest, ClientDisconnected, RequestRejected

MAX_UPLOAD = 1 << 30
"""Bytes of the largest file that a page can send."""
_BLOCK = 256 << 10


class UncountedBody:
    """The charge of a body that only its size limit bounds."""

    def add(self, size: int) -> None:
        """See `Charge`."""

    def measure(self, body: bytes) -> None:
        """See `Charge`."""


async def receive_file(request: ASGIRequest, folder: Path) -> Path:
    """Store the body of a request in a new file of a folder. Raises `RequestRejected`, `ClientDisconnected`."""
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        async for part in _parts(request):
            await asyncio.to_thread(os.write, descriptor, part)
    except OSError as exc:
        await asyncio.to_thread(os.unlink, name)
        raise RequestRejected(507, f"the file could not be stored: {exc.strerror}") from exc
    except BaseException:
        await asyncio.to_thread(os.unlink, name)
        raise
    finally:
        os.close(descriptor)
    return Path(name)


async def _parts(request: ASGIRequest) -> AsyncIterator[bytes]:
    """Yield the parts of a body. Raises `RequestRejected` beyond a limit, and `ClientDisconnected`."""
    size, goes_on = 0, True
    while goes_on:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > MAX_UPLOAD:
            raise RequestRejected(413, f"the file has more than {MAX_UPLOAD:,} bytes")
        yield part
        goes_on = message.get("more_body", False)


async def send_file(request: ASGIRequest, download: Download) -> None:
    """Send a file as an attachment; what is appended to it meanwhile is left out. A temporary file is deleted."""
    try:
        await _send(request, download)
    finally:
        if download.delete:
            download.path.unlink(missing_ok=True)


async def _send(request: ASGIRequest, download: Download) -> None:
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in download.name)
    with download.path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        headers = [
            (b"content-type", download.type.encode()),
            (b"content-length", b"%d" % size),
            (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii", "replace")),
            *PRIVATE_HEADERS,
        ]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        while size and (part := await asyncio.to_thread(file.read, min(_BLOCK, size))):
            size -= len(part)
            await request.send({"type": "http.response.body", "body": part, "more_body": True})
    await request.send({"type": "http.response.body", "body": b""})

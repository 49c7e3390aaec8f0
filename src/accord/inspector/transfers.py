"""Files between the page and the inspector: uploads are stored in a folder, downloads are read while they are sent."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from accord.inspector.assets import PRIVATE_HEADERS
from accord.inspector.commands import Download, InspectorError
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


@contextmanager
def new_file(folder: Path) -> Iterator[IO[bytes]]:
    """Yield a new file of a folder, which only its user can read; an error deletes it.

    Raises `InspectorError` if it cannot be stored, as on a full disk.
    """
    file: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as stream:
            file = Path(stream.name)
            yield stream
    except BaseException as exc:
        if file is not None:
            file.unlink()
        if not isinstance(exc, OSError):
            raise
        cure = f"free some space for {folder.parent}"
        raise InspectorError(f"the file could not be stored: {exc.strerror}", cure, status=507) from exc


async def receive_file(request: ASGIRequest, folder: Path) -> Path:
    """Store the body of a request in a new file of a folder.

    Raises `InspectorError`, `RequestRejected`, `ClientDisconnected`.
    """
    with new_file(folder) as stream:
        async for part in _parts(request):
            await asyncio.to_thread(stream.write, part)
    return Path(stream.name)


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

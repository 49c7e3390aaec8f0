"""The body of a response of a provider, within the limits of its size and of the time without data."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from accord.host.models.failures import ProviderFailure
from accord.host.models.limits import ModelLimits
from accord.transport.http.failures import http_errors

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_ERROR_BYTES = 64 << 10
_ERROR_SECONDS = 5.0
_DRAIN_SECONDS = 0.1
_DRAIN_READS = 4


def silent(limits: ModelLimits) -> ProviderFailure:
    """Return the failure of a provider that sends nothing."""
    return ProviderFailure(f"no data for {limits.silence_seconds:g} s (ModelLimits.silence_seconds)", retry=True)


def too_large(what: str, limit: str, limits: ModelLimits) -> ProviderFailure:
    """Return the failure for what is larger than a limit."""
    return ProviderFailure(f"{what} has more than {getattr(limits, limit):,} bytes (ModelLimits.{limit})")


class ResponseBody:
    """The body of one response. Methods raise `ProviderFailure`."""

    def __init__(self, response: ClientResponse, limits: ModelLimits) -> None:
        self._response = response
        self._limits = limits

    async def read_chunk(self) -> bytes:
        """Return received bytes, empty at the end."""
        failure: ProviderFailure
        try:
            async with asyncio.timeout(self._limits.silence_seconds):
                return await self._response.content.readany()
        except TimeoutError:
            failure = silent(self._limits)
        except http_errors() as exc:
            text = f": {exc}" if isinstance(exc, OSError) else ""
            failure = ProviderFailure(f"the connection broke in the middle of the answer{text}", retry=True)
        raise failure

    async def read_whole(self) -> bytes:
        """Return all of it."""
        body = bytearray()
        while chunk := await self.read_chunk():
            body += chunk
            if len(body) > self._limits.event_bytes:
                raise too_large("its answer", "event_bytes", self._limits)
        return bytes(body)

    async def read_excerpt(self) -> bytes:
        """Return the beginning of an error, as far as it arrives soon; the connection may break."""
        body = bytearray()
        try:
            async with asyncio.timeout(_ERROR_SECONDS):
                while len(body) < _ERROR_BYTES and (chunk := await self._response.content.readany()):
                    body += chunk
        except http_errors():  # a timeout is one of them
            pass
        return bytes(body[:_ERROR_BYTES])

    async def drain(self) -> None:
        """Read the end of a stream, if it comes at once: only then can the connection be used again."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                for _ in range(_DRAIN_READS):
                    if not await self._response.content.readany():
                        return
        except http_errors():  # a timeout is one of them
            pass

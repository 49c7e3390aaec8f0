"""The callbacks of a run: the browser at a port of this machine, or a URL that the user pastes."""

from __future__ import annotations

import asyncio

from accord.auth.callback import BrowserCallback, CallbackListener


class CallbackReceiver:
    """The receiver of the callbacks of one run."""

    def __init__(self) -> None:
        self._listener: CallbackListener | None = None
        self._pasted: asyncio.Queue[BrowserCallback] = asyncio.Queue(1)

    @property
    def redirect_uri(self) -> str | None:
        """The redirect URI at this machine, or None before `listen`."""
        return None if self._listener is None else self._listener.redirect_uri

    async def listen(self, port: int, preferred: str | None) -> None:
        """Listen at a port of this machine, as `CallbackListener`. Raises `AuthorizationError`."""
        self._listener = await CallbackListener(port, preferred).__aenter__()

    def paste(self, url: str) -> bool:
        """Add the URL of a callback; return whether there was none yet."""
        if self._pasted.full():
            return False
        self._pasted.put_nowait(BrowserCallback(url.strip()))
        return True

    async def receive(self) -> BrowserCallback:
        """Wait for the next callback; what was pasted before is ignored."""
        while not self._pasted.empty():
            self._pasted.get_nowait()
        sources = [asyncio.ensure_future(self._pasted.get())]
        if self._listener is not None:
            sources.append(asyncio.ensure_future(self._listener.receive()))
        try:
            done, _ = await asyncio.wait(sources, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for source in sources:
                source.cancel()

    async def close(self) -> None:
        """Stop to listen."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.__aexit__(None, None, None)

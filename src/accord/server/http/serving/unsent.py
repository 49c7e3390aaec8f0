"""What a transport has not been able to send."""

from __future__ import annotations

import asyncio


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the client has not taken yet."""
    try:
        return transport.get_write_buffer_size()
    except RuntimeError:  # uvloop: it is closed
        return 0

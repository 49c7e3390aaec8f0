"""How a peer server is told to serve over HTTP: `SERVER.py WAY HOST:PORT`; without arguments it serves over stdio.

mcp          Streamable HTTP at /mcp, with sessions
stateless    the same without, and answers as JSON
sse          HTTP+SSE at /sse
"""

from __future__ import annotations

import sys
from typing import NamedTuple


class Way(NamedTuple):
    name: str
    host: str
    port: int

    @property
    def stateless(self) -> bool:
        return self.name == "stateless"


def asked() -> Way | None:
    """The way that the command line asks for."""
    if len(sys.argv) < 3:
        return None
    host, _, port = sys.argv[2].rpartition(":")
    return Way(sys.argv[1], host, int(port))

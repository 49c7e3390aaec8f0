"""How a peer server is told to serve over HTTP: `SERVER.py WAY HOST:PORT`; without arguments it serves over stdio.

mcp          Streamable HTTP at /mcp, with sessions
stateless    the same without, and answers as JSON
sse          HTTP+SSE at /sse
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


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


def run_mcp1(server: Any) -> None:
    """Run a server on the official SDK 1.x as the command line asks."""
    way = asked()
    if way is not None:
        server.settings.host, server.settings.port = way.host, way.port
        server.settings.stateless_http = server.settings.json_response = way.stateless
    server.run("stdio" if way is None else "sse" if way.name == "sse" else "streamable-http")


def run_mcp2(server: Any) -> None:
    """Run a server on the official SDK 2.x as the command line asks."""
    way = asked()
    if way is None:
        server.run()
    elif way.name == "sse":
        server.run("sse", host=way.host, port=way.port)
    else:
        options = {"stateless_http": way.stateless, "json_response": way.stateless}
        server.run("streamable-http", host=way.host, port=way.port, **options)

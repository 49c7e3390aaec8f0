"""A server with a tool that ends it; it is served over every transport."""

import os

from accord import Server

server = Server("dying", "1")


@server.tool
def die(n: int) -> str:
    """Ends for numbers that are large."""
    if n > 100:
        os._exit(3)
    return f"{n}"

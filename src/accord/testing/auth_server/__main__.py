"""An authorization server on this machine, to try logins with: `python -m accord.testing.auth_server [PORT]`.

Its only user, `alice`, consents to everything. Any client may register itself; the client `robot`, with the secret
`secret-of-robot`, is there already. It is for tests only.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec

from accord.testing.auth_server.server import AuthServer


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    ended = asyncio.Event()
    with suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AuthServer(port=port) as server:
        server.add_client("robot", "secret-of-robot")
        sys.stderr.write(
            f"authorization server for tests, issuer {server.issuer}, whose user alice consents to everything; "
            "Ctrl-C ends it, and forgets all clients and logins\n"
        )
        sys.stderr.flush()
        await ended.wait()


def main() -> None:
    """Serve at the port of the command line."""
    parser = argparse.ArgumentParser(prog="python -m accord.testing.auth_server", description=__doc__)
    parser.add_argument("port", type=int, nargs="?", default=9000, help="the port on loopback; 0 for any")
    port = parser.parse_args().port
    if find_spec("joserfc") is None:
        parser.exit(2, "error: it needs joserfc: pip install 'accord[auth]'\n")
    try:
        asyncio.run(serve(port))
    except OSError as exc:
        parser.exit(1, f"error: {exc.strerror}\n")


if __name__ == "__main__":
    main()

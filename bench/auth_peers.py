"""The CPU time that a token adds to a `tools/call` over HTTP, for accord and for other libraries.

The floor of each row is the same server without authorization. All calls have the same token; accord verifies it once,
the others verify it each time, except `mcp` with a table of tokens. `scripts/peers` installs the libraries.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.auth_tokens import Issuer
from bench.http import SECONDS, WARM_UP, Load
from bench.http_wire import Site
from bench.measure import HERE, LOADING, Figure, compare, take_turns
from bench.wire import STATELESS

ROUNDS, CONNECTIONS = 15, 16
PEERS = HERE.parent / ".cache" / "peers"
LIBRARIES = {
    "accord": Path(sys.executable),
    "fastmcp": PEERS / "fastmcp" / "bin" / "python",
    "mcp": PEERS / "mcp2" / "bin" / "python",
    "mcp-pyjwt": PEERS / "mcp2" / "bin" / "python",
}
"""The libraries, and the interpreters that have them."""


def run() -> list[Figure]:
    os.sched_setaffinity(0, {LOADING})
    with Issuer() as issuer:
        return [figure(library, python, issuer) for library, python in LIBRARIES.items()]


def figure(library: str, python: Path, issuer: Issuer) -> Figure:
    token = f"Authorization: Bearer {issuer.token()}"
    with ExitStack() as stack:
        loads = []
        for auth, headers in (("none", ()), ("token", (token,))):
            arguments = (library, auth, issuer.url, issuer.jwks_uri)
            site = Site("auth_servers.py", *arguments, interpreter=str(python), headers=headers)
            loads.append(Load(stack.enter_context(site), STATELESS, "echo", CONNECTIONS))
        for load in loads:
            load.run(WARM_UP)
        floors, times = take_turns(ROUNDS, *(lambda load=load: load.run(SECONDS) for load in loads))
    return compare(f"{library}: a call with a token", "µs CPU", floors, times, pick=min)

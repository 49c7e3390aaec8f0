"""What a server says on stderr when it begins: one line to find it by, and one more where anybody may use it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from accord.server.http.options import HTTPOptions
from accord.server.http.serving.address import Address


def start_line(name: str, revisions: Sequence[str], where: Address, options: HTTPOptions) -> str:
    """Where it is, what it speaks, and who is let in."""
    gate = options.gate()
    public = f", public {options.public_url}" if options.public_url else ""
    forms = "Streamable HTTP without sessions" if options.stateless else "Streamable HTTP, and HTTP+SSE at /sse"
    return (
        f"accord: {name} at http://{where}{options.path}{public}; revisions {', '.join(revisions)}; "
        f"{forms}; hosts {', '.join(gate.hosts.patterns)}; "
        f"origins {', '.join(gate.origins.patterns)}"
    )


def warning_line(where: Address) -> str:
    """For a server that others than this machine reach, and that asks nobody who they are."""
    return (
        f"accord: warning: {where} can be reached from other machines, and whoever reaches it may use all of it; "
        "give the server auth=APIKeys({...}), or listen at 127.0.0.1"
    )


def write_stderr(line: str) -> None:
    """One line on stderr, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

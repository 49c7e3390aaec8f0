"""A rule has the verdict of a whole run when it is selected alone, in servers made with the official SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.engine.test_selection import verdicts
from tests.interop.peers import npm_server, peer_server
from tests.interop.serving import free_port, serving

AREAS = {
    "stdio": ("errors", "tools"),
    "http": ("discover", "prompts", "tools"),
}
"""Over stdio those that start few processes."""
SKIPPED = {"stdio": ("stdio",), "http": ()}
"""The rules about the process start many, and have conversations of their own."""
REVISION = {"stdio": "2025-11-25", "http": "2026-07-28"}
TIMEOUT = {"stdio": 2.0, "http": 5.0}
"""The server over stdio never answers invalid requests."""


@contextmanager
def peer(over: str, folder: Path) -> Iterator[Any]:
    """A server made with the TypeScript SDK over stdio, or with the Python SDK over HTTP: its target."""
    if over == "stdio":
        command, *arguments = npm_server("memory")
        yield {"command": command, "args": arguments, "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}}
    else:
        with serving([*peer_server("mcp2"), "mcp"], free_port()) as served:
            yield f"{served.url}/mcp"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_an_area_alone_has_the_verdicts_of_the_whole_run(over: str, tmp_path: Path) -> None:
    settings = CheckSettings(revisions=(REVISION[over],), level="should", skip=SKIPPED[over], timeout=TIMEOUT[over])
    with peer(over, tmp_path) as target:
        whole = verdicts(await check_server(target, settings))
        for area in AREAS[over]:
            alone = msgspec.structs.replace(settings, only=(area,))
            wanted = {rule: verdict for rule, verdict in whole.items() if rule.startswith(f"{area}/")}
            assert wanted
            assert verdicts(await check_server(target, alone)) == wanted

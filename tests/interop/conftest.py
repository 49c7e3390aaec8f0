"""Fixtures of the interop tests: run a peer client against a server, find the peers or fail."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.peers import Sdk, peer_client

Watch = Callable[..., dict[str, Any]]

SECONDS = 50
"""For a whole story, below the timeout of a test: a peer takes 2 to 6 s, most of it its own imports."""


@pytest.fixture
def watch() -> Watch:
    """`watch(sdk, command, revision=None)`: what that peer client saw of the server that `command` starts."""

    def run(sdk: Sdk, command: list[str], revision: str | None = None) -> dict[str, Any]:
        speaks = ["--revision", revision] if revision else []
        done = subprocess.run(
            [*peer_client(sdk), *speaks, "--", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"the {sdk} client failed:\n{done.stderr[-4000:]}"
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return run

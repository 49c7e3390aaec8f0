"""The steps of OAuth do no I/O: whoever drives them sends the requests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import accord.auth

FOLDER = Path(accord.auth.__file__).parent
DRIVERS = {
    *("callback", "credential_store", "credentials", "http", "logout", "lookups", "oauth", "program_grants"),
    *("secret_keyring", "user_grants"),
}
"""Modules that send requests, open files, wait, or use a module that does."""
STEPS = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__"} - DRIVERS)
IO = {"aiohttp", "asyncio", "http", "keyring", "select", "socket", "sqlite3", "ssl", "subprocess", "threading"}
IO |= {"urllib.request", "webbrowser", *(f"accord.auth.{name}" for name in DRIVERS), "accord.transport", "accord.store"}
PURE = {"accord.transport.http.redaction"}
"""What is in a folder of drivers, and does no I/O either."""


@pytest.mark.parametrize("name", STEPS)
def test_a_module_of_steps_imports_nothing_that_does_io(name: str) -> None:
    found = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    assert not {each for each in found - PURE if any(each == io or each.startswith(f"{io}.") for io in IO)}


def test_the_flow_is_made_of_steps() -> None:
    assert {"code_grant", "device_grant", "discovery", "dpop", "registration", "tokens"} <= set(STEPS)

"""Approvals at a terminal: commands and definitions of servers, and the lists of what was approved."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import msgspec

from accord.host.grants import CallGrant
from accord.host.state import HostState

from tests.cli.conftest import Run
from tests.cli.terminal import Terminal

SHOP = '''
from accord import Server

server = Server("shop")

@server.tool
def price(item: str) -> int:
    """{description}"""
    return len(item)
'''
FORGED = r"Sells.\x1b[2J\u200b" + "x" * 60 + "\\u3000" * 20 + "Approve? (yes, no) [yes]:"

At = Callable[..., Terminal]


@pytest.fixture
def at(environment: None, tmp_path: Path) -> Iterator[At]:
    """Run `accord` at a terminal, with approvals of its own."""
    with ExitStack() as stack:
        yield lambda *arguments, **more: stack.enter_context(
            Terminal(
                *arguments,
                cwd=tmp_path,
                **{"NO_COLOR": "1", "COLUMNS": "80", "ACCORD_HOST_STATE": str(tmp_path / "host.db"), **more},
            )
        )


def configure(folder: Path, description: str = "The price.") -> None:
    (folder / "shop.py").write_text(SHOP.format(description=description), encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-m", "accord", "run", str(folder / "shop.py")]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")


def test_a_configuration_that_was_found_starts_nothing_without_an_approval(at: At, tmp_path: Path) -> None:
    configure(tmp_path)
    user = at("pins", "show")
    user.expect("Start the server 'shop'?")
    shown = "".join(user.expect("contents: sha256").replace("    | ", "").split())  # a long path is wrapped
    assert str(tmp_path / "shop.py") in shown
    user.expect("Approve? (yes, no) [no]: ")
    user.type("")
    user.expect("denied")
    code, out, rest = user.end()
    assert (code, out) == (0, "no definition waits for an approval\n")
    assert "shop is not available: its command was not approved" in rest


def test_a_changed_definition_is_approved_with_its_difference(at: At, accord: Run, tmp_path: Path) -> None:
    configure(tmp_path)
    state = {"ACCORD_HOST_STATE": str(tmp_path / "host.db")}
    assert (
        accord("pins", "approve", "--config", "mcp.json", "--yes", **state).stdout == "shop: approved 1 definitions\n"
    )
    assert accord("pins", "show", "--config", "mcp.json", **state).returncode == 0
    configure(tmp_path, "The price, without tax.\\u200b")
    seen = accord("pins", "show", "--config", "mcp.json", **state)
    assert seen.returncode == 1
    assert "tool price, CHANGED since you approved it\n" in seen.stdout
    assert '-  "description": "The price."' in seen.stdout
    assert '+  "description": "The price, without tax.\\u200b"' in seen.stdout
    (record,) = json.loads(accord("pins", "show", "--config", "mcp.json", "--json", **state).stdout)
    assert (record["server"], record["name"], record["state"]) == ("shop", "price", "changed")

    user = at("pins", "approve", "--config", "mcp.json")
    user.expect("Use 1 definitions of the server 'shop'?")
    assert '  │ +  "description": "The price, without tax.\\u200b"' in user.expect("Approve? (yes, no) [no]: ")
    user.type("yes")
    assert user.end()[:2] == (0, "shop: approved 1 definitions\n")
    assert accord("pins", "show", "--config", "mcp.json", **state).returncode == 0


def test_a_definition_cannot_imitate_the_prompt(at: At, tmp_path: Path) -> None:
    configure(tmp_path, FORGED)
    user = at("pins", "approve", "--config", "mcp.json")
    text = user.expect("\n  Approve? (yes, no) [no]: ")
    assert "\x1b" not in text
    assert r"\u001b[2J\u200b" in text
    lines = text.split("\n")
    of_server = [line for line in lines if "x" * 20 in line or "Approve" in line or "\u3000" in line]
    assert len(of_server) >= 2
    assert all(line.startswith("  │ ") and _columns(line) <= 80 for line in of_server), lines
    user.press("\x03")
    user.expect("denied")
    assert user.end()[0] == 1


def _columns(line: str) -> int:
    return len(line) + line.count("\u3000")


def test_without_a_terminal_nothing_is_approved(accord: Run, tmp_path: Path) -> None:
    configure(tmp_path)
    state = {"ACCORD_HOST_STATE": str(tmp_path / "host.db")}
    done = accord("pins", "approve", "--config", "mcp.json", **state)
    assert (done.returncode, done.stdout) == (1, "")
    assert "shop: 1 definitions still wait for an approval" in done.stderr
    assert accord("pins", "show", **state).stderr.count("there is no terminal to ask at") == 1
    assert accord("pins", "show", "cheese", "--config", "mcp.json", **state).returncode == 4


def test_there_has_to_be_a_configuration(accord: Run) -> None:
    done = accord("pins", "show")
    assert done.returncode == 2
    assert "there is no mcp.json or .mcp.json here; name a configuration: --config FILE" in done.stderr


async def test_grants_are_listed_and_revoked(accord: Run, tmp_path: Path) -> None:
    state = {"ACCORD_HOST_STATE": str(tmp_path / "host.db")}
    assert accord("grants", "list", **state).stdout == "there is no grant\n"
    assert "host.db" not in os.listdir(tmp_path)
    async with HostState(tmp_path / "host.db") as stored:
        for grant in (
            CallGrant(id="a1", principal="", server="d", server_name="shop", tool="price", at=time.time()),
            CallGrant(
                id="b2", principal="ann", server="d", server_name="shop", tool="*", at=1, expires=2, arguments="x"
            ),
        ):
            await stored.add_grant(grant.id, msgspec.json.encode(grant))
    listed = accord("grants", "list", **state).stdout
    assert "a1   price of shop; given 20" in listed
    assert "b2   * of shop; for ann; with the same arguments only; given 1970-" in " ".join(listed.split("\n"))
    assert [each["id"] for each in json.loads(accord("grants", "list", "--json", **state).stdout)] == ["a1", "b2"]
    assert accord("grants", "revoke", "a1", **state).stdout == "revoked a1\n"
    again = accord("grants", "revoke", "a1", **state)
    assert (again.returncode, again.stderr) == (1, "there is no grant 'a1'; accord grants list shows them\n")

"""A program whose host asks at the terminal, with the prompts of the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from tests.cli.terminal import Terminal

DESK = '''
import asyncio
import sys

from accord import Context, Server
from accord.host import Host, TerminalApprover

shop = Server("shop")


@shop.tool
async def order(ctx: Context, item: str) -> str:
    """Order something. \\x1b[2J"""
    size = await ctx.elicit("Which size?", ["small", "large"])
    return f"{item} {size.action}"


async def main() -> None:
    terminal = TerminalApprover()
    async with Host({"shop": shop}, approve=terminal, elicitation=terminal.elicit, state=":memory:") as host:
        for item in sys.argv[1:]:
            print((await host.call_tool("shop_order", {"item": item})).text, flush=True)
        if not sys.argv[1:]:
            print("nothing to do", file=sys.stderr)
            await asyncio.sleep(3600)


asyncio.run(main())
'''


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[list[Terminal]]:
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    opened: list[Terminal] = []
    yield opened
    for each in opened:
        each.__exit__(None, None, None)


def start(opened: list[Terminal], folder: Path, *items: str) -> Terminal:
    opened.append(Terminal(*items, cwd=folder, python=["desk.py"], NO_COLOR="1", COLUMNS="80"))
    return opened[-1]


def approve_definitions(user: Terminal) -> None:
    user.expect("Use 1 definitions of the server 'shop'?\n")
    assert "\x1b" not in user.expect("Approve? (yes, no) [no]: ")
    user.type("yes")


def test_a_program_asks_at_its_terminal(desk: list[Terminal], tmp_path: Path) -> None:
    user = start(desk, tmp_path, "tea", "coffee", "milk")
    approve_definitions(user)
    user.expect("Call 'order' on the server 'shop'?\n")
    assert '  │   "item": "tea"\n' in user.expect("Approve? (yes, no, conversation, always) [no]: ")
    user.type("yes")
    user.expect("shop asks you")
    user.expect("Which size?")
    user.expect(": ")
    user.type("small")
    user.expect("Call 'order' on the server 'shop'?\n")
    user.expect("[no]: ")
    user.type("no")
    user.expect("Call 'order' on the server 'shop'?\n")
    user.expect("[no]: ")
    user.press("\x04")
    code, out, _ = user.end()
    first, *denied = out.splitlines()
    assert (code, first, len(denied)) == (0, "tea accept", 2)
    assert all("the user did not approve it" in line for line in denied)


def test_ctrl_c_ends_the_program_when_nothing_is_asked(desk: list[Terminal], tmp_path: Path) -> None:
    user = start(desk, tmp_path)
    approve_definitions(user)
    user.expect("nothing to do")
    user.press("\x03")
    code, _, rest = user.end()
    assert code != 0
    assert "KeyboardInterrupt" in rest


def test_ctrl_c_at_a_prompt_denies_the_call_and_the_program_goes_on(desk: list[Terminal], tmp_path: Path) -> None:
    user = start(desk, tmp_path, "tea", "coffee")
    approve_definitions(user)
    for _ in range(2):
        user.expect("Call 'order' on the server 'shop'?\n")
        user.expect("[no]: ")
        user.press("\x03")
        user.expect("denied")
    code, out, _ = user.end()
    assert (code, out.count("the user did not approve it")) == (0, 2)

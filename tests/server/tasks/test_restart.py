"""Servers that are killed at each operation of their task store: nothing unsafe runs twice, no result is lost.

`ACCORD_KILLS=20` repeats each point 20 times.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from accord import AccordError, Client, InvalidParams
from accord.errors import InternalError

PROGRAM = str(Path(__file__).with_name("killed.py"))
POINTS = [("create", "1", "before"), ("create", "1", "after")]
POINTS += [("save", str(number), when) for number in range(1, 6) for when in ("before", "after")]
"""12 points: the creation; and the saves of `ctx.once`, of the question, of the answer, of the states, of the end."""


def client(folder: Path, *killed: str) -> Client:
    command = [sys.executable, PROGRAM, str(folder), *killed]
    return Client(command, revisions=["2026-07-28"], elicitation=lambda _: {"name": "Zoe"})


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


async def outcome(client: Client, id: str, tool: str) -> str:
    """Return the result of a task; an empty text for an unsafe one whose server stopped during it."""
    task = client.task(id)
    if tool == "safe" or (await task.state()).status == "completed":
        return (await task.result()).text
    with pytest.raises(InternalError, match="whether it took effect is unknown"):
        await task.result()
    return ""


@pytest.mark.parametrize("run", range(int(os.environ.get("ACCORD_KILLS", "1"))))
@pytest.mark.parametrize("point", POINTS, ids="-".join)
@pytest.mark.parametrize("tool", ["safe", "unsafe"])
async def test_a_task_survives_the_kill_of_its_server(
    tool: str, point: tuple[str, ...], run: int, tmp_path: Path
) -> None:
    id, result = "", ""
    try:
        async with client(tmp_path, *point) as first:
            task = await first.start_tool(tool)
            id = task.id
            result = (await task.result()).text
    except AccordError:
        pass
    async with client(tmp_path) as second:
        if id:
            again = await outcome(second, id, tool)
            assert again == result or not result, "a result that the client had is lost"
            assert again == "7 Zoe" or tool == "unsafe"
        else:
            with pytest.raises(InvalidParams):
                await second.task("x" * 43).state()
    if tool == "unsafe":
        assert effects(tmp_path).count("unsafe began") <= 1
        assert effects(tmp_path).count("unsafe ended") <= 1

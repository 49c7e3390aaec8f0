"""A task under `accord dev`: it goes on through an edit of its server, and through the end of its process."""

from __future__ import annotations

import pytest

from accord import Client

from tests.dev.programs import Program, text_of

TASKS = """
from accord import ToolAnnotations
from accord.stores import SQLiteTasks

server = Server("weather", tasks=SQLiteTasks(Path(__file__).with_name("tasks.db")))

@server.tool()
def version() -> str:
    return "{version}"

@server.tool()
def crash() -> str:
    os._exit(3)

@server.tool(task=True, annotations=ToolAnnotations(idempotent_hint=True))
async def forecast(file: str) -> str:
    while not Path(file).exists():
        await asyncio.sleep(0.005)
    return "forecast of {version}"
"""


def write(program: Program, version: str) -> None:
    program.write(version, TASKS.format(version=version))


async def check_story(program: Program, client: Client) -> None:
    file = program.folder / "go"
    task = await client.start_tool("forecast", {"file": str(file)})
    assert (await task.state()).status == "working"
    write(program, "two")
    await program.until_reloaded()
    assert await text_of(client, "version") == "two"
    assert (await client.task(task.id).state()).status == "working"
    assert (await client.call_tool("crash", {})).is_error
    assert (await client.task(task.id).state()).status == "working"
    file.touch()
    result = await client.task(task.id).result()
    # by the first process if it is still in its grace period, else by one that has run the handler again
    assert result.text in ("forecast of one", "forecast of two")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_task_outlives_an_edit_and_a_crash_of_its_server(revision: str, program: Program) -> None:
    write(program, "one")
    async with program.connected(revision) as client:
        await check_story(program, client)

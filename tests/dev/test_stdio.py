"""What only `accord dev` over stdio does."""

from __future__ import annotations

from pathlib import Path

import pytest

from accord import Client

from tests.dev.programs import Program, text_of
from tests.waiting import until


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, "stdio")


async def test_a_broken_version_is_not_used_even_before_the_first_message_of_the_host(program: Program) -> None:
    imported = program.folder / "imported"
    program.write("one", f"Path({str(imported)!r}).touch()\n")
    async with program.served() as host:
        await until(imported.exists)
        program.write("two", "def broken(:\n")
        await program.until_shown("the last good version continues")
        async with Client(host) as client:
            assert await text_of(client, "version") == "one"


async def test_a_program_that_is_broken_from_the_start_is_served_once_it_is_repaired(program: Program) -> None:
    program.write("one", "import weather_that_does_not_exist\n")
    async with program.connected() as client:
        assert await client.list_tools() == []
        result = await client.call_tool("version", {})
        assert result.is_error
        assert "weather_that_does_not_exist" in result.content[0].text  # type: ignore[union-attr]
        program.write("two")
        await until(lambda: any("reloaded in" in line for line in program.shown), lambda: program.shown)
        assert await text_of(client, "version") == "two"

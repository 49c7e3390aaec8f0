"""What only `accord dev --http` does."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from accord.client.target import Command
from accord.dev.http import HTTPReloader
from accord.dev.settings import DevSettings
from accord.errors import TargetError

from tests.dev.programs import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, "http")


async def test_an_address_that_other_machines_reach_is_refused(program: Program) -> None:
    program.write("one")
    reloader = HTTPReloader(program.command, "0.0.0.0:0", DevSettings(), show=print, show_stderr=print)
    with pytest.raises(TargetError, match=r"serves 127\.0\.0\.1 only"):
        await reloader.run()


def test_a_command_is_served_over_stdio_only() -> None:
    with pytest.raises(TargetError, match=r"--http needs FILE\.py"):
        HTTPReloader(Command(("node", "server.js")), ":0", DevSettings(), show=print, show_stderr=print)


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
async def test_a_page_of_another_site_does_not_read_the_errors_of_the_program(
    program: Program, headers: dict[str, str]
) -> None:
    program.file.write_text("secret of the source (")
    async with program.served() as url, aiohttp.ClientSession() as session:
        async with session.post(url, json={}, headers=headers) as answer:
            assert answer.status == 403
            assert "secret" not in await answer.text()
        async with session.post(url, json={}) as answer:
            assert answer.status == 503

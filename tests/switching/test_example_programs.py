"""Example programs of other libraries run with their import lines changed, and answer as they did.

Each program of programs.toml is copied, its imports are rewritten by the rule of `accord migrate`, and a client visits
it in a process of its own. What it lists and answers is compared with what its own library did, kept in expected.json.
`pytest tests/switching --update` visits the originals, in the environments of scripts/peers, and writes that anew.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accord.client.target import Command
from accord.migrate.rewrite import rewrite

from tests.interop.peers import peer_python
from tests.switching import score
from tests.switching.programs import EXPECTED, Program, expected, kept, programs
from tests.switching.sources import folder
from tests.switching.visit import visit

SERVE = Path(__file__).parent / "serve.py"
SECONDS = 150
"""For one visit, below the timeout of a test."""

LISTED = programs()
SEEN = expected()


def laid_out(program: Program, scratch: Path, files: Mapping[str, str]) -> Path:
    """The program in a folder of its own, with what stands beside it."""
    source = folder(program.of) / program.path
    shutil.copytree(source.parent, scratch / "program")
    for name, text in files.items():
        file = scratch / "program" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return scratch / "program" / source.name


async def visited(python: Path | str, file: Path, program: Program) -> dict[str, Any]:
    """What a visit sees, of the program as it stands in `file`."""
    command = Command((str(python), str(SERVE), str(file), program.server), cwd=str(file.parent))
    async with asyncio.timeout(SECONDS):
        return await visit(command, program)


def switched(program: Program, scratch: Path, *, native: bool = False) -> Path:
    """The program with every file in its folder rewritten: their imports, or what can be in accord's own words."""
    file = laid_out(program, scratch, {**program.files, **program.stand_ins})
    for each in file.parent.rglob("*.py"):
        each.write_text(rewrite(each.read_text(encoding="utf-8"), native=native).text, encoding="utf-8")
    return file


@pytest.mark.parametrize("program", LISTED, ids=lambda program: program.id)
async def test_a_program_answers_as_it_did_on_its_own_library(program: Program, tmp_path: Path, update: bool) -> None:
    if update:
        seen = await visited(peer_python(program.of), laid_out(program, tmp_path, program.files), program)
        written = {**expected(), program.id: kept(seen)}
        EXPECTED.write_text(json.dumps(dict(sorted(written.items())), indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    if not program.fails:
        await answers_the_same(switched(program, tmp_path), program)
        return
    with pytest.raises(Exception) as failed:  # noqa: PT011  of any kind: `error` says which
        await answers_the_same(switched(program, tmp_path), program)
    assert program.error in str(failed.value)


async def answers_the_same(file: Path, program: Program) -> None:
    python = peer_python("servers") if program.of == "servers" else sys.executable  # which need libraries of their own
    seen = await visited(python, file, program)
    assert kept(seen) == SEEN[program.id], f"seen: {json.dumps(seen, indent=1)}"


@pytest.mark.parametrize(
    "program", [one for one in LISTED if one.of == "mcp1" and not one.fails], ids=lambda program: program.id
)
async def test_a_program_answers_the_same_with_the_names_of_accord(program: Program, tmp_path: Path) -> None:
    await answers_the_same(switched(program, tmp_path, native=True), program)


def test_the_page_has_the_score_and_the_list(update: bool) -> None:
    if update:
        score.write(score.section(LISTED))
    assert score.written() == score.section(LISTED)


def test_the_list_is_fixed_and_long_enough() -> None:
    assert len({program.id for program in LISTED}) == len(LISTED) >= 60
    assert sorted(SEEN) == sorted(program.id for program in LISTED)
    assert all(bool(program.fails) == bool(program.error) for program in LISTED)

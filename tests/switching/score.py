"""The score of the fixed list, as docs/switching.md has it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.switching.programs import Program
from tests.switching.sources import SOURCES, Origin

PAGE = Path(__file__).parent.parent.parent / "docs" / "switching.md"
BEGIN, END = "<!-- score: begin -->\n", "<!-- score: end -->\n"

_WRITTEN_WITH: dict[Origin, str] = {
    "fastmcp": "`FastMCP`",
    "mcp2": "`MCPServer`",
    "mcp1": "`FastMCP` of the official SDK",
    "servers": "`MCPServer`",
}

_NAMES: dict[Origin, str] = {origin: f"{source.project} {source.version}" for origin, source in SOURCES.items()} | {
    "servers": "reference servers"
}


def section(programs: list[Program]) -> str:
    """The section between the marks: the score by origin, what fails, and the list."""
    return "\n".join([*_table(programs), "", *_failures(programs), "", *_list(programs), ""])


def _table(programs: list[Program]) -> Iterator[str]:
    yield "| source distribution | written with | programs | same responses |"
    yield "| --- | --- | ---: | ---: |"
    for origin, name in _NAMES.items():
        own = [one for one in programs if one.of == origin]
        yield f"| {name} | {_WRITTEN_WITH[origin]} | {len(own)} | {_working(own)} |"
    yield f"| **all** | | **{len(programs)}** | **{_working(programs)}** |"


def _working(programs: list[Program]) -> int:
    return sum(not one.fails for one in programs)


def _failures(programs: list[Program]) -> Iterator[str]:
    yield "Programs that fail, and why:"
    yield ""
    for one in programs:
        if one.fails:
            yield f"- {_NAMES[one.of].replace(' ', '-')} `{one.path}`: {one.fails}."


def _list(programs: list[Program]) -> Iterator[str]:
    yield "All programs:"
    yield ""
    for origin, name in _NAMES.items():
        own = [Path(one.path) for one in programs if one.of == origin]
        for folder, files in groupby(own, key=lambda path: path.parent):
            names = ", ".join(f"`{file.name}`" for file in files)
            yield f"- {name.replace(' ', '-')} `{folder}`: {names}"


def written() -> str:
    """The section as the page has it."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def write(text: str) -> None:
    """Put the section into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")

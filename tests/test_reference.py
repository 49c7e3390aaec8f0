"""docs/reference/ is what the signatures and docstrings say now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import accord

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "reference.py"))
READ = re.compile(r"""environ(?:\.get\(|\[)\s*"(\w+)"|"(\w+)" (?:not )?in os\.environ|envvar="(\w+)\"""")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    written: dict[str, str] = SCRIPT["pages"]()
    return written


def test_the_pages_are_current(pages: dict[str, str]) -> None:
    there = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "reference").glob("*.md")}
    stale = [name for name in sorted({*pages, *there}) if pages.get(name) != there.get(name)]
    assert not stale, f"run scripts/reference.py: {', '.join(stale)}"


def test_every_public_name_has_a_heading_and_a_text(pages: dict[str, str]) -> None:
    described = dict(re.findall(r"(?ms)^## (\w+)\n(.*?)(?=^## |\Z)", "\n".join(pages.values())))
    assert set(accord._HOMES) <= set(described)
    bare = [name for name in accord._HOMES if not re.sub(r"(?s)```py.*?```", "", described[name]).strip()]
    assert not bare


def test_every_option_of_a_decorator_is_described(pages: dict[str, str]) -> None:
    for options in ("ToolOptions", "PromptOptions"):
        section = re.search(rf"(?ms)^## {options}\n(.*?)(?=^## |\Z)", pages["server.md"])
        assert section is not None
        rows = re.findall(r"(?m)^\| `(\w+)` \|.*\| ([^|]*) \|$", section[1])
        assert {"name", "title", "scopes"} <= {name for name, _ in rows}
        assert all(text.strip() for _, text in rows), rows


def test_the_environment_variables_are_those_that_the_sources_read() -> None:
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    read = {name for found in READ.finditer(sources) for name in found.groups() if name}
    ours = {name for name in SCRIPT["ENVIRONMENT"] if "PROXY" not in name}
    # an example in a docstring, and what a child process is given rather than what is read
    assert read - {"ANN_KEY"} == ours

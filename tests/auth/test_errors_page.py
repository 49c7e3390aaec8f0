"""The tables of errors in docs/authorization.md have messages that accord can write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import accord

PACKAGE = Path(accord.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "authorization.md"
COMPOSED = {"needs a login", "found HTTP 403", "10.0.0.1 is a"}
"""Parts that have a value of an example."""
FEWEST = 6
"""Shorter parts are found in any text."""


def messages() -> list[str]:
    """Return the messages of the first columns."""
    tables = PAGE.read_text(encoding="utf-8").partition("\n## Errors\n")[2]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def source() -> str:
    """Return the code that writes them, with `...` in place of values, and texts of several lines in one."""
    files = [file for name in ("auth", "server/auth") for file in sorted((PACKAGE / name).rglob("*.py"))]
    files.append(PACKAGE / "errors.py")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"\{[^{}]*\}", "...", re.sub(r'"\s*\n\s*f?"', "", text))


def parts(message: str) -> list[str]:
    """Return the texts between the values of a message."""
    found = [part.strip(" ,:;") for part in re.split(r"\.\.\.|: |, |; found", message)]
    return [part for part in found if len(part) >= FEWEST and part not in COMPOSED]


def test_there_is_a_page_of_errors() -> None:
    assert len(messages()) > 25


@pytest.mark.parametrize("message", messages())
def test_accord_writes_each_message_of_the_page(message: str) -> None:
    code = source()
    assert not [part for part in parts(message) if part not in code and part.rpartition(" ")[0] not in code]

"""The normative sentences of an extension's pages: a paragraph, an item of a list, or a row of a table, with a word of
BCP 14 in capitals.

python -m tests.check.extension_sentences ext-auth FOLDER > tests/check/sentences/extensions.auth.tsv

A line has the id of the sentence, its levels, its section, and a digest of its text: never the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.check.schema_comments import CAPITALS
from tests.data.derive import digest

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
EXAMPLE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"\s*(?:[-*>]|\d+\.)\s")
RULER = set("|- ")


def rows(name: str, page: str, text: str) -> Iterator[str]:
    """Yield a line for each normative sentence of a page."""
    for number, (section, sentence) in enumerate(_normative(text), 1):
        levels = ", ".join(dict.fromkeys(CAPITALS.findall(sentence)))
        yield f"{name}/{page}#{number:02}\t{levels}\t{section}\t{digest(sentence)}"


def _normative(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for block in _blocks(EXAMPLE.sub("", FRONT_MATTER.sub("", text))):
        if block.startswith("#"):
            section = re.sub(r"[^a-z0-9]+", "-", _plain(block.lstrip("# ")).lower()).strip("-")
        elif CAPITALS.search(_plain(block)):
            yield section, _plain(block)


def _blocks(text: str) -> Iterator[str]:
    """Yield headings, paragraphs, items and rows of tables."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        starts = line.startswith(("#", "|")) or ITEM.match(line) is not None
        if lines and (starts or not line.strip() or lines[0].startswith(("#", "|"))):
            yield " ".join(lines)
            lines = []
        if line.startswith("|"):
            if not set(line) <= RULER and "Required/Optional" not in line:
                lines = ["| " + " | ".join(_plain(cell) for cell in line.strip("|").split("|"))]
        elif line.strip():
            lines.append(ITEM.sub("", line, count=1) if starts and not line.startswith("#") else line.strip())
    yield from [" ".join(lines)] if lines else []


def _plain(text: str) -> str:
    """Return a text without links, emphasis and line breaks."""
    return re.sub(r"\s+", " ", LINK.sub(r"\1", text).replace("**", "")).strip().removeprefix("| ")


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[2]).glob("*.mdx")):
        for row in rows(sys.argv[1], path.stem, path.read_text(encoding="utf-8")):
            print(row)

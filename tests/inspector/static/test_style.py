"""The style sheet is whole: a brace that is missing would hide the rules after it without an error."""

from __future__ import annotations

import re
from pathlib import Path

STYLE = Path(__file__).parent.parent.parent.parent / "src" / "accord" / "inspector" / "static" / "style.css"


def test_every_block_ends_before_the_next_section() -> None:
    depth = 0
    text = re.sub(r'"[^"]*"', '""', STYLE.read_text("utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line[0].isspace() and not line.startswith("}"):
            assert depth == 0, f"style.css:{number}: a block above it does not end: {line[:60]}"
        depth += line.count("{") - line.count("}")
        assert depth >= 0, f"style.css:{number}: a block ends that did not begin"
    assert depth == 0

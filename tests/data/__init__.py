"""Facts about the specification, derived from its sources by `tests/data/derive.py`, and JSON texts of our own.

- `schemas/REVISION.json`: what each `schema.json` defines: fields, required fields, types, constants, bounds. No prose.
- `examples.json`: the structure of each official example: its members, in which every free text is a placeholder.
- `sentences.tsv`: each normative sentence of the pages: its id, its levels (`MUST, MAY`) and a digest of its text.

So the tests need nothing beside the checkout. The sources are a folder with `spec/schema/REVISION/schema.json`,
`spec/requirements.jsonl` and `data/json-parsing/*.json`: `ACCORD_SOURCES`, or `../shared` beside the checkout. Where it
exists, `test_sources.py` compares the facts with it; elsewhere that file is not collected (`conftest.py`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

SOURCES = Path(os.environ.get("ACCORD_SOURCES") or FOLDER.parents[2] / "shared")

SENTENCES = FOLDER / "sentences.tsv"


def schema(revision: str) -> dict[str, Any]:
    """Return the definitions of a revision, in the form of its `schema.json`."""
    loaded: dict[str, Any] = json.loads((FOLDER / "schemas" / f"{revision}.json").read_text(encoding="utf-8"))
    return loaded


def examples() -> dict[str, Any]:
    """Return the examples of the latest revision: `{"Tool/with-icons": {...}}`."""
    loaded: dict[str, Any] = json.loads((FOLDER / "examples.json").read_text(encoding="utf-8"))
    return loaded

"""Write the facts of this folder anew, from the sources of the specification.

python -m tests.data.derive [SOURCES]
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accord.messages.revision import LATEST, REVISIONS

from tests.data import FOLDER, SENTENCES, SOURCES

PROSE = {"$id", "$schema", "description", "title"}
"""Keywords of a schema that constrain nothing."""

BY_NAME = {"$defs", "definitions", "properties"}
"""Keywords whose members are named by the schema: a property may be called `title`."""

OPEN = {"complete", "input_required", *REVISIONS}
"""Texts with a meaning that no schema enumerates."""

URI = re.compile(r"[a-z]+://")

DIGITS = 12
"""Of the digest of a sentence."""


def facts(sources: Path) -> dict[Path, str]:
    """Return what each derived file is to hold."""
    found = {FOLDER / "schemas" / f"{revision}.json": _schema(sources, revision) for revision in REVISIONS}
    return found | {FOLDER / "examples.json": _examples(sources), SENTENCES: _sentences(sources)}


def source(sources: Path, revision: str) -> dict[str, Any]:
    """Return the official schema of a revision."""
    path = sources / "spec" / "schema" / revision / "schema.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def constraints(schema: Any) -> Any:
    """Return a schema without its prose."""
    if isinstance(schema, list):
        return [constraints(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: constraints(each) for name, each in value.items()} if key in BY_NAME else constraints(value)
        for key, value in schema.items()
        if key not in PROSE
    }


def vocabulary(schema: Any) -> Iterator[str]:
    """Yield the texts that a schema itself fixes: its constants and enumerated values."""
    if isinstance(schema, dict):
        yield from (each for each in [schema.get("const"), *schema.get("enum", ())] if isinstance(each, str))
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from vocabulary(each)


class Placeholders:
    """Replaces the free texts of one example: the same text by the same placeholder, in order of appearance."""

    def __init__(self, fixed: set[str]) -> None:
        self._fixed = fixed
        self._known: dict[str, str] = {}

    def replace(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.replace(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.replace(each) for each in value]
        if isinstance(value, str) and value not in self._fixed:
            form = "https://example.com/{}" if URI.match(value) else "text {}"
            return self._known.setdefault(value, form.format(len(self._known) + 1))
        return value


def _schema(sources: Path, revision: str) -> str:
    schema = constraints(source(sources, revision))
    (key,) = schema
    return f'{{"{key}":{_members(schema[key])}}}\n'


def _examples(sources: Path) -> str:
    fixed = OPEN.union(vocabulary(source(sources, LATEST)))
    folder = sources / "spec" / "schema" / LATEST / "examples"
    found = {
        f"{path.parent.name}/{path.stem}": Placeholders(fixed).replace(json.loads(path.read_text(encoding="utf-8")))
        for path in folder.glob("*/*.json")
    }
    return f"{_members(found)}\n"


def _sentences(sources: Path) -> str:
    text = (sources / "spec" / "requirements.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    rows = ((each["id"], ", ".join(each["levels"]), digest(each["text"])) for each in found)
    return "".join(f"{line}\n" for line in sorted("\t".join(row) for row in rows))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _members(value: dict[str, Any]) -> str:
    """Return a JSON object with a line for each member, so that a change is a line of a diff."""
    lines = (f"{_compact(key)}:{_compact(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(lines) + "\n}"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def main(sources: Path) -> None:
    for path, text in facts(sources).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES)

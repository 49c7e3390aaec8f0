"""The fixed list of programs: programs.toml (what is called) and expected.json (what their own libraries answered)."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tests.switching.sources import Origin

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"
_WORD = 60
"""Characters of a name, a URI, a number."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One example program, and a visit to it."""

    of: Origin
    path: str
    server: str = "mcp"
    """The expression that gives its server, among its names."""
    calls: list[tuple[str, dict[str, Any]]] = []
    reads: list[str] = []
    prompts: list[tuple[str, dict[str, str]]] = []
    completes: list[dict[str, Any]] = []
    """Arguments of `Client.complete`."""
    answers: list[dict[str, Any]] = []
    """What the person answers to its questions, in order."""
    said: str = ""
    """What the model says, where it asks for that."""
    roots: list[str] = []
    files: dict[str, str] = {}
    """Small files that it reads, and stand-ins for libraries of which it needs next to nothing, laid beside it."""
    stand_ins: dict[str, str] = {}
    """More of these, for a library that its own needs whole."""
    varies: list[str] = []
    """Keys and texts that are others each time, such as a time."""
    fails: str = ""
    """Why it does not do the same here; it is asserted to fail."""
    error: str = ""
    """What the failure says."""

    @property
    def id(self) -> str:
        """Its name in this list."""
        return f"{self.of}:{self.path}"


def programs() -> list[Program]:
    """All of them, in the order of the file."""
    listed = tomllib.loads((HERE / "programs.toml").read_text(encoding="utf-8"))["program"]
    return [msgspec.convert(one, Program) for one in listed]


def kept(seen: Any) -> Any:
    """What was seen, as it is kept: of a text of more than a word, only its digest, as the words are not ours."""
    if isinstance(seen, dict):
        return {key: kept(value) for key, value in seen.items()}
    if isinstance(seen, list):
        return [kept(value) for value in seen]
    if isinstance(seen, str) and (len(seen) > _WORD or any(letter.isspace() for letter in seen)):
        return f"sha256 {hashlib.sha256(seen.encode()).hexdigest()[:16]}"
    return seen


def expected() -> dict[str, Any]:
    """What was seen of each in its own library, by id, as `kept` has it."""
    seen: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return seen

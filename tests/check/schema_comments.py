"""The sentences of a schema that say what must, should or may be: they stand in the comments of its types.

What counts is a paragraph or an item of a list. It counts if it has a word of BCP 14 in capitals, or `must`, `shall`,
`should`, `required`, `recommended`, `only`, `never` or `cannot`, however written. The same comments stand in
`schema.ts`, where they can be numbered from the top, and in the `schema.json` that is made of it, under `description`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

CAPITALS = re.compile(
    r"\b(?:MUST(?: NOT)?|SHALL(?: NOT)?|SHOULD(?: NOT)?|(?:NOT )?RECOMMENDED|REQUIRED|MAY|OPTIONAL)\b"
)
WORDS = re.compile(r"\b(?:must|shall|should|required|recommended|only|never|cannot)\b", re.IGNORECASE)

COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
MARGIN = re.compile(r"^\s*\*? ?", re.MULTILINE)
TAGS = re.compile(r"^@.*", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\{@\w+\s+([^}]*)\}")
ITEM = re.compile(r"[-*] |\d+\. ")

DIGITS = 12
"""Of a fingerprint: enough to tell a few hundred sentences apart."""


def of_typescript(text: str) -> Iterator[str]:
    """Those of a `schema.ts`, from the top."""
    for comment in COMMENT.findall(text):
        yield from _normative(MARGIN.sub("", comment.removeprefix("*")))


def of_json(value: Any) -> Iterator[str]:
    """Those of a `schema.json`, or of a part of it. Some come twice: what a type inherits is repeated in it."""
    if isinstance(value, dict):
        if isinstance(value.get("description"), str):
            yield from _normative(value["description"])
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from of_json(each)


def fingerprint(sentence: str) -> str:
    """The same for a sentence in both files, which differ in blanks and in how links are written."""
    return hashlib.sha256(re.sub(r"[\s`|]", "", sentence).encode()).hexdigest()[:DIGITS]


def levels(sentence: str) -> tuple[str, ...]:
    """The words that make it normative: those in capitals; if there are none, the others, in small letters."""
    return tuple(CAPITALS.findall(sentence) or (word.lower() for word in WORDS.findall(sentence)))


def _normative(comment: str) -> Iterator[str]:
    yield from (each for each in _paragraphs(LINK.sub(r"\1", TAGS.sub("", comment))) if levels(each))


def _paragraphs(comment: str) -> Iterator[str]:
    """Its paragraphs and items, each on one line."""
    lines: list[str] = []
    for line in (*map(str.strip, comment.splitlines()), ""):
        if lines and (not line or ITEM.match(line)):
            yield " ".join(lines)
            lines = []
        if line:
            lines.append(line)

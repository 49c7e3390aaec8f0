"""The facts kept here, and the checker's list of comments, are those of the sources; its JSON files are read rightly.

Where the sources are not beside the checkout, this file is not collected.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from accord.messages.revision import REVISIONS

from tests.check.schema_comments import fingerprint, levels, of_json, of_typescript
from tests.check.test_schema_comments import ELSEWHERE, listed
from tests.data import FOLDER, SOURCES
from tests.data.derive import facts, source
from tests.server.json_grammar import ACCEPTED, FREE, REFUSED, Case, accepted_or_one_error

FACTS = facts(SOURCES)


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.name)
def test_facts_are_those_of_the_sources(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FACTS[path], "stale: python -m tests.data.derive"


def test_no_file_of_facts_is_without_a_source() -> None:
    folders = {path.parent for path in FACTS}
    found = {path for path in (*FOLDER.rglob("*.json"), *FOLDER.rglob("*.tsv")) if path.parent in folders}
    assert found == set(FACTS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_normative_comment_of_a_schema_is_listed_with_its_levels(revision: str) -> None:
    found = {fingerprint(each): (levels(each), each) for each in of_json(source(SOURCES, revision))}
    known = {each.fingerprint: tuple(each.levels.split(", ")) for each in listed(revision) if each.mark != ELSEWHERE}
    assert [text for print_, (_, text) in found.items() if print_ not in known] == []
    assert [each for each in known if each not in found] == []
    assert {print_: wanted for print_, (wanted, _) in found.items()} == known


@pytest.mark.parametrize("revision", REVISIONS)
def test_comments_are_listed_in_the_order_of_the_schema(revision: str) -> None:
    for path in (SOURCES / "spec" / "schema" / revision).glob("schema.ts"):
        in_order = [fingerprint(each) for each in of_typescript(path.read_text(encoding="utf-8"))]
        assert [each.fingerprint for each in listed(revision)] == in_order


def case(path: Path) -> Case:
    """Return the case of a JSON file, whose name begins with what must become of it."""
    verdict = {"y": ACCEPTED, "n": REFUSED, "i": FREE}[path.name[0]]
    unique = not path.name.startswith("y_object_duplicated")  # RFC 8259 leaves it to the receiver
    return Case(path.name, path.read_bytes(), verdict if unique else FREE)


async def test_each_json_file_is_accepted_or_one_error() -> None:
    await accepted_or_one_error([case(path) for path in sorted((SOURCES / "data" / "json-parsing").glob("*.json"))])

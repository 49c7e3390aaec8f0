"""The list of a schema's sentences, `sentences/schema.tsv`, and how sentences are found in the comments of a schema.

`tests/data/test_sources.py` compares the list with the schemas themselves, where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from accord.messages.revision import REVISIONS

from tests.check.schema_comments import fingerprint, levels, of_json, of_typescript
from tests.check.sources import LISTS, rows

ELSEWHERE = "schema.ts"
"""The mark of a comment that is not in `schema.json`: it belongs to no type."""


class Listed(NamedTuple):
    """One line of the list."""

    id: str
    levels: str
    place: str
    fingerprint: str
    mark: str = ""


LIST = [Listed(*row) for row in rows(LISTS / "schema.tsv")]


def listed(revision: str) -> list[Listed]:
    return [each for each in LIST if each.id.startswith(f"{revision}/")]


@pytest.mark.parametrize("revision", REVISIONS)
def test_comments_are_numbered_from_the_top(revision: str) -> None:
    assert [each.id for each in listed(revision)] == [
        f"{revision}/schema#{number:02}" for number in range(1, len(listed(revision)) + 1)
    ]


SAMPLE = """
/**
 * The client MUST send it, and
 * {@link Server | the server} answers.
 *
 * Nobody wants this paragraph.
 * - an item that should count
 * - another
 *
 * @example It must not count
 */
export interface Sample {
  /** Required. */
  id: string;
  /* A remark: MUST NOT and MAY. */
}
"""


def test_paragraphs_and_items_count_wherever_a_comment_is() -> None:
    assert [(levels(each), each) for each in of_typescript(SAMPLE)] == [
        (("MUST",), "The client MUST send it, and Server | the server answers."),
        (("should",), "- an item that should count"),
        (("required",), "Required."),
        (("MUST NOT", "MAY"), "A remark: MUST NOT and MAY."),
    ]


def test_a_comment_is_the_same_in_both_files() -> None:
    (typescript, *_) = of_typescript(SAMPLE)
    described = {"description": "The client MUST send it,\nand Serverthe server answers.\n\nNo more."}
    (described_too,) = of_json({"definitions": {"Sample": described}})
    assert fingerprint(typescript) == fingerprint(described_too)


def test_a_sentence_that_is_written_otherwise_is_another() -> None:
    assert fingerprint("It MUST be sent.") != fingerprint("It MAY be sent.")

"""Places in few words, and findings in the order in which they matter."""

from __future__ import annotations

import pytest

from accord.check.engine.report import Place
from accord.check.reports.wording import places_text, worst_first

from tests.check.reports import samples

VISITS = samples.realistic().visits


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(each.revision, each.transport) for each in VISITS], "in all 10 visits"),
        ([(each.revision, "http") for each in VISITS if each.transport == "http"], "all revisions over http"),
        ([("2025-11-25", "stdio")], "2025-11-25 over stdio"),
        ([("2025-11-25", "stdio"), ("2025-11-25", "http")], "2025-11-25 over stdio and http"),
        ([("2025-06-18", "http"), ("2025-11-25", "http")], "2025-06-18, 2025-11-25 over http"),
        (
            [("2025-06-18", "http"), ("2025-11-25", "stdio"), ("2025-11-25", "http")],
            "2025-06-18 over http; 2025-11-25 over stdio and http",
        ),
        ([], ""),
    ],
)
def test_places_are_described_in_few_words(places: list[tuple[str, str]], words: str) -> None:
    assert (
        places_text([Place(revision=revision, transport=transport) for revision, transport in places], VISITS) == words
    )  # type: ignore[arg-type]


def test_one_visit_is_named_and_not_counted() -> None:
    report = samples.report([samples.outcome("a/b")])
    assert places_text(samples.finding("a/b").places, report.visits) == "2025-11-25 over stdio"


def test_what_is_new_and_breaks_a_must_at_most_places_comes_first() -> None:
    known = samples.finding("a/known", known=True)
    warned = samples.finding("a/warned", verdict="warn", level="should")
    here = samples.finding("a/here")
    everywhere = samples.finding("a/wide", ("2025-11-25", "stdio"), ("2025-11-25", "http"))
    assert worst_first([known, warned, here, everywhere]) == [everywhere, here, warned, known]

"""A rule is shown where it stands in the revision that was checked."""

from __future__ import annotations

import pytest

from accord.check.engine.findings import spec_url, spec_urls

SITE = "https://modelcontextprotocol.io/specification"


@pytest.mark.parametrize(
    ("revision", "shown"),
    [
        ("2024-11-05", "basic/utilities/ping"),
        ("2025-11-25", "basic/utilities/ping"),
        ("2026-07-28", "basic/patterns/ping"),
    ],
)
def test_a_page_that_moved_is_shown_where_the_revision_has_it(revision: str, shown: str) -> None:
    assert spec_urls(("basic/utilities/ping", "basic/patterns/ping"), revision) == (f"{SITE}/{revision}/{shown}",)


def test_places_of_no_use_in_a_revision_are_better_than_none() -> None:
    assert spec_urls(("server/discover",), "2025-11-25") == (f"{SITE}/2025-11-25/server/discover",)


def test_the_first_page_of_a_folder_has_the_folder_for_its_address() -> None:
    assert spec_url("basic/index#meta", "2025-11-25") == f"{SITE}/2025-11-25/basic#meta"
    assert spec_url("https://example.com/a", "2025-11-25") == "https://example.com/a"

"""The five revisions and their facts."""

from __future__ import annotations

import pytest

from accord.messages import revision
from accord.messages.revision import BEFORE_OPENING, HANDSHAKE, LATEST, PER_REQUEST, REVISIONS, RULES, is_in_revision


def facts(name: str) -> list[bool]:
    return [getattr(RULES[each], name) for each in REVISIONS]


def test_the_revisions_are_five_in_the_order_of_their_dates() -> None:
    assert list(REVISIONS) == sorted(REVISIONS) == list(RULES)
    assert len(REVISIONS) == 5
    assert LATEST == "2026-07-28"


def test_each_revision_is_opened_in_one_way() -> None:
    assert HANDSHAKE + PER_REQUEST == REVISIONS
    assert PER_REQUEST == ("2026-07-28",)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ("handshake", [True, True, True, True, False]),
        ("server_requests", [True, True, True, True, False]),
        ("sessions", [True, True, True, True, False]),
        ("client_progress", [True, True, True, True, False]),
        ("streamable", [False, True, True, True, True]),
        ("batches", [False, True, False, False, False]),
        ("result_type", [False, False, False, False, True]),
        ("null_id", [True, True, True, False, False]),
        ("structured_objects_only", [True, True, True, True, False]),
        ("mirrors_arguments", [False, False, False, False, True]),
        ("primes_streams", [False, False, False, True, False]),
        ("disconnect_cancels", [False, False, False, False, True]),
        ("sampling_tools", [False, False, False, True, True]),
        ("elicitation_urls", [False, False, False, True, True]),
        ("form_defaults", [False, False, False, True, True]),
        ("form_titled_choices", [False, False, False, True, True]),
        ("form_multi_select", [False, False, False, True, True]),
        ("requested_tasks", [False, False, False, True, False]),
        ("extension_tasks", [False, False, False, False, True]),
        ("resource_not_found", [-32002, -32002, -32002, -32002, -32602]),
        ("missing_capability", [-32600, -32600, -32600, -32600, -32021]),
    ],
)
def test_the_facts_are_those_of_the_specification(fact: str, expected: list[object]) -> None:
    assert facts(fact) == expected


def test_every_fact_is_stated_here() -> None:
    told = {"revision", "handshake", "server_requests", "client_progress", "batches", "result_type", "null_id"}
    told |= {"structured_objects_only", "resource_not_found", "sampling_tools", "elicitation_urls"}
    told |= {"form_defaults", "form_titled_choices", "form_multi_select", "missing_capability", "cache_hints"}
    told |= {"mirrors_arguments", "primes_streams", "disconnect_cancels", "streamable", "sessions", "definition_meta"}
    told |= {"requested_tasks", "extension_tasks"}
    assert set(revision.Rules.__struct_fields__) == told


def test_before_the_opening_nothing_is_taken_for_granted() -> None:
    assert not BEFORE_OPENING.revision
    assert BEFORE_OPENING.null_id
    assert not BEFORE_OPENING.batches
    assert not BEFORE_OPENING.server_requests


@pytest.mark.parametrize(
    ("since", "until", "lives"),
    [
        (None, None, REVISIONS),
        ("2025-06-18", None, REVISIONS[2:]),
        (None, "2025-06-18", REVISIONS[:2]),
        ("2025-03-26", "2025-11-25", REVISIONS[1:3]),
        ("2024-11-05", "2024-11-05", ()),
    ],
)
def test_a_life_begins_with_since_and_ends_before_until(
    since: str | None, until: str | None, lives: tuple[str, ...]
) -> None:
    assert tuple(each for each in REVISIONS if is_in_revision(each, since, until)) == lives

"""Schemas of peers are judged in the dialects that are known, and nothing is fetched for the others."""

from __future__ import annotations

import socket

import pytest

from accord.check.probes.schemas import draft, schema_fault

NAMED = {
    "https://json-schema.org/draft/2020-12/schema": 2020,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "http://json-schema.org/draft-07/schema#": 7,
    "http://json-schema.org/draft-04/schema": 4,
    "https://example.com/schema": 0,
    "http://evil.example/x://json-schema.org/draft-07/schema": 0,
}


@pytest.mark.parametrize("name", NAMED)
def test_a_dialect_is_known_by_its_whole_name(name: str) -> None:
    assert draft({"$schema": name}) == NAMED[name]


@pytest.mark.parametrize("name", [name for name, number in NAMED.items() if number])
def test_a_mistake_is_reported_in_every_known_dialect(name: str) -> None:
    assert schema_fault({"$schema": name, "type": "object"}) is None
    assert schema_fault({"$schema": name, "type": "no type"})


def test_a_schema_without_a_name_is_of_the_latest_dialect() -> None:
    assert draft({}) == 2020
    assert schema_fault({"required": True})


def test_nothing_is_fetched_for_a_dialect_that_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x://json-schema.org/draft-07/schema"
        assert schema_fault({"$schema": url}) is None
        with pytest.raises(TimeoutError):
            listener.accept()

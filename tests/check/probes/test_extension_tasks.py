"""Parts of the rules about the tasks extension: its types, times, and how it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from accord.check.probes.content import declares, time_fault
from accord.check.probes.extension_tasks import CAPABILITY, EXTENSION, handle_fault, result_fault, state_fault

LAST = "2026-07-28"
KNOWN: dict[str, Any] = {"taskId": "1", "createdAt": "2026-07-28", "lastUpdatedAt": "2026-07-28", "ttlMs": None}
OWN: dict[str, dict[str, Any]] = {
    "working": {},
    "input_required": {"inputRequests": {"a": {"method": "roots/list"}}},
    "completed": {"result": {"content": []}},
    "failed": {"error": {"code": -32603, "message": "No"}},
    "cancelled": {},
}


@pytest.mark.parametrize("status", OWN)
def test_each_status_has_its_type_and_takes_unknown_fields(status: str) -> None:
    state = {**KNOWN, "status": status, **OWN[status]}
    assert state_fault(state, LAST) == ""
    assert state_fault({**state, "more": 1, "ttlMs": 5, "pollIntervalMs": 7}, LAST) == ""
    assert handle_fault({**KNOWN, "status": status}, LAST) == ""
    assert state_fault({**state, "ttlMs": "5"}, LAST).endswith("`$.ttlMs`")
    assert "status" in state_fault({**state, "status": "done"}, LAST)


@pytest.mark.parametrize("status", [status for status, own in OWN.items() if own])
def test_a_status_without_its_own_field_is_reported_by_the_name_of_that(status: str) -> None:
    (name,) = OWN[status]
    assert name in state_fault({**KNOWN, "status": status}, LAST)


def test_the_result_inside_a_task_needs_no_type_of_its_own_but_content() -> None:
    assert result_fault({"content": []}, LAST) == ""
    assert "content" in result_fault({"structuredContent": {}}, LAST)


def test_an_extension_is_declared_by_its_whole_name() -> None:
    assert declares({"extensions": {EXTENSION: {}}}, CAPABILITY)
    assert not declares({"extensions": {"io": {"modelcontextprotocol/tasks": {}}}}, CAPABILITY)
    assert not declares({"extensions": {}}, CAPABILITY)
    assert not declares({}, CAPABILITY)
    assert declares({"tasks": {"requests": {}}}, "tasks.requests")


@pytest.mark.parametrize("time", ["2026-07-28T10:30:00Z", "2026-07-28T10:30:00.123456+00:00", "2026-07-28t10:30:00z"])
def test_a_time_of_iso_8601_is_one(time: str) -> None:
    assert time_fault(time, zoned=True) is None


def test_a_time_may_lack_its_zone_where_no_zone_is_wanted() -> None:
    assert time_fault("2026-07-28T10:30:00") is None
    assert "no zone" in str(time_fault("2026-07-28T10:30:00", zoned=True))


@pytest.mark.parametrize("time", [1_780_000_000, None, "28 July 2026", "2026-02-30T10:30:00Z", "2026-07-28T25:00:00Z"])
def test_an_invalid_time_is_an_error(time: Any) -> None:
    assert time_fault(time)

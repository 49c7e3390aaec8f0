"""A finding names the likely cause, and its evidence holds the messages of the case that failed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.check.engine.findings import spec_url, spec_urls
from accord.check.engine.report import Finding
from accord.check.rules.batch import batch_served
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right
from tests.clock import without_waiting


async def finding(change: Change, rule: str, revision: str) -> Finding:
    """The finding on a rule, of a run in which other cases come before it and after it."""
    settings = CheckSettings(revisions=(revision,), only=(rule, "codes/own"), timeout=1)
    report = await check_server(Changed(right(), change), settings)
    (found,) = (each for each in report.findings if each.rule == rule)
    return found


@without_waiting
async def test_a_server_that_ignores_arrays_is_not_reported_to_lose_requests() -> None:
    change = Change()
    change.heard(lambda message: None if isinstance(message, list) else message)
    found = await finding(change, "batch/served", "2025-03-26")
    assert found.text.startswith("no response to ping")
    assert found.cause == batch_served.cause


async def test_a_prompt_that_refuses_missing_arguments_with_another_code_is_not_reported_to_ignore_them() -> None:
    change = Change()

    @change.answers("prompts/get")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": 0, "message": "Missing required arguments"}
        return {"jsonrpc": "2.0", "id": answer["id"], "error": error}

    found = await finding(change, "prompts/required-arguments", "2025-11-25")
    assert found.cause == "The error of the handler is returned with another code."


async def test_the_evidence_holds_no_messages_of_other_cases() -> None:
    change = Change()

    @change.answers("logging/setLevel")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32603, "message": "Internal error"}}

    found = await finding(change, "logging/set-level", "2025-11-25")
    said = [msgspec.json.decode(line.partition(" ")[2]) for line in found.evidence if line[0] in "→←"]
    sent = {each["id"] for each in said if each.get("method") == "logging/setLevel"}
    assert sent
    assert {each.get("id") for each in said} == sent


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

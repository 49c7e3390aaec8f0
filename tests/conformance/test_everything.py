"""What examples/everything.py shows besides what the suite looks at, in every revision that has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord import Client, ElicitParams, ResourceUpdated
from accord.messages.revision import REVISIONS, RULES, is_in_revision
from examples.everything import LOUD, Shout

from tests.conformance.server import server

ALL = pytest.mark.parametrize("revision", REVISIONS)


def agrees(question: ElicitParams) -> Any:
    """A person who says yes, also to a page."""
    return True


@ALL
async def test_a_measurement_is_structured(revision: str) -> None:
    async with Client(server, revisions=[revision]) as client:
        result = await client.call_tool("measure", {"city": "Oslo", "days": 2})
        assert json.loads(result.text) == [{"sky": "clear", "celsius": 20.0}, {"sky": "clear", "celsius": 21.0}]
        refused = await client.call_tool("measure", {"city": "Oslo", "days": 99})
        assert refused.is_error
        assert "days" in refused.text


@ALL
async def test_optional_input_is_left_out_where_it_cannot_be_requested(revision: str) -> None:
    asked = is_in_revision(revision, "2025-06-18", None)
    async with Client(server, revisions=[revision], elicitation=agrees) as client:
        text = (await client.call_tool("delete", {"path": "notes.txt"})).text
    assert text == ("notes.txt is gone" if asked else "notes.txt stays")


@pytest.mark.parametrize("revision", [each for each in REVISIONS if RULES[each].elicitation_urls])
async def test_a_user_is_sent_to_a_page(revision: str) -> None:
    options: Any = {"elicitation": agrees, "elicitation_modes": ["url"]}
    async with Client(server, revisions=[revision], **options) as client:
        assert (await client.call_tool("sign_in")).text == "on the way"
        await client.call_tool("signed_in")


@ALL
async def test_a_changed_resource_is_notified(revision: str) -> None:
    uri = "test://watched-resource"
    async with Client(server, revisions=[revision]) as client, client.subscribe(uri) as changes:
        await client.call_tool("touch")
        assert await anext(changes) == ResourceUpdated(uri)


@ALL
async def test_it_has_the_principal(revision: str) -> None:
    async with Client(server, revisions=[revision]) as client:
        who = json.loads((await client.call_tool("who", meta={"traceparent": "00-1-2-01"})).text)
    assert who["revision"] == revision
    assert who["trace"] == {"traceparent": "00-1-2-01"}


@ALL
async def test_ids_of_the_template_are_completed(revision: str) -> None:
    async with Client(server, revisions=[revision]) as client:
        found = await client.complete(template="test://template/{id}/data", argument="id", value="4")
    assert found.values == ["456"]


async def test_the_extension_answers_those_who_have_it() -> None:
    async with Client(server, revisions=["2026-07-28"], extensions=[LOUD]) as client:
        said = await client.request("com.example/shout", Shout("hear"), result=Shout)
    assert said == Shout("HEAR")

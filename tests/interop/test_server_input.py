"""accord's server asks other people's clients: the official Python SDK 2.x and 1.x with callbacks, in every revision
that they speak, over stdio, Streamable HTTP ("mcp") and HTTP+SSE ("sse").

Each client plays servers/input_story.py; what came of its calls, and what its callbacks saw, is compared.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import pytest

from accord import REVISIONS

from tests.interop.conftest import Watch
from tests.interop.peers import PROGRAMS, Sdk, TypeScript
from tests.interop.serving import serving

SERVER = [sys.executable, str(PROGRAMS / "accord_input.py")]

PEERS: list[tuple[Sdk | TypeScript, str, str | None, str]] = [
    *(("mcp2", way, revision, revision) for way in ("stdio", "mcp") for revision in REVISIONS),
    ("mcp2", "stdio", None, REVISIONS[-1]),
    *(("mcp1", "stdio", revision, revision) for revision in REVISIONS[:-1]),
    *(("mcp1", "mcp", revision, revision) for revision in (REVISIONS[1], REVISIONS[-2])),
    *(("mcp1", "sse", revision, revision) for revision in (REVISIONS[0], REVISIONS[-2])),
    *(("ts1", way, None, REVISIONS[-2]) for way in ("mcp", "sse")),
    *(("ts2", "mcp", revision, revision) for revision in REVISIONS[-2:]),
    ("ts2", "sse", REVISIONS[0], REVISIONS[0]),
]
"""A client, its way to the server, the revision it is told to speak, and the one that is spoken then."""

FORMS = REVISIONS[2:]
PAGES = TOOLS = REVISIONS[3:]

ORDER = ["person", "What will it be?", ["size", "count"]]
SAMPLE = ["model", None, 1024, 1]


class Saw(NamedTuple):
    """What a peer client saw when it spoke `revision`."""

    revision: str
    seen: dict[str, Any]

    def where(self, revisions: tuple[str, ...], answer: Any, lacking: str) -> Any:
        """An answer in the revisions that have what it takes, else the error that names the revision."""
        return answer if self.revision in revisions else f"{self.revision} has no {lacking}"


@pytest.fixture(scope="module", params=PEERS, ids=[f"{sdk}-{way}-{told or 'by-itself'}" for sdk, way, told, _ in PEERS])
def saw(request: pytest.FixtureRequest, watch: Watch) -> Saw:
    sdk, way, told, spoken = request.param
    if way == "stdio":
        return Saw(spoken, watch(sdk, SERVER, told, "input_client"))
    with serving(SERVER) as server:
        return Saw(spoken, watch(sdk, [f"{server.url}/{way}"], told, "input_client"))


def test_the_client_connects_with_the_requested_revision(saw: Saw) -> None:
    assert saw.seen["revision"] == saw.revision


def test_every_call_gets_the_answers_that_it_asked_for(saw: Saw) -> None:
    form = "elicitation/create"
    url = "elicitation by URL" if saw.revision in FORMS else form
    assert saw.seen["calls"] == {
        "buy": saw.where(FORMS, "3 large", form),
        "refuse": saw.where(FORMS, "decline", form),
        "think": "m-1: 42",
        "reckon": saw.where(TOOLS, "42", "tools in sampling"),
        "folders": "file:///srv/a file:///srv/b",
        "together": saw.where(FORMS, "accept, 42, 2 folders", form),
        "number": "7 42 42",
        "visit": saw.where(PAGES, "accept", url),
        "tell": "told",
        "delete": "deleted" if saw.revision in FORMS else "kept",
    }


def test_a_resource_and_a_prompt_request_input_as_well(saw: Saw) -> None:
    assert saw.seen["read"] == "opened: 42"
    assert saw.seen["prompt"] == "Write 42 to Åse."


def test_the_callbacks_see_each_question_once(saw: Saw) -> None:
    asked = [["model", "Be brief.", 50, 1], *[SAMPLE] * 4, ["roots"]]
    if saw.revision in FORMS:
        asked += [ORDER, ORDER, SAMPLE, ["roots"]]
        asked += [["person", "Really?", ["value"]], ["person", "Delete a.txt?", ["value"]]]
    if saw.revision in TOOLS:
        asked += [SAMPLE, ["model", None, 1024, 3]]
    if saw.revision in PAGES:
        asked += [["person", "Sign in", "https://example.com/sign-in"]]
    assert sorted(map(str, saw.seen["asked"])) == sorted(map(str, asked))


def test_logs_arrive_from_the_requested_level_on(saw: Saw) -> None:
    assert saw.seen["logs"] == [["warning", "almost full"]]


def test_completion_knows_the_other_arguments_where_the_client_sends_them(saw: Saw) -> None:
    # Both SDKs send `context` in every revision.
    assert saw.seen["completed"]["completion"]["values"] == ["Oslo", "no"]


def test_changes_are_notified_to_subscribed_clients(saw: Saw) -> None:
    assert saw.seen["watched"] == ["notifications/resources/updated", "notifications/tools/list_changed"]

"""accord's client asked by servers on other people's SDKs: of the person, of the model, and where it may work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from accord import REVISIONS, TextContent
from accord.client.handlers import ClientContext
from accord.errors import ProtocolError, UrlElicitationRequired
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.sampling import CreateMessageParams, CreateMessageResult

from tests.interop.conftest import Visit, Visiting
from tests.interop.peers import Sdk, npm_server, peer_server
from tests.interop.serving import serving

NEWEST = REVISIONS[-1]
SPOKEN: list[tuple[Sdk, str, tuple[str, ...]]] = [
    *(("mcp2", way, REVISIONS) for way in ("stdio", "mcp")),
    ("mcp1", "stdio", REVISIONS[:-1]),
    ("mcp1", "mcp", (REVISIONS[1], REVISIONS[3])),
    ("mcp1", "sse", REVISIONS[3:4]),
    ("mcp2", "sse", REVISIONS[2:3]),
]
"""A server, the way to it, and what it speaks there. The newer SDK asks inside results in the newest revision; in the
others both send requests."""

PAGE = "https://example.com/sign-in"

FORMS = REVISIONS[2:]
PAGES = REVISIONS[3:]


class Person:
    """The person, the model and the folders of one client; tests say what comes next."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: Any = {"size": "large", "count": 3}

    async def fill_in(self, params: ElicitParams, context: ClientContext) -> Any:
        self.asked.append((params, context))
        return self.answer

    async def think(self, params: CreateMessageParams) -> CreateMessageResult:
        self.asked.append(params)
        return CreateMessageResult(role="assistant", content=TextContent(text="42"), model="m-1", stop_reason="endTurn")


class Asking(NamedTuple):
    """A visit to a server that asks."""

    visit: Visit
    person: Person
    target: Any
    sdk: Sdk
    revision: str

    def call(self, tool: str) -> Any:
        return self.visit.call(tool)


@pytest.fixture(
    scope="module",
    params=[(sdk, way, revision) for sdk, way, revisions in SPOKEN for revision in revisions],
    ids="-".join,
)
def asking(request: pytest.FixtureRequest, visiting: Visiting) -> Iterator[Asking]:
    sdk, way, revision = request.param
    person = Person()
    options = {"elicitation": person.fill_in, "elicitation_modes": ("form", "url"), "sampling": person.think}
    with contextlib.ExitStack() as stack:
        target: Any = peer_server(sdk, "input")
        if way != "stdio":
            target = f"{stack.enter_context(serving([*target, way])).url}/{way}"
        visit = stack.enter_context(visiting(target, revisions=[revision], roots=["/srv/a", "/srv/b"], **options))
        yield Asking(visit, person, target, sdk, revision)


def test_a_user_fills_in_a_form(asking: Asking) -> None:
    if asking.revision not in FORMS:
        return
    asking.person.answer = {"size": "large", "count": 3}
    assert asking.call("buy").text == "3 large"
    params, context = asking.person.asked[-1]
    assert params.message == "What will it be?"
    assert list(params.requested_schema["properties"]) == ["size", "count"]
    assert context.server_info.name == "input"
    assert context.method == ("tools/call" if asking.revision == NEWEST else None)


@pytest.mark.parametrize(("answer", "told"), [(None, "decline"), (ElicitResult(action="cancel"), "cancel")])
def test_a_user_who_declines_is_understood(asking: Asking, answer: Any, told: str) -> None:
    if asking.revision not in FORMS:
        return
    asking.person.answer = answer
    assert asking.call("buy").text == told


def test_a_model_answers(asking: Asking) -> None:
    assert asking.call("think").text == "m-1: 42"
    params = asking.person.asked[-1]
    assert (params.max_tokens, params.system_prompt) == (50, "Be brief.")
    assert params.messages[0].content == TextContent(text="What is 6 times 7?")


def test_the_folders_are_sent_and_sent_again_when_they_change(asking: Asking) -> None:
    assert asking.call("folders").text == "file:///srv/a file:///srv/b"
    asking.visit.client.set_roots(["/srv/c"])
    assert asking.call("folders").text == "file:///srv/c"
    asking.visit.client.set_roots(["/srv/a", "/srv/b"])


def test_a_user_agrees_to_visit_a_page(asking: Asking) -> None:
    if asking.revision not in PAGES:
        return
    asking.person.answer = True
    assert asking.call("visit").text == "accept"
    params, _ = asking.person.asked[-1]
    assert (params.mode, params.url) == ("url", PAGE)
    asking.person.answer = False
    assert asking.call("visit").text == "decline"


def test_everything_is_answered_at_once(asking: Asking) -> None:
    if asking.sdk != "mcp2" or asking.revision not in FORMS:
        return
    asking.person.answer = {"size": "small"}
    sent = asking.visit.client.stats.requests_sent
    assert asking.call("everything").text == "1 small, 42, 2 folders"
    rounds = asking.visit.client.stats.requests_sent - sent
    assert rounds == (2 if asking.revision == NEWEST else 1)


def test_a_refused_sampling_is_an_error_at_the_server_too(asking: Asking, visiting: Visiting) -> None:
    with visiting(asking.target, revisions=[asking.revision], sampling=lambda params: None) as peer:
        if asking.sdk == "mcp2":  # it answers with the error that it got; in the newest revision the call ends here
            with pytest.raises(ProtocolError, match="rejected") as caught:
                peer.call("think")
            assert caught.value.code == -1
        else:
            assert "rejected" in peer.call("think").text


# --- npm: everything -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(visiting: Visiting) -> Iterator[tuple[Visit, Person]]:
    person = Person()
    options = {"elicitation": person.fill_in, "elicitation_modes": ("form", "url"), "sampling": person.think}
    with visiting(npm_server("everything"), roots=["/srv/a"], **options) as visit:
        yield visit, person


def test_a_form_with_every_kind_of_field_is_filled_in(everything: tuple[Visit, Person]) -> None:
    visit, person = everything
    person.answer = {
        "name": "Ada",
        "check": True,
        "email": "ada@example.com",
        "homepage": "https://example.com/ada",
        "birthdate": "1815-12-10",
        "integer": 7,
        "number": 2.5,
        "untitledSingleSelectEnum": "Ross",
        "untitledMultipleSelectEnum": ["Piano", "Drums"],
        "titledSingleSelectEnum": "hero-2",
        "titledMultipleSelectEnum": ["fish-3"],
        "legacyTitledEnum": "pet-2",
    }
    told = visit.call("trigger-elicitation-request")
    assert not told.is_error
    assert all(part in told.text for part in ("Ada", "1815-12-10", "Piano", "hero-2", "fish-3", "pet-2"))


def test_a_user_is_sent_to_a_page_by_request(everything: tuple[Visit, Person]) -> None:
    visit, person = everything
    person.answer = True
    assert "accept" in visit.call("trigger-url-elicitation", url=PAGE, elicitationId="page-1").text
    params, _ = person.asked[-1]
    assert (params.url, params.elicitation_id) == (PAGE, "page-1")


def test_a_page_that_must_be_visited_first_is_a_typed_error(everything: tuple[Visit, Person]) -> None:
    visit, _ = everything
    with pytest.raises(UrlElicitationRequired) as caught:
        visit.call("trigger-url-elicitation", url=PAGE, errorPath=True)
    (page,) = caught.value.elicitations
    assert page["mode"] == "url"
    assert page["url"].startswith("https://")  # a page of its own, whatever was asked for


def test_everything_requests_sampling_and_roots(everything: tuple[Visit, Person]) -> None:
    visit, person = everything
    assert '"text": "42"' in visit.call("trigger-sampling-request", prompt="Hi", maxTokens=9).text
    assert person.asked[-1].max_tokens == 9
    assert "file:///srv/a" in visit.call("get-roots-list").text

"""What needs a capability: asked only of who declared it, told only by who did, refused with the name of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.errors import InvalidRequest, MissingClientCapability, NotSupported
from accord.messages.capabilities import ClientCapabilities, required_capabilities
from accord.messages.revision import HANDSHAKE, REVISIONS, RULES
from accord.session.events import ErrorReceived, MessageIgnored, NotificationReceived, RequestReceived
from accord.session.pending_request import PendingRequest
from accord.session.session import Session

from tests.session.pair import META, S26, Pair, client, notification, opened_server, request, server

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def admitted(session: Session, revision: str, says: Any = None) -> PendingRequest:
    """A request of a client; in 2026-07-28 one that declares `says`."""
    params = {"_meta": {**META, CAPABILITIES: says or {}}} if revision == S26 else {}
    (event,) = session.receive(request("a", "tools/list", params, revision=revision))
    assert isinstance(event, RequestReceived)
    return event.pending


@pytest.mark.parametrize("says", [{"sampling": {}}, {"sampling": {"context": {}}}], ids=str)
def test_a_server_says_which_part_of_a_capability_it_needs(says: Any) -> None:
    pair = Pair(client(says=says), server(["2025-11-25"]))
    pair.open()
    pair.ask("sampling/createMessage", of="client")
    with pytest.raises(MissingClientCapability, match=r"sampling.tools") as raised:
        pair.ask("sampling/createMessage", of="client", needs="sampling.tools")
    assert raised.value.data == {"requiredCapabilities": {"sampling": {"tools": {}}}}
    assert pair.server.stats.requests_sent == 1


@pytest.mark.parametrize(
    ("says", "form", "url"),
    [
        ({}, True, False),
        ({"form": {}}, True, False),
        ({"url": {}}, False, True),
        ({"form": {}, "url": {}}, True, True),
    ],
)
def test_an_empty_elicitation_means_by_form_only(says: Any, form: bool, url: bool) -> None:
    pair = Pair(client(says={"elicitation": says}), server(["2025-11-25"]))
    pair.open()
    for needs, declared in (("elicitation.form", form), ("elicitation.url", url)):
        if declared:
            pair.ask("elicitation/create", of="client", needs=needs)
        else:
            with pytest.raises(MissingClientCapability, match=needs):
                pair.ask("elicitation/create", of="client", needs=needs)


def test_a_client_that_needs_more_is_refused_as_for_any_capability() -> None:
    pair = Pair(client(), server(["2025-11-25"], says={"resources": {}}))
    pair.open()
    with pytest.raises(NotSupported, match=r"resources.subscribe"):
        pair.ask("resources/list", needs="resources.subscribe")


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_the_client_of_a_request_declared_can_be_checked(revision: str) -> None:
    session = opened_server(revision)
    pending = admitted(session, revision, {"roots": {}, "elicitation": {}})
    session.require_client_capability(pending, "roots")
    session.require_client_capability(pending, "elicitation.form")
    with pytest.raises(MissingClientCapability, match="tools/list") as raised:
        session.require_client_capability(pending, "elicitation.url")
    assert raised.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}


def test_what_was_declared_at_the_opening_does_not_count_for_a_request_that_declares_less() -> None:
    session = opened_server("2025-11-25")
    session.require_client_capability(admitted(session, "2025-11-25"), "sampling")
    session.incoming.clear()
    with pytest.raises(MissingClientCapability):
        session.require_client_capability(admitted(session, S26), "sampling")


def test_without_an_opening_nothing_was_declared() -> None:
    session = server()
    pending = admitted(session, S26, {"roots": {}})
    pending.rules = RULES["2025-11-25"]
    with pytest.raises(MissingClientCapability):
        session.require_client_capability(pending, "roots")


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_missing_capability_has_the_code_of_the_revision(revision: str) -> None:
    session = opened_server(revision)
    pending = admitted(session, revision)
    answer = session.fail(pending, MissingClientCapability("m", data={"requiredCapabilities": {"roots": {}}}))
    error = msgspec.json.decode(answer or b"")["error"]
    assert error["code"] == (-32021 if revision == S26 else -32600)
    assert error["data"] == {"requiredCapabilities": {"roots": {}}}


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_reads_it_as_the_error_of_its_code(revision: str) -> None:
    pair = Pair(client(), server([revision]), answer=lambda *_: MissingClientCapability("m"))
    pair.open()
    pair.ask("tools/list")
    (*_, event) = pair.run()
    assert isinstance(event, ErrorReceived)
    assert type(event.error) is (MissingClientCapability if revision == S26 else InvalidRequest)


@pytest.mark.parametrize(
    "path", ["sampling", "sampling.tools", "elicitation.url", "tasks.requests.sampling.create_message"]
)
def test_a_missing_capability_is_named_as_a_client_would_declare_it(path: str) -> None:
    said = msgspec.convert(required_capabilities(path), ClientCapabilities)
    assert msgspec.to_builtins(said) == required_capabilities(path)
    session = server()
    assert type(session.local_info)(None, said).declares(path)


# Notifications


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_side_sends_only_declared_notifications(revision: str) -> None:
    session = opened_server(revision, says={"tools": {"listChanged": True}, "prompts": {}})
    rules = RULES[revision]
    assert session.notify("notifications/tools/list_changed", rules=rules)
    with pytest.raises(NotSupported, match=r"prompts.list_changed"):
        session.notify("notifications/prompts/list_changed", rules=rules)


def test_a_notification_goes_only_to_a_client_that_declared_what_it_is_about() -> None:
    name, params = "notifications/elicitation/complete", {"elicitationId": "e"}
    pair = Pair(client(says={"elicitation": {"url": {}}}), server(["2025-11-25"]))
    pair.open()
    pair.send(pair.server, pair.server.notify(name, params))
    (event,) = pair.run()
    assert isinstance(event, NotificationReceived)
    other = Pair(client(says={"elicitation": {}}), server(["2025-11-25"]))
    other.open()
    with pytest.raises(MissingClientCapability, match=r"elicitation.url"):
        other.server.notify(name, params)
    (event,) = other.client.receive(notification(name, params))
    assert isinstance(event, MessageIgnored)
    assert event.kind == "unknown notification"


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_what_comes_undeclared_is_taken_all_the_same(revision: str) -> None:
    pair = Pair(client(), server([revision], says={"tools": {}}))
    pair.open()
    (event,) = pair.client.receive(notification("notifications/tools/list_changed"))
    assert isinstance(event, NotificationReceived)

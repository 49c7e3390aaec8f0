"""Methods and notifications of third parties: sent and taken like those of the protocol, and absent where unused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.errors import MissingClientCapability, NotSupported
from accord.messages.base import Life
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.methods import Method, extended_table, table
from accord.messages.revision import REVISIONS
from accord.session.events import (
    ConnectionOpened,
    ErrorReceived,
    MessageIgnored,
    NotificationReceived,
    RequestReceived,
    ResultReceived,
)
from accord.session.peer_info import PeerInfo
from accord.session.session import Role, Session

from tests.session.pair import S26, Pair, done

NAME = "com.example/echo"


class EchoParams(msgspec.Struct):
    text: str


class EchoResult(msgspec.Struct):
    text: str


ECHO = Method("echo/say", "client", EchoParams, EchoResult, needs=f"extensions:{NAME}")
HEARD = Method("notifications/echo/heard", "server", EchoParams, offers=f"extensions:{NAME}")
TOLD = Method("notifications/echo/told", "client", EchoParams, needs=f"extensions:{NAME}")
ASKED = Method("echo/ask", "client", EchoParams, EchoResult, offers=f"extensions:{NAME}")
OLD = Method("old/say", "both", EchoParams, EchoResult, needs="experimental:old", life=Life(until=S26))

METHODS = (ECHO, HEARD, TOLD, ASKED, OLD)
HAS = {"extensions": {NAME: {"volume": 3}}, "experimental": {"old": {}}}


def session(role: Role, says: Any, methods: Any = METHODS, revisions: Any = REVISIONS) -> Session:
    type_ = ClientCapabilities if role == "client" else ServerCapabilities
    return Session(role, PeerInfo(None, msgspec.convert(says, type_)), methods=methods, revisions=revisions)


def opened(client: Any = HAS, server: Any = HAS, revision: str = S26, methods: Any = METHODS) -> Pair:
    def answer(served: Session, pending: Any) -> Any:
        return msgspec.json.decode(pending.params, type=EchoParams) if pending.method in METHODS else done

    pair = Pair(session("client", client, methods), session("server", server, methods, [revision]), answer=answer)
    assert isinstance(pair.open(), ConnectionOpened)
    return pair


def test_a_request_of_an_extension_is_sent_and_answered() -> None:
    pair = opened()
    pending = pair.ask("echo/say", EchoParams("hi"))
    (received, answered) = pair.run()
    assert isinstance(received, RequestReceived)
    assert received.pending.method is ECHO
    assert isinstance(answered, ResultReceived)
    assert answered.pending is pending
    assert msgspec.json.decode(answered.result, type=EchoResult) == EchoResult("hi")


def test_what_the_server_does_not_offer_is_neither_requested_nor_served() -> None:
    pair = opened(server={})
    with pytest.raises(NotSupported, match=NAME):
        pair.ask("echo/say", EchoParams("hi"))
    pair.client.peer_info = None  # nothing known: asked all the same
    pair.ask("echo/say", EchoParams("hi"))
    (*_, refused) = pair.run()
    assert isinstance(refused, ErrorReceived)
    assert "no method 'echo/say'" in str(refused.error)
    assert NAME in str(refused.error)


def test_what_the_client_must_declare_is_refused_with_the_name_of_it() -> None:
    assert any(isinstance(event, ResultReceived) for event in asked(opened()))
    (*_, refused) = asked(opened(client={}))
    assert isinstance(refused, ErrorReceived)
    assert isinstance(refused.error, MissingClientCapability)
    assert refused.error.data == {"requiredCapabilities": {"extensions": {NAME: {}}}}


def asked(pair: Pair) -> list[Any]:
    pair.ask("echo/ask", EchoParams("hi"))
    return pair.run()


def test_notifications_of_an_extension_go_both_ways() -> None:
    pair = opened()
    pair.ask("echo/say", EchoParams("first"))
    pair.run()
    pair.send(pair.server, pair.server.notify(HEARD.name, EchoParams("a"), rules=pair.client.rules))
    pair.send(pair.client, pair.client.notify(TOLD.name, EchoParams("b")))
    events = pair.run()
    assert {event.method for event in events if isinstance(event, NotificationReceived)} == {HEARD, TOLD}
    assert {event.rules.revision for event in events if isinstance(event, NotificationReceived)} == {S26}


def test_a_side_that_does_not_declare_an_extension_neither_sends_nor_receives_its_messages() -> None:
    pair = opened(server={})
    with pytest.raises(NotSupported, match=NAME):
        pair.server.notify(HEARD.name, EchoParams("a"), rules=pair.client.rules)
    with pytest.raises(NotSupported, match=NAME):
        pair.client.notify(TOLD.name, EchoParams("b"))
    pair.client.peer_info = None
    pair.send(pair.client, pair.client.notify(TOLD.name, EchoParams("b")))
    (event,) = pair.run()
    assert isinstance(event, MessageIgnored)
    assert event.kind == "unknown notification"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_method_lives_in_the_revisions_of_its_life(revision: str) -> None:
    pair = opened(revision=revision)
    for of in ("server", "client") if revision != S26 else ("server",):
        if revision == S26:
            with pytest.raises(NotSupported, match=revision):
                pair.ask("old/say", EchoParams("hi"))
        else:
            pair.ask("old/say", EchoParams("hi"), of=of)  # type: ignore[arg-type]
            assert isinstance(pair.run()[-1], ResultReceived)


def test_extensions_and_experiments_are_different_things() -> None:
    pair = opened(server={"experimental": {NAME: {}}, "extensions": {"old": {}}}, revision="2025-11-25")
    with pytest.raises(NotSupported):
        pair.ask("old/say", EchoParams("hi"))


def test_a_side_without_the_methods_knows_nothing_of_them() -> None:
    pair = opened(methods=())
    with pytest.raises(NotSupported, match="echo/say"):
        pair.ask("echo/say", EchoParams("hi"))
    assert extended_table(()) is table


@pytest.mark.parametrize(
    ("taken", "revision"),
    [
        (Method("tools/list", "client", EchoParams, EchoResult), "2024-11-05"),
        (Method("ping", "server", EchoParams, life=Life(since="2025-06-18")), "2025-06-18"),
        (ECHO, "2024-11-05"),
    ],
)
def test_a_name_that_is_taken_is_refused(taken: Method, revision: str) -> None:
    with pytest.raises(ValueError, match=f"{taken.name}.*taken in {revision}"):
        session("client", {}, methods=(ECHO, taken))


def test_a_name_may_be_used_where_the_protocol_does_not_have_it() -> None:
    again = Method("ping", "client", EchoParams, EchoResult, life=Life(since=S26))
    rows = extended_table((again,))
    assert rows(S26, "client")["ping"] is again
    assert rows("2025-11-25", "client")["ping"] is not again

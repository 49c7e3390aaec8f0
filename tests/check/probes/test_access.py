"""Requests with any credentials: what a response says, and where metadata is looked for."""

from __future__ import annotations

import pytest

from accord.check.engine.rule import NotApplicable, NotObserved, Violation
from accord.check.probes.access import Access, AccessRequest, challenges, is_accepted, is_local, well_known_urls
from accord.check.probes.message_log import LoggedResponse, MessageLog
from accord.check.rules.authorization import require_unauthorized
from accord.check.settings import CheckSettings
from accord.check.wires.http import HTTPWire

from tests.check.mutants.correct_server import right, served
from tests.check.mutants.guarded import KEYS, with_keys

POST = AccessRequest("POST ping", "POST", {"method": "ping"})
GET = AccessRequest("GET", "GET")


def response(status: int, *messages: object, **headers: str) -> LoggedResponse:
    return LoggedResponse(stream=1, method="POST", status=status, headers=headers, messages=list(messages))


def test_a_well_known_uri_has_the_path_of_the_server_and_then_none() -> None:
    root = "https://shop.example/.well-known/oauth-protected-resource"
    assert well_known_urls("https://shop.example/a/mcp?x=1") == [f"{root}/a/mcp", root]
    assert well_known_urls("https://shop.example/") == [root]


def test_a_success_with_an_error_in_it_is_no_acceptance() -> None:
    assert is_accepted(response(200, {"result": {}}))
    assert is_accepted(response(202))
    assert not is_accepted(response(200, {"error": {"code": -32600}}))
    assert not is_accepted(response(401))


@pytest.mark.parametrize(("status", "request_"), [(401, POST), (401, GET), (405, GET), (404, GET)])
def test_a_refusal_is_401_and_a_missing_method_is_one_too(status: int, request_: AccessRequest) -> None:
    require_unauthorized(response(status), request_, "no token")


@pytest.mark.parametrize(("status", "request_"), [(200, POST), (403, POST), (404, POST), (500, GET), (200, GET)])
def test_other_statuses_are_no_refusal(status: int, request_: AccessRequest) -> None:
    with pytest.raises(Violation):
        require_unauthorized(response(status), request_, "no token")


def test_no_response_is_not_observed() -> None:
    with pytest.raises(NotObserved):
        require_unauthorized(response(0), POST, "no token")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/mcp", "http://localhost", "http://[::1]:8000/"])
def test_http_on_loopback_is_local(url: str) -> None:
    assert is_local(url)


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "http://shop.example/", "http://[::1", "", "file:///"])
def test_another_url_is_not_local(url: str) -> None:
    assert not is_local(url)


async def access_to(url: str, **options: bool) -> Access:
    log = MessageLog("2025-11-25", "http", "access")
    wire = HTTPWire(f"{url}/mcp", log)
    await wire.open()
    return Access(wire, log, CheckSettings(tokens=KEYS), **options)  # type: ignore[arg-type]


async def test_a_server_that_opened_a_session_without_credentials_gets_no_request() -> None:
    async with served(right().app) as url:
        access = await access_to(url, is_open=True)
        with pytest.raises(NotApplicable, match="requires no authorization"):
            await access.refusal()
        assert access.log.responses == []
        await access.wire.close()


async def test_each_method_and_route_is_sent_with_the_token_that_is_given() -> None:
    async with served(with_keys().app) as url:
        access = await access_to(url)
        assert {(await access.send(each)).status for each in access.requests()} == {401}
        assert is_accepted(await access.send(access.requests()[0], token=KEYS[0]))
        assert not is_accepted(await access.send(access.requests()[0], query=f"access_token={KEYS[0]}"))
        assert challenges(await access.refusal())[0].scheme == "bearer"
        await access.wire.close()

"""Client identification: the order, registration, and what makes a stored registration invalid."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import (
    ClientIdentity,
    ClientRegistration,
    client_metadata_document,
    identify_client,
    select_auth_method,
)
from accord.auth.steps import OAuthResponse
from accord.errors import AuthorizationError, OAuthError

from tests.auth.flow import REDIRECT_URI, answered

ISSUER = "https://login.example"
DOCUMENT = "https://client.example/accord.json"


def metadata(**change: Any) -> AuthorizationServerMetadata:
    return AuthorizationServerMetadata(ISSUER, **{"registration_endpoint": f"{ISSUER}/register", **change})


def identify(found: AuthorizationServerMetadata, *responses: Any, **identity: Any) -> tuple[list[Any], Any]:
    bodies = [OAuthResponse(201, msgspec.json.encode(each)) for each in responses]
    return answered(identify_client(found, ClientIdentity(**identity), REDIRECT_URI), *bodies)


def test_the_order_of_identification() -> None:
    cimd = metadata(client_id_metadata_document_supported=True)
    requests, client = identify(cimd, client_id="given", client_secret="s", metadata_url=DOCUMENT)
    assert (requests, client.source, client.auth_method) == ([], "given", "client_secret_basic")
    requests, client = identify(cimd, metadata_url=DOCUMENT)
    assert (requests, client.client_id, client.source) == ([], DOCUMENT, "metadata document")
    [request], client = identify(metadata(), {"client_id": "new"}, metadata_url=DOCUMENT)
    assert (client.client_id, client.source, client.issuer) == ("new", "registered", ISSUER)
    assert (request.url, request.json["application_type"]) == (f"{ISSUER}/register", "native")
    for identity, reason in (({}, "registers no clients"), ({"metadata_url": DOCUMENT}, "no metadata documents")):
        with pytest.raises(AuthorizationError, match=reason) as caught:
            identify(metadata(registration_endpoint=None), **identity)
        assert caught.value.cure == f"register {REDIRECT_URI} there, then give the client ID: --client-id"


@pytest.mark.parametrize(
    ("supported", "response", "method"),
    [
        (["none"], {}, "none"),
        (None, {"client_secret": "s"}, "client_secret_basic"),
        (["none"], {"client_secret": "s"}, "client_secret_post"),
        (["client_secret_post"], {"client_secret": "s"}, "client_secret_post"),
        (["client_secret_basic", "client_secret_post"], {"client_secret": "s"}, "client_secret_post"),
        (["tls_client_auth"], {}, "none"),
        (["none"], {"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}, "client_secret_basic"),
    ],
)
def test_the_method_of_a_registered_client(supported: list[str] | None, response: Any, method: str) -> None:
    found = metadata(token_endpoint_auth_methods_supported=supported)
    assert identify(found, {"client_id": "new", **response})[1].auth_method == method


@pytest.mark.parametrize("response", [{}, [], {"client_id": ""}, {"client_id": 7}, {"client_id": "x" * 5_000}], ids=str)
def test_a_registration_that_cannot_be_used_is_an_error(response: Any) -> None:
    with pytest.raises(AuthorizationError, match="cannot be used"):
        identify(metadata(), response)


def test_a_refused_registration_has_a_cure() -> None:
    steps = identify_client(metadata(), ClientIdentity(), REDIRECT_URI)
    next(steps)
    with pytest.raises(OAuthError, match=r"invalid_redirect_uri.*--client-id"):
        steps.send(OAuthResponse(400, b'{"error": "invalid_redirect_uri"}'))


@pytest.mark.parametrize(
    ("issuer", "uri", "now", "valid"),
    [
        (ISSUER, REDIRECT_URI, 99, True),
        (ISSUER, "http://127.0.0.1:1/callback", 99, False),
        (ISSUER, REDIRECT_URI, 100, False),
        (f"{ISSUER}/", REDIRECT_URI, 99, False),
        (ISSUER, "http://127.0.0.1:33418/other", 99, False),
        (ISSUER, "http://localhost:33418/callback", 99, False),
    ],
)
def test_a_stored_registration_is_for_one_issuer_until_its_secret_expires(
    issuer: str, uri: str, now: float, valid: bool
) -> None:
    stored = ClientRegistration(ISSUER, "a", "registered", "word", secret_expires_at=100, redirect_uri=REDIRECT_URI)
    assert stored.is_valid(issuer, uri, now) is valid
    assert "word" not in repr(stored) + repr(ClientIdentity(client_id="a", client_secret="word"))


def test_methods_of_a_client_with_a_secret() -> None:
    posted = metadata(token_endpoint_auth_methods_supported=["client_secret_post"])
    assert select_auth_method(posted, has_secret=True) == "client_secret_post"
    assert select_auth_method(posted, has_secret=False) == "none"
    assert select_auth_method(metadata(), has_secret=True) == "client_secret_basic"


def test_a_metadata_document_names_its_own_url() -> None:
    assert client_metadata_document(DOCUMENT, "accord", [REDIRECT_URI])["client_id"] == DOCUMENT


@pytest.mark.parametrize(
    "url", ["http://a.example/x", "https://a.example", "https://a.example/", "https:///x", "https://a.example/../x",
            "https://a.example/x#y", "https://u@a.example/x"],
)  # fmt: skip
def test_other_urls_are_no_client_ids(url: str) -> None:
    with pytest.raises(AuthorizationError, match="client metadata document"):
        client_metadata_document(url, "accord", [REDIRECT_URI])

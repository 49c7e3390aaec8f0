"""The options of `OAuthProxy`: what is refused at the start, and what reaches the provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from accord import JWT, Introspection, OAuthProxy
from accord.errors import DeclarationError
from accord.server.auth.proxy.sealing import Sealer, UnsealError
from accord.testing import AuthServer

from tests.server.auth.proxy.proxying import KEY, SECRET, basic, proxied


async def whose(token: str) -> str:
    return "ann"


def options(**changes: Any) -> dict[str, Any]:
    return {
        "authorize": "https://login.example/authorize",
        "token": "https://login.example/token",
        "client_id": "shop",
        "client_secret": SECRET,
        "verify": whose,
        "database": ":memory:",
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"authorize": "http://login.example/authorize"}, "authorize="),
        ({"token": "login.example"}, "token="),
        ({"revoke": "javascript:x"}, "revoke="),
        ({"issuer": "nobody"}, "issuer="),
        ({"client_id": ""}, "variables set"),
        ({"client_secret": ""}, "variables set"),
        ({"client_secret": 7}, "variables set"),
        ({"verify": None}, "verify="),
        ({"auth_method": "private_key_jwt"}, "auth_method="),
        ({"authorize_parameters": {"state": "x"}}, "must not set state"),
        ({"key": "short"}, "at least 16 bytes"),
        ({"key": []}, "at least 16 bytes"),
        ({"key": [KEY, ""]}, "at least 16 bytes"),
        ({"redirect_schemes": {"javascript"}}, "redirect_schemes="),
        ({"redirect_schemes": {"https"}}, "redirect_schemes="),
        ({"redirect_schemes": {"CURSOR"}}, "redirect_schemes="),
        ({"token_seconds": 0}, "token_seconds="),
        ({"token_seconds": 7_200, "session_seconds": 3_600}, "token_seconds="),
        ({"session_seconds": 91 * 86_400}, "90 days"),
        ({"scopes": ("a b",)}, "is not a scope"),
    ],
)
def test_invalid_options_are_refused_without_the_secret(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text) as found:
        OAuthProxy(**options(**changes))
    assert SECRET not in str(found.value)


def test_the_default_database_is_one_file_for_each_client_of_a_provider(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    paths = {str(OAuthProxy(**options(database=None, client_id=each))._database) for each in ("shop", "shop", "other")}
    assert len(paths) == 2
    assert all("oauth-proxy-" in path for path in paths)


async def requested(**changes: Any) -> dict[str, str]:
    """The parameters of the URL at the provider."""
    async with proxied(**changes) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        login = shop.login(client, scope="read offline_access")
        location = (await shop.consent(browser, login)).location
        return dict(parse_qsl(urlsplit(location).query, strict_parsing=True))


async def test_a_login_at_the_provider_has_pkce_and_the_parameters_of_the_options() -> None:
    found = await requested(scopes=("read", "write", "offline_access"), authorize_parameters={"access_type": "offline"})
    assert (found["access_type"], found["code_challenge_method"]) == ("offline", "S256")
    assert found["scope"] == "read offline_access"
    assert found["redirect_uri"] == "https://shop.example/callback"
    assert found["client_id"] == "shop"
    assert "resource" not in found


async def test_offline_access_is_for_the_provider_alone() -> None:
    assert (await requested())["scope"] == "read"


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_the_secret_is_sent_as_the_options_say(method: str) -> None:
    async with proxied(auth_method=method) as shop:
        await shop.tokens()
        (sent,) = [request for request in shop.provider.requests if request.endpoint == "token"]
        if method == "client_secret_post":
            assert sent.parameters["client_secret"] == SECRET
        else:
            assert "client_secret" not in sent.parameters
            assert sent.headers["authorization"].startswith("Basic ")
            assert sent.headers["authorization"] != basic("shop", SECRET), "it is encoded as a form is"


@pytest.mark.parametrize("kind", ["JWT", "Introspection"])
async def test_a_verifier_tells_whose_a_token_is(kind: str) -> None:
    async with AuthServer(jwt=kind == "JWT") as provider:
        verify: JWT | Introspection = JWT(provider.issuer, provider.issuer)
        if kind == "Introspection":
            provider.add_client("resource", SECRET)
            verify = Introspection(
                provider.issuer, client_id="resource", client_secret=SECRET, audience=provider.issuer
            )
        async with proxied(provider=provider, verify=verify) as shop:
            tokens = await shop.tokens(scope="write")
            assert tokens["scope"] == "write"
            assert f"{provider.issuer} alice write" in (await shop.call(tokens["access_token"])).text
            assert (await shop.refresh(tokens)).status == 200
            forged = provider.access_token("mallory", ["read"])
            assert (await shop.call(forged)).status == 401, "only the proxy's own tokens are accepted"


async def test_introspection_that_does_not_answer_is_temporary() -> None:
    async with AuthServer(jwt=False) as provider:
        provider.set_faults("introspection_500")
        verify = Introspection(provider.issuer, client_id="shop", client_secret=SECRET)
        async with proxied(provider=provider, verify=verify) as shop:
            client, browser = (await shop.register())["client_id"], shop.browser()
            done = await browser.open(shop.at_provider(await shop.consent(browser, shop.login(client))))
            assert done.parameters["error"] == "temporarily_unavailable"


@pytest.mark.parametrize(
    "found", [None, 7, {}, {"sub": None}, {"sub": ""}, {"sub": "a\nb"}, {"sub": True}, {"sub": []}]
)
async def test_a_verify_that_names_no_user_refuses_the_login(found: Any) -> None:
    async def verify(token: str) -> Any:
        return found

    async with proxied(verify=verify) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        done = await browser.open(shop.at_provider(await shop.consent(browser, shop.login(client))))
        assert done.parameters["error"] in ("server_error", "access_denied")


@pytest.mark.parametrize("fault", ["token_type_unknown", "code_refused", "token_html", "access_token_missing"])
async def test_a_failure_of_the_token_endpoint_leads_back_to_the_client(fault: str) -> None:
    async with proxied() as shop:
        shop.provider.set_faults(fault)
        client, browser = (await shop.register())["client_id"], shop.browser()
        login = shop.login(client)
        done = await browser.open(shop.at_provider(await shop.consent(browser, login)))
        assert (done.parameters["error"], done.parameters["state"]) == ("server_error", login.state)
        assert done.parameters["error_description"].endswith("; the log of this server says why")


async def test_a_redirect_uri_may_be_left_out_if_there_is_one() -> None:
    async with proxied() as shop:
        one = (await shop.register())["client_id"]
        two = (await shop.register("https://a.example/1", "https://a.example/2"))["client_id"]
        assert (await shop.browser().open(shop.login(one, redirect_uri=None).url)).status == 200
        assert (await shop.browser().open(shop.login(two, redirect_uri=None).url)).status == 400


# --- sealing ---------------------------------------------------------------------------------------------------------


def test_a_sealed_value_opens_only_in_its_place_and_unchanged() -> None:
    sealer = Sealer([b"x" * 16])
    sealed = sealer.seal(b"secret", b"here")
    assert b"secret" not in sealed
    assert sealer.seal(b"secret", b"here") != sealed
    assert sealer.open(sealed, b"here") == b"secret"
    with pytest.raises(UnsealError):
        sealer.open(sealed, b"there")
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(UnsealError):
            sealer.open(bytes(changed), b"here")
    for length in range(len(sealed)):
        with pytest.raises(UnsealError):
            sealer.open(sealed[:length], b"here")


def test_no_repr_has_a_secret() -> None:
    from accord.auth.tokens import Tokens
    from accord.server.auth.proxy import authorization, clients, grants, login_flow, provider

    secret = "the-secret"
    request = authorization.ClientRequest("id", "https://a.example", secret, secret, [], "i", "r")
    pending = authorization.PendingLogin(request, secret.encode(), secret, "i")
    client = clients.ProxyClient("id", "n", [], "none", secret.encode())
    grant = grants.UserGrant("id", "p", "i", [], [], "r", secret.encode())
    shown: list[msgspec.Struct | Sealer] = [
        request,
        pending,
        authorization.PendingConsent(request, secret.encode()),
        authorization.ConsentedLogin(pending, secret, secret),
        client,
        clients.ClientCredentialsSent("id", secret, "client_secret_post"),
        grant,
        grants.IssuedTokens(secret, secret, 0, []),
        grants.LiveGrant(b"id", grant, Tokens(secret, refresh_token=secret)),
        login_flow.BegunLogin(client, request, secret, secret),
        login_flow.Redirection(f"https://a.example/?state={secret}", secret, secret),
        provider.Identity("p", "i", [], secret.encode()),
        Sealer([secret.encode()]),
    ]
    for each in shown:
        assert secret not in repr(each)

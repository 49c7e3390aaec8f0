"""A whole login through `OAuthProxy`, and what clients get of it."""

from __future__ import annotations

from tests.server.auth.proxy.proxying import ISSUER, PUBLIC, REDIRECT_URI, proxied, send


async def test_a_client_registers_and_a_user_logs_in() -> None:
    async with proxied() as shop:
        client = await shop.register()
        login, browser = shop.login(client["client_id"], scope="read"), shop.browser()
        redirect = await shop.consent(browser, login)
        assert redirect.location.startswith(f"{shop.provider.issuer}/authorize?")
        done = await browser.open(shop.at_provider(redirect))
        assert done.location.startswith(f"{REDIRECT_URI}?")
        assert done.parameters["state"] == login.state
        assert done.parameters["iss"] == ISSUER
        reply = await shop.post("/token", shop.redeeming(client["client_id"], login, done.parameters["code"]))
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
        tokens = reply.json()
        assert tokens["token_type"] == "Bearer"
        assert tokens["scope"] == "read"
        assert 3590 <= tokens["expires_in"] <= 3600
        found = await shop.call(tokens["access_token"])
        assert found.status == 200, found.text
        assert f"{shop.provider.issuer} alice read" in found.text
        assert browser.cookies == {}, "nothing stays in the browser"


async def test_handlers_receive_the_token_of_the_provider_and_clients_do_not() -> None:
    async with proxied() as shop:
        tokens = await shop.tokens()
        found = await shop.call(tokens["access_token"], "upstream")
        token = found.json()["result"]["content"][0]["text"]
        assert token in shop.provider.secrets
        assert not shop.provider.secrets & {str(value) for value in tokens.values()}


async def test_metadata_describes_the_proxy() -> None:
    async with proxied() as shop:
        resource = (await send(shop.app, "GET", f"{ISSUER}/.well-known/oauth-protected-resource/mcp")).json()
        assert (resource["resource"], resource["authorization_servers"]) == (PUBLIC, [ISSUER])
        reply = await send(shop.app, "GET", f"{ISSUER}/.well-known/oauth-authorization-server")
        assert reply.headers["access-control-allow-origin"] == "*"
        assert reply.json() == {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "registration_endpoint": f"{ISSUER}/register",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "scopes_supported": ["read", "write"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            "revocation_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        }

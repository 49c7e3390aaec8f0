"""Attacks on `OAuthProxy`: none leads to a code, a token, or a page that it should not lead to."""

from __future__ import annotations

import logging
from html import unescape
from typing import Any

import pytest

from accord import Server
from accord.server.http.options import HTTPOptions

from tests.server.auth.proxy import proxying
from tests.server.auth.proxy.proxying import (
    FORM,
    ISSUER,
    REDIRECT_URI,
    SECRET,
    Reply,
    basic,
    proxied,
    send,
)


def refused(reply: Reply, status: int = 400) -> str:
    """The text of an error page; it neither redirects nor has a form."""
    assert reply.status == status, f"{reply.status}: {reply.text} {reply.headers}"
    assert "location" not in reply.headers
    assert "<form" not in reply.text
    return unescape(reply.text)


# --- consent ---------------------------------------------------------------------------------------------------------


async def test_every_authorization_needs_consent_also_of_the_same_client_and_browser() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        for _ in range(2):
            redirect = await shop.consent(browser, shop.login(client))
            assert (await browser.open(shop.at_provider(redirect))).parameters["code"]
        page = await browser.open(shop.login(client).url)
        assert page.status == 200
        assert 'value="allow"' in page.text


async def test_a_second_client_gets_nothing_without_consent() -> None:
    async with proxied() as shop:
        first, browser = (await shop.register())["client_id"], shop.browser()
        redirect = await shop.consent(browser, shop.login(first))
        await browser.open(shop.at_provider(redirect))
        other = (await shop.register("https://evil.example/cb", client_name="Desk"))["client_id"]
        page = await browser.open(shop.login(other, redirect_uri="https://evil.example/cb").url)
        assert (page.status, "location" in page.headers) == (200, False)
        assert shop.provider.counts["authorization"] == 1
        assert "evil.example" in page.text


async def test_consent_is_given_only_in_the_browser_that_shows_the_page() -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        page = await shop.browser().open(shop.login(client).url)
        assert "another browser" in refused(await shop.browser().decide(page), 403)


async def test_the_callback_works_only_in_the_browser_that_consented() -> None:
    async with proxied() as shop:
        client, attacker, victim = (await shop.register())["client_id"], shop.browser(), shop.browser()
        callback = shop.at_provider(await shop.consent(attacker, shop.login(client)))
        await victim.open(shop.login(client).url)  # the victim has a cookie of another login
        assert "another browser" in refused(await victim.open(callback), 403)
        assert "used before" in refused(await attacker.open(callback)), "the login is over for both"
        assert shop.provider.counts["token"] == 0


async def test_a_consent_page_works_once_but_for_a_double_click(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        cookies = dict(browser.cookies)
        first = await browser.decide(page)
        browser.cookies |= cookies
        second = await browser.decide(page)
        assert first.parameters["state"] != second.parameters["state"]
        assert (await browser.open(shop.at_provider(second))).parameters["code"]
        browser.cookies |= cookies
        shop.clock.ahead += 6
        assert "used before" in refused(await browser.decide(page))


async def test_a_page_that_was_refused_works_no_more() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        cookies = dict(browser.cookies)
        await browser.decide(page, "deny")
        browser.cookies |= cookies
        assert "used before" in refused(await browser.decide(page))


async def test_the_cookie_of_the_page_is_not_enough_for_the_callback() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        (before,) = browser.cookies.values()
        redirect = await browser.decide(page)
        (name,) = browser.cookies
        assert browser.cookies[name] != before
        browser.cookies[name] = before
        refused(await browser.open(shop.at_provider(redirect)), 403)


async def test_state_and_cookie_are_used_once() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        callback = shop.at_provider(await shop.consent(browser, shop.login(client)))
        cookies = dict(browser.cookies)
        assert (await browser.open(callback)).parameters["code"]
        browser.cookies |= cookies
        assert "used before" in refused(await browser.open(callback))
        assert shop.provider.counts["token"] == 1


async def test_the_id_of_a_consent_page_is_no_state_and_a_state_no_id() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        id = page.text.partition('name="pending" value="')[2].partition('"')[0]
        refused(await browser.open(f"{ISSUER}/callback?code=x&state={id}"))
        redirect = await shop.consent(browser, shop.login(client))
        state = redirect.parameters["state"]
        refused(await browser.post(f"{ISSUER}/consent", {"pending": state, "decision": "allow"}))


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": ISSUER},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://shop.example"},
        {},
    ],
)
async def test_a_form_of_another_page_is_refused(headers: dict[str, str]) -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        id = page.text.partition('name="pending" value="')[2].partition('"')[0]
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        body = f"pending={id}&decision=allow".encode()
        url = f"{ISSUER}/consent"
        refused(await send(shop.app, "POST", url, body, {**FORM, "cookie": cookie, **headers}), 403)
        assert (await browser.decide(page)).status == 303, "the page itself still works"


async def test_an_older_browser_states_the_origin_alone() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        page = await browser.open(shop.login(client).url)
        id = page.text.partition('name="pending" value="')[2].partition('"')[0]
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        headers = {**FORM, "cookie": cookie, "origin": ISSUER}
        reply = await send(shop.app, "POST", f"{ISSUER}/consent", f"pending={id}&decision=allow".encode(), headers)
        assert reply.location.startswith(shop.provider.issuer)


@pytest.mark.parametrize("destination", ["iframe", "frame", "image", "script", "embed", "empty"])
async def test_the_page_is_not_loaded_into_another(destination: str) -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        refused(await shop.browser().open(shop.login(client).url, sec_fetch_dest=destination), 403)


async def test_pages_have_no_script_and_no_frame_and_are_not_stored() -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        page = await shop.browser().open(shop.login(client).url)
        error = await shop.browser().open(shop.login("nobody").url)
        for reply in (page, error):
            policy = reply.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "script" not in policy
            assert "unsafe" not in policy
            assert reply.headers["x-frame-options"] == "DENY"
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["referrer-policy"] == "same-origin"
            assert "<script" not in reply.text
            assert "access-control-allow-origin" not in reply.headers


async def test_the_page_names_client_host_and_scopes_and_escapes_them() -> None:
    async with proxied() as shop:
        name = "<script>alert(1)</script>\u202e\"'&\n\n  Desk"
        client = await shop.register("https://client.example:8443/cb", client_name=name)
        login = shop.login(client["client_id"], redirect_uri="https://client.example:8443/cb", scope="write")
        page = (await shop.browser().open(login.url)).text
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e&quot;&#x27;&amp; Desk" in page
        assert "<dd>client.example:8443</dd>" in page
        assert "<dd>write</dd>" in page
        assert "localhost" not in page


async def test_one_click_is_no_consent() -> None:
    """The second half of a double click may land on the page, when a window before it closes."""
    async with proxied() as shop:
        page = await shop.browser().open(shop.login((await shop.register())["client_id"]).url)
        form = page.text[page.text.index("<form") : page.text.index("</form>")]
        assert form.index('<input type="checkbox" required>') < form.index('value="allow"')
        assert 'value="deny" formnovalidate>' in form


@pytest.mark.parametrize("uri", ["http://localhost:9/cb", "http://127.0.0.1/cb", "http://[::1]:9/cb", "cursor://x/cb"])
async def test_the_page_warns_about_programs_on_the_users_machine(uri: str) -> None:
    async with proxied(redirect_schemes={"cursor"}) as shop:
        client = await shop.register(uri)
        page = await shop.browser().open(shop.login(client["client_id"], redirect_uri=uri).url)
        assert "a program on your computer (localhost)" in page.text


async def test_a_user_who_refuses_leads_back_to_the_client() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        login = shop.login(client)
        reply = await browser.decide(await browser.open(login.url), "deny")
        assert reply.location.startswith(f"{REDIRECT_URI}?")
        assert (reply.parameters["error"], reply.parameters["state"]) == ("access_denied", login.state)
        assert reply.parameters["iss"] == ISSUER
        assert shop.provider.counts["authorization"] == 0


async def test_cookies_may_come_in_several_lines() -> None:
    """As they do over HTTP/2."""
    async with proxied() as shop:
        login, browser = shop.login((await shop.register())["client_id"]), shop.browser()
        page = await browser.open(login.url)
        name, value = browser.cookies.popitem()
        lines = [(b"cookie", b"a=1"), (b"cookie", f"{name}={value}".encode()), (b"cookie", b"b=2")]

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await shop.app({**scope, "headers": [*scope["headers"], *lines]}, receive, send)

        browser.app = app
        assert (await browser.decide(page)).status == 303


async def test_cookies_belong_to_this_host_over_https() -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        page = await shop.browser().open(shop.login(client).url)
        (cookie,) = [value for name, value in page.fields if name == "set-cookie"]
        assert cookie.startswith("__Host-")
        for attribute in ("Path=/", "HttpOnly", "SameSite=Lax", "Secure"):
            assert attribute in cookie.split("; ")
        assert "Domain" not in cookie


# --- requests of clients ---------------------------------------------------------------------------------------------


def one_character_off(uri: str) -> list[str]:
    """URIs that differ in one character."""
    found = [uri[:-1], f"{uri}x", f"{uri}/", f"{uri}?", f"{uri}#"]
    found += [uri[:place] + "x" + uri[place + 1 :] for place in range(len(uri)) if uri[place] != "x"]
    return found


async def test_a_redirect_uri_that_differs_by_one_character_is_refused() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        for uri in one_character_off(REDIRECT_URI):
            assert "redirect_uri" in refused(await browser.open(shop.login(client, redirect_uri=uri).url)), uri
        assert browser.cookies == {}


@pytest.mark.parametrize(
    ("registered", "requested", "accepted"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:8912/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:8912/cb", True),
        ("http://[::1]:1/cb", "http://[::1]/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:8912/cB", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:8912/cb?x=1", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.2:1/cb", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:99999/cb", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:1@evil.example/cb", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:/cb", False),
        ("http://127.0.0.1:1/cb", "https://127.0.0.1:1/cb", False),
        ("http://127.0.0.1:1/cb", "http://localhost:1/cb", False),
        ("http://localhost:1/cb", "http://localhost:2/cb", False),
        ("https://a.example/cb", "https://a.example:444/cb", False),
    ],
)
async def test_only_the_port_of_loopback_addresses_may_differ(registered: str, requested: str, accepted: bool) -> None:
    async with proxied() as shop:
        client = (await shop.register(registered))["client_id"]
        reply = await shop.browser().open(shop.login(client, redirect_uri=requested).url)
        assert reply.status == (200 if accepted else 400), reply.text


HOSTILE_URIS = [
    "javascript:alert(1)",
    "JavaScript:alert(1)//https://a.example",
    "data:text/html,x",
    "file:///etc/passwd",
    "http://a.example/cb",
    "http://127.0.0.1.evil.example/cb",
    "http://0.0.0.0/cb",
    "http://2130706433/cb",
    "https://user@a.example/cb",
    "https://a.example/cb#fragment",
    "https://a.example/c b",
    "https://a.example/cb\r\nset-cookie: x=1",
    "https://a.example\\@evil.example/cb",
    "https:///cb",
    "//a.example/cb",
    "cursor://x/cb",
    "urn:ietf:wg:oauth:2.0:oob",
    "",
    "https://a.example/" + "x" * 3_000,
]


@pytest.mark.parametrize("uri", HOSTILE_URIS)
async def test_a_hostile_redirect_uri_is_not_registered(uri: str) -> None:
    import json

    async with proxied() as shop:
        body = json.dumps({"redirect_uris": [REDIRECT_URI, uri]}).encode()
        reply = await send(shop.app, "POST", f"{ISSUER}/register", body)
        assert reply.status == 400
        assert reply.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"response_type": "token"},
        {"response_type": None},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"resource": "https://other.example/mcp"},
        {"resource": "https://shop.example.evil.example/mcp"},
        {"resource": "https://shop.example/mcp2"},
        {"scope": "unknown"},
        {"state": "x" * 5_000},
    ],
)
async def test_an_invalid_request_ends_on_an_error_page(changes: dict[str, str | None]) -> None:
    """An error never redirects: anybody may register a client, and a link to this server would lead anywhere."""
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        refused(await browser.open(shop.login(client, **changes).url))
        assert browser.cookies == {}


@pytest.mark.parametrize("query", ["&state=2", "&client_id=other", "&redirect_uri=https://evil.example/"])
async def test_a_parameter_that_is_there_twice_is_refused(query: str) -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        assert "twice" in refused(await shop.browser().open(shop.login(client).url + query))


# --- codes and tokens ------------------------------------------------------------------------------------------------


async def test_a_replayed_code_is_refused_and_ends_the_grant() -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        login, code = await shop.authorize(client)
        form = shop.redeeming(client, login, code)
        tokens = (await shop.post("/token", form)).json()
        assert (await shop.call(tokens["access_token"])).status == 200
        again = await shop.post("/token", form)
        assert (again.status, again.json()["error"]) == (400, "invalid_grant")
        assert (await shop.call(tokens["access_token"])).status == 401
        assert (await shop.refresh({**tokens, "client_id": client})).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "x" * 43},
        {"code_verifier": ""},
        {"redirect_uri": "https://client.example/callbacK"},
        {"code": "another"},
    ],
)
async def test_a_code_without_its_secrets_is_worth_nothing(changes: dict[str, str]) -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        login, code = await shop.authorize(client)
        reply = await shop.post("/token", {**shop.redeeming(client, login, code), **changes})
        assert (reply.status, reply.json()["error"]) == (400, "invalid_grant")


async def test_a_code_and_a_refresh_token_of_another_client_are_refused() -> None:
    async with proxied() as shop:
        client, other = [(await shop.register())["client_id"] for _ in range(2)]
        login, code = await shop.authorize(client)
        reply = await shop.post("/token", {**shop.redeeming(client, login, code), "client_id": other})
        assert reply.json()["error"] == "invalid_grant"
        tokens = await shop.tokens(client)
        assert (await shop.refresh({**tokens, "client_id": other})).json()["error"] == "invalid_grant"


async def test_a_token_for_another_server_is_not_issued() -> None:
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        login, code = await shop.authorize(client)
        form = {**shop.redeeming(client, login, code), "resource": "https://other.example/mcp"}
        assert (await shop.post("/token", form)).json()["error"] == "invalid_target"


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_a_client_with_a_secret_has_to_prove_it(method: str) -> None:
    async with proxied() as shop:
        client = await shop.register(token_endpoint_auth_method=method)
        id, secret = client["client_id"], client["client_secret"]
        assert client["client_secret_expires_at"] == 0
        login, code = await shop.authorize(id)
        form = shop.redeeming(id, login, code)
        for wrong in ({}, {"client_secret": "wrong"}):
            reply = await shop.post("/token", {**form, **wrong})
            assert (reply.status, reply.json()["error"]) == (401, "invalid_client")
            assert reply.headers["www-authenticate"].startswith("Basic")
        assert (await shop.post("/token", form, authorization=basic(id, "wrong"))).status == 401
        assert (await shop.post("/token", form, authorization="Basic !!!")).status == 401
        if method == "client_secret_basic":
            assert (await shop.post("/token", form, authorization=basic(id, secret))).status == 200
        else:
            assert (await shop.post("/token", {**form, "client_secret": secret})).status == 200


async def test_tokens_of_the_provider_are_not_accepted() -> None:
    async with proxied() as shop:
        await shop.tokens()
        for token in shop.provider.secrets:
            assert (await shop.call(token.replace(" ", ""))).status == 401


@pytest.mark.parametrize("token", ["at_" + "x" * 43, "at_", "rt_" + "x" * 43, "x" * 10_000])
async def test_a_made_up_token_is_refused(token: str) -> None:
    async with proxied() as shop:
        reply = await shop.call(token)
        assert reply.status == 401
        assert "invalid_token" in reply.headers["www-authenticate"]
        assert "resource_metadata=" in reply.headers["www-authenticate"]


async def test_a_refresh_token_is_no_access_token() -> None:
    async with proxied() as shop:
        tokens = await shop.tokens()
        assert (await shop.call(tokens["refresh_token"])).status == 401
        assert (await shop.refresh({**tokens, "refresh_token": tokens["access_token"]})).status == 400


async def test_a_token_of_another_server_with_the_same_database_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "proxy.db"
    async with proxied(path) as shop:
        token = (await shop.tokens())["access_token"]
        options = HTTPOptions(public_url="https://shop.example/other/mcp")
        async with proxied(path, provider=shop.provider, options=options) as other:
            reply = await send(other.app, "POST", f"{ISSUER}/mcp", b"{}", {"authorization": f"Bearer {token}"})
            assert reply.status == 401
            assert "another server" in reply.headers["www-authenticate"]


async def test_two_servers_that_share_a_proxy_refuse_the_tokens_of_each_other() -> None:
    """The user has consented to one of them."""
    async with proxied() as shop:
        vault = Server("vault", auth=shop.auth).asgi(HTTPOptions(public_url="https://vault.example/mcp"))
        try:
            token = (await shop.tokens())["access_token"]
            for path in ("/mcp", "/messages", "/mcp"):
                url = f"https://vault.example{path}"
                reply = await send(vault, "POST", url, b"{}", {"authorization": f"Bearer {token}"})
                assert reply.status == 401, reply.text
                assert "another server" in reply.headers["www-authenticate"]
                assert (await shop.call(token)).status == 200  # the token is in the cache from now on
        finally:
            await vault.close()


@pytest.mark.parametrize("other", ["127.0.0.1:8001", "localhost:8000"])
async def test_a_token_for_one_loopback_address_is_refused_at_another(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers on one machine share the default database of a client at the provider."""
    local = "http://127.0.0.1:8000"
    monkeypatch.setattr(proxying, "ISSUER", local)
    monkeypatch.setattr(proxying, "PUBLIC", f"{local}/mcp")
    async with proxied(options=HTTPOptions()) as shop:
        token = (await shop.tokens())["access_token"]
        headers = {"authorization": f"Bearer {token}"}
        assert (await send(shop.app, "POST", f"{local}/mcp", b"{}", headers)).status == 415
        for _ in range(2):
            reply = await send(shop.app, "POST", f"http://{other}/mcp", b"{}", headers)
            assert reply.status == 401, reply.text
            assert "another server" in reply.headers["www-authenticate"]


# --- the provider ----------------------------------------------------------------------------------------------------


async def test_a_response_of_another_issuer_is_refused() -> None:
    async with proxied(issuer="https://login.example") as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        callback = shop.at_provider(await shop.consent(browser, shop.login(client)))
        assert "another provider" in refused(await browser.open(callback))
        assert shop.provider.counts["token"] == 0


async def test_the_token_endpoint_is_not_redirected() -> None:
    async with proxied() as shop:
        shop.provider.set_faults("token_redirect")
        client, browser = (await shop.register())["client_id"], shop.browser()
        done = await browser.open(shop.at_provider(await shop.consent(browser, shop.login(client))))
        assert done.parameters["error"] == "server_error"
        assert shop.provider.counts["token"] == 1


async def test_no_secret_is_in_a_log_an_error_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []

    async def failing(token: str) -> str:
        seen.append(token)
        raise ValueError(f"no user has {token}")

    async with proxied(verify=failing) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        login = shop.login(client)
        done = await browser.open(shop.at_provider(await shop.consent(browser, login)))
        assert done.parameters["error"] == "server_error"
        texts = [caplog.text, done.location, repr(shop.auth), repr(shop.auth._settings), repr(shop.auth._flow)]
        for secret in (*shop.provider.secrets, *seen, SECRET):
            if secret != login.state:
                assert not any(secret in text for text in texts), secret


async def test_a_user_without_access_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    from accord.http import Forbidden

    async def verify(token: str) -> str:
        raise Forbidden("only for members")

    async with proxied(verify=verify) as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        done = await browser.open(shop.at_provider(await shop.consent(browser, shop.login(client))))
        assert done.parameters["error"] == "access_denied"
        assert done.parameters["error_description"] == "only for members"


async def test_a_refusal_of_the_provider_reaches_the_client_without_its_text() -> None:
    async with proxied() as shop:
        client, browser = (await shop.register())["client_id"], shop.browser()
        state = (await shop.consent(browser, shop.login(client))).parameters["state"]
        done = await browser.open(
            f"{ISSUER}/callback?state={state}&error=access_denied&error_description=%3Cb%3Esecret"
        )
        assert done.parameters["error"] == "access_denied"
        assert "secret" not in done.location

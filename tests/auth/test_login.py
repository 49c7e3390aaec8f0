"""A client logs in to a server, and stays logged in: `Client(url, auth=OAuth())` against `AuthServer`."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import JWT, AuthorizationError, Client, Context, CredentialStore, LoginNeeded, OAuth, Server
from accord.auth.credentials import login_name
from accord.auth.logout import log_out
from accord.testing import AuthServer

from tests.auth.place import place, stored
from tests.server.http.raw import served

REVISIONS = ["2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_first_connection_logs_in_and_the_next_one_uses_the_login(
    revision: str, store: CredentialStore
) -> None:
    async with place() as at:
        for _ in range(2):
            async with Client(at.url, auth=at.login(store), revisions=[revision]) as client:
                assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["registration"] == 1


async def test_without_a_user_the_error_names_the_command(store: CredentialStore) -> None:
    async with place() as at:
        with pytest.raises(LoginNeeded, match=f"accord login {at.url}"):
            await Client(at.url, auth=OAuth(interactive=False, store=store)).connect()
        assert at.issuer.counts["authorization"] == 0
    assert not store.exists


async def test_without_a_user_the_command_has_the_registered_client_and_its_port(store: CredentialStore) -> None:
    async with place() as at:
        with pytest.raises(LoginNeeded, match=f"accord login {at.url} --client-id desk --port 8111$"):
            await Client(at.url, auth=OAuth(interactive=False, client_id="desk", port=8111, store=store)).connect()


async def test_100_calls_with_an_expired_token_lead_to_one_refresh(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        before = at.issuer.counts["token"]
        at.issuer.expire_access_tokens()
        results = await asyncio.gather(*(client.call_tool("who") for _ in range(100)))
        assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["token"] == before + 1
        assert at.issuer.counts["authorization"] == 1


@pytest.mark.parametrize("options", [{}, {"dpop": "required"}], ids=["bearer", "DPoP"])
async def test_64_calls_are_in_flight_at_once_with_a_token(options: Any, store: CredentialStore) -> None:
    async with place(**options) as at, Client(at.url, auth=at.login(store)) as client:
        assert (await client.call_tool("who")).text == "alice"
        results = await asyncio.gather(*(client.call_tool("meet") for _ in range(64)))
        assert {result.text for result in results} == {"alice"}


async def test_two_stores_of_one_file_refresh_once(tmp_path: Path) -> None:
    stores = [CredentialStore(tmp_path / "credentials.db") for _ in range(2)]
    async with (
        place() as at,
        Client(at.url, auth=at.login(stores[0])) as first,
        Client(at.url, auth=at.login(stores[1])) as second,
    ):
        await asyncio.gather(first.call_tool("who"), second.call_tool("who"))
        before = at.issuer.counts["token"]
        at.issuer.expire_access_tokens()
        clients = [first, second] * 20
        results = await asyncio.gather(*(client.call_tool("who") for client in clients))
        assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["token"] == before + 1


async def test_tokens_of_a_short_lifetime_are_used_and_not_renewed_for_every_request(store: CredentialStore) -> None:
    async with place(lifetime=20) as at, Client(at.url, auth=at.login(store)) as client:
        results = await asyncio.gather(*(client.call_tool("who") for _ in range(10)))
        assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["token"] == 1


async def test_a_token_that_expires_soon_is_used_while_its_renewal_fails(store: CredentialStore) -> None:
    async with place() as at:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
        await expire_soon(store)
        at.issuer.set_faults("refresh_500")
        async with Client(at.url, auth=OAuth(interactive=False, store=store)) as client:
            assert (await client.call_tool("who")).text == "alice"
            assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["token"] == 2, "one attempt; a server that hangs would delay every request"


async def expire_soon(store: CredentialStore) -> None:
    """Let the access token in the store expire in 10 s, as far as the client knows."""
    await store.open()
    try:
        ((name, login),) = (await store.logins()).items()
        tokens = msgspec.structs.replace(login.tokens, expires_at=time.time() + 10)
        await store.save(name, msgspec.structs.replace(login, tokens=tokens))
    finally:
        await store.close()


async def test_a_refused_refresh_token_is_deleted_and_the_user_logs_in_again(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        at.issuer.revoke_all()
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 2


async def test_a_call_that_needs_more_scopes_logs_in_for_all_of_them(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        at.auth.needed["who"] = "write"
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 2
        assert {"read", "write"} <= set((await stored(store)).tokens.requested)


async def test_a_scope_that_is_not_granted_is_requested_once(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store), revisions=["2026-07-28"]) as client:
        at.auth.needed["who"] = "admin"  # which the authorization server does not have
        with pytest.raises(Exception):  # noqa: B017, PT011 - the kind depends on who refuses
            await client.call_tool("who")
        assert at.issuer.counts["authorization"] <= 2


UNTRUSTED = (
    *("issuer_mismatch", "issuer_slash", "s256_missing", "s256_plain", "resource_of_another", "resource_sibling"),
    *("iss_of_another", "iss_slash", "iss_missing", "state_changed", "state_missing", "state_twice"),
    *("authorization_endpoint_javascript", "authorization_endpoint_http", "token_endpoint_http", "servers_javascript"),
)


@pytest.mark.parametrize("fault", UNTRUSTED)
async def test_an_authorization_server_that_cannot_be_trusted_gets_no_code(fault: str, store: CredentialStore) -> None:
    async with place(faults={fault}) as at:
        with pytest.raises(AuthorizationError) as caught:
            await Client(at.url, auth=at.login(store)).connect()
        assert not isinstance(caught.value, LoginNeeded)
        assert at.issuer.counts["token"] == 0
        assert not [secret for secret in at.issuer.secrets if secret in str(caught.value)]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_new_token_that_the_server_refuses_leads_to_no_other_login(
    revision: str, store: CredentialStore
) -> None:
    async with AuthServer() as issuer:
        server = Server("desk", auth=JWT(issuer.issuer, "https://other.example/mcp"))
        async with served(server.app) as socket:
            url = f"http://127.0.0.1:{socket.port}/mcp"

            async def authorize(page: str) -> str:
                return issuer.callback(page)

            for _ in range(2):  # the second client uses the stored login, and renews it
                with pytest.raises(AuthorizationError) as caught:
                    await Client(url, auth=OAuth(authorize=authorize, store=store), revisions=[revision]).connect()
                assert not isinstance(caught.value, LoginNeeded)
                assert f"{url} refused the token that {issuer.issuer} has just issued for {url}" in str(caught.value)
                assert "the token is for another server; logging in again would not help" in str(caught.value)
            assert issuer.counts["authorization"] == 1


async def test_the_command_of_a_refusal_repeats_what_was_chosen(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place(faults={"s256_missing", "resource_of_another"}) as at:
        at.issuer.add_client("desk client", redirect_uris=["http://127.0.0.1:33418/callback"])
        chosen = ["--client-id", "desk client", "--issuer", at.issuer.issuer, "--resource", at.url]
        login = ("login", at.url, "--no-browser", *chosen, "--assume-pkce")
        assert "logged in" in await accord(*login, file=file, visit=at.issuer.callback)
        at.auth.needed["who"] = "write"
        error = await accord("call", at.url, "who", "--revision", "2026-07-28", file=file)
        command = shlex.split(error.partition("run: accord ")[2].splitlines()[0])
        assert command == ["login", at.url, *chosen, "--assume-pkce", "--scope", "read", "--scope", "write"]


async def test_no_secret_is_in_errors_and_representations(store: CredentialStore) -> None:
    async with place() as at, Client(at.url, auth=at.login(store)) as client:
        await client.call_tool("who")
        shown = f"{await stored(store)!r} {at.login(store, client_secret='secret-of-client')!r}"
        assert not [secret for secret in (*at.issuer.secrets, "secret-of-client") if secret in shown]


async def accord(*arguments: str, file: Path, visit: Callable[[str], str] | None = None) -> str:
    """Run a command, and return what it prints; `visit` returns the callback for the URL that it shows."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "ACCORD_CREDENTIALS": str(file)},
    )
    assert process.stdin is not None
    assert process.stderr is not None
    if visit is not None:
        while not (line := (await process.stderr.readline()).decode().strip()).startswith("http"):
            assert line or not process.stderr.at_eof()
        process.stdin.write(f"{visit(line)}\n".encode())
    output, errors = await asyncio.wait_for(process.communicate(b""), 60)
    return (output + errors).decode()


async def test_the_command_of_a_refusal_logs_in_with_more_scopes(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:
        await accord("login", at.url, "--no-browser", file=file, visit=at.issuer.callback)
        at.auth.needed["who"] = "write"
        call = ("call", at.url, "who", "--revision", "2026-07-28")
        error = await accord(*call, file=file)
        assert f"HTTP 403: {at.url} needs a login with the scopes read write; run: accord " in error
        command = error.partition("run: accord ")[2].split()
        assert command == ["login", at.url, "--scope", "read", "--scope", "write"]
        await accord(*command, "--no-browser", file=file, visit=at.issuer.callback)
        assert "alice" in await accord(*call, file=file)
        assert at.issuer.counts["authorization"] == 2


async def test_a_login_where_none_is_needed_is_none(tmp_path: Path) -> None:
    async with served(Server("desk").app) as socket:
        url = f"http://127.0.0.1:{socket.port}/mcp"
        assert f"no login is needed at {url}" in await accord("login", url, file=tmp_path / "credentials.db")


async def test_the_commands_log_in_use_the_login_and_log_out(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:
        assert f"run: accord login {at.url}" in await accord("call", at.url, "who", file=file)
        assert not file.exists()
        shown = await accord("login", at.url, "--no-browser", file=file, visit=at.issuer.callback)
        assert f"logged in to {at.url}" in shown
        assert file.stat().st_mode & 0o777 == 0o600
        shown += await accord("call", at.url, "who", file=file)
        assert "alice" in shown
        shown += await accord("auth", "status", file=file)
        assert f"{at.url}: issuer {at.issuer.issuer}" in shown
        shown += await accord("logout", at.url, file=file)
        assert "has revoked the tokens" in shown
        assert "there is no login" in await accord("auth", "status", file=file)
        assert "accord login" in await accord("call", at.url, "who", file=file)
        tokens = [secret for secret in at.issuer.secrets if len(secret) > 20]
        assert tokens
        assert not [secret for secret in tokens if secret in shown or secret.encode() in file.read_bytes()]


async def test_a_logout_waits_for_a_renewal(store: CredentialStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The renewal would store the login again."""
    monkeypatch.setenv("ACCORD_CREDENTIALS", str(store._path))
    async with place() as at, store:
        async with Client(at.url, auth=at.login(store)) as client:
            await client.call_tool("who")
        async with store.lease(login_name(at.url)):
            logout = asyncio.create_task(log_out(at.url, CredentialStore()))
            await asyncio.wait([logout], timeout=0.5)
            assert await store.logins()
        assert "has revoked the tokens" in await logout
        assert not await store.logins()


async def test_each_request_of_tokens_is_one_of_a_login(tmp_path: Path) -> None:
    """None is sent to find out whether the client is known: its verifier would fit no challenge."""
    file = tmp_path / "credentials.db"
    async with place() as at:
        for number in range(1, 3):
            done = await accord("login", at.url, "--no-browser", file=file, visit=at.issuer.callback)
            assert "logged in" in done
            assert at.issuer.counts["token"] == number


async def test_a_forgotten_client_of_another_device_registers_at_the_next_login(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:
        login = ("login", at.url, "--device")

        def approve(page: str) -> str:
            at.issuer.approve_device(page.partition("user_code=")[2])
            return ""

        assert "logged in" in await accord(*login, file=file, visit=approve)
        at.issuer._tokens.clients.clear()
        assert "invalid_client" in await accord(*login, file=file)
        assert "logged in" in await accord(*login, file=file, visit=approve)


async def test_no_client_registers_for_a_device_grant_that_there_is_not(tmp_path: Path) -> None:
    async with place(faults={"device_endpoint_missing"}) as at:
        shown = await accord("login", at.url, "--device", file=tmp_path / "credentials.db")
        assert "has no device_authorization_endpoint; log in with a browser, without --device" in shown
        assert at.issuer.counts["registration"] == 0


async def test_a_login_in_a_configuration_is_ended_by_the_name_of_its_entry(tmp_path: Path) -> None:
    file, configuration = tmp_path / "credentials.db", tmp_path / "mcp.json"
    async with place() as at:
        configuration.write_text(f'{{"mcpServers": {{"desk": {{"url": "{at.url}", "auth": "oauth"}}}}}}')
        entry = f"{configuration}#desk"
        assert "logged in" in await accord("login", entry, "--no-browser", file=file, visit=at.issuer.callback)
        assert "has revoked the tokens" in await accord("logout", entry, file=file)
        assert f"there is no login at {at.url}; accord auth status" in await accord("logout", entry, file=file)
        assert "'desk' is no URL" in await accord("logout", "desk", file=file)


async def test_a_login_on_another_device(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place() as at:

        def approve(page: str) -> str:
            at.issuer.approve_device(page.partition("user_code=")[2])
            return ""

        shown = await accord("login", at.url, "--device", file=file, visit=approve)
        assert "enter the code CODE-0001" in shown
        assert f"logged in to {at.url}" in shown
        assert "alice" in await accord("call", at.url, "who", file=file)
        assert "give one of them" in await accord("login", at.url, "--device", "--no-browser", file=file)


async def test_a_callback_that_nobody_pastes_is_an_error(tmp_path: Path) -> None:
    async with place() as at:
        shown = await accord("login", at.url, "--no-browser", file=tmp_path / "credentials.db")
        assert "callback: found the end of stdin, expected the URL that the browser shows after the login" in shown
        assert "run accord login in a terminal, or with --device" in shown
        assert "Traceback" not in shown


async def test_what_is_no_callback_is_an_error_that_shows_one(tmp_path: Path) -> None:
    async with place() as at:
        login = ("login", at.url, "--no-browser")
        shown = await accord(*login, file=tmp_path / "credentials.db", visit=lambda url: "done")
        assert (
            "a page that cannot be loaded. Paste its URL, which begins with\nhttp://127.0.0.1:33418/callback?" in shown
        )
        assert "expected http://127.0.0.1:33418/callback?code=...; log in again, and return the whole URL" in shown


async def test_a_login_replaces_the_stored_one_and_stores_relaxed_rules(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with place(faults={"s256_missing", "resource_of_another"}) as at:
        login = ("login", at.url, "--no-browser")
        relaxed = ("--assume-pkce", "--resource", at.url, "--issuer", at.issuer.issuer)
        assert "logged in" in await accord(*login, *relaxed, file=file, visit=at.issuer.callback)
        shown = await accord("auth", "status", file=file)
        assert "the issuer was chosen with --issuer" in shown
        assert f"the resource {at.url} was chosen with --resource" in shown
        assert "S256 was assumed with --assume-pkce" in shown
        at.issuer.revoke_all()

        async def visit(url: str) -> str:
            return at.issuer.callback(url)

        store = CredentialStore(file)
        async with Client(at.url, auth=OAuth(authorize=visit, store=store)) as client:
            assert (await client.call_tool("who")).text == "alice", "what was chosen is used at the next login"
        kept = await stored(store)
        assert (kept.assume_pkce, kept.chosen_issuer, kept.chosen_resource) == (True, True, True)
        at.issuer.set_faults()
        assert "logged in" in await accord(*login, "--scope", "write", file=file, visit=at.issuer.callback)
        again = await stored(store)
        assert again.tokens.requested == ["write", "offline_access"]
        assert (again.assume_pkce, again.chosen_issuer, again.chosen_resource) == (False, False, False)


async def test_a_user_logs_in_and_steps_up_over_http_sse(store: CredentialStore) -> None:
    """The server refuses a POST to the stream before it looks at credentials: the login is that of the GET."""
    resource = "http://127.0.0.1/sse"
    async with AuthServer() as issuer:
        server = Server("desk", auth=JWT(issuer.issuer, resource, required_scopes=("read",)))

        @server.tool
        def who(ctx: Context) -> str:
            """Return the scopes."""
            return " ".join(sorted(ctx.principal.scopes)) if ctx.principal is not None else "nobody"

        @server.tool(needs={"write"})
        def write() -> str:
            """Write."""
            return "written"

        async def authorize(url: str) -> str:
            return issuer.callback(url)

        auth = OAuth(authorize=authorize, store=store, resource=resource)
        async with (
            served(server.app) as socket,
            Client(f"http://127.0.0.1:{socket.port}/sse", auth=auth) as client,
        ):
            assert "write" not in (await client.call_tool("who")).text
            assert (await client.call_tool("write")).text == "written"
            assert "read write" in (await client.call_tool("who")).text
        assert issuer.counts["authorization"] == 2

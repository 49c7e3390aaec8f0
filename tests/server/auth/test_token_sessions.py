"""Sessions belong to the principal, not to a token: over sockets, with tokens of `AuthServer`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from accord import Client, Context, CredentialStore, OAuth, Server
from accord.server.auth.alternatives import Alternatives
from accord.server.auth.jwt import JWT
from accord.testing import AuthServer

from tests.server.http.http_clients import Stateful, text
from tests.server.http.raw import Socket, served

RESOURCE = "http://127.0.0.1/mcp"


class Place(NamedTuple):
    """A server, and the authorization servers whose tokens it accepts."""

    raw: Socket
    issuer: AuthServer
    other: AuthServer

    def client(self, token: str) -> Stateful:
        """A client that sends this token."""
        return Stateful(self.raw, authorization=f"Bearer {token}")

    def token(self, user: str = "alice", *scopes: str) -> str:
        """A new token of the first issuer."""
        return self.issuer.access_token(user, scopes or ("read",), aud=RESOURCE)


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    async with AuthServer() as issuer, AuthServer() as other:
        auth = Alternatives([JWT(each.issuer, RESOURCE, allow_clients=True) for each in (issuer, other)])
        server = Server("desk", auth=auth)

        @server.tool
        def who(ctx: Context) -> str:
            """Return the user and the scopes of this request."""
            assert ctx.principal is not None
            return f"{ctx.principal.claims['sub']}: {' '.join(sorted(ctx.principal.scopes))}"

        @server.tool
        def work(ctx: Context) -> str:
            """Report progress, so that the response is a stream."""
            ctx.report_progress(1, 1)
            return "done"

        async with served(server.app) as socket:
            yield Place(socket, issuer, other)


async def test_a_session_continues_with_the_next_token_of_its_user() -> None:
    async with place() as at:
        client = await at.client(first := at.token()).open()
        stream = await client.listen()
        assert text(await (await client.call("who")).result()) == "alice: read"
        client.headers["authorization"] = f"Bearer {(second := at.token('alice', 'read', 'write'))}"
        assert first != second
        assert text(await (await client.call("who")).result()) == "alice: read write"
        assert stream.status == 200
        await stream.leave()
        assert (await client.delete()).status in (200, 204)


@pytest.mark.parametrize("who", ["another user", "the same name at another issuer", "the client itself"])
async def test_a_token_of_another_principal_finds_no_session(who: str) -> None:
    async with place() as at:
        owner = await at.client(at.token()).open()
        token = {
            "another user": at.token("bob", "read", "write"),
            "the same name at another issuer": at.other.access_token("alice", aud=RESOURCE),
            "the client itself": at.issuer.access_token("alice", aud=RESOURCE, sub=None, client_id="alice"),
        }[who]
        stranger = at.client(token).join(owner.id)
        stream = await owner.listen()
        work = await owner.call("work", progressToken="p")
        event = await work.event()
        await work.end()
        assert event.id is not None
        assert (await stranger.call("who")).status == 404
        assert (await stranger.listen()).status == 404
        assert (await stranger.listen(event.id)).status == 404, "nor the events of its streams"
        assert (await stranger.delete()).status == 404
        assert stream.status == 200
        assert text(await (await owner.call("who", id=2)).result()) == "alice: read", "the session is as before"
        await stream.leave()


@pytest.mark.parametrize("header", [None, "Bearer unknown", "Basic YWxpY2U6eA=="])
async def test_without_a_valid_token_a_session_is_not_even_looked_up(header: str | None) -> None:
    async with place() as at:
        owner = await at.client(at.token()).open()
        unknown = Stateful(at.raw, **({} if header is None else {"authorization": header}))
        for id in (owner.id, "none-of-this-server"):
            unknown.join(id)
            statuses = [(await unknown.call("who")).status, (await unknown.listen()).status]
            assert [*statuses, (await unknown.delete()).status] == [401, 401, 401]
        assert text(await (await owner.call("who")).result()) == "alice: read"


async def test_a_client_keeps_its_session_over_a_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.auth.dpop.find_spec", lambda name: None)  # proofs need clocks that agree
    now = [time.time()]
    for module in ("jwt", "token_cache"):
        monkeypatch.setattr(f"accord.server.auth.{module}.time", SimpleNamespace(time=lambda: now[0]))
    async with AuthServer(clock=lambda: now[0]) as issuer:
        server = Server("desk", auth=JWT(issuer.issuer, RESOURCE))
        seen: list[tuple[str, str]] = []

        @server.tool
        def record(ctx: Context) -> None:
            """Record the session and the token of this request."""
            seen.append((ctx.headers["mcp-session-id"], ctx.headers["authorization"]))

        async def authorize(url: str) -> str:
            return issuer.callback(url)

        auth = OAuth(authorize=authorize, store=CredentialStore(tmp_path / "credentials.db"), resource=RESOURCE)
        async with (
            served(server.app) as socket,
            Client(f"http://127.0.0.1:{socket.port}/mcp", auth=auth, revisions=["2025-11-25"]) as client,
        ):
            await client.call_tool("record")
            before = issuer.counts["token"]
            now[0] += 3_700  # of the servers: the client learns from a 401 that its token has expired
            await client.call_tool("record")
            assert issuer.counts["token"] == before + 1
    (first, old), (second, new) = seen
    assert first == second
    assert old != new


async def test_a_stream_of_a_token_with_fewer_scopes_has_no_updates_of_what_it_may_not_read() -> None:
    """The user lost a scope: the session continues with the next token, its subscription does not."""
    async with AuthServer() as issuer:
        server = Server("desk", auth=JWT(issuer.issuer, RESOURCE))

        @server.resource("docs://{name}", scopes={"secret"})
        def document(name: str) -> str:
            return name

        @server.resource("news://today")
        def news() -> str:
            return "none"

        async with served(server.app) as socket:
            token = issuer.access_token("alice", ("read", "secret"), aud=RESOURCE)
            client = await Stateful(socket, authorization=f"Bearer {token}").open()
            for uri in ("docs://plan", "news://today"):
                await (await client.ask("resources/subscribe", {"uri": uri})).end()
            less = issuer.access_token("alice", ("read",), aud=RESOURCE)
            client.headers["authorization"] = f"Bearer {less}"
            stream = await client.listen()
            server.resource_updated("docs://plan")
            server.resource_updated("news://today")
            assert (await stream.message())["params"]["uri"] == "news://today"
            await stream.leave()

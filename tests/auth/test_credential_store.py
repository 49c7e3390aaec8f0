"""Logins in the file and in the keyring; leases."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import msgspec
import pytest

from accord import Client, ClientLimits, CredentialStore, StoreError
from accord.auth import secret_keyring
from accord.auth.discovery import Discovery
from accord.auth.login import Login
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.tokens import Tokens

from tests.auth.file_keyring import FileKeyring
from tests.auth.place import Clock, place
from tests.auth.test_login import accord

ISSUER = "https://login.example"
NAME = "https://mcp.example/mcp"
SECRETS = ("access-secret", "refresh-secret", "client-secret", "key-secret")
LOGIN = Login(
    Discovery(NAME, NAME, AuthorizationServerMetadata(ISSUER, token_endpoint=f"{ISSUER}/token")),
    ClientRegistration(ISSUER, "me", "registered", "client-secret", "client_secret_post"),
    Tokens("access-secret", "DPoP", 1e12, refresh_token="refresh-secret", scopes=["read"]),
    dpop_key="key-secret",
)


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileKeyring]:
    """A keyring that works, as that of the system."""
    monkeypatch.delenv("ACCORD_KEYRING")
    before = keyring.get_keyring()
    found = FileKeyring(tmp_path / "keyring.json")
    keyring.set_keyring(found)
    yield found
    if found.silent is not None:
        found.silent.set()
    keyring.set_keyring(before)


def in_file(path: Path) -> list[str]:
    return [secret for secret in SECRETS if secret.encode() in path.read_bytes()]


async def test_secrets_are_in_the_keyring_and_the_rest_in_the_file(backend: FileKeyring, tmp_path: Path) -> None:
    path = tmp_path / "credentials.db"
    async with CredentialStore(path) as store:
        await store.save(NAME, LOGIN)
        await store.save_registration("accord", LOGIN.client)
        assert await store.load(NAME) == LOGIN
        assert await store.load_registration(ISSUER, "accord") == LOGIN.client
        (listed,) = (await store.logins()).values()
        assert listed.is_in_keyring
        assert (listed.tokens.scopes, listed.tokens.refresh_token) == (["read"], ""), "that there is one is shown"
        stored = "".join(backend.entries().values())
        assert all(secret in stored for secret in SECRETS)
        assert f"accord/{NAME} in {path}" in backend.entries()
        assert in_file(path) == []
        await store.delete(NAME)
        assert f"accord/{NAME} in {path}" not in backend.entries()
        assert await store.load(NAME) is None
    assert path.stat().st_mode & 0o777 == 0o600


async def test_secrets_of_another_issuer_are_not_those_of_a_login(backend: FileKeyring, tmp_path: Path) -> None:
    """A login that replaces another one, and is stored in half, left its secrets to the issuer of the other one."""
    other = AuthorizationServerMetadata("https://other.example", token_endpoint="https://other.example/token")
    new = msgspec.structs.replace(LOGIN, discovery=msgspec.structs.replace(LOGIN.discovery, metadata=other))
    async with CredentialStore(tmp_path / "credentials.db") as store:
        await store.save(NAME, LOGIN)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("accord.auth.credential_store._execute", full_disk)
            with pytest.raises(StoreError, match="full"):
                await store.save(NAME, new)
        assert await store.load(NAME) is None
        await store.save(NAME, new)
        assert await store.load(NAME) == new


def full_disk(*arguments: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def test_a_deleted_login_leaves_no_secrets_in_the_keyring(backend: FileKeyring, tmp_path: Path) -> None:
    async with CredentialStore(tmp_path / "credentials.db") as store:
        await store.save(NAME, LOGIN)
        backend.limit = 1  # from now on, the file has the secrets
        await store.save(NAME, LOGIN)
        await store.delete(NAME)
    assert not backend.entries()


async def test_a_login_without_some_secrets_stays_without_them(backend: FileKeyring, tmp_path: Path) -> None:
    tokens = msgspec.structs.replace(LOGIN.tokens, refresh_token=None)
    client = ClientRegistration(ISSUER, "me", "given")
    login = msgspec.structs.replace(LOGIN, tokens=tokens, client=client, dpop_key=None)
    async with CredentialStore(tmp_path / "credentials.db") as store:
        await store.save(NAME, login)
        await store.save_registration("accord", client)
        assert await store.load(NAME) == login
        assert await store.load_registration(ISSUER, "accord") == client
        assert len(backend.entries()) == 1


async def test_a_secret_that_the_keyring_refuses_is_in_the_file(
    backend: FileKeyring, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "credentials.db"
    async with CredentialStore(path) as store:
        await store.save(NAME, LOGIN)
        backend.limit = 10
        with caplog.at_level(logging.WARNING, "accord"):
            await store.save(NAME, LOGIN)
        assert "the keyring failed: PasswordSetError" in caplog.text
        assert not [secret for secret in SECRETS if secret in caplog.text]
        assert await store.load(NAME) == LOGIN
        assert in_file(path) == list(SECRETS)
        await store.delete(NAME)
        assert in_file(path) == [], "deleted secrets are overwritten"


async def test_a_keyring_that_does_not_answer_has_a_deadline(
    backend: FileKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with CredentialStore(tmp_path / "credentials.db") as store:
        await store.save(NAME, LOGIN)
        assert store._keyring is not None
        store._keyring._seconds = 0.05
        backend.silent = threading.Event()
        with pytest.raises(StoreError, match=r"did not answer within 0\.05 s: unlock it, or set ACCORD_KEYRING=0"):
            await store.load(NAME)
        threads = threading.active_count()
        for _ in range(3):
            with pytest.raises(StoreError, match="the keyring still does not answer: unlock it"):
                await store.load(NAME)
        assert threading.active_count() <= threads, "one thread waits, not one for each use"
        await store.save(NAME, LOGIN)  # into the file
        assert await store.load(NAME) == LOGIN


async def test_a_keyring_that_fails_is_an_error_without_its_text(backend: FileKeyring, tmp_path: Path) -> None:
    async with CredentialStore(tmp_path / "credentials.db") as store:
        await store.save(NAME, LOGIN)
        backend.broken = True
        with pytest.raises(StoreError, match="the keyring failed: RuntimeError") as caught:
            await store.load(NAME)
        assert "secret is in this text" not in str(caught.value)


@pytest.mark.parametrize("reason", ["switched off", "not installed", "not recommended", "memory", "not chosen", "slow"])
async def test_without_a_keyring_secrets_are_in_the_file(
    reason: str, backend: FileKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {}
    path: Any = tmp_path / "credentials.db"
    if reason == "switched off":
        monkeypatch.setenv("ACCORD_KEYRING", "0")
    elif reason == "not installed":
        monkeypatch.setattr(secret_keyring, "find_spec", lambda name: None)
    elif reason == "not recommended":
        backend.priority = 0.5  # type: ignore[assignment]
    elif reason == "not chosen":
        options["keyring"] = False
    elif reason == "slow":
        waiting = threading.Event()
        monkeypatch.setattr(secret_keyring, "_SECONDS", 0.05)
        monkeypatch.setattr(keyring, "get_keyring", lambda: waiting.wait(5))
    else:
        path = ":memory:"
    async with CredentialStore(path, **options) as store:
        await store.save(NAME, LOGIN)
        assert await store.load(NAME) == LOGIN
        assert backend.entries() == {}


async def test_a_login_in_a_keyring_that_is_gone_has_a_cure(
    backend: FileKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "credentials.db"
    async with CredentialStore(path) as store:
        await store.save(NAME, LOGIN)
    monkeypatch.setenv("ACCORD_KEYRING", "0")
    async with CredentialStore(path) as store:
        with pytest.raises(StoreError, match=r"is in the keyring, .*accord\[keyring\], or log in again: accord login"):
            await store.load(NAME)
        await store.delete(NAME)
    monkeypatch.delenv("ACCORD_KEYRING")
    async with CredentialStore(path) as store:
        await store.save(NAME, LOGIN)
        backend._path.write_text("{}")
        assert await store.load(NAME) is None, "its entry was deleted: log in again"


@pytest.mark.parametrize("with_keyring", [True, False])
async def test_a_refresh_token_is_deleted_only_if_it_is_the_refused_one(
    with_keyring: bool, backend: FileKeyring, tmp_path: Path
) -> None:
    async with CredentialStore(tmp_path / "credentials.db", keyring=with_keyring) as store:
        await store.save(NAME, LOGIN)
        await store.delete_refresh_token(NAME, "another")
        assert await store.load(NAME) == LOGIN
        await store.delete_refresh_token(NAME, "refresh-secret")
        login = await store.load(NAME)
        assert login is not None
        assert (login.tokens.refresh_token, login.tokens.access_token) == (None, "access-secret")
        await store.delete_refresh_token("https://no.example", "refresh-secret")


async def test_a_whole_login_with_the_keyring(backend: FileKeyring, tmp_path: Path) -> None:
    path = tmp_path / "credentials.db"
    async with place() as at:
        store = CredentialStore(path)
        for _ in range(2):
            async with Client(at.url, auth=at.login(store)) as client:
                assert (await client.call_tool("who")).text == "alice"
                at.issuer.expire_access_tokens()
                results = await asyncio.gather(*(client.call_tool("who") for _ in range(10)))
                assert {result.text for result in results} == {"alice"}
        assert at.issuer.counts["authorization"] == 1
        assert at.issuer.counts["token"] == 3
        contents = path.read_bytes()
        assert not [secret for secret in at.issuer.secrets if len(secret) > 20 and secret.encode() in contents]


async def test_one_lease_at_a_time_also_across_files_and_after_a_process_has_ended(tmp_path: Path) -> None:
    path, clock = tmp_path / "credentials.db", Clock()
    order: list[str] = []
    async with (
        CredentialStore(path, clock=clock) as first,
        CredentialStore(path, clock=clock) as second,
    ):

        async def renew(store: CredentialStore, name: str) -> None:
            async with store.lease(NAME):
                order.append(f"{name} begins")
                await asyncio.sleep(0.05)
                order.append(f"{name} ends")

        await asyncio.gather(renew(first, "a"), renew(second, "b"))
        assert order in (["a begins", "a ends", "b begins", "b ends"], ["b begins", "b ends", "a begins", "a ends"])
        await first._thread.run(lambda db: first._take_lease(db, NAME, "a process that was killed"))
        clock.now += ClientLimits().connect_seconds * 0.75  # a client that waits for it connects
        await asyncio.wait_for(renew(second, "c"), 30)


async def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "credentials.db"
    async with CredentialStore(path) as store:
        await store.save(NAME, LOGIN)
    path.chmod(0o640)
    with pytest.raises(StoreError, match=r"can be read by others \(mode 040 for them\): run chmod 600"):
        await CredentialStore(path).open()


async def test_a_link_to_no_file_is_an_error(tmp_path: Path) -> None:
    """The file would be created elsewhere, with the permissions of any new file."""
    link, elsewhere = tmp_path / "link", tmp_path / "elsewhere"
    link.symlink_to(elsewhere)
    with pytest.raises(StoreError, match=r"logins cannot be stored in .*link: No such file"):
        await CredentialStore(link).open()
    assert not elsewhere.exists()


async def test_the_commands_use_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, secrets = tmp_path / "credentials.db", tmp_path / "keyring.json"
    monkeypatch.delenv("ACCORD_KEYRING")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.auth.file_keyring.FileKeyring")
    monkeypatch.setenv("ACCORD_TEST_KEYRING", str(secrets))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    async with place() as at:
        assert "logged in" in await accord("login", at.url, "--no-browser", file=path, visit=at.issuer.callback)
        assert "alice" in await accord("call", at.url, "who", file=path)
        shown = await accord("auth", "status", file=path)
        assert "its secrets are in the keyring" in shown
        assert "renewed automatically" in shown
        tokens = [secret for secret in at.issuer.secrets if len(secret) > 20]
        assert not [secret for secret in tokens if secret.encode() in path.read_bytes()]
        assert [secret for secret in tokens if secret in secrets.read_text()]
        assert "has revoked the tokens" in await accord("logout", at.url, file=path)
        assert secrets.read_text() == "{}"
        assert "logged in" in await accord("login", at.url, "--no-browser", file=path, visit=at.issuer.callback)
        monkeypatch.setenv("ACCORD_KEYRING", "0")
        shown = await accord("logout", at.url, file=path)
        assert "logged out" in shown
        assert "the tokens could not be revoked: " in shown
        assert "there is no login" in await accord("auth", "status", file=path)


async def test_a_clock_that_is_set_back_frees_no_lease(tmp_path: Path) -> None:
    now = [1_000_000.0]
    first = CredentialStore(tmp_path / "credentials.db", clock=lambda: now[0])
    second = CredentialStore(tmp_path / "credentials.db", clock=lambda: now[0])
    async with first, second, first.lease("desk"):
        now[0] -= 30
        waiting = asyncio.create_task(second.lease("desk").__aenter__())
        await asyncio.wait([waiting], timeout=0.3)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_a_lease_whose_taker_is_cancelled_is_free_again(tmp_path: Path) -> None:
    first, second = (CredentialStore(tmp_path / "credentials.db") for _ in range(2))
    async with first, second:
        taking = asyncio.create_task(first.lease("desk").__aenter__())
        await asyncio.sleep(0)  # it waits for the thread of the database
        taking.cancel()
        await asyncio.wait([taking])
        async with asyncio.timeout(20), second.lease("desk"):
            pass

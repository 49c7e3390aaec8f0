"""Secrets of a configuration in the keyring of the system."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from accord.errors import TargetError
from accord.host.approvers import ApprovalQueue
from accord.host.configuration import configure
from accord.host.host import Host
from accord.host.secret_references import with_secrets

from tests.auth.file_keyring import FileKeyring


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileKeyring]:
    monkeypatch.delenv("ACCORD_KEYRING", raising=False)
    before = keyring.get_keyring()
    found = FileKeyring(tmp_path / "keyring.json")
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


async def test_references_are_replaced_where_a_secret_may_stand(backend: FileKeyring) -> None:
    backend.set_password("shop", "key", "s3cret")
    entry = {
        "url": "https://shop.example/mcp",
        "headers": {"X-Key": "keyring:shop/key", "Authorization": "Bearer keyring:shop/key"},
        "args": ["keyring:shop/key", "my keyring:shop/key"],
    }
    found = await with_secrets(entry)
    assert found["headers"] == {"X-Key": "s3cret", "Authorization": "Bearer s3cret"}
    assert found["args"] == ["s3cret", "my keyring:shop/key"]


@pytest.mark.parametrize(("reference", "text"), [("keyring:shop", "service/name"), ("keyring:no/such", "keyring set")])
async def test_what_is_not_there_is_an_error_with_its_place(backend: FileKeyring, reference: str, text: str) -> None:
    with pytest.raises(TargetError, match=rf"^env\.KEY: .*{text}"):
        await with_secrets({"env": {"KEY": reference}})


async def test_a_missing_secret_is_an_error_of_its_server_alone(backend: FileKeyring, tmp_path: Path) -> None:
    servers = {"shop": {"command": "true", "env": {"KEY": "keyring:shop/key"}}}
    async with Host(servers, state=tmp_path / "host.db") as host:
        assert host.servers["shop"].state == "failed"
        assert "keyring set shop key" in host.servers["shop"].reason


def test_the_secret_is_no_part_of_what_is_stored(backend: FileKeyring) -> None:
    backend.set_password("shop", "key", "s3cret")
    (server,) = configure({"shop": {"command": "true", "env": {"KEY": "keyring:shop/key"}}}).servers.values()
    assert server.entry["env"] == {"KEY": "keyring:shop/key"}


async def test_a_found_login_that_cannot_be_described_ends_no_other_server(tmp_path: Path) -> None:
    """Its error was that of the whole host, which did not start."""
    login = {"url": "https://shop.example/mcp", "auth": {"type": "oauth", "issuer": "${NO_SUCH_VARIABLE}"}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": login, "other": {"command": "true"}}}), encoding="utf-8")
    async with Host(file, approve=ApprovalQueue(), state=tmp_path / "host.db", found=True) as host:
        assert "the environment variable NO_SUCH_VARIABLE is not set" in host.servers["shop"].reason
        assert host.servers["other"].reason == "its command waits for an approval"


@pytest.mark.parametrize("key", [{"key": "keyring:shop/key"}, {"key_file": "/no/such/file"}, "keyring:my shop/key"])
async def test_the_secrets_of_a_found_login_are_read_after_the_approval(
    tmp_path: Path, key: dict[str, str] | str
) -> None:
    auth = key if isinstance(key, str) else {"type": "client_credentials", "client_id": "shop", **key}
    file = tmp_path / "mcp.json"
    entry = {"url": "https://shop.example/mcp", "auth": auth}
    file.write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")
    queue = ApprovalQueue()
    async with Host(file, approve=queue, state=tmp_path / "host.db", found=True) as host:
        assert host.servers["shop"].state == "unapproved"
        (waiting,) = queue.waiting
        assert "connects to: https://shop.example/mcp" in waiting.prompt.text()
        assert (key if isinstance(key, str) else next(iter(key.values()))) in waiting.prompt.text()

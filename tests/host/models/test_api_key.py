"""API keys: given, or in the keyring; never shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from accord.errors import ModelError, TargetError
from accord.host.models.api_key import APIKey

from tests.auth.file_keyring import FileKeyring


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileKeyring]:
    monkeypatch.delenv("ACCORD_KEYRING")
    before = keyring.get_keyring()
    found = FileKeyring(tmp_path / "keyring.json")
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


async def test_a_key_is_trimmed_and_not_shown() -> None:
    key = APIKey(" sk-secret\n")
    assert await key.resolve() == "sk-secret"
    assert "secret" not in repr(key)


async def test_there_may_be_no_key() -> None:
    assert await APIKey(None).resolve() is None


@pytest.mark.parametrize("key", ["", "  ", "two words", "ключ", "a\r\nx-evil: 1", "a\x00"])
def test_a_key_that_cannot_be_sent_is_refused(key: str) -> None:
    with pytest.raises(TargetError, match="visible ASCII characters") as caught:
        APIKey(key)
    assert not key.strip() or key not in str(caught.value)


async def test_a_key_is_read_from_the_keyring_once(backend: FileKeyring) -> None:
    backend.set_password("anthropic", "work", "sk-secret\n")
    key = APIKey("keyring:anthropic/work")
    assert await key.resolve() == "sk-secret"
    backend.broken = True
    assert await key.resolve() == "sk-secret"


@pytest.mark.usefixtures("backend")
async def test_a_missing_entry_says_how_to_add_it() -> None:
    with pytest.raises(ModelError, match="no entry anthropic/work; add it with `keyring set anthropic work`"):
        await APIKey("keyring:anthropic/work").resolve()


async def test_an_error_of_the_keyring_does_not_show_its_text(backend: FileKeyring) -> None:
    backend.broken = True
    with pytest.raises(ModelError, match=r"cannot be read from the keyring \(a/b\): the keyring failed: RuntimeError"):
        await APIKey("keyring:a/b").resolve()


async def test_a_forbidden_keyring_is_an_error() -> None:
    with pytest.raises(ModelError, match="ACCORD_KEYRING=0 forbids it"):
        await APIKey("keyring:a/b").resolve()


@pytest.mark.parametrize("reference", ["keyring:", "keyring:service", "keyring:/name", "keyring:service/"])
async def test_a_reference_has_a_service_and_a_name(reference: str) -> None:
    with pytest.raises(ModelError, match="write keyring:service/name"):
        await APIKey(reference).resolve()

"""Fixtures of the tests of the authorization debugger."""

from __future__ import annotations

from pathlib import Path

import pytest

from accord import CredentialStore


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    """Return a store of logins in a file of its own."""
    return CredentialStore(tmp_path / "credentials.db")

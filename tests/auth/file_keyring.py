"""A backend of keyring for tests: a JSON file, so that processes share it. Real ones need a desktop.

Only what selects it uses it: `keyring.set_keyring`, or `PYTHON_KEYRING_BACKEND` with the file in `ACCORD_TEST_KEYRING`.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError


class FileKeyring(KeyringBackend):
    """Secrets in a file. `broken` lets every use fail, and `limit` is the most characters of one secret."""

    priority = 5  # type: ignore[assignment]
    broken = False
    limit = 1 << 20

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self._path = Path(path or os.environ["ACCORD_TEST_KEYRING"])
        self.silent: threading.Event | None = None
        """If it is there, every use waits for it."""

    def entries(self) -> dict[str, str]:
        """Return all secrets by service and name."""
        if self.silent is not None:
            self.silent.wait(60)
        if self.broken:
            raise RuntimeError("the secret is in this text")
        found: dict[str, str] = json.loads(self._path.read_text()) if self._path.exists() else {}
        return found

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self.limit:
            raise PasswordSetError("too long")
        self._path.write_text(json.dumps({**self.entries(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        entries = self.entries()
        if entries.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("there is none")
        self._path.write_text(json.dumps(entries))


KeyringBackend._classes.discard(FileKeyring)  # keyring itself would choose it for every test

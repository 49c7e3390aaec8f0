"""The secrets of logins in the keyring of the operating system, with `accord[keyring]`.

A keyring may ask its user to unlock it, or not answer at all: each use has a time limit. Only backends that keyring
recommends are used, as the others are no safer than a file of mode 0600.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import msgspec

from accord.auth.login import LoginSecrets
from accord.errors import StoreError

log: logging.Logger = logging.getLogger("accord")

SERVICE = "accord"
KEYRING = "keyring:"
"""The beginning of a reference to a secret in the keyring."""
_SECONDS = 15.0
"""Time limit of one use of the keyring: a user may have to unlock it."""
_CURE = "unlock it, or set ACCORD_KEYRING=0"
_MIN_PRIORITY = 1
"""Of a backend that keyring recommends."""

_Result = TypeVar("_Result")


class KeyringBackend(Protocol):
    """The part of `keyring.backend.KeyringBackend` that is used."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret, or None."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Delete a secret."""


_decode = msgspec.json.Decoder(LoginSecrets).decode


class SecretKeyring:
    """A keyring, whose methods raise `StoreError` if it fails or does not answer. `seconds` limits each use."""

    def __init__(self, backend: KeyringBackend, seconds: float = _SECONDS) -> None:
        self._backend = backend
        self._seconds = seconds
        self._unanswered: threading.Thread | None = None

    async def load(self, name: str) -> LoginSecrets | None:
        """Return the secrets of this name, or None."""
        text = await self._use(self._backend.get_password, SERVICE, name)
        if text is None:
            return None
        try:
            return _decode(text)
        except msgspec.DecodeError:
            return None  # of another version of accord

    async def save(self, name: str, secrets: LoginSecrets) -> None:
        """Store the secrets of this name."""
        text = msgspec.json.encode(secrets).decode()
        await self._use(self._backend.set_password, SERVICE, name, text)

    async def delete(self, name: str) -> None:
        """Delete the secrets of this name, if there are any."""
        with suppress(StoreError):
            await self._use(self._backend.delete_password, SERVICE, name)

    async def _use(self, method: Callable[..., _Result], *arguments: str) -> _Result:
        """Call the backend, unless an earlier call still waits for it: no more than one thread is left behind."""
        if self._unanswered is not None and self._unanswered.is_alive():
            raise StoreError(f"the keyring still does not answer: {_CURE}")
        thread, outcome = _call(method, *arguments)
        try:
            return await asyncio.wait_for(outcome, self._seconds)
        except TimeoutError:
            self._unanswered = thread
            raise StoreError(f"the keyring did not answer within {self._seconds:g} s: {_CURE}") from None


async def system_keyring() -> SecretKeyring | None:
    """Return the keyring of the system; None if there is none that is recommended, or `ACCORD_KEYRING` is 0."""
    if os.environ.get("ACCORD_KEYRING") == "0" or find_spec("keyring") is None:
        return None
    try:
        backend = await asyncio.wait_for(_call(_recommended_backend)[1], _SECONDS)
    except (StoreError, TimeoutError) as exc:
        reason = str(exc) or f"no keyring was found within {_SECONDS:g} s"
        log.warning("accord: %s; secrets of logins are stored in a file", reason)
        return None
    return None if backend is None else SecretKeyring(backend)


async def keyring_secret(service: str, name: str) -> str | None:
    """Return a secret that the user stored in the keyring of the system, or None. Raises `StoreError`."""
    if os.environ.get("ACCORD_KEYRING") == "0":
        raise StoreError("ACCORD_KEYRING=0 forbids it")
    if find_spec("keyring") is None:
        raise StoreError("keyring is not installed; install accord[keyring]")
    try:
        return await asyncio.wait_for(_call(_read_secret, service, name)[1], _SECONDS)
    except TimeoutError:
        raise StoreError(f"it did not answer within {_SECONDS:g} s; unlock it") from None


async def referenced_secret(reference: str) -> str:
    """Return the secret of a reference, `keyring:service/name`. Raises `StoreError`, which says what to do."""
    service, slash, name = reference.removeprefix(KEYRING).partition("/")
    if not (service and slash and name):
        raise StoreError(f"{reference!r:.200} is no entry of the keyring; write keyring:service/name")
    try:
        found = await keyring_secret(service, name)
    except StoreError as exc:
        raise StoreError(f"it cannot be read from the keyring ({service}/{name}): {exc}") from exc
    if found is None:
        raise StoreError(f"the keyring has no entry {service}/{name}; add it with `keyring set {service} {name}`")
    return found


def _read_secret(service: str, name: str) -> str | None:
    import keyring

    found: str | None = keyring.get_password(service, name)
    return found


def _recommended_backend() -> KeyringBackend | None:
    import keyring

    backend: Any = keyring.get_keyring()
    return backend if getattr(backend, "priority", 0) >= _MIN_PRIORITY else None


def _call(function: Callable[..., _Result], *arguments: str) -> tuple[threading.Thread, asyncio.Future[_Result]]:
    """Call a function of the keyring in a thread, which does not keep the process alive; return its outcome."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_Result] = loop.create_future()

    def deliver(method: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if outcome.done() else method(value))

    def call() -> None:
        try:
            result = function(*arguments)
        except Exception as exc:  # backends raise errors of their own, whose texts may have secrets
            deliver(outcome.set_exception, StoreError(f"the keyring failed: {type(exc).__name__}"))
        else:
            deliver(outcome.set_result, result)

    thread = threading.Thread(target=call, name="accord keyring", daemon=True)
    thread.start()
    return thread, outcome

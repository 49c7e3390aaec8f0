"""What is given to a server, and to nobody else, stands in no report: headers, environment, what a URL has beside its
path. Whatever the server puts where, it is taken out of all that is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from accord.check.report import Outcome, Report, Visit
from accord.check.wires.http import split_credentials
from accord.client.target import Command, Remote
from accord.transport.http.redaction import SecretRedactor

if TYPE_CHECKING:
    from accord.check.outcomes import Watcher

_Redactable = TypeVar("_Redactable", Report, Outcome, Visit)


def collect_secrets(target: Any, *more: Mapping[str, Any] | None) -> SecretRedactor:
    """Return the secrets of a parsed target, and the values of `more`; also as they are written in JSON."""
    given: list[Mapping[str, Any]] = [each for each in more if each]
    values = [str(value) for each in (*given, _mapping(target)) for value in each.values()]
    if isinstance(target, Remote):
        values += _url_secrets(target.url)
    secrets = SecretRedactor()
    secrets.add_permanent([*values, *(msgspec.json.encode(value).decode()[1:-1] for value in values)])
    return secrets


def _mapping(target: Any) -> Mapping[str, Any]:
    if isinstance(target, Command):
        return target.env or {}
    return (target.headers or {}) if isinstance(target, Remote) else {}


def _url_secrets(url: str) -> Iterable[str]:
    """The password and the query of a URL, as they are written and as they are meant."""
    parts = urlsplit(url)
    password = parts.password or ""
    _, named = split_credentials(url)
    queried = [value for _, value in parse_qsl(parts.query)]
    return [password, unquote(password), *named.values(), parts.query, *queried]


class RedactingWatcher:
    """Passes events on to a watcher, without secrets."""

    def __init__(self, watcher: Watcher, secrets: SecretRedactor) -> None:
        self._secrets = secrets
        self._watcher = watcher

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        self._watcher.visit_began(revision, transport, total)

    def case_done(self, outcome: Outcome) -> None:
        self._watcher.case_done(redact(self._secrets, outcome))

    def visit_ended(self, visit: Visit) -> None:
        self._watcher.visit_ended(redact(self._secrets, visit))


def redact(secrets: SecretRedactor, told: _Redactable) -> _Redactable:
    """Return the report without these secrets, wherever the server wrote them."""
    return msgspec.convert(_redact_value(msgspec.to_builtins(told), secrets), type(told))


def _redact_value(value: Any, secrets: SecretRedactor) -> Any:
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, dict):
        return {key: _redact_value(inner, secrets) for key, inner in value.items()}
    return [_redact_value(inner, secrets) for inner in value] if isinstance(value, list | tuple) else value

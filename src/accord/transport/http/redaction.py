"""Redaction of the secrets that this client sends, in texts from a server that repeats them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Raw

from accord.messages.bounds import RESULT_NODES, has_more_nodes

_MIN_SECRET_CHARACTERS = 8
"""Minimum length of a secret: a shorter value would occur in any text."""
_MAX_RECENT = 50
_REDACTED = "[redacted]"

_NAMED = re.compile("//[^/?#]*@")
_BEYOND_THE_PATH = re.compile(r"[?#].*", re.DOTALL)

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


class SecretRedactor:
    """The secrets of one connection: some last as long as it, others are renewed, and the oldest of them dropped."""

    def __init__(self) -> None:
        self._permanent: set[str] = set()
        self._recent: OrderedDict[str, None] = OrderedDict()

    def add_permanent(self, values: Iterable[str]) -> None:
        """Add secrets that are sent with every request."""
        self._permanent.update(_parts(values))

    def add_recent(self, values: Iterable[str]) -> None:
        """Add secrets that are sent with one request."""
        for part in _parts(values):
            self._recent[part] = None
            self._recent.move_to_end(part)
        while len(self._recent) > _MAX_RECENT:
            self._recent.popitem(last=False)

    def redact(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in sorted((*self._permanent, *self._recent), key=len, reverse=True):
            text = text.replace(secret, _REDACTED)
        return text

    def redact_error(self, message: bytes) -> bytes:
        """Return a JSON-RPC message without the secrets in the text of its error."""
        if has_more_nodes(message, RESULT_NODES):
            return message
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            members = _members(message)
            error = _members(members["error"])
            text = _text(error["message"])
            redacted = self.redact(text)
            if redacted != text:
                error["message"] = Raw(msgspec.json.encode(redacted))
                return msgspec.json.encode({**members, "error": error})
        return message


def without_credentials(url: str) -> str:
    """Return a URL without name and password, and without its query, which may be a secret."""
    return _NAMED.sub("//", _BEYOND_THE_PATH.sub("", url))


def without_credentials_malformed(text: str) -> str:
    """Return an invalid URL without its credentials; an unquoted password may make it invalid."""
    head, slashes, rest = text.partition("//")
    return without_credentials(head + slashes + rest.rpartition("@")[2])


def _parts(values: Iterable[str]) -> set[str]:
    """Return each value, and the part after the scheme of credentials."""
    return {
        part for value in values for part in (value, value.rpartition(" ")[2]) if len(part) >= _MIN_SECRET_CHARACTERS
    }

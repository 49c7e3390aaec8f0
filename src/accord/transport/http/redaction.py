"""What we send as a secret: where a server repeats it, nobody is told."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Raw

from accord.messages.bounds import RESULT_NODES, has_more_nodes

_MIN_SECRET_CHARACTERS = 8
"""A value shorter than this is no secret: it would be found in any text."""
_MAX_RECENT = 50
_REDACTED = "[redacted]"

_NAMED = re.compile("//[^/?#]*@")
_BEYOND_THE_PATH = re.compile(r"[?#].*", re.DOTALL)

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


class SecretRedactor:
    """Those of one connection: some last as long as it, others are renewed and the oldest of them forgotten."""

    def __init__(self) -> None:
        self._permanent: set[str] = set()
        self._recent: OrderedDict[str, None] = OrderedDict()

    def add_permanent(self, values: Iterable[str]) -> None:
        """These are sent again and again."""
        self._permanent.update(_parts(values))

    def add_recent(self, values: Iterable[str]) -> None:
        """These are sent now."""
        for part in _parts(values):
            self._recent[part] = None
            self._recent.move_to_end(part)
        while len(self._recent) > _MAX_RECENT:
            self._recent.popitem(last=False)

    def redact(self, text: str) -> str:
        """A text without them."""
        for secret in sorted((*self._permanent, *self._recent), key=len, reverse=True):
            text = text.replace(secret, _REDACTED)
        return text

    def redact_error(self, message: bytes) -> bytes:
        """A JSON-RPC message, without them in the words of its error."""
        if has_more_nodes(message, RESULT_NODES):
            return message
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            members = _members(message)
            error = _members(members["error"])
            said = _text(error["message"])
            shown = self.redact(said)
            if shown != said:
                error["message"] = Raw(msgspec.json.encode(shown))
                return msgspec.json.encode({**members, "error": error})
        return message


def without_credentials(url: str) -> str:
    """A URL without a name, a password, and what may stand for one: the query."""
    return _NAMED.sub("//", _BEYOND_THE_PATH.sub("", url))


def without_credentials_malformed(text: str) -> str:
    """The same of what is no URL: a password that is not quoted may be why."""
    head, slashes, rest = text.partition("//")
    return without_credentials(head + slashes + rest.rpartition("@")[2])


def _parts(values: Iterable[str]) -> set[str]:
    """Each value, and what follows the scheme of credentials."""
    return {
        part for value in values for part in (value, value.rpartition(" ")[2]) if len(part) >= _MIN_SECRET_CHARACTERS
    }

"""What we send as a secret: where a server repeats it, nobody is told."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Raw

_SHORT = 8
"""A value shorter than this is no secret: it would be found in any text."""
_PASSING = 50
_INSTEAD = "[redacted]"

_NAMED = re.compile("//[^/?#]*@")
_UP_TO_A_NAME = re.compile("//.*@", re.DOTALL)
_BEYOND_THE_PATH = re.compile(r"[?#].*", re.DOTALL)

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode


class Secrets:
    """Those of one connection: some last as long as it, others are renewed and the oldest of them forgotten."""

    def __init__(self) -> None:
        self._lasting: set[str] = set()
        self._passing: OrderedDict[str, None] = OrderedDict()

    def keep(self, values: Iterable[str]) -> None:
        """These are sent again and again."""
        self._lasting.update(_parts(values))

    def note(self, values: Iterable[str]) -> None:
        """These are sent now."""
        for part in _parts(values):
            self._passing[part] = None
            self._passing.move_to_end(part)
        while len(self._passing) > _PASSING:
            self._passing.popitem(last=False)

    def hidden(self, text: str) -> str:
        """A text without them."""
        for secret in sorted((*self._lasting, *self._passing), key=len, reverse=True):
            text = text.replace(secret, _INSTEAD)
        return text

    def hidden_in_error(self, message: bytes) -> bytes:
        """A JSON-RPC message, without them in the words of its error."""
        with suppress(msgspec.DecodeError, UnicodeDecodeError, KeyError):
            members = _members(message)
            error = _members(members["error"])
            said = _text(error["message"])
            shown = self.hidden(said)
            if shown != said:
                error["message"] = Raw(msgspec.json.encode(shown))
                return msgspec.json.encode({**members, "error": error})
        return message


def plain(url: str) -> str:
    """A URL without a name, a password, and what may stand for one: the query."""
    return _NAMED.sub("//", _BEYOND_THE_PATH.sub("", url))


def plain_if_wrong(text: str) -> str:
    """The same of what is no URL: a password that is not quoted may be why."""
    return plain(_UP_TO_A_NAME.sub("//", text))


def _parts(values: Iterable[str]) -> set[str]:
    """Each value, and what follows the scheme of credentials."""
    return {part for value in values for part in (value, value.rpartition(" ")[2]) if len(part) >= _SHORT}

"""Sealed text: what a peer carries for us, and may read, but cannot change.

A seal is HMAC-SHA256 over the text itself and not over the bytes that it stands for: a text has one seal, and no second
text (another padding, other trailing bits, a blank more) passes for it. The text is, without separators:

    "1"                  the version of this format
    key id, 8 letters    which key: the first one seals, all of them open, so that keys can be changed without a break
    payload              URL-safe base64, no padding
    seal, 43 letters     likewise

"servers MUST treat `requestState` as an attacker-controlled input" (basic/patterns/mrtr). What is sealed can be read by
who carries it, so no secrets go in; and it can be sent again, so what is inside says for whom, for what and until when.
"""

from __future__ import annotations

import hmac
import os
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence

from accord.errors import DeclarationError

_VERSION = b"1"
_ID = 8
_HEAD = len(_VERSION) + _ID
_SEAL = 43
_SHORTEST_KEY = 16
_URL_SAFE, _PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


class SealBroken(ValueError):
    """A text that none of these keys has sealed, or that was changed since."""


class Keyring:
    """Keys of at least 16 random bytes: the first seals, all open; by default one that lives as long as this process.

    Servers that share keys open each other's texts. `purpose` parts what the same keys serve for: what is sealed for
    one purpose is broken for any other. Raises `DeclarationError` for a short key, none, or what is no list of bytes.
    """

    def __init__(self, keys: Sequence[bytes] | None = None, *, purpose: bytes = b"requestState") -> None:
        if keys is None:
            keys = [os.urandom(32)]
        if isinstance(keys, (bytes, bytearray, str)) or not isinstance(keys, Sequence):
            raise DeclarationError("keys are a list of keys, even where there is one: `[key]`")
        if not keys:
            raise DeclarationError("a keyring needs at least one key; leave `keys` out to have one made")
        self._sealers: dict[bytes, hmac.HMAC] = {}
        for key in keys:
            self._add(key, purpose)
        self._id: bytes = next(iter(self._sealers))

    def seal(self, payload: bytes) -> str:
        """The payload as sealed text: letters, digits, `-` and `_`."""
        text = _VERSION + self._id + _letters(payload)
        return (text + _seal_of(text, self._sealers[self._id])).decode()

    def open(self, text: str, *, max_bytes: int) -> bytes:
        """The payload that was sealed. Raises `SealBroken`; a payload over `max_bytes` is refused unread."""
        if not _HEAD + _SEAL <= len(text) <= _HEAD + _SEAL + (4 * max_bytes + 2) // 3:
            raise SealBroken(f"sealed text of {len(text):,} characters: too short, or over {max_bytes:,} bytes")
        if not text.isascii():
            raise SealBroken("sealed text is ASCII")
        sealed = text.encode()
        signed, seal = sealed[:-_SEAL], sealed[-_SEAL:]
        sealer = self._sealers.get(signed[1:_HEAD])
        if sealer is None:
            raise SealBroken("sealed by a key that is not here")
        if not hmac.compare_digest(seal, _seal_of(signed, sealer)):
            raise SealBroken("changed since it was sealed")
        return _bytes_of(signed[_HEAD:])

    def _add(self, key: bytes, purpose: bytes) -> None:
        """Make what seals for this purpose ready, once: keying is half the work of an HMAC."""
        if not isinstance(key, bytes):
            raise DeclarationError(f"a key is bytes, not {type(key).__name__}")
        if len(key) < _SHORTEST_KEY:
            raise DeclarationError(
                f"a key of {len(key)} bytes can be guessed: give at least {_SHORTEST_KEY} random ones, "
                "as `os.urandom(32)` makes them"
            )
        subkey = hmac.digest(key, b"accord seal 1\0" + purpose, "sha256")
        name = _letters(hmac.digest(subkey, b"id", "sha256"))[:_ID]
        self._sealers.setdefault(name, hmac.new(subkey, digestmod="sha256"))


def _seal_of(text: bytes, sealer: hmac.HMAC) -> bytes:
    own = sealer.copy()
    own.update(text)
    return _letters(own.digest())


def _letters(data: bytes) -> bytes:
    """URL-safe base64 without padding."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=")


def _bytes_of(letters: bytes) -> bytes:
    return a2b_base64(letters.translate(_PLAIN) + b"==="[: -len(letters) % 4])

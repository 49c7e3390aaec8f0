"""`requestState`: the state of a call that the client carries between its requests (2026-07-28, Multi Round-Trip
Requests).

It contains the questions and the earlier answers, and is bound to the principal and the request: "servers MUST treat
`requestState` as an attacker-controlled input". The client can read it and cannot change it, so it contains no secrets;
the client can send it again, so it contains its audience, its purpose and its expiry.

A seal is HMAC-SHA256 over the text itself and not over the decoded bytes: a text has one seal, and no other spelling of
it (another padding, other trailing bits, an additional blank) is accepted. The text is, without separators:

    "1"                  the version of this format
    key id, 8 letters    which key: the first one seals, all of them open, so that keys can be rotated
    payload              URL-safe base64, no padding
    seal, 43 letters     likewise
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from binascii import a2b_base64, b2a_base64
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from accord.errors import DeclarationError, InvalidParams, ToolError
from accord.limits import Limits
from accord.schema.json_values import canonical_json

_VERSION = b"1"
_ID = 8
_HEAD = len(_VERSION) + _ID
_SEAL = 43
_SHORTEST_KEY = 16
_URL_SAFE, _PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


class SealBroken(ValueError):
    """The text was not sealed with these keys, or was changed since."""


class Keyring:
    """Keys of at least 16 random bytes: the first seals, all open; by default one that lives as long as this process.

    Servers that share keys open each other's texts. `purpose` separates uses of the same keys: a text sealed for one
    purpose is invalid for any other. Raises `DeclarationError` for a short key, for no keys, and for a value that is
    not a list of bytes.
    """

    def __init__(self, keys: Sequence[bytes] | None = None, *, purpose: bytes = b"requestState") -> None:
        if keys is None:
            keys = [os.urandom(32)]
        if isinstance(keys, (bytes, bytearray, str)) or not isinstance(keys, Sequence):
            raise DeclarationError("keys must be a list, even for one key: `[key]`")
        if not keys:
            raise DeclarationError("keys= is empty; leave it out to generate a key")
        self._sealers: dict[bytes, hmac.HMAC] = {}
        for key in keys:
            self._add(key, purpose)
        self._id: bytes = next(iter(self._sealers))

    def seal(self, payload: bytes) -> str:
        """Return the payload as sealed text: letters, digits, `-` and `_`."""
        text = _VERSION + self._id + _letters(payload)
        return (text + _seal_of(text, self._sealers[self._id])).decode()

    def open(self, text: str, *, max_bytes: int) -> bytes:
        """Return the payload of a sealed text. Raises `SealBroken`; a payload over `max_bytes` is rejected unread."""
        if not _HEAD + _SEAL <= len(text) <= _HEAD + _SEAL + (4 * max_bytes + 2) // 3:
            raise SealBroken(f"sealed text of {len(text):,} characters: too short, or over {max_bytes:,} bytes")
        if not text.isascii():
            raise SealBroken("sealed text is ASCII")
        sealed = text.encode()
        signed, seal = sealed[:-_SEAL], sealed[-_SEAL:]
        sealer = self._sealers.get(signed[1:_HEAD])
        if sealer is None:
            raise SealBroken("sealed with an unknown key")
        if not hmac.compare_digest(seal, _seal_of(signed, sealer)):
            raise SealBroken("modified after it was sealed")
        return _bytes_of(signed[_HEAD:])

    def _add(self, key: bytes, purpose: bytes) -> None:
        """Prepare the HMAC of a key for this purpose, once: keying is half the work of an HMAC."""
        if not isinstance(key, bytes):
            raise DeclarationError(f"a key must be bytes, not {type(key).__name__}")
        if len(key) < _SHORTEST_KEY:
            raise DeclarationError(
                f"a key of {len(key)} bytes is too short: use at least {_SHORTEST_KEY} random ones, "
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
    """Return URL-safe base64 without padding."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=")


def _bytes_of(letters: bytes) -> bytes:
    return a2b_base64(letters.translate(_PLAIN) + b"==="[: -len(letters) % 4])


_INLINE, _STORED = b"\x00", b"\x01"


class RequestState(msgspec.Struct, array_like=True):
    """The state of one logical call between two of its requests."""

    binding: bytes = b""
    """The digest of the principal and the request; computed when it is first sealed."""
    expires: int = 0
    """Seconds since the epoch."""
    nonce: bytes = b""
    """Identifies the call through all of its requests."""
    step: int = 0
    """The number of steps that the suspended handler has taken."""
    instance_id: bytes = b""
    """The server instance that has the suspended call; empty if the handler may run again."""
    deadline: float = 0
    """The expiry by the monotonic clock of `instance_id`, which cannot be set back."""
    outstanding: dict[str, bytes] = {}
    """The digest of each outstanding question, by key."""
    answers: dict[str, tuple[bytes, bytes]] = {}
    """The digest of each answered question and the answer (JSON), by key."""
    once_values: dict[str, bytes] = {}
    """The values of `ctx.once` (JSON), by key."""


_encode: Callable[[RequestState], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], RequestState] = msgspec.msgpack.Decoder(RequestState).decode


NOT_OURS = "requestState was not made by this server, or was changed; several workers need the same state_keys"


class StateExpired(ToolError):
    """The answer came too late, or the call has ended."""


class StateStore:
    """A store of states that are too large to send, until they expire. Without room, the oldest of the account with the
    most bytes are dropped.

    All event loops of the server share it.
    """

    def __init__(self, bytes_: int, seconds: float) -> None:
        self._capacity = bytes_
        self._seconds = seconds
        self._entries: OrderedDict[bytes, tuple[float, bytes, str]] = OrderedDict()
        self._by_account: dict[str, OrderedDict[bytes, None]] = {}
        self._held: Counter[str] = Counter()
        """Bytes by account."""
        self._lock = threading.Lock()

    def put(self, value: bytes, account: str) -> bytes:
        """Store a value, and return its token. Raises `ToolError` if it is larger than the store."""
        if len(value) > self._capacity:
            raise ToolError(f"the answers so far are over {self._capacity:,} bytes")
        token = os.urandom(16)
        with self._lock:
            self._entries[token] = time.monotonic() + self._seconds, value, account
            self._by_account.setdefault(account, OrderedDict())[token] = None
            self._held[account] += len(value)
        self.forget()
        return token

    def forget(self) -> None:
        """Drop expired values, and the oldest ones beyond the capacity."""
        now = time.monotonic()
        with self._lock:
            while self._entries and next(iter(self._entries.values()))[0] <= now:
                self._drop(next(iter(self._entries)))
            while self._held.total() > self._capacity:
                most = max(self._held, key=self._held.__getitem__)
                self._drop(next(iter(self._by_account[most])))

    def _drop(self, token: bytes) -> None:
        _, value, account = self._entries.pop(token)
        own = self._by_account[account]
        del own[token]
        self._held[account] -= len(value)
        if not own:
            del self._by_account[account], self._held[account]

    def get(self, token: bytes) -> bytes:
        """Return a stored value. Raises `StateExpired`."""
        try:
            return self._entries[token][1]
        except KeyError:
            raise StateExpired("the earlier answers have expired; call again from the start") from None


class RequestStates:
    """The sealing and opening of the states of one server."""

    def __init__(self, keyring: Keyring, limits: Limits) -> None:
        self._keyring = keyring
        self._limits = limits
        self._store = StateStore(limits.kept_bytes, limits.answer_seconds)

    def seal(self, state: RequestState, account: str = "") -> str:
        """Return a state as text; a stored one counts for `account`. Raises `ToolError` if it is too large to be
        stored.
        """
        state.expires = int(time.time() + self._limits.answer_seconds)
        state.deadline = time.monotonic() + self._limits.answer_seconds if state.instance_id else 0
        packed = _encode(state)
        if len(packed) <= self._limits.state_bytes:
            return self._keyring.seal(_INLINE + packed)
        return self._keyring.seal(_STORED + self._store.put(packed, account))

    def forget(self) -> None:
        """Drop stored states that have expired."""
        self._store.forget()

    def open(self, text: str, binding: bytes) -> RequestState:
        """Return the state that this server sealed for this request.

        Raises `InvalidParams` for any other: changed, of another server, of another request; `StateExpired` for an
        expired one.
        """
        state = self._read(text)
        if state.binding != binding:
            raise InvalidParams("requestState belongs to another request")
        if state.expires < time.time():
            after = "whether the call took effect is not known" if state.instance_id else "call again from the start"
            raise StateExpired(f"the answer came too late: {after}")
        return state

    def _read(self, text: str) -> RequestState:
        try:
            sealed = self._keyring.open(text, max_bytes=self._limits.state_bytes + 1)
            return _decode(sealed[1:] if sealed[:1] == _INLINE else self._store.get(sealed[1:]))
        except (SealBroken, msgspec.DecodeError) as exc:  # DecodeError: sealed by another version of accord
            raise InvalidParams(NOT_OURS) from exc


def digest(*parts: bytes) -> bytes:
    """Return 16 bytes that identify these parts, in this order and with these boundaries."""
    framed = b"%d:%b" * len(parts) % tuple([each for part in parts for each in (len(part), part)])
    return hashlib.sha256(framed).digest()[:16]


def canonical(arguments: bytes, spell: Callable[[bytes], bytes] = canonical_json) -> bytes:
    """Return arguments in a canonical spelling: keys in order, `3.0` as `3`, or as `spell` has it. Raises
    `InvalidParams`.
    """
    try:
        return spell(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc

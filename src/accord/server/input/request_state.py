"""What a question leaves with the client, and comes back with its answer: `requestState` (2026-07-28, Multi Round-Trip
Requests).

It says what was asked and what was answered before, and is bound to who asks for what: "servers MUST treat
`requestState` as an attacker-controlled input". The client can read it and cannot change it, so no secrets go in.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from decimal import Context, Decimal

import msgspec
from msgspec import Raw

from accord.errors import InvalidParams, ToolError
from accord.limits import Limits
from accord.server.input.seal import Keyring, SealBroken

_DIGITS = 100
_EXACT = Context(prec=_DIGITS, Emin=-999_999, Emax=999_999)
"""Numbers of up to so many digits are brought to one form; longer ones are taken as they are written."""

_INLINE, _STORED = b"\x00", b"\x01"


class RequestState(msgspec.Struct, array_like=True):
    """One logical call between two of its requests."""

    binding: bytes = b""
    """The digest of who asks for what; made when it is first sealed."""
    expires: int = 0
    """Seconds since the epoch."""
    nonce: bytes = b""
    """One for the whole call, however many rounds it takes."""
    step: int = 0
    """How many answers the running handler has had."""
    instance_id: bytes = b""
    """Where what may not run twice is remembered; empty where anything may run again."""
    deadline: float = 0
    """The same end as `expires`, by the clock that only `instance_id` has, and nobody sets back."""
    outstanding: dict[str, bytes] = {}
    """What is outstanding: the digest of each question, by its key."""
    answers: dict[str, tuple[bytes, bytes]] = {}
    """What was answered: the digest of the question and the answer (JSON), by key."""
    once_values: dict[str, bytes] = {}
    """What `ctx.once` has kept (JSON), by key."""


_encode: Callable[[RequestState], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], RequestState] = msgspec.msgpack.Decoder(RequestState).decode


NOT_OURS = "requestState was not made by this server, or was changed; several workers need the same state_keys"


class StateExpired(ToolError):
    """An answer came too late, or to what is gone."""


class StateStore:
    """States that are too large to travel: kept as long as they are good, the oldest dropped for lack of room.

    All loops that serve share it.
    """

    def __init__(self, bytes_: int, seconds: float) -> None:
        self._capacity = bytes_
        self._seconds = seconds
        self._entries: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def put(self, value: bytes) -> bytes:
        """Keep it; the token to get it back by. Raises `ToolError` when it is larger than the shelf."""
        if len(value) > self._capacity:
            raise ToolError(f"what was answered so far is over {self._capacity:,} bytes")
        token = os.urandom(16)
        with self._lock:
            self._entries[token] = time.monotonic() + self._seconds, value
            self._held += len(value)
        self.forget()
        return token

    def forget(self) -> None:
        """Drop what is over, and the oldest beyond the room."""
        now = time.monotonic()
        with self._lock:
            while self._entries and (self._held > self._capacity or next(iter(self._entries.values()))[0] <= now):
                self._held -= len(self._entries.popitem(last=False)[1][1])

    def get(self, token: bytes) -> bytes:
        """What was kept. Raises `StateExpired`."""
        try:
            return self._entries[token][1]
        except KeyError:
            raise StateExpired("what was answered before is no longer kept; call again from the start") from None


class RequestStates:
    """Seals and opens the states of one server."""

    def __init__(self, keyring: Keyring, limits: Limits) -> None:
        self._keyring = keyring
        self._limits = limits
        self._store = StateStore(limits.kept_bytes, limits.answer_seconds)

    def seal(self, state: RequestState) -> str:
        """A state as text. Raises `ToolError` when it is too large to be kept."""
        state.expires = int(time.time() + self._limits.answer_seconds)
        state.deadline = time.monotonic() + self._limits.answer_seconds if state.instance_id else 0
        packed = _encode(state)
        if len(packed) <= self._limits.state_bytes:
            return self._keyring.seal(_INLINE + packed)
        return self._keyring.seal(_STORED + self._store.put(packed))

    def forget(self) -> None:
        """Drop what is kept of states that are over."""
        self._store.forget()

    def open(self, text: str, binding: bytes) -> RequestState:
        """The state that we have sealed for this very request.

        Raises `InvalidParams` for any other: changed, of another server, of another request; `StateExpired` for an old
        one.
        """
        state = self._read(text)
        if state.binding != binding:
            raise InvalidParams("requestState belongs to another request")
        if state.expires < time.time():
            after = "whether the call took effect is not known" if state.instance_id else "call again from the start"
            raise StateExpired(f"the answer came too late; {after}")
        return state

    def _read(self, text: str) -> RequestState:
        try:
            sealed = self._keyring.open(text, max_bytes=self._limits.state_bytes + 1)
            return _decode(sealed[1:] if sealed[:1] == _INLINE else self._store.get(sealed[1:]))
        except (SealBroken, msgspec.DecodeError) as exc:  # the latter: sealed by another version of ours
            raise InvalidParams(NOT_OURS) from exc


def digest(*parts: bytes) -> bytes:
    """16 bytes that stand for these parts, each told apart from the next."""
    told_apart = b"%d:%b" * len(parts) % tuple([each for part in parts for each in (len(part), part)])
    return hashlib.sha256(told_apart).digest()[:16]


def canonical(arguments: bytes) -> bytes:
    """Decoded arguments, in one way of writing them: keys in order, `3.0` as `3`. Raises `InvalidParams`."""
    try:
        return _in_order(_plain(arguments))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc


def _number(text: str) -> Raw:
    """A number with a point or an exponent, exact, in one way of writing it."""
    if len(text) > _DIGITS:
        return Raw(text.encode())
    value = Decimal(text).normalize(_EXACT)
    whole = value == value.to_integral_value() and abs(value) < 1 << 63
    return Raw(str(int(value) if whole else value).encode())


_plain = msgspec.json.Decoder(float_hook=_number).decode
_in_order: Callable[[object], bytes] = msgspec.json.Encoder(order="deterministic").encode

"""Partial decoding of raw params: only what the session needs, and no stricter than the revision allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from accord.errors import InvalidParams
from accord.messages.base import ProgressToken
from accord.messages.bounds import META_BYTES, Name
from accord.messages.codec import check_duplicate_members, decoder
from accord.messages.envelope import RequestId
from accord.messages.meta import PROTOCOL_VERSION, NotificationMeta, RequestMeta

_LAST_BYTES = 1 << 10
"""Limit of the `_meta` that is remembered, in bytes."""


class _RequestParams(msgspec.Struct):
    meta: RequestMeta | None = field(default=None, name="_meta")


class _RawRequest(msgspec.Struct):
    meta: Raw = field(default=Raw(), name="_meta")
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    task_id: Raw | UnsetType = field(default=UNSET, name="taskId")


class _RawMeta(msgspec.Struct):
    meta: Raw = field(default=Raw(), name="_meta")


class MirroredParams(msgspec.Struct):
    """The params of a request that HTTP headers repeat. Fields that the method does not need may have any value."""

    meta: RequestMeta | None = field(default=None, name="_meta")
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    task_id: Raw | UnsetType = field(default=UNSET, name="taskId")

    def subject(self, field_name: str) -> str | None:
        """Return the text in one of these fields, or None; the decoder of the full params reports a missing one."""
        raw = getattr(self, field_name)
        try:
            return None if raw is UNSET else _text(raw)
        except msgspec.DecodeError:
            return None


class LastMeta:
    """The last `_meta` of one client. Clients mostly send the same one again, which then is not decoded again.

    Its requests share the value, so a handler gets copies of what is in it.
    """

    __slots__ = ("_meta", "_raw")

    def __init__(self) -> None:
        self._raw = Raw()
        self._meta: RequestMeta | None = None

    def decode(self, raw: Raw) -> RequestMeta | None:
        """Decode `raw`, or return the value of the same bytes. Raises `DecodeError`, `RecursionError`."""
        if raw == self._raw:
            return self._meta
        meta = _checked_meta(raw)
        if meta is not None and meta.progress_token is None and len(raw) <= _LAST_BYTES:
            self._raw = raw.copy()
            self._meta = meta
        return meta


class _HandshakeMeta(msgspec.Struct):
    progress_token: ProgressToken | None = field(default=None, name="progressToken")
    protocol_version: Name | None = field(default=None, name=PROTOCOL_VERSION)


class _HandshakeRequestParams(msgspec.Struct):
    meta: _HandshakeMeta | None = field(default=None, name="_meta")


class _NotificationParams(msgspec.Struct):
    meta: NotificationMeta | None = field(default=None, name="_meta")


_raw_meta = msgspec.json.Decoder(_RawMeta).decode
_text = msgspec.json.Decoder(str).decode
_raw_request = msgspec.json.Decoder(_RawRequest).decode
_meta: Callable[[Raw], RequestMeta | None] = msgspec.json.Decoder(cast(Any, RequestMeta | None)).decode
_notification = msgspec.json.Decoder(_NotificationParams).decode


def _checked_meta(raw: Raw) -> RequestMeta | None:
    """Decode a `_meta`. Raises `InvalidParams` where a member occurs twice, `DecodeError`, `RecursionError`."""
    check_duplicate_members(bytes(raw), "params")
    return _meta(raw)


def request_meta(params: Raw | UnsetType, last: LastMeta | None = None) -> RequestMeta | None:
    """Return the known keys in the `_meta` of a request. `last` is the last `_meta` of its client. Raise
    `InvalidParams`."""
    if params is UNSET:
        return None
    if len(params) > META_BYTES:
        _check_size(params)
    try:
        raw = _raw_meta(params).meta
        if not len(raw):
            return None
        return _checked_meta(raw) if last is None else last.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass  # decoded again below, for the path in the error
    try:
        return cast("RequestMeta | None", decoder(_RequestParams).decode(params).meta)
    except (msgspec.DecodeError, RecursionError) as exc:
        return _handshake_meta(params, exc)


def mirrored_params(params: Raw | UnsetType, last: LastMeta | None = None) -> MirroredParams:
    """Return the `_meta` of a request and its subject, decoded in one pass. Raise as `request_meta`."""
    if params is UNSET:
        return MirroredParams()
    if len(params) > META_BYTES:
        _check_size(params)
    try:
        decoded = _raw_request(params)
        raw = decoded.meta
        meta = None if not len(raw) else _checked_meta(raw) if last is None else last.decode(raw)
        return MirroredParams(meta, decoded.name, decoded.uri, decoded.task_id)
    except (msgspec.DecodeError, RecursionError):
        return MirroredParams(request_meta(params))


def _check_size(params: Raw) -> None:
    """Raise `InvalidParams` for a `_meta` over its limit; only params over that limit can contain one."""
    if len(_raw_meta(params).meta) > META_BYTES:
        raise InvalidParams(f"_meta has more than {META_BYTES:,} bytes")


def _handshake_meta(params: Raw, cause: Exception) -> RequestMeta | None:
    """Return `_meta` in a revision that knows fewer keys: the others may have any value."""
    try:
        meta = decoder(_HandshakeRequestParams).decode(params).meta
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc
    if meta is None or meta.protocol_version is not None:
        raise InvalidParams(f"params do not fit: {cause}") from cause
    return RequestMeta(progress_token=meta.progress_token)


def subscription_id(params: Raw | UnsetType) -> RequestId | None:
    """Return the id of the subscription to which a notification belongs, or None. Raise `InvalidParams`."""
    if params is UNSET:
        return None
    try:
        meta = _notification(params).meta
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidParams(f"params do not fit: {exc}") from exc
    return None if meta is None else meta.subscription_id

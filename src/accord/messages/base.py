"""The base of every message type, and the words in which a field tells its life.

Each type is written once, in its most tolerant shape: a field that any revision lacks is optional. What the
revisions make of it stands beside the field as `Annotated` metadata, which msgspec ignores and `views` reads:

    since("2025-06-18", until="2026-07-28")   the field, or the arm of a union, lives in these revisions
    required(since="2026-07-28")              optional to read, but a message without it is wrong there
    seen_as(RequestMeta)                      kept as plain JSON; a strict view looks at it as this type
    bounded(ge=0, le=1)                       any number to read; a strict view holds it to this

`until` always names the first revision that no longer has it. For whole types there are `lives`, `open_ended`
and `arms`; they keep their notes in tables here, so that the types weigh nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, dataclass_transform

import msgspec
from msgspec import field

from accord.messages.bounds import Token

JSONValue: TypeAlias = Any
"""Any JSON value. `Any` in a message type always means this."""

JSONObject: TypeAlias = dict[str, JSONValue]
Meta: TypeAlias = dict[str, JSONValue]
"""The content of a `_meta`: kept as it came, so that keys nobody here knows pass untouched."""

Number: TypeAlias = int | float
"""A JSON number. Unlike `float`, it writes 5 as 5."""

RequestId: TypeAlias = Token
"""The id of a request: 7 is not "7"."""

ProgressToken: TypeAlias = Token

Role: TypeAlias = Literal["user", "assistant"]
"""Whose words a message or a block holds."""

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Severity after RFC 5424, the least severe first."""

_T = TypeVar("_T", bound=type)


class ModelMeta(msgspec.StructMeta):
    """Makes each field keyword-only, which msgspec does not inherit."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, kw_only=True, **config)


# on the class itself: `Struct` has a plainer transform, and type checkers take the nearest base
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Model(msgspec.Struct, metaclass=ModelMeta, frozen=True, rename="camel", omit_defaults=True):
    """A frozen, keyword-only value: snake_case here, camelCase in JSON, without what was not set."""


class Life(NamedTuple):
    """From `since` (the first revision if None) up to, but not with, `until` (open if None)."""

    since: str | None = None
    until: str | None = None


class Required(NamedTuple):
    """While this life lasts, a message without the field is wrong."""

    life: Life


class SeenAs(NamedTuple):
    """While this life lasts, a strict view sees the field as `type`."""

    type: Any
    life: Life


class Bounded(NamedTuple):
    """A strict view holds the number to `bounds`."""

    bounds: msgspec.Meta


class Arm(NamedTuple):
    """One shape of a merged type, by its name in the schema.

    `fields` gives the exact type of each field that belongs to this arm, and is required unless it allows
    None. Fields that no arm mentions belong to all.
    """

    name: str
    fields: Mapping[str, Any]
    life: Life = Life()


LIVES: dict[type, Life] = {}
"""Types that are not part of every revision."""

OPEN: set[type] = set()
"""Types that may carry names beyond their fields, also in the eyes of a strict view."""

ARMS: dict[type, tuple[Arm, ...]] = {}
"""Types that merge several shapes without a tag, which cannot share a union in msgspec."""


def since(revision: str, *, until: str | None = None) -> Life:
    """Mark a field, or an arm of a union, as living from `revision` on."""
    return Life(revision, until)


def required(*, since: str | None = None, until: str | None = None) -> Required:
    """Mark a field as required in these revisions, although it may be absent here."""
    return Required(Life(since, until))


def seen_as(shape: Any, *, since: str | None = None, until: str | None = None) -> SeenAs:
    """Mark a field that is kept as plain JSON as having this shape in these revisions."""
    return SeenAs(shape, Life(since, until))


def bounded(*, ge: float | None = None, le: float | None = None) -> Bounded:
    """Mark a number as confined to these bounds."""
    return Bounded(msgspec.Meta(ge=ge, le=le))


def lives(*, since: str | None = None, until: str | None = None) -> Callable[[_T], _T]:
    """Give a whole type its life."""

    def note(cls: _T) -> _T:
        LIVES[cls] = Life(since, until)
        return cls

    return note


def open_ended(cls: _T) -> _T:
    """Say that names beyond the type's fields are no mistake."""
    OPEN.add(cls)
    return cls


def arms(*shapes: Arm) -> Callable[[_T], _T]:
    """Name the shapes that a type merges; exactly one of them fits each value."""

    def note(cls: _T) -> _T:
        ARMS[cls] = shapes
        return cls

    return note

"""The base class of every message type, and the annotations that say in which revisions a field exists.

Each type is defined once, in its most tolerant shape: a field that any revision lacks is optional. `Annotated`
metadata beside the field states the differences of the revisions; msgspec ignores it, and `views` reads it:

    since("2025-06-18", until="2026-07-28")   the field, or the arm of a union, exists in these revisions
    in_use()                                  beside `since`: peers send it in earlier revisions too, by extensions
    required(since="2026-07-28")              optional to decode, but a message without it is invalid there
    seen_as(RequestMeta)                      plain JSON in the type; a strict view reads it as this type
    bounded(ge=0, le=1)                       any number to decode; a strict view enforces these bounds

`until` always names the first revision that no longer has it. `lives`, `open_ended` and `arms` do the same for
whole types; their notes are in tables of this module, so that the types do not grow.
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
"""The content of a `_meta`: kept unchanged, so that unknown keys pass through."""

Number: TypeAlias = int | float
"""A JSON number. Unlike `float`, it encodes 5 as 5."""

RequestId: TypeAlias = Token
"""The id of a request: 7 is not "7"."""

ProgressToken: TypeAlias = Token

Role: TypeAlias = Literal["user", "assistant"]
"""The author of a message or a block."""

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Severity after RFC 5424, the least severe first."""

_T = TypeVar("_T", bound=type)


class ModelMeta(msgspec.StructMeta):
    """Metaclass that makes each field keyword-only, which msgspec does not inherit."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, kw_only=True, **config)


# on the class itself: `Struct` has a plainer transform, and type checkers take the nearest base
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Model(msgspec.Struct, metaclass=ModelMeta, frozen=True, rename="camel", omit_defaults=True):
    """A frozen, keyword-only value: snake_case in Python, camelCase in JSON, without fields that are not set."""


class Life(NamedTuple):
    """The revisions from `since` (the first revision if None) to `until`, exclusive (open if None)."""

    since: str | None = None
    until: str | None = None


class InUse(NamedTuple):
    """Mark of a field that peers send before the revision that defines it."""


class Required(NamedTuple):
    """Mark of a field without which a message is invalid in these revisions."""

    life: Life


class SeenAs(NamedTuple):
    """Mark of a field that a strict view reads as `type` in these revisions."""

    type: Any
    life: Life


class Bounded(NamedTuple):
    """Mark of a number for which a strict view enforces `bounds`."""

    bounds: msgspec.Meta


class Arm(NamedTuple):
    """One shape of a merged type, by its name in the schema.

    `fields` gives the exact type of each field that belongs to this arm; the field is required unless its type allows
    None. Fields that no arm mentions belong to all arms.
    """

    name: str
    fields: Mapping[str, Any]
    life: Life = Life()


LIVES: dict[type, Life] = {}
"""Revisions of the types that are not part of every revision."""

OPEN: set[type] = set()
"""Types that may have members beyond their fields, in a strict view too."""

ARMS: dict[type, tuple[Arm, ...]] = {}
"""Types that merge several shapes without a tag, which msgspec cannot hold in one union."""


def since(revision: str, *, until: str | None = None) -> Life:
    """Mark a field, or an arm of a union, as part of the protocol from `revision` on."""
    return Life(revision, until)


def in_use() -> InUse:
    """Mark a field as sent in every revision, also where the schema does not have it: an extension requires it."""
    return InUse()


def required(*, since: str | None = None, until: str | None = None) -> Required:
    """Mark a field as required in these revisions, although its type here allows it to be absent."""
    return Required(Life(since, until))


def seen_as(shape: Any, *, since: str | None = None, until: str | None = None) -> SeenAs:
    """Mark a field that is plain JSON here as having this shape in these revisions."""
    return SeenAs(shape, Life(since, until))


def bounded(*, ge: float | None = None, le: float | None = None) -> Bounded:
    """Mark a number as limited to these bounds."""
    return Bounded(msgspec.Meta(ge=ge, le=le))


def lives(*, since: str | None = None, until: str | None = None) -> Callable[[_T], _T]:
    """Set the revisions of a whole type."""

    def note(cls: _T) -> _T:
        LIVES[cls] = Life(since, until)
        return cls

    return note


def open_ended(cls: _T) -> _T:
    """Allow members beyond the fields of a type."""
    OPEN.add(cls)
    return cls


def arms(*shapes: Arm) -> Callable[[_T], _T]:
    """Declare the shapes that a type merges; exactly one of them matches each value."""

    def note(cls: _T) -> _T:
        ARMS[cls] = shapes
        return cls

    return note

"""The exact types of one revision, derived from the one set of types.

`view(Tool, revision)` is `Tool` itself if the revision changes nothing, else a Struct without what the revision
does not have, recursively: fields, arms of unions, the types of fields. Content types that a revision does not have
are not in the unions of its view, so they do not decode; `adapt_content` converts them first.

`view(type, revision, strict=True)` serves the checker: exactly the fields that the revision requires are required,
unknown ones are forbidden except in open-ended types, null means only null, raw JSON has its actual type, and a
merged type must match one of its arms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType

from accord.errors import NotSupported
from accord.locked_cache import locked_cache, safe_convert
from accord.messages.base import ARMS, LIVES, OPEN, Arm, Bounded, InUse, Life, Required, SeenAs
from accord.messages.revision import is_in_revision


@locked_cache
def view(type_: Any, revision: str, *, strict: bool = False, closed: bool = True) -> Any:
    """Return `type_` (a message type, or a union, list or dict of them) in the shape of `revision`.

    A strict view that is not `closed` accepts unknown fields.

    Raises `NotSupported` for a type that is not part of the revision.
    """
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        if not is_type_in_revision(type_, revision):
            raise NotSupported(f"{type_.__name__} is not part of revision {revision}")
        return _struct(type_, revision, strict, closed)
    return _TypeViewer(revision, strict, closed).view(type_)


@locked_cache
def arm_view(type_: type, name: str, revision: str) -> type:
    """Return one shape of a merged type as a strict view of `revision`. Raise `KeyError` if the revision does not have
    it."""
    arm = {arm.name: arm for arm in arms_of_revision(type_, revision)}[name]
    elsewhere = {field for other in ARMS[type_] for field in other.fields} - set(arm.fields)
    viewer = _TypeViewer(revision, strict=True)
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(type_):
        if field.name in arm.fields:
            hint = arm.fields[field.name]
            default = None if type(None) in _members(hint) else NODEFAULT
            fields += viewer.field(field.name, field.encode_name, hint, default)
        elif field.name not in elsewhere:
            fields += viewer.field(field.name, field.encode_name, field.type, field.default)
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


@locked_cache
def removed_fields(type_: type[msgspec.Struct], revision: str) -> tuple[tuple[str, Any], ...] | None:
    """Return the names and defaults of the fields that the view of `revision` does not have; None if it also differs in
    the type of a field.
    """
    kept = {field.name: field.type for field in msgspec.structs.fields(view(type_, revision))}
    fields = msgspec.structs.fields(type_)
    if any(kept.get(field.name, field.type) != field.type for field in fields):
        return None
    return tuple((field.name, field.default) for field in fields if field.name not in kept)


def arms_of_revision(type_: type, revision: str) -> list[Arm]:
    """Return the shapes of a merged type that `revision` has."""
    return [arm for arm in ARMS[type_] if is_in_revision(revision, *arm.life)]


def is_type_in_revision(type_: Any, revision: str) -> bool:
    """Return whether a whole type is part of `revision`."""
    return is_in_revision(revision, *LIVES.get(type_, Life()))


def _struct(type_: type[msgspec.Struct], revision: str, strict: bool, closed: bool) -> type[msgspec.Struct]:
    viewer = _TypeViewer(revision, strict, closed)
    plain = msgspec.structs.fields(type_)
    fields = [
        each for field in plain for each in viewer.field(field.name, field.encode_name, field.type, field.default)
    ]
    if not strict and [field[:2] for field in fields] == [(field.name, field.type) for field in plain]:
        return type_
    config = type_.__struct_config__
    return msgspec.defstruct(
        type_.__name__,
        fields,
        frozen=True,
        kw_only=True,
        omit_defaults=config.omit_defaults,
        tag_field=config.tag_field,
        tag=config.tag,
        module=type_.__module__,
        forbid_unknown_fields=strict and closed and type_ not in OPEN,
        namespace={"__post_init__": _check_one_arm(type_, revision)} if strict and type_ in ARMS else None,
    )


def _check_one_arm(type_: type, revision: str) -> Any:
    """Return a check that a value matches one of the arms; msgspec adds the path to the error."""

    def check(self: msgspec.Struct) -> None:
        data = msgspec.to_builtins(self)
        reasons = []
        for arm in arms_of_revision(type_, revision):
            try:
                safe_convert(data, arm_view(type_, arm.name, revision))
            except msgspec.ValidationError as exc:
                reasons.append(f"{arm.name}: {exc}")
            else:
                return
        raise ValueError("Fits none of its shapes: " + "; ".join(reasons))

    return check


class _TypeViewer:
    """Converter of types to the view of one revision."""

    def __init__(self, revision: str, strict: bool, closed: bool = True) -> None:
        self.revision = revision
        self.strict = strict
        self.closed = closed

    def field(self, name: str, key: str, hint: Any, default: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the field as `defstruct` takes it, or nothing if the revision does not have it."""
        notes = _notes(hint)
        if not self._is_in_revision(hint):
            return
        shape = self.view(hint)
        if self.strict and (default is None or default is UNSET):
            shape = _union(member for member in _members(shape) if member is not type(default))
            default = UNSET
            if any(isinstance(note, Required) and self._is_life_in_revision(note.life) for note in notes):
                default = NODEFAULT
        for note in notes:
            if self.strict and isinstance(note, Bounded):
                shape = _union(Annotated[member, note.bounds] for member in _members(shape))
        if default is UNSET and self.strict:
            shape = _union([shape, UnsetType])
        yield name, shape, msgspec.field(default=default, name=key)

    def view(self, hint: Any) -> Any:
        """Return the type in this revision; the same object if nothing changes."""
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return view(hint, self.revision, strict=self.strict, closed=self.closed)
        origin = get_origin(hint)
        if origin is Annotated:
            return self._annotated(hint)
        if origin in (Union, UnionType):
            members = [self.view(member) for member in get_args(hint) if self._is_in_revision(member)]
            return hint if members == list(get_args(hint)) else _union(members)
        if origin in (list, dict):
            inner = tuple(self.view(arg) for arg in get_args(hint))
            return hint if inner == get_args(hint) else GenericAlias(origin, inner)
        return hint

    def _annotated(self, hint: Any) -> Any:
        base, *notes = get_args(hint)
        shapes = [note.type for note in notes if isinstance(note, SeenAs) and self._is_life_in_revision(note.life)]
        if self.strict and shapes:
            absent = [member for member in _members(base) if member in (type(None), UnsetType)]
            base = _union([*shapes, *absent])
        converted = self.view(base)
        return hint if converted == base and not self.strict else converted

    def _is_in_revision(self, hint: Any) -> bool:
        notes = _notes(hint)
        if not self.strict and InUse() in notes:
            return True
        lives = [note for note in notes if isinstance(note, Life)]
        return all(self._is_life_in_revision(life) for life in lives) and is_type_in_revision(hint, self.revision)

    def _is_life_in_revision(self, life: Life) -> bool:
        return is_in_revision(self.revision, *life)


def _notes(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the arms of a union, also through `Annotated`; a plain type is its only arm."""
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(base) if get_origin(base) in (Union, UnionType) else (base,)


def _union(members: Iterable[Any]) -> Any:
    return Union[tuple(members)]  # noqa: UP007  the members are only known now

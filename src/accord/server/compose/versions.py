"""Versions of a tool or prompt: their order, and the version that a client calls.

{"_meta": {"accord/version": "1.2"}}                                 in a request: the requested version
{"_meta": {"accord/version": "2.0", "accord/versions": ["1.2", "2.0"]}}     in a definition: its version
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import DeclarationError
from accord.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from accord.messages.revision import Rules
    from accord.server.core.registration import Registration

VERSION = "accord/version"
"""In the `_meta` of a request: the requested version of a tool or prompt. In that of a definition: its version."""
VERSIONS = "accord/versions"
"""In the `_meta` of a definition: all versions, the newest last."""

_NUMBERS = lazy_pattern(r"v?(\d+(?:\.\d+)*)", re.IGNORECASE)
_PARTS = lazy_pattern(r"\d+|[^\W\d_]+")


def with_version(kind: str, name: str, registered: Any, registration: Any) -> Registration:
    """Return the newest version of a name that is registered already, with the others attached.

    Raises `DeclarationError` unless both have a version, and these differ.
    """
    mine, other = (getattr(getattr(each, "metadata", None), "version", None) for each in (registration, registered))
    if mine is None or other is None:
        raise DeclarationError(f"{kind} {name!r} is declared twice; rename one of them")
    versions: dict[str, Registration] = {**(registered.versions or {other: registered})}
    if mine in versions:
        raise DeclarationError(f"version {mine} of {kind} {name!r} is declared twice")
    versions[mine] = registration
    versions = {version: versions[version] for version in sorted(versions, key=version_key)}
    *older, newest = versions.values()
    for each in older:
        each.versions = {}
    newest.versions = versions
    return newest


def in_all_versions(registration: Registration, derive: Callable[[Registration], Registration]) -> Registration:
    """Return what `derive` makes of a registration, with all of its versions derived alike. So it refers to none of the
    server that it comes from, which has rules and middleware of its own.
    """
    derived = derive(registration)
    derived.versions = {
        version: derived if each is registration else derive(each) for version, each in registration.versions.items()
    }
    return derived


def version_key(version: str) -> tuple[Any, ...]:
    """Return the sort key of a version: 1.9 < 1.10 < 2.0rc1 < 2.0 < 2.0+build; versions without a number come first."""
    match = _NUMBERS.match(version)
    numbers = [int(part) for part in match[1].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()  # 2 is 2.0
    suffix, _, build = version[match.end() if match else 0 :].partition("+")
    is_after = re.match(r"[._-]?post", suffix) is not None
    stage = 1 if is_after else -1 if suffix else 0
    return tuple(numbers), stage, _parts(suffix), _parts(build), version


def _parts(text: str) -> list[tuple[bool, int, str]]:
    """Return the sort keys of parts: numbers by value, before words, as in SemVer: rc.2 < rc.10."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part.lower()) for part in _PARTS.findall(text)]


def limit_versions(definition: Any, versions: Mapping[str | None, Registration], rules: Rules) -> Any:
    """Return a definition that names only these versions, the newest last, since it may have been made for another
    viewer. Return the newest version if its own is not among them.
    """
    known = [*filter(None, versions)]
    meta = definition.meta
    if meta[VERSION] not in known:
        return versioned_definition(versions[known[-1]], rules, known)
    return msgspec.structs.replace(definition, meta={**meta, VERSIONS: known})


def versioned_definition(registration: Registration, rules: Rules, versions: Sequence[str]) -> Any:
    """Return the definition of one version, with the names of all versions in its `_meta`."""
    definition = registration.define(rules)
    if registration.metadata.version is None:
        return definition
    meta = {VERSION: registration.metadata.version, VERSIONS: list(versions)}
    return msgspec.structs.replace(definition, meta={**(definition.meta or {}), **meta})

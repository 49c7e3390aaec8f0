"""Several versions of one tool or prompt: their order, and which of them a client gets.

{"_meta": {"accord/version": "1.2"}}                                    of a request: which one is meant
{"_meta": {"accord/version": "2.0", "accord/versions": ["1.2", "2.0"]}}     of a definition: which one it is
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import DeclarationError

if TYPE_CHECKING:
    from accord.messages.revision import Rules
    from accord.server.core.registration import Registration

VERSION = "accord/version"
"""In the `_meta` of a request: which version of a tool or prompt is meant. In that of a definition: which one it is."""
VERSIONS = "accord/versions"
"""In the `_meta` of a definition: all there are, the newest last."""

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.IGNORECASE)
_PARTS = re.compile(r"\d+|[^\W\d_]+")


def with_version(kind: str, name: str, held: Any, offer: Any) -> Registration:
    """What stands under a name that there is already: the newest of its versions, which knows the others.

    Raises `DeclarationError` unless both have a version, each another.
    """
    mine, other = (getattr(getattr(each, "metadata", None), "version", None) for each in (offer, held))
    if mine is None or other is None:
        raise DeclarationError(f"{kind} {name!r} is declared twice; rename one of them")
    versions: dict[str, Registration] = {**(held.versions or {other: held})}
    if mine in versions:
        raise DeclarationError(f"version {mine} of {kind} {name!r} is declared twice")
    versions[mine] = offer
    versions = {version: versions[version] for version in sorted(versions, key=version_key)}
    *older, newest = versions.values()
    for each in older:
        each.versions = {}
    newest.versions = versions
    return newest


def version_key(version: str) -> tuple[Any, ...]:
    """Versions in order: 1.9 < 1.10 < 2.0rc1 < 2.0 < 2.0+build; what has no number comes first."""
    found = _NUMBERS.match(version)
    numbers = [int(part) for part in found[1].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()  # 2 is 2.0
    before, _, build = version[found.end() if found else 0 :].partition("+")
    is_after = re.match(r"[._-]?post", before) is not None
    stage = 1 if is_after else -1 if before else 0
    return tuple(numbers), stage, _parts(before), _parts(build), version


def _parts(text: str) -> list[tuple[bool, int, str]]:
    """Numbers by their value, before words, as SemVer has it: rc.2 < rc.10."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part.lower()) for part in _PARTS.findall(text)]


def limit_versions(definition: Any, versions: Mapping[str | None, Registration], rules: Rules) -> Any:
    """Return a definition that names no versions but these, the newest last: one that was made for somebody else may
    name others. In the place of a version that is none of them, return the newest.
    """
    known = [*filter(None, versions)]
    about = definition.meta
    if about[VERSION] not in known:
        return versioned_definition(versions[known[-1]], rules, known)
    return msgspec.structs.replace(definition, meta={**about, VERSIONS: known})


def versioned_definition(offer: Registration, rules: Rules, versions: Sequence[str]) -> Any:
    """The definition of one version, which says so, and what others there are."""
    definition = offer.define(rules)
    if offer.metadata.version is None:
        return definition
    about = {VERSION: offer.metadata.version, VERSIONS: list(versions)}
    return msgspec.structs.replace(definition, meta={**(definition.meta or {}), **about})

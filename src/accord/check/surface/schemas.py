"""Compare two JSON Schemas, location by location, and classify the effect of each change on clients.

For arguments, the new schema must accept what old clients send. For results, the old schema must accept what the server
now sends. So one schema is that of the `writer`, the other that of the `reader` (`Direction`).

Objects and arrays are compared member by member, other constraints as a whole (`schema_containment`); an undecided
change is risky. It is assumed that clients send only members that a schema declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from accord.check.fuzz.schema_document import GenerationError
from accord.check.surface.schema_changes import (
    ADDED,
    ADDED_REQUIRED,
    REMOVED,
    SIMPLE,
    AnnotationComparison,
    Change,
    change,
    describe_change,
    preview_json,
    worst_kind,
)
from accord.check.surface.schema_containment import INPUT, OUTPUT, Containment, Direction, check_containment
from accord.check.surface.schema_location import ComparedSchema, SchemaLocation, are_same
from accord.messages.base import JSONObject

_MEMBERS = ("properties", "required", "additionalProperties")
_SHOWN = 3
"""The number of differences to show for one location."""
_MOST_VALUES = 50
"""The number of values of an `enum` to show."""

Path = tuple[str, ...]


def schema_changes(old: Any, new: Any, path: Path, *, sent: bool) -> Iterator[Change]:
    """Yield the changes between two schemas, of values that clients send (`sent`) or receive."""
    if old == new:
        return
    walk = _SchemaComparison(INPUT if sent else OUTPUT, path)
    try:
        yield from walk.compare(ComparedSchema(old).root, ComparedSchema(new).root, path)
    except GenerationError as exc:
        yield change("risky", path, _describe_difference(old, new), f"the schemas cannot be compared: {exc}")
    try:
        yield from AnnotationComparison(old, walk.members, walk.judged, sent=sent).compare(old, new, path)
    except RecursionError:
        yield change("risky", path, "nested too deeply", "its content cannot be compared")


class _SchemaComparison:
    """A comparison of two schemas."""

    def __init__(self, direction: Direction, root: Path) -> None:
        self._direction = direction
        self._root = root
        self._seen: set[bytes] = set()
        self.members: set[Path] = set()
        """The members that were added or removed."""
        self.judged: set[Path] = set()
        """The locations with a change of their values."""

    def compare(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        if are_same(old, new):
            return
        key = msgspec.json.encode([old.parts, new.parts], order="sorted")
        if key in self._seen:
            return
        self._seen.add(key)
        if _by_members(old, new):
            yield from self._types(old, new, path)
            yield from self._members(old, new, path) if "object" in old.types & new.types else ()
            yield from self._items(old, new, path) if "array" in old.types & new.types else ()
            yield from self._compare_rest(old, new, path)
        else:
            yield from self._compare_whole(old, new, path)

    # --- objects -----------------------------------------------------------------------------------------------

    def _members(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = _declared(old), _declared(new)
        needed, needs = _required(old), _required(new)
        for name in sorted(was | now):
            place = (*path, "properties", name)
            if name in was and name in now:
                yield from self.compare(_member(old, name), _member(new, name), place)
            elif name in was:
                self.members.add(place)
                yield self._removed_member(name, name in needed, _additional(new), place)
            else:
                self.members.add(place)
                yield self._added_member(name, old, new, place)
        yield from self._required(needed, needs, was, now, (*path, "required"))
        yield from self._additional(old, new, (*path, "additionalProperties"))

    def _removed_member(self, name: str, needed: bool, additional: Any, place: Path) -> Change:
        if not self._direction.is_input:
            why = "old clients rely on it" if needed else "old clients may read it"
            return change("breaking" if needed else "risky", place, REMOVED, why)
        why = "rejected" if additional is False else "ignored, or used for another purpose"
        return change("breaking", place, REMOVED, f"its values from old clients are {why}")

    def _added_member(self, name: str, old: SchemaLocation, new: SchemaLocation, place: Path) -> Change:
        if self._direction.is_input and name in _required(new):
            return change("breaking", place, ADDED_REQUIRED, "old clients do not send it")
        free = _additional(old)
        if free is None and not old.keyword_values("properties") and place[:-2] != self._root:
            free = True  # an object without `properties` may have any member; arguments are only the declared ones
        if free is False and not self._direction.is_input:
            return change("breaking", place, ADDED, "the old schema forbids other members, and clients may reject it")
        if free in (None, False) or self._containment(old.at_schemas(free), _member(new, name)).holds:
            return change("safe", place, ADDED, "old clients do not use it")
        return change("risky", place, ADDED, self._direction.taken)

    def _required(
        self, needed: set[str], needs: set[str], was: set[str], now: set[str], place: Path
    ) -> Iterator[Change]:
        new_names = now - was if self._direction.is_input else set[str]()
        self.judged.add(place)
        for name in sorted(needs - needed - new_names):
            why = "calls without it are rejected" if self._direction.is_input else "it is now always present"
            yield change(
                "breaking" if self._direction.is_input else "safe", place, f"{preview_json(name)} is now required", why
            )
        removed_names = was - now
        for name in sorted(needed - needs - removed_names):
            why = "it may be omitted" if self._direction.is_input else "old clients rely on it"
            yield change(
                "safe" if self._direction.is_input else "breaking",
                place,
                f"{preview_json(name)} is no longer required",
                why,
            )

    def _additional(self, old: SchemaLocation, new: SchemaLocation, place: Path) -> Iterator[Change]:
        """Yield the changes for undeclared members; without `additionalProperties`, none are assumed."""
        was, now = _additional(old), _additional(new)
        if was == now and are_same(old.at_schemas(was), new.at_schemas(now)):
            return
        writer, reader = self._direction.writer_and_reader(was, now)
        what = describe_change(was, now)
        if writer is False or reader in (None, True, {}):
            yield change("safe", place, what, self._direction.wider)
        elif writer is None:
            yield change("risky", place, what, self._direction.more)
        else:
            yield from self._containment_changes(
                self._containment(old.at_schemas(was), new.at_schemas(now)), place, what, Containment(False)
            )

    # --- arrays and types --------------------------------------------------------------------------------------

    def _items(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = old.keyword_values("items"), new.keyword_values("items")
        if was or now:
            yield from self.compare(old.at_schemas(*was), new.at_schemas(*now), (*path, "items"))

    def _types(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = old.types, new.types
        writer, reader = self._direction.writer_and_reader(was, now)
        what = f"{_types(was)} → {_types(now)}"
        if writer - reader:
            yield change(
                "breaking", (*path, "type"), what, f"{self._direction.types} {_removed_types(writer - reader, reader)}"
            )
        elif was != now:
            yield change("safe", (*path, "type"), what, self._direction.wider)

    def _compare_rest(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = (location.parts_without("type", "items", *_MEMBERS) for location in (old, new))
        if was == now:
            return
        both = {"type": sorted(old.types & new.types)}
        one, other = ({"allOf": [both, *each]} for each in (was, now))
        writer, reader = self._direction.writer_and_reader(one, other)
        what = _describe_difference(_plain(was), _plain(now))
        verdict, converse = check_containment(writer, reader), check_containment(reader, writer)
        yield from self._containment_changes(verdict, path, what, converse)

    # --- other constraints -------------------------------------------------------------------------------------

    def _compare_whole(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        verdict = self._containment(old, new)
        if not verdict.holds:
            changes = list(self._compare_alternatives(old, new, path))
            if worst_kind(changes) != "safe":
                yield from changes
                return
        what = _describe_difference(_plain(old.parts), _plain(new.parts))
        yield from self._containment_changes(verdict, path, what, self._containment(new, old))

    def _compare_alternatives(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        """Compare the branches of `anyOf` or `oneOf` one by one if each has the same types as before."""
        for keyword in ("anyOf", "oneOf"):
            was, now = (_by_types(location, keyword) for location in (old, new))
            if was.keys() == now.keys():
                for index, types in enumerate(was):
                    yield from self.compare(was[types], now[types], (*path, keyword, str(index)))

    def _containment(self, old: SchemaLocation, new: SchemaLocation) -> Containment:
        writer, reader = self._direction.writer_and_reader(old, new)
        return check_containment(writer.schema(sent=True), reader.schema())

    def _containment_changes(
        self, verdict: Containment, place: Path, what: str, converse: Containment
    ) -> Iterator[Change]:
        """Yield the change for a verdict; if `converse` holds as well, the schemas are equivalent: no change."""
        if not (verdict.holds and converse.holds):
            self.judged.add(place)
        if verdict.holds is None:
            yield change("risky", place, what, self._direction.unclear)
        elif not verdict.holds:
            known = verdict.example is not msgspec.UNSET
            why = f"{preview_json(verdict.example)} {self._direction.narrower}" if known else self._direction.some
            yield change("breaking", place, what, why)
        elif not converse.holds:
            yield change("safe", place, what, self._direction.wider)


def _by_members(old: SchemaLocation, new: SchemaLocation) -> bool:
    """Return whether members and items can be compared one by one, because no other keyword constrains them."""
    for location in (old, new):
        rest = location.parts_without("type", "items", *_MEMBERS)
        if not all(key in SIMPLE for part in rest for key in part) or False in location.parts:
            return False
        with_members = sum(any(key in part for key in _MEMBERS) for part in location.parts)
        if old.types != new.types and (location.keyword_values("enum") or location.keyword_values("const")):
            return False
        if (location.keyword_values("additionalProperties") and with_members > 1) or any(
            isinstance(one, list) for one in location.keyword_values("items")
        ):
            return False
    return bool(old.types & new.types)


def _by_types(location: SchemaLocation, keyword: str) -> dict[frozenset[str], SchemaLocation]:
    """Return the branches of `anyOf` or `oneOf` by their types; none if the types are not distinct."""
    branches = [location.at_schemas(branch) for branches in location.keyword_values(keyword) for branch in branches]
    found = {branch.types: branch for branch in branches}
    return found if len(found) == len(branches) else {}


def _declared(location: SchemaLocation) -> set[str]:
    return {name for each in location.keyword_values("properties") for name in each}


def _required(location: SchemaLocation) -> set[str]:
    return {name for each in location.keyword_values("required") for name in each}


def _member(location: SchemaLocation, name: str) -> SchemaLocation:
    return location.at_schemas(*(each[name] for each in location.keyword_values("properties") if name in each))


def _additional(location: SchemaLocation) -> Any:
    return next(iter(location.keyword_values("additionalProperties")), None)


def _plain(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else list(parts) or {}


def _describe_difference(old: Any, new: Any) -> str:
    """Return the keywords that differ: `minLength: none → 3`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return f"{preview_json(old)} → {preview_json(new)}"
    keys = sorted(key for key in old.keys() | new.keys() if key not in old or key not in new or old[key] != new[key])
    more = f", and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return "; ".join(_keyword(key, old, new) for key in keys[:_SHOWN]) + more


def _keyword(key: str, old: JSONObject, new: JSONObject) -> str:
    if key == "enum" and isinstance(old.get(key), list) and isinstance(new.get(key), list):
        was, now = ({msgspec.json.encode(each, order="sorted"): each for each in schema[key]} for schema in (old, new))
        differences = [("without", each) for text, each in was.items() if text not in now]
        differences += [("with", each) for text, each in now.items() if text not in was]
        more = f", and {len(differences) - _MOST_VALUES:,} more" if len(differences) > _MOST_VALUES else ""
        shown = ", ".join(f"{word} {preview_json(each)}" for word, each in differences[:_MOST_VALUES])
        return shown + more or "enum in another order"
    return f"{key}: {_keyword_text(old, key)} → {_keyword_text(new, key)}"


def _keyword_text(entry: JSONObject, key: str) -> str:
    return preview_json(entry[key]) if key in entry else "none"


def _types(types: frozenset[str]) -> str:
    return " or ".join(sorted(types - {"integer"} if "number" in types else types)) or "nothing"


def _removed_types(types: frozenset[str], left: frozenset[str]) -> str:
    fractions = ["fractions"] if "number" in types and "integer" in left else []
    return " or ".join([*sorted(types - {"number"} if fractions else types), *fractions])

"""What changed between two JSON Schemas, place by place, and whether those who keep to the old one notice.

Of arguments, what an old client sends must still be accepted: old values fit the new schema. Of results it is the
other way around: what the server answers now must be what an old client expects. So there is a schema that is kept to,
and one that judges: `kept` and `judge` below (`sides`).

Objects and arrays are compared member by member. What is left at a place is decided as a whole (`containment`); where
it cannot be decided, it is risky. Nobody is taken to send members that a schema does not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from accord.check.fuzz.schema_document import GenerationError
from accord.check.surface.schema_changes import (
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
"""Differences that are told of one place."""
_MOST_VALUES = 50
"""Values of an `enum` that are told."""

Path = tuple[str, ...]


def schema_changes(old: Any, new: Any, path: Path, *, sent: bool) -> Iterator[Change]:
    """The changes between two schemas: of what clients send, or else of what they get."""
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
        yield change("risky", path, "nested too deep", "what is in it cannot be compared")


class _SchemaComparison:
    """One walk through two schemas at once."""

    def __init__(self, side: Direction, root: Path) -> None:
        self._direction = side
        self._root = root
        self._seen: set[bytes] = set()
        self.members: set[Path] = set()
        """The members that are new or gone."""
        self.judged: set[Path] = set()
        """The places at which a change of the values was found."""

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
            why = "old clients count on it" if needed else "old clients may read it"
            return change("breaking" if needed else "risky", place, "gone", why)
        why = "refused" if additional is False else "ignored, or taken for something else"
        return change("breaking", place, "gone", f"what old clients send for it is {why}")

    def _added_member(self, name: str, old: SchemaLocation, new: SchemaLocation, place: Path) -> Change:
        if self._direction.is_input and name in _required(new):
            return change("breaking", place, "new, and required", "old clients do not send it")
        free = _additional(old)
        if free is None and not old.keyword_values("properties") and place[:-2] != self._root:
            free = True  # an object of which nothing is said holds anything; arguments are those that are named
        if free is False and not self._direction.is_input:
            return change("breaking", place, "new", "old clients were told that nothing else comes, and may refuse it")
        if free in (None, False) or self._containment(old.at_schemas(free), _member(new, name)).holds:
            return change("safe", place, "new", "old clients do without")
        return change("risky", place, "new", self._direction.taken)

    def _required(
        self, needed: set[str], needs: set[str], was: set[str], now: set[str], place: Path
    ) -> Iterator[Change]:
        new_names = now - was if self._direction.is_input else set[str]()
        self.judged.add(place)
        for name in sorted(needs - needed - new_names):
            why = "calls without it are refused" if self._direction.is_input else "it is always there now"
            yield change(
                "breaking" if self._direction.is_input else "safe", place, f"{preview_json(name)} is required now", why
            )
        gone_names = was - now
        for name in sorted(needed - needs - gone_names):
            why = "it may be left out" if self._direction.is_input else "old clients count on it"
            yield change(
                "safe" if self._direction.is_input else "breaking",
                place,
                f"{preview_json(name)} is not required any more",
                why,
            )

    def _additional(self, old: SchemaLocation, new: SchemaLocation, place: Path) -> Iterator[Change]:
        """Members that are not named. Where nothing is said of them, nobody is taken to send any."""
        was, now = _additional(old), _additional(new)
        if was == now and are_same(old.at_schemas(was), new.at_schemas(now)):
            return
        kept, judge = self._direction.writer_and_reader(was, now)
        what = describe_change(was, now)
        if kept is False or judge in (None, True, {}):
            yield change("safe", place, what, self._direction.wider)
        elif kept is None:
            yield change("risky", place, what, self._direction.more)
        else:
            yield from self._containment_changes(
                self._containment(old.at_schemas(was), new.at_schemas(now)), place, what, Containment(False)
            )

    # --- arrays, and what is simple ----------------------------------------------------------------------------

    def _items(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = old.keyword_values("items"), new.keyword_values("items")
        if was or now:
            yield from self.compare(old.at_schemas(*was), new.at_schemas(*now), (*path, "items"))

    def _types(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = old.types, new.types
        kept, judge = self._direction.writer_and_reader(was, now)
        what = f"{_types(was)} → {_types(now)}"
        if kept - judge:
            yield change(
                "breaking", (*path, "type"), what, f"{self._direction.types} {_removed_types(kept - judge, judge)}"
            )
        elif was != now:
            yield change("safe", (*path, "type"), what, self._direction.wider)

    def _compare_rest(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        was, now = (view.parts_without("type", "items", *_MEMBERS) for view in (old, new))
        if was == now:
            return
        both = {"type": sorted(old.types & new.types)}
        one, other = ({"allOf": [both, *each]} for each in (was, now))
        kept, judge = self._direction.writer_and_reader(one, other)
        what = _describe_difference(_plain(was), _plain(now))
        yield from self._containment_changes(check_containment(kept, judge), path, what, check_containment(judge, kept))

    # --- the rest ----------------------------------------------------------------------------------------------

    def _compare_whole(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        verdict = self._containment(old, new)
        if not verdict.holds:
            inside = list(self._compare_alternatives(old, new, path))
            if worst_kind(inside) != "safe":
                yield from inside
                return
        what = _describe_difference(_plain(old.parts), _plain(new.parts))
        yield from self._containment_changes(verdict, path, what, self._containment(new, old))

    def _compare_alternatives(self, old: SchemaLocation, new: SchemaLocation, path: Path) -> Iterator[Change]:
        """Arms of a choice, one by one, where there is one for the same types as before."""
        for keyword in ("anyOf", "oneOf"):
            was, now = (_by_types(view, keyword) for view in (old, new))
            if was.keys() == now.keys():
                for index, types in enumerate(was):
                    yield from self.compare(was[types], now[types], (*path, keyword, str(index)))

    def _containment(self, old: SchemaLocation, new: SchemaLocation) -> Containment:
        kept, judge = self._direction.writer_and_reader(old, new)
        return check_containment(kept.schema(sent=True), judge.schema())

    def _containment_changes(self, verdict: Containment, place: Path, what: str, back: Containment) -> Iterator[Change]:
        """`back` tells whether it holds the other way around, too: then it only says the same in other words."""
        if not (verdict.holds and back.holds):
            self.judged.add(place)
        if verdict.holds is None:
            yield change("risky", place, what, self._direction.unclear)
        elif not verdict.holds:
            known = verdict.example is not msgspec.UNSET
            why = f"{preview_json(verdict.example)} {self._direction.narrower}" if known else self._direction.some
            yield change("breaking", place, what, why)
        elif not back.holds:
            yield change("safe", place, what, self._direction.wider)


def _by_members(old: SchemaLocation, new: SchemaLocation) -> bool:
    """Whether what is inside can be compared one by one: nothing else speaks of it, in either schema."""
    for view in (old, new):
        rest = view.parts_without("type", "items", *_MEMBERS)
        if not all(key in SIMPLE for part in rest for key in part) or False in view.parts:
            return False
        speaking = sum(any(key in part for key in _MEMBERS) for part in view.parts)
        if old.types != new.types and (view.keyword_values("enum") or view.keyword_values("const")):
            return False
        if (view.keyword_values("additionalProperties") and speaking > 1) or any(
            isinstance(one, list) for one in view.keyword_values("items")
        ):
            return False
    return bool(old.types & new.types)


def _by_types(view: SchemaLocation, keyword: str) -> dict[frozenset[str], SchemaLocation]:
    """The arms of a choice by their types; none where these do not tell them apart."""
    arms = [view.at_schemas(arm) for arms in view.keyword_values(keyword) for arm in arms]
    found = {arm.types: arm for arm in arms}
    return found if len(found) == len(arms) else {}


def _declared(view: SchemaLocation) -> set[str]:
    return {name for each in view.keyword_values("properties") for name in each}


def _required(view: SchemaLocation) -> set[str]:
    return {name for each in view.keyword_values("required") for name in each}


def _member(view: SchemaLocation, name: str) -> SchemaLocation:
    return view.at_schemas(*(each[name] for each in view.keyword_values("properties") if name in each))


def _additional(view: SchemaLocation) -> Any:
    return next(iter(view.keyword_values("additionalProperties")), None)


def _plain(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else list(parts) or {}


def _describe_difference(old: Any, new: Any) -> str:
    """The keywords that are different: `minLength: none → 3`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return f"{preview_json(old)} → {preview_json(new)}"
    keys = sorted(key for key in old.keys() | new.keys() if key not in old or key not in new or old[key] != new[key])
    more = f", and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return "; ".join(_keyword(key, old, new) for key in keys[:_SHOWN]) + more


def _keyword(key: str, old: JSONObject, new: JSONObject) -> str:
    if key == "enum" and isinstance(old.get(key), list) and isinstance(new.get(key), list):
        was, now = ({msgspec.json.encode(each, order="sorted"): each for each in schema[key]} for schema in (old, new))
        moved = [("without", each) for text, each in was.items() if text not in now]
        moved += [("with", each) for text, each in now.items() if text not in was]
        more = f", and {len(moved) - _MOST_VALUES:,} more" if len(moved) > _MOST_VALUES else ""
        shown = ", ".join(f"{word} {preview_json(each)}" for word, each in moved[:_MOST_VALUES])
        return shown + more or "enum in another order"
    return f"{key}: {_keyword_text(old, key)} → {_keyword_text(new, key)}"


def _keyword_text(entry: JSONObject, key: str) -> str:
    return preview_json(entry[key]) if key in entry else "none"


def _types(types: frozenset[str]) -> str:
    return " or ".join(sorted(types - {"integer"} if "number" in types else types)) or "nothing"


def _removed_types(types: frozenset[str], left: frozenset[str]) -> str:
    fractions = ["fractions"] if "number" in types and "integer" in left else []
    return " or ".join([*sorted(types - {"number"} if fractions else types), *fractions])

"""The description of a form from any JSON Schema, within bounds.

Places are described level by level, so the upper levels of a large schema come first. When the nodes, the text or the
depth of a description are used up, or a schema contains itself, the remaining nodes have only `expand`, and the page
requests them when the user opens them. Each request describes at least the place itself, so a schema that contains
itself has a form of any depth that the user wants, and never more than that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from accord.errors import SchemaError
from accord.inspector.forms.choices import (
    alternative_label,
    is_titled,
    listed_values,
    lists_of,
    shorten,
    small_json,
    title,
)
from accord.inspector.forms.constraints import constraint_texts
from accord.inspector.forms.description import (
    TYPES,
    ArrayForm,
    FormDescription,
    FormNode,
    FormProperty,
    FormValue,
    JSONType,
    ObjectForm,
    PatternProperties,
)
from accord.inspector.forms.subschemas import FOLLOWED, FormPlace, FormSchema, PartKey, Subschema
from accord.schema.validate import compile

MOST_NODES = 2_000
"""Nodes of one description, with those that are not described yet."""
MOST_CHARACTERS = 1_000_000
"""Characters of the texts and values of one description."""
MOST_DEPTH = 6
"""Levels of one description."""
_MOST_PARTS = 500
"""Properties, patterns, alternatives or first items of one node; a user can add further ones by name, or as JSON."""
_MOST_EXAMPLES = 20
_KINDS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that suggest a type where the schema names none."""


def describe_form(schema: str | bytes, references: Sequence[str] = ()) -> FormDescription:
    """Describe the form of a JSON Schema, or of a place in it that a former description refers to in `expand`.

    A schema that cannot be used gives a form for any JSON, with the reason as `problem`.
    """
    try:
        document = FormSchema(schema)
        parts = [document.resolve(reference) for reference in references] or document.top()
        root = _FormWalk(document).describe(parts)
    except SchemaError as exc:
        return FormDescription(root=FormNode(is_any=True), problem=str(exc)[:1_000])
    return FormDescription(root=root, problem=None if references else _problem(schema))


def _problem(schema: str | bytes) -> str | None:
    """Return why values cannot be checked against a schema, or None."""
    try:
        compile(msgspec.json.decode(schema))
    except (SchemaError, msgspec.MsgspecError) as exc:
        return str(exc)[:1_000]
    return None


class _PendingNode(NamedTuple):
    node: FormNode
    parts: list[Subschema]
    depth: int
    above: frozenset[PartKey]
    """The subschemas of the places around it."""


class _FormWalk:
    """One description."""

    def __init__(self, document: FormSchema) -> None:
        self._document = document
        self._pending = deque[_PendingNode]()
        self._nodes = 0
        self._characters = 0
        self._listed: dict[PartKey, list[list[FormValue]]] = {}

    def describe(self, parts: list[Subschema]) -> FormNode:
        """Describe a place and as many levels inside it as the bounds allow."""
        root = self._node(parts, -1, frozenset())
        while self._pending:
            pending = self._pending.popleft()
            place = self._document.place(pending.parts)
            own = place.keys()
            if pending.node is not root and (self._is_full(pending) or own & pending.above):
                pending.node.expand = [self._document.reference(part) for part in pending.parts]
            else:
                self._fill(pending, place, pending.above | own)
        return root

    def _is_full(self, pending: _PendingNode) -> bool:
        return self._nodes > MOST_NODES or self._characters > MOST_CHARACTERS or pending.depth > MOST_DEPTH

    def _node(self, parts: list[Subschema], depth: int, above: frozenset[PartKey]) -> FormNode:
        """Return a node that will be described."""
        self._nodes += 1
        if all(part.schema is True or part.schema == {} for part in parts):
            return FormNode(is_any=True)
        node = FormNode()
        self._pending.append(_PendingNode(node, parts, depth + 1, above))
        return node

    def _fill(self, pending: _PendingNode, place: FormPlace, above: frozenset[PartKey]) -> None:
        node, depth = pending.node, pending.depth
        place, is_nullable = self._without_null(place)
        notes = list(place.notes)
        self._characters += place.work() + sum(len(value.value_json) for each in self._lists(place) for value in each)
        self._annotate(node, place)
        node.types = [] if place.refused else _types(place)
        if is_nullable and "null" not in node.types:
            node.types.append("null")
        if not node.types:
            notes.append("the schema allows no value here")
        node.values = listed_values(self._lists(place), notes)
        if node.values is not None and is_nullable and all(value.value_json != "null" for value in node.values):
            node.values.append(FormValue("null"))
        arms = _alternatives(place)
        if arms is not None and node.values is None:
            self._add_alternatives(node, place, *arms, depth, above, notes)
        if node.alternatives is None and node.values is None:
            if "object" in node.types:
                node.object = self._object(place, depth, above, notes)
            if "array" in node.types:
                node.array = self._array(place, depth, above, notes)
        node.notes = notes or None
        self._characters += _size(node)

    def _without_null(self, place: FormPlace) -> tuple[FormPlace, bool]:
        """Return the place without an alternative that is only null, if it has one other, and whether it had one."""
        arms = _alternatives(place)
        if arms is None or "null" not in _types(place):
            return place, False
        owner, keyword = arms
        inner = [self._document.inner(owner, schema) for schema in owner.get(keyword)]
        others = [part for part in inner if not (isinstance(part.schema, dict) and part.schema.get("type") == "null")]
        if len(inner) != 2 or len(others) != 1:
            return place, False
        return self._document.place([*_without(place, owner, keyword), *others]), True

    def _lists(self, place: FormPlace) -> list[list[FormValue]]:
        """Return the values that the subschemas of a place list; each is encoded once."""
        found = []
        for part in place.parts:
            key = part.key()
            if key not in self._listed:
                self._listed[key] = list(lists_of(part))
            found += self._listed[key]
        return found

    def _annotate(self, node: FormNode, place: FormPlace) -> None:
        node.title = title(place.first("title"))
        node.description = shorten(place.first("description"))
        node.format = title(place.first("format"))
        node.constraints = constraint_texts(place) or None
        node.default_json = next((small_json(part.get("default")) for part in place.parts if part.has("default")), None)
        examples = [each for values in place.each("examples", list) for each in values[:_MOST_EXAMPLES]]
        texts = [text for each in examples[:_MOST_EXAMPLES] if (text := small_json(each)) is not None]
        node.examples_json = texts or None
        node.read_only = True in place.each("readOnly", bool)
        node.write_only = True in place.each("writeOnly", bool)
        node.deprecated = True in place.each("deprecated", bool)

    # --- alternatives ------------------------------------------------------------------------------------------

    def _add_alternatives(
        self,
        node: FormNode,
        place: FormPlace,
        owner: Subschema,
        keyword: str,
        depth: int,
        above: frozenset[PartKey],
        notes: list[str],
    ) -> None:
        arms = [self._document.inner(owner, schema) for schema in owner.get(keyword)]
        beside = _without(place, owner, keyword)
        if len(arms) > _MOST_PARTS:
            notes.append(f"{len(arms) - _MOST_PARTS:,} more alternatives are not in the form")
        node.alternatives = []
        for arm in arms[:_MOST_PARTS]:
            both = self._document.place([*beside, arm])
            types = [each for each in _types(both) if each in node.types]
            child = self._node([*beside, arm], depth, above)
            child.label = alternative_label(arm, self._document.place([arm]), types)
            node.alternatives.append(child)
        _number_labels(node.alternatives)

    # --- parts of objects and arrays ---------------------------------------------------------------------------

    def _object(self, place: FormPlace, depth: int, above: frozenset[PartKey], notes: list[str]) -> ObjectForm:
        names = dict.fromkeys(name for properties in place.each("properties", dict) for name in properties)
        required = {name for names in place.each("required", list) for name in names if isinstance(name, str)}
        names.update(dict.fromkeys(sorted(required)))
        patterns = dict.fromkeys(name for found in place.each("patternProperties", dict) for name in found)
        if len(names) > _MOST_PARTS or len(patterns) > _MOST_PARTS:
            notes.append(f"the schema names {len(names) + len(patterns):,} members; the form shows {_MOST_PARTS:,}")
        additional, is_map = self._additional(place)
        self._characters += sum(map(len, [*list(names)[:_MOST_PARTS], *list(patterns)[:_MOST_PARTS]]))
        return ObjectForm(
            properties=[
                FormProperty(
                    name=name,
                    node=self._node(self._property_parts(place, name), depth, above),
                    required=name in required,
                )
                for name in list(names)[:_MOST_PARTS]
            ],
            pattern_properties=[
                PatternProperties(
                    pattern=pattern,
                    node=self._node(self._inner_parts(place, "patternProperties", pattern), depth, above),
                )
                for pattern in list(patterns)[:_MOST_PARTS]
            ]
            or None,
            additional=None if additional is None else self._node(additional, depth, above),
            is_map=is_map or bool(patterns),
        )

    def _property_parts(self, place: FormPlace, name: str) -> list[Subschema]:
        """Return the subschemas of a member: by its name, or of a part that restricts all members without a name.

        Patterns of names are not matched here: the check does that.
        """
        parts = []
        for part in place.parts:
            named = part.get("properties")
            if isinstance(named, dict) and name in named:
                parts.append(self._document.inner(part, named[name]))
            elif part.has("additionalProperties") and not part.has("patternProperties"):
                parts.append(self._document.inner(part, part.get("additionalProperties")))
        return parts or [Subschema(True, None)]

    def _inner_parts(self, place: FormPlace, keyword: str, name: str) -> list[Subschema]:
        found = ((part, part.get(keyword)) for part in place.parts)
        return [
            self._document.inner(part, inner[name])
            for part, inner in found
            if isinstance(inner, dict) and name in inner
        ]

    def _additional(self, place: FormPlace) -> tuple[list[Subschema] | None, bool]:
        """Return the subschemas of members without a name, None if there may be none, and whether they are meant."""
        keywords = ("additionalProperties", "unevaluatedProperties")
        restricting = ((part, next(filter(part.has, keywords), None)) for part in place.parts)
        found = [self._document.inner(part, part.get(keyword)) for part, keyword in restricting if keyword]
        if any(part.schema is False for part in found):
            return None, False
        return found or [Subschema(True, None)], any(part.schema is not True for part in found)

    def _array(self, place: FormPlace, depth: int, above: frozenset[PartKey], notes: list[str]) -> ArrayForm:
        lengths = [len(first) for part in place.parts if (first := _prefix(part)) is not None]
        length = max(lengths, default=0)
        if length > _MOST_PARTS:
            notes.append(f"the schema describes {length:,} items one by one; the form shows {_MOST_PARTS}")
        prefix = [self._node(list(self._item_parts(place, at)), depth, above) for at in range(min(length, _MOST_PARTS))]
        items = list(self._item_parts(place, length))
        closed = any(part.schema is False for part in items)
        return ArrayForm(prefix=prefix or None, items=None if closed else self._node(items, depth, above))

    def _item_parts(self, place: FormPlace, at: int) -> Iterator[Subschema]:
        """Yield the subschemas of the item at an index."""
        for part in place.parts:
            first = _prefix(part)
            old = isinstance(part.get("items"), list)
            rest = "additionalItems" if old else "items"
            if first is not None and at < len(first):
                yield self._document.inner(part, first[at])
            elif part.has(rest):
                yield self._document.inner(part, part.get(rest))
            elif part.has("unevaluatedItems"):
                yield self._document.inner(part, part.get("unevaluatedItems"))


def _prefix(part: Subschema) -> list[Any] | None:
    """Return the schemas of the first items: `prefixItems`, or `items` in older drafts."""
    first = part.get("prefixItems")
    first = part.get("items") if first is None else first
    return first if isinstance(first, list) else None


def _types(place: FormPlace) -> list[JSONType]:
    """Return the types that all subschemas of a place allow, those first that the schema seems to mean."""
    allowed = list(TYPES)
    for declared in place.each("type", (str, list)):
        names = [declared] if isinstance(declared, str) else declared
        numbers = {"integer"} if "number" in names else set[Any]()
        named = [name for name in names if name in TYPES]
        allowed = [name for name in [*named, *sorted(numbers - {*named})] if name in allowed]
    if "number" in allowed and "integer" in allowed:
        allowed.remove("integer")
    if len(allowed) == len(TYPES) - 1:
        present = {keyword for part in place.parts for keyword in part.schema}
        allowed.sort(key=lambda name: not present.intersection(_KINDS.get(name, ())))
    return sorted(allowed, key="null".__eq__)


def _alternatives(place: FormPlace) -> tuple[Subschema, str] | None:
    """Return the first part of a place with alternatives, and their keyword."""
    for part in place.parts:
        for keyword in ("oneOf", "anyOf"):
            if isinstance(part.get(keyword), list) and part.get(keyword) and not is_titled(part, keyword):
                return part, keyword
    return None


def _without(place: FormPlace, owner: Subschema, keyword: str) -> list[Subschema]:
    """Return the subschemas of a place, one of them without a keyword; their references were followed already."""
    followed = [part._replace(without=part.without | FOLLOWED) for part in place.parts]
    at = next(at for at, part in enumerate(place.parts) if part is owner)
    followed[at] = followed[at]._replace(without=followed[at].without | {keyword})
    return followed


def _number_labels(alternatives: list[FormNode]) -> None:
    """Make the labels of alternatives different."""
    seen: dict[str | None, int] = {}
    for node in alternatives:
        seen[node.label] = seen.get(node.label, 0) + 1
        if seen[node.label] > 1:
            node.label = f"{node.label} ({seen[node.label]})"


def _size(node: FormNode) -> int:
    """Return the characters of a node, without its parts."""
    texts = [node.title, node.description, node.format, node.default_json, node.label]
    texts += [*(node.constraints or ()), *(node.notes or ()), *(node.examples_json or ())]
    for value in node.values or ():
        texts += [value.value_json, value.title, value.description]
    return sum(len(text) for text in texts if text)

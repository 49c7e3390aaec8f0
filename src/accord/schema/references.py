"""The targets of the references of a schema: only places inside it, and each place that a reference may lead to.

A reference is relative to the closest subschema with an `$id` (a resource), but it is not always clear which one that
is: draft 4 has `id`, drafts up to 7 ignore an `$id` beside a `$ref`, a pointer may lead into another resource, two
resources may have one `$id`, and `$dynamicRef` depends on the path of references. So in a schema with several
resources, a reference leads to its target in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from accord.errors import SchemaError
from accord.schema.subschema_cost import inside

_MAX_RESOURCES = 50
"""Limit of the resources of a schema."""
_ID_LENGTH = 16 << 10
"""Limit of the characters of all `$id` together: each reference gets a copy of those around it."""

_IDS = ("$id", "id")
_ANCHORS = ("$anchor", "$dynamicAnchor")

_Anchors = dict[str, list[dict[str, Any]]]


class References:
    """The resources of one schema, and the targets of references to them."""

    def __init__(self, root: Any) -> None:
        self._resources = _resources_of(root)
        self._anchors: dict[int, _Anchors] = {}

    def targets(self, reference: str, base: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each schema that a reference in the resource `base` may lead to, and the resource of that schema.

        Raises `SchemaError` if there is none in `base`.
        """
        if not reference.startswith("#"):
            raise SchemaError(f"the schema refers to {reference!r}: only references inside it (#...) are followed")
        pointer = unquote(reference[1:]) if "%" in reference else reference[1:]
        found = self._find(pointer, base)
        if not found:
            raise SchemaError(f"the schema refers to {reference!r}, which does not exist")
        yield from ((target, base) for target in found)
        for resource in self._resources:
            if resource is not base:
                others = (target for target in self._find(pointer, resource) if isinstance(target, dict))
                yield from ((target, resource) for target in others if target is not found[0])

    def _find(self, pointer: str, resource: Any) -> list[Any]:
        if not pointer:
            return [resource]
        if not pointer.startswith("/"):
            return self._anchors_of(resource).get(pointer, [])
        target = _at_pointer(pointer, resource)
        return [] if target is None else [target]

    def _anchors_of(self, resource: Any) -> _Anchors:
        if id(resource) not in self._anchors:
            self._anchors[id(resource)] = _find_anchors(resource)
        return self._anchors[id(resource)]


def resolve(reference: str, root: Any) -> Any:
    """Return the target of a reference in a schema with one resource. Raises `SchemaError` if it is not inside."""
    target, _ = next(References(root).targets(reference, root))
    return target


def is_resource(schema: dict[str, Any]) -> bool:
    """Return whether references inside a subschema are relative to it: it has an `$id` of its own."""
    return _identifies(schema.get("$id"))


def _identifies(name: Any) -> bool:
    return isinstance(name, str) and not name.startswith("#")


def _resources_of(root: Any) -> list[Any]:
    """Return the schema itself, and all resources inside it. Raise `SchemaError` for too many."""
    resources, found, pending = [root], list[dict[str, Any]](), [root]
    has_id = False  # the keyword of draft 4
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            dialect = value.get("$schema")
            has_id |= isinstance(dialect, str) and "draft-04" in dialect
            if "$id" in value or "id" in value:
                found.append(value)
        pending += (each for each in inside(value) if isinstance(each, (dict, list)))
    length = 0
    for value in found:
        names = [value.get("$id"), value.get("id") if has_id else None]
        if any(map(_identifies, names)):
            length += sum(len(name) for name in names if isinstance(name, str))
            resources += [] if value is root else [value]
    if len(resources) > _MAX_RESOURCES or length > _ID_LENGTH:
        raise SchemaError(
            f"the schema has more than {_MAX_RESOURCES} subschemas with an $id, or more than {_ID_LENGTH:,} "
            "characters in them"
        )
    return resources


def _at_pointer(pointer: str, value: Any) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def _find_anchors(resource: Any) -> _Anchors:
    """Return the anchors of a resource. Resources inside it have their own."""
    anchors: _Anchors = {}
    pending = [resource]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if value is not resource and is_resource(value):
                continue
            names = [name for keyword in _ANCHORS if isinstance(name := value.get(keyword), str)]
            ids = [name for keyword in _IDS if isinstance(name := value.get(keyword), str)]
            names += [name[1:] for name in ids if name.startswith("#")]
            for name in dict.fromkeys(names):
                anchors.setdefault(name, []).append(value)
        pending.extend(inside(value))
    return anchors

"""URI templates (RFC 6570, all four levels) and their inverse: from a URI back to the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accord.server.declare.template_matching import Found, count_slashes, locate, read_named, read_unnamed, slots_of
from accord.server.declare.template_paths import has_parent_segment, is_absolute, joins, unsafe_reason
from accord.server.declare.template_syntax import RESERVED, expand, parse, percent_encode, units_of


class Template:
    """A URI template: `file:///{+path}`, `issues://{repo}/{number}{?state,labels*}`.

    Attributes: `text`, as written; `variables`, the names in order. `unsafe_variables` allows values that escape a
    folder, see `unsafe_in`. Raises `DeclarationError` for bad syntax.
    """

    def __init__(self, template: str, *, unsafe_variables: bool = False) -> None:
        self.text = template
        self.unsafe_variables = unsafe_variables
        self._parts = list(parse(template))
        variables = [variable for part in self._parts if not isinstance(part, str) for variable in part.variables]
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(variable.name for variable in variables))
        self._track = list(slots_of(self._parts))
        self.prefix: str = self._track[0] if self._track and isinstance(self._track[0], str) else ""
        """The units that every matching URI begins with."""
        self._slashes = count_slashes(self._track)
        self._joins = joins(self._parts)
        self._parameters = {
            separator: [
                variable
                for slot in self._track
                if not isinstance(slot, str) and slot.operator.separator == separator
                for variable in slot.variables
            ]
            for separator in "&;"
        }

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI for these strings, numbers, lists and dicts; None, [] and {} count as absent.

        Raises `TypeError` for lists in lists and for `{var:3}` of a list, `UnicodeEncodeError` for a lone surrogate.
        """
        return "".join(
            percent_encode(part, RESERVED) if isinstance(part, str) else expand(part, values) for part in self._parts
        )

    def match(self, uri: str) -> dict[str, Any] | None:
        """Return the values that expand to this URI, or None; the rules are at the head of `template_matching`.

        Values are percent-decoded once and otherwise unchanged, `..`, NUL and the `/` of a `%2F` included; `unsafe_in`
        finds those that must not become file paths. A URI with a `%` that is no escape, or with escapes that are not
        UTF-8, does not match.
        """
        units = self.units(uri)
        return None if units is None else self.match_units(units)

    def units(self, uri: str) -> str | None:
        """Return a URI with one character for each unit; the same for all templates. None for invalid escapes."""
        return units_of(uri)

    def match_units(self, units: str) -> dict[str, Any] | None:
        """Match the units of a URI. As `match`."""
        least, most = self._slashes
        if not units.startswith(self.prefix) or not least <= units.count("/") <= most:
            return None
        spans = locate(self._track, units)
        if spans is None:
            return None
        found: Found = []
        pools: dict[str, list[str]] = {}
        for slot, text in spans:
            if slot.operator.named:
                pools.setdefault(slot.operator.separator, []).extend(text.split(slot.operator.separator))
            else:
                found += read_unnamed(slot, text)
        for separator, pieces in pools.items():
            found += read_named(self._parameters[separator], pieces)
        return self._agreed(found)

    def plain(self, uri: str) -> str:
        """Return the URI of the same values, without parameters that the template does not read and without duplicates;
        the same URI if it does not match, or if the template has no parameters.
        """
        if not any(self._parameters.values()) or (values := self.match(uri)) is None:
            return uri
        return self.expand(values)

    def unsafe_in(self, values: Mapping[str, Any]) -> str | None:
        """Return why values must not become file paths: `..`, NUL, an absolute path, a drive; also if a handler would
        decode them a second time, or join them as the template does. None for safe values, and always with
        `unsafe_variables`.
        """
        if self.unsafe_variables:
            return None
        for name, value in values.items():
            if (why := unsafe_reason(value)) is not None:
                return f"{name!r} {why}"
        if self._joins and has_parent_segment(self._parts, values):
            return "its variables together have a segment '..'"
        return "its variables together are an absolute path" if is_absolute(self._parts, values) else None

    def _agreed(self, found: Found) -> dict[str, Any] | None:
        """Return one value for each name, from an untruncated occurrence if there is one; None if two differ."""
        values: dict[str, Any] = {}
        for variable, value in sorted(found, key=lambda item: item[0].limit is not None):
            if variable.limit is not None and len(value) > variable.limit:
                return None
            known = values.setdefault(variable.name, value)
            if value != (known[: variable.limit] if isinstance(known, str) else known):
                return None
        return {name: values[name] for name in self.variables if name in values}

"""The templates of a server by their literal beginning, so that a URI is compared with few of them.

What the comparison itself costs is bounded too: `messages.bounds` bounds the URI, and `Template.match` is linear in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from accord.errors import ResourceNotFound

if TYPE_CHECKING:
    from accord.server.registration import Registration
    from accord.server.templates import Template


class TemplateIndex:
    """Templates and what they lead to; of several that match a URI, the one that was declared first counts."""

    def __init__(self, templates: Iterable[tuple[Template, Registration]]) -> None:
        self._by_prefix: dict[str, list[tuple[int, Template, Registration]]] = {}
        self._units: Callable[[str], str | None] = lambda uri: None
        for at, (template, offer) in enumerate(templates):
            self._units = template.units
            self._by_prefix.setdefault(template.prefix, []).append((at, template, offer))
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def match(self, uri: str) -> tuple[Registration, dict[str, Any]] | None:
        """What a URI leads to, and the values of its variables; None where no template matches.

        Raises `ResourceNotFound` for values that the template does not take, see `Template.unsafe_in`.
        """
        units = self._units(uri)
        if units is None:
            return None
        found = [each for length in self._lengths for each in self._by_prefix.get(units[:length], ())]
        for _, template, offer in sorted(found, key=lambda each: each[0]):
            values = template.match_units(units)
            if values is None:
                continue
            if (why := template.unsafe_in(values)) is not None:
                raise ResourceNotFound(f"no resource {uri!r:.200}: {why}", uri=uri)
            return offer, values
        return None

"""The result of an import: the names of the items offered now, and those left out, with the reason."""

from __future__ import annotations

import msgspec


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The registrations made from a module, an object, or the operations of a document."""

    tools: list[str] = []
    """The names of the new tools."""
    resources: list[str] = []
    """The URIs of the new resources."""
    templates: list[str] = []
    """The new URI templates."""
    left_out: dict[str, str] = {}
    """What could not be registered, by its name there, with the reason: `{"GET /../x": "..."}`, `{"total": "..."}`."""

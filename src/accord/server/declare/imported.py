"""What came of an import: the names of what is offered now, and what was left out, with the reason."""

from __future__ import annotations

import msgspec


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a module, an object, or the operations of a document."""

    tools: list[str] = []
    """The names of the new tools."""
    resources: list[str] = []
    """The URIs of the new resources."""
    templates: list[str] = []
    """The new templates of URIs."""
    left_out: dict[str, str] = {}
    """What cannot be offered, by its name there, and why: `{"GET /../x": "..."}`, `{"total": "..."}`."""

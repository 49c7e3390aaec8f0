"""The page of a tool: `_meta.ui` of a tool (extension MCP Apps, 2026-01-26); see `apps` for the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from accord.messages.base import Model

UI_SCHEME = "ui://"

Caller: TypeAlias = Literal["model", "app"]
CALLERS: tuple[Caller, ...] = get_args(Caller)


class ToolUI(Model):
    """`_meta.ui` of a tool: the page that shows its results, and who may call it."""

    resource_uri: str | None = None
    visibility: Sequence[Caller] = CALLERS

    @property
    def is_for_model(self) -> bool:
        """Whether the tool is for models: hosts "MUST NOT include" others in the list for the model."""
        return "model" in self.visibility


def tool_ui(meta: Mapping[str, Any] | None) -> ToolUI | None:
    """Return `ui` of a tool's `_meta`, without what is invalid; None if there is none."""
    given = (meta or {}).get("ui")
    ui: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    uri = ui.get("resourceUri", (meta or {}).get("ui/resourceUri"))  # the second is how it was written before 2026
    uri = uri if isinstance(uri, str) and uri.startswith(UI_SCHEME) else None
    listed = ui.get("visibility")
    visibility = tuple(each for each in CALLERS if each in listed) if isinstance(listed, list) else CALLERS
    return None if uri is None and visibility == CALLERS else ToolUI(resource_uri=uri, visibility=visibility)

"""Tools: functions of a server that a model may call (server, Tools)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, UnsetType, field

from accord.messages.base import JSONObject, JSONValue, Meta, Model, lives, open_ended, required, seen_as, since
from accord.messages.bounds import Name
from accord.messages.content import ContentBlock
from accord.messages.identity import Icon
from accord.messages.meta import InputResponseParams, ListResult, Result
from accord.messages.tasks import TaskMetadata

if TYPE_CHECKING:
    from accord.messages.tool_ui import ToolUI


@lives(since="2025-03-26")
class ToolAnnotations(Model):
    """Hints of a tool about its behaviour; not to be trusted by themselves."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ToolExecution(Model):
    """The execution of a tool: it may, must or must not run as a task."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


@open_ended
class InputSchema(Model):
    """The minimum of a tool's `inputSchema`: a JSON Schema of an object."""

    type: Literal["object"]
    dialect: Annotated[str | None, since("2025-11-25")] = field(default=None, name="$schema")
    properties: Annotated[dict[str, JSONObject] | None, since("2024-11-05", until="2026-07-28")] = None
    required_names: Annotated[list[str] | None, since("2024-11-05", until="2026-07-28")] = field(
        default=None, name="required"
    )


@open_ended
@lives(since="2025-06-18")
class OutputSchema(Model):
    """The minimum of a tool's `outputSchema`: a JSON Schema, through 2025-11-25 of an object."""

    type: Annotated[Literal["object"] | None, since("2025-06-18", until="2026-07-28"), required()] = None
    dialect: Annotated[str | None, since("2025-11-25")] = field(default=None, name="$schema")
    properties: Annotated[dict[str, JSONObject] | None, since("2025-06-18", until="2026-07-28")] = None
    required_names: Annotated[list[str] | None, since("2025-06-18", until="2026-07-28")] = field(
        default=None, name="required"
    )


UI_EXTENSION = "io.modelcontextprotocol/ui"
"""The name of the extension MCP Apps."""


class Tool(Model):
    """An entry of `tools/list`."""

    name: Name
    input_schema: Annotated[JSONObject, seen_as(InputSchema)]
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    output_schema: Annotated[JSONObject | None, since("2025-06-18"), seen_as(OutputSchema)] = None
    annotations: Annotated[ToolAnnotations | None, since("2025-03-26")] = None
    execution: Annotated[ToolExecution | None, since("2025-11-25", until="2026-07-28")] = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")

    @property
    def ui(self) -> ToolUI | None:
        """The page of the tool, and who may call it (extension MCP Apps); None for a tool without."""
        from accord.messages.tool_ui import tool_ui

        return tool_ui(self.meta) if self.meta else None


class ListToolsResult(ListResult):
    """Result of `tools/list`."""

    tools: list[Tool]


class CallToolParams(InputResponseParams):
    """Params of `tools/call`; a retry carries the answers in `input_responses`."""

    name: Name
    arguments: JSONObject | None = None
    task: Annotated[TaskMetadata | None, since("2025-11-25", until="2026-07-28")] = None


class CallToolResult(Result):
    """Result of `tools/call`. JSON null is structured content too, hence `UNSET` if there is none."""

    content: list[ContentBlock]
    structured_content: Annotated[
        JSONValue | UnsetType, since("2025-06-18"), seen_as(JSONObject, until="2026-07-28")
    ] = UNSET
    is_error: bool | None = None

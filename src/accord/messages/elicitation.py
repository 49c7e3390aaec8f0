"""Elicitation: a question of a server to the user, as a form or a page to visit (client, Elicitation)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from accord.messages.base import Arm, JSONObject, Meta, Model, Number, arms, lives, seen_as, since
from accord.messages.bounds import Name
from accord.messages.meta import NotificationParams, RequestMeta
from accord.messages.tasks import TaskMetadata


@lives(since="2025-11-25")
class EnumOption(Model):
    """A choice and its title."""

    const: str
    title: str


@lives(since="2025-11-25")
class UntitledItems(Model):
    """Choices without titles."""

    type: Literal["string"]
    enum: list[str]


@lives(since="2025-11-25")
class TitledItems(Model):
    """Choices with titles."""

    any_of: list[EnumOption]


@lives(since="2025-06-18")
@arms(
    Arm(
        "StringSchema",
        {
            "type": Literal["string"],
            "min_length": int | None,
            "max_length": int | None,
            "format": Literal["email", "uri", "date", "date-time"] | None,
            "default": Annotated[str | None, since("2025-11-25")],
        },
    ),
    Arm(
        "NumberSchema",
        {
            "type": Literal["number", "integer"],
            "minimum": Number | None,
            "maximum": Number | None,
            "default": Annotated[Number | None, since("2025-11-25")],
        },
    ),
    Arm("BooleanSchema", {"type": Literal["boolean"], "default": bool | None}),
    Arm(
        "UntitledSingleSelectEnumSchema",
        {
            "type": Literal["string"],
            "enum": list[str],
            "default": str | None,
        },
        since("2025-11-25"),
    ),
    Arm(
        "TitledSingleSelectEnumSchema",
        {
            "type": Literal["string"],
            "one_of": list[EnumOption],
            "default": str | None,
        },
        since("2025-11-25"),
    ),
    Arm(
        "UntitledMultiSelectEnumSchema",
        {
            "type": Literal["array"],
            "items": UntitledItems,
            "min_items": int | None,
            "max_items": int | None,
            "default": list[str] | None,
        },
        since("2025-11-25"),
    ),
    Arm(
        "TitledMultiSelectEnumSchema",
        {
            "type": Literal["array"],
            "items": TitledItems,
            "min_items": int | None,
            "max_items": int | None,
            "default": list[str] | None,
        },
        since("2025-11-25"),
    ),
    Arm(
        "LegacyTitledEnumSchema",
        {
            "type": Literal["string"],
            "enum": list[str],
            "enum_names": list[str] | None,
            "default": Annotated[str | None, since("2025-11-25")],
        },
    ),
)
class PrimitiveSchema(Model):
    """One field of a form."""

    type: Literal["string", "number", "integer", "boolean", "array"]
    title: str | None = None
    description: str | None = None
    default: str | Number | bool | list[str] | None = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    enum: list[str] | None = None
    enum_names: list[str] | None = None
    one_of: Annotated[list[EnumOption] | None, since("2025-11-25")] = None
    items: Annotated[JSONObject | None, since("2025-11-25")] = None
    min_items: Annotated[int | None, since("2025-11-25")] = None
    max_items: Annotated[int | None, since("2025-11-25")] = None


@lives(since="2025-06-18")
class RequestedSchema(Model):
    """A form: a flat object of primitive fields."""

    type: Literal["object"]
    properties: dict[str, PrimitiveSchema]
    required: list[str] | None = None
    dialect: Annotated[str | None, since("2025-11-25")] = field(default=None, name="$schema")


@lives(since="2025-06-18")
@arms(
    Arm(
        "ElicitRequestFormParams",
        {
            "mode": Annotated[Literal["form"] | None, since("2025-11-25")],
            "requested_schema": Annotated[JSONObject, seen_as(RequestedSchema)],
        },
    ),
    Arm(
        "ElicitRequestURLParams",
        {
            "mode": Literal["url"],
            "url": str,
            "elicitation_id": Annotated[str, since("2025-11-25", until="2026-07-28")],
        },
        since("2025-11-25"),
    ),
)
class ElicitParams(Model):
    """Params of `elicitation/create`: a form to fill in (no `mode`, or "form"), or a page to visit ("url")."""

    message: str
    mode: Annotated[Literal["form", "url"] | None, since("2025-11-25")] = None
    requested_schema: JSONObject | None = None
    url: Annotated[str | None, since("2025-11-25")] = None
    elicitation_id: Annotated[str | None, since("2025-11-25", until="2026-07-28")] = None
    task: Annotated[TaskMetadata | None, since("2025-11-25", until="2026-07-28")] = None
    meta: Annotated[Meta | None, since("2025-06-18", until="2026-07-28"), seen_as(RequestMeta)] = field(
        default=None, name="_meta"
    )


@lives(since="2025-06-18")
class ElicitResult(Model):
    """Result of `elicitation/create`, or the answer to it in a retry."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | Number | bool | Annotated[list[str], since("2025-11-25")]] | None = None
    meta: Annotated[Meta | None, since("2025-06-18", until="2026-07-28")] = field(default=None, name="_meta")


@lives(since="2025-11-25", until="2026-07-28")
class ElicitationCompleteParams(NotificationParams):
    """Params of `notifications/elicitation/complete`: the user has finished the interaction on the page."""

    elicitation_id: Name

"""Asking without sending a request: `input_required`, and the retry that answers it.

The answers carry no tag: what was asked under a key tells how to read the answer there, so that they stay
plain JSON in the params, and `INPUT_RESPONSES` names their types.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .base import Model, lives
from .bounds import State
from .elicitation import ElicitParams, ElicitResult
from .meta import Result
from .roots import ListRootsParams, ListRootsResult
from .sampling import CreateMessageParams, CreateMessageResult


@lives(since="2026-07-28")
class CreateMessageRequest(Model, tag_field="method", tag="sampling/createMessage"):
    """`sampling/createMessage`, asked inside a result."""

    params: CreateMessageParams


@lives(since="2026-07-28")
class ListRootsRequest(Model, tag_field="method", tag="roots/list"):
    """`roots/list`, asked inside a result."""

    params: ListRootsParams | None = None


@lives(since="2026-07-28")
class ElicitRequest(Model, tag_field="method", tag="elicitation/create"):
    """`elicitation/create`, asked inside a result."""

    params: ElicitParams


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
InputResponse: TypeAlias = CreateMessageResult | ListRootsResult | ElicitResult

INPUT_RESPONSES: dict[str, type[Any]] = {
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
    "elicitation/create": ElicitResult,
}
"""By the method that was asked: the type of its answer."""


@lives(since="2026-07-28")
class InputRequiredResult(Result):
    """The result of a request that cannot be finished without these answers, or not yet."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: State | None = None

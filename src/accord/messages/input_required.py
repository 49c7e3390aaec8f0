"""Input requests inside a result: `input_required`, and the retry with the answers.

The answers carry no tag: the request under the same key determines the type of an answer. They therefore stay plain
JSON in the params, and `INPUT_RESPONSES` names their types.

Roots: the folders in which a client lets a server work (client, Roots).
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import field

from accord.messages.base import Meta, Model, lives, open_ended, seen_as, since
from accord.messages.bounds import ITEMS, URI, Name, State
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.meta import RequestMeta, Result
from accord.messages.sampling import CreateMessageParams, CreateMessageResult


class Root(Model):
    """A folder, as a `file:` URI."""

    uri: URI
    name: Name | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


@open_ended
class ListRootsParams(Model):
    """Params of `roots/list`. Not `Params`: inside `input_required` it needs no revision in `_meta`."""

    meta: Annotated[Meta | None, seen_as(RequestMeta, until="2026-07-28")] = field(default=None, name="_meta")


class ListRootsResult(Model):
    """Result of `roots/list`, or the answer to it in a retry."""

    roots: Annotated[list[Root], msgspec.Meta(max_length=ITEMS)]
    meta: Annotated[Meta | None, since("2024-11-05", until="2026-07-28")] = field(default=None, name="_meta")


@lives(since="2026-07-28")
class CreateMessageRequest(Model, tag_field="method", tag="sampling/createMessage"):
    """`sampling/createMessage` inside a result."""

    params: CreateMessageParams


@lives(since="2026-07-28")
class ListRootsRequest(Model, tag_field="method", tag="roots/list"):
    """`roots/list` inside a result."""

    params: ListRootsParams | None = None


@lives(since="2026-07-28")
class ElicitRequest(Model, tag_field="method", tag="elicitation/create"):
    """`elicitation/create` inside a result."""

    params: ElicitParams


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
InputResponse: TypeAlias = CreateMessageResult | ListRootsResult | ElicitResult

INPUT_RESPONSES: dict[str, type[Any]] = {
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
    "elicitation/create": ElicitResult,
}
"""The type of the answer, by the method of the input request."""


@lives(since="2026-07-28")
class InputRequiredResult(Result):
    """The result of a request that needs these answers first, or that is not finished yet."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: State | None = None

"""Completion: suggested values while a user types an argument (server, Completion)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.messages.base import Model, lives, since
from accord.messages.bounds import URI, Name, Remark, Remarks
from accord.messages.meta import Params, Result


class PromptReference(Model, tag_field="type", tag="ref/prompt"):
    """Completion for an argument of this prompt."""

    name: Name
    title: Annotated[str | None, since("2025-06-18")] = None


class ResourceTemplateReference(Model, tag_field="type", tag="ref/resource"):
    """Completion for a variable of this resource template."""

    uri: URI


Reference: TypeAlias = PromptReference | ResourceTemplateReference


class CompletionArgument(Model):
    """The argument, and the part that the user has typed."""

    name: Name
    value: Remark


@lives(since="2025-06-18")
class CompletionContext(Model):
    """Arguments that already have a value."""

    arguments: Remarks | None = None


class Completion(Model):
    """At most 100 values, the total number, and whether there are more than these."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteParams(Params):
    """Params of `completion/complete`."""

    ref: Reference
    argument: CompletionArgument
    context: Annotated[CompletionContext | None, since("2025-06-18")] = None


class CompleteResult(Result):
    """Result of `completion/complete`."""

    completion: Completion

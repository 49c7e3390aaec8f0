"""What a completion is asked for: an argument of a prompt or of a resource template (server, Completion)."""

from __future__ import annotations

from collections.abc import Mapping

from accord.errors import LocalProtocolError
from accord.messages.completion import (
    CompleteParams,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    Reference,
    ResourceTemplateReference,
)


def completion_params(
    reference: Reference | None,
    prompt: str | None,
    template: str | None,
    argument: str,
    value: str,
    context: Mapping[str, str] | None,
) -> CompleteParams:
    """The params of `completion/complete`. Raises `LocalProtocolError` unless one thing is referred to."""
    given = [
        each
        for each in (
            reference,
            None if prompt is None else PromptReference(name=prompt),
            None if template is None else ResourceTemplateReference(uri=template),
        )
        if each is not None
    ]
    if len(given) != 1:
        raise LocalProtocolError("say what to complete: give one of a reference, `prompt` and `template`")
    return CompleteParams(
        ref=given[0],
        argument=CompletionArgument(name=argument, value=value),
        context=CompletionContext(arguments=dict(context)) if context else None,
    )

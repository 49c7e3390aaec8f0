"""One function that completes every argument of every prompt and template, as the other libraries have it.

Here each argument has its own: so one is made for each, which calls theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

from accord.compat.wrapping import call, with_signature
from accord.messages.completion import (
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from accord.messages.revision import LATEST, RULES
from accord.server.server import Server

Handler = Callable[..., Any]
"""Takes a reference, a `CompletionArgument`, and a `CompletionContext` or None; gives a `Completion` or None."""


def complete_prompt(server: Server, name: str, handler: Handler) -> None:
    """Complete every argument of a prompt by `handler`."""
    prompt = server.registry.prompts[name].define(RULES[LATEST])
    reference = PromptReference(name=name)
    _complete(server, name, reference, [one.name for one in prompt.arguments or ()], handler)


def complete_template(server: Server, uri: str, handler: Handler) -> None:
    """Complete every variable of a template by `handler`."""
    template, _ = server.registry.templates[uri]
    _complete(server, uri, ResourceTemplateReference(uri=uri), list(template.variables), handler)


def _complete(server: Server, ref: str, reference: Any, arguments: Sequence[str], handler: Handler) -> None:
    for argument in arguments:
        others = [one for one in arguments if one != argument]
        server.complete(ref, argument)(_completer(reference, argument, others, handler))


def _completer(reference: Any, argument: str, others: Sequence[str], handler: Handler) -> Callable[..., Any]:
    async def complete(typed: str, **known: str | None) -> Any:
        given = {name: value for name, value in known.items() if value is not None}
        context = CompletionContext(arguments=given) if given else None
        found = await call(handler, reference, CompletionArgument(name=argument, value=typed), context)
        return [] if found is None else found

    typed = Parameter("typed", Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    known = [Parameter(one, Parameter.KEYWORD_ONLY, default=None, annotation=str | None) for one in others]
    return with_signature(complete, Signature([typed, *known]))

"""From a function and its signature to the `Registration` of a tool, a prompt or a resource."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import DeclarationError, InvalidArguments, InvalidParams
from accord.messages import codec
from accord.messages.content import Resource
from accord.messages.prompts import Prompt, PromptArgument
from accord.messages.resources import ResourceTemplate
from accord.messages.revision import Rules
from accord.messages.tools import Tool, ToolExecution
from accord.server.core.registration import (
    Registration,
    dependencies_in,
    input_parameters_in,
    listing_extension,
)
from accord.server.declare.parameters import location
from accord.server.declare.signature import Signature
from accord.wire.headers import ANNOTATION

if TYPE_CHECKING:
    from accord.server.tasks.options import Task


def tool_registration(
    function: Callable[..., Any], signature: Signature, tool: Tool, timeout: float | None, task: Task | None = None
) -> Registration:
    """Return a function as a tool. The schemas are created when the tools are first listed."""

    execution = None if task is None else ToolExecution(task_support="required" if task.required else "optional")

    def define(rules: Rules) -> Tool:
        return msgspec.structs.replace(
            tool,
            input_schema=signature.input_schema,
            output_schema=signature.output_schema if rules.structured_objects_only else signature.result_schema,
            execution=execution if rules.requested_tasks else None,
        )

    registration = Registration(
        function,
        define,
        bind=signature.bind,
        context=signature.context is not None,
        is_async=signature.is_async,
        timeout=timeout,
        returns=signature,
        declared=input_parameters_in(signature),
        depends=dependencies_in(signature),
        may_run_again=is_safe(tool),
    )
    registration.listed_with = listing_extension(tool)
    if task is not None:
        registration.task, registration.may_request_input = task, True
    return _resolved(
        registration,
        signature,
        lambda: registration.check_mirrored() if signature.has_schema_keyword(ANNOTATION) else None,
    )


def _resolved(registration: Registration, signature: Signature, check: Callable[[], None]) -> Registration:
    """Check a registration, now or once all names in its hints exist. Raises `DeclarationError`."""
    if signature.is_resolved:
        check()
        return registration

    def resolve() -> None:
        signature.resolve()
        registration.context = signature.context is not None
        registration.input_parameters, registration.dependencies = (
            input_parameters_in(signature),
            dependencies_in(signature),
        )
        requests_input = (
            registration.context
            or bool(registration.input_parameters)
            or (registration.dependencies is not None and registration.dependencies.context)
        )
        registration.may_request_input = registration.may_request_input or requests_input
        check()
        registration.resolve_hints = None

    registration.resolve_hints = resolve
    return registration


def is_safe(tool: Tool) -> bool:
    """Return whether the tool's annotations declare that calling it again is safe."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def prompt_registration(function: Callable[..., Any], signature: Signature, prompt: Prompt) -> Registration:
    """Return a function as a prompt: its parameters are the prompt's arguments. Raises `DeclarationError`."""

    def define(_: Rules) -> Prompt:
        return msgspec.structs.replace(prompt, arguments=arguments_of(signature) or None)

    return _text_registration(function, signature, define, lambda: _refuse_headers(signature))


def resource_registration(
    function: Callable[..., Any],
    signature: Signature,
    definition: Resource | ResourceTemplate,
    uri: str,
    variables: Collection[str] = (),
) -> Registration:
    """Return a function as a resource or a resource template. Raises `DeclarationError`."""

    def check() -> None:
        _refuse_headers(signature)
        if missing := [name for name in signature.required if name not in variables]:
            raise DeclarationError(
                f"resource {uri!r} ({location(function)}): {signature.name}() requires {', '.join(missing)}, which the "
                f"URI does not provide: write a variable, as in '{uri}/{{{missing[0]}}}', or give a default"
            )

    return _text_registration(function, signature, lambda _: definition, check)


def _text_registration(
    function: Callable[..., Any],
    signature: Signature,
    define: Callable[[Rules], Any],
    check: Callable[[], None],
) -> Registration:
    """Return a function whose arguments are all strings. Raises `DeclarationError`."""
    registration = Registration(
        function,
        define,
        bind=_bind_strings(signature),
        context=signature.context is not None,
        is_async=signature.is_async,
        declared=input_parameters_in(signature),
        depends=dependencies_in(signature),
    )
    return _resolved(registration, signature, check)


def _refuse_headers(signature: Signature) -> None:
    if signature.has_schema_keyword(ANNOTATION):
        raise DeclarationError(f"{signature.name}: only parameters of tools can have a Header; leave it out")


def arguments_of(signature: Signature) -> list[PromptArgument]:
    """Return a prompt's arguments, read from the schema of its parameters."""
    schema = signature.input_schema
    required = schema.get("required", ())
    return [
        PromptArgument(name=name, description=about.get("description"), required=name in required)
        for name, about in schema.get("properties", {}).items()
    ]


def _bind_strings(signature: Signature) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return a function that binds strings (a prompt's arguments, a template's variables) to typed parameters."""

    def bind(values: Mapping[str, Any] | None, context: Any) -> tuple[Any, Any]:
        try:
            return signature.bind(codec.encode(values or {}), context)
        except InvalidArguments as error:
            raise InvalidParams(error.message) from error

    return bind

"""Declaration: from a function and its options to a registration in the registry."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from accord.errors import DeclarationError, LocalProtocolError
from accord.messages.base import Meta
from accord.messages.content import Resource
from accord.messages.meta import check_meta
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool, ToolAnnotations
from accord.schema.json_values import to_json
from accord.server.core.content import NO_CACHE, CacheHint
from accord.server.core.context import Context
from accord.server.core.registration import AccessMetadata, ArgumentCompletions, Registration
from accord.server.core.registry import Registry
from accord.server.core.results import UNSTRUCTURED
from accord.server.core.visibility import words
from accord.server.declare.completions import Completable, plain
from accord.server.declare.registrations import prompt_registration, resource_registration, tool_registration
from accord.server.declare.signature import Signature, signature
from accord.server.depends.markers import is_dependency
from accord.server.input.question import is_question
from accord.server.middleware.chain import middleware_steps

if TYPE_CHECKING:
    from accord.messages.tool_ui import Caller
    from accord.server.apps.page import AppPage
    from accord.server.middleware.request import Middleware
    from accord.server.tasks.options import Task

P = ParamSpec("P")
R = TypeVar("R")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*[:{]|\{")
"""The beginning of a URI (RFC 3986, section 3.1), or of a URI template whose scheme may contain a variable."""

_PARAMETERS = ("name", "description", "tags", "scopes", "version", "middleware", "timeout", "strict", "needs")
_TOOL_PARAMETERS = ("ui", "visibility")
_PROMPT_FIELDS = ("title", "icons", "meta")
_TOOL_FIELDS = (*_PROMPT_FIELDS, "annotations")

_REPLACEMENTS = {
    "output_schema": "it is read from the return annotation: write `-> YourType`, or, with a schema by hand, "
    "server.add_tool(Tool(...), handler)",
    "input_schema": "it is read from the parameters: annotate them, or, with a schema by hand, write "
    "server.add_tool(Tool(...), handler)",
    "arguments": "they are read from the parameters: annotate them",
}


def declare_tool(
    registry: Registry,
    function: Callable[..., Any],
    *,
    ui: AppPage | None = None,
    visibility: Sequence[Caller] | None = None,
    **options: Any,
) -> None:
    """Register a function as a tool; `options` as for `make_tool`. Raises `DeclarationError`."""
    if ui is None and visibility is None:
        return registry.add("tool", *make_tool(function, **options))
    from accord.server.apps.declaration import tool_meta

    meta = tool_meta(registry, ui, visibility, options.get("meta"))
    return registry.add("tool", *make_tool(function, **{**options, "meta": meta}))


def make_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    strict: bool = False,
    ignore_unknown: bool = False,
    tags: Iterable[str] = (),
    scopes: Iterable[str] = (),
    needs: Iterable[str] = (),
    version: str | None = None,
    middleware: Sequence[Middleware] = (),
    task: Task | None = None,
    **about: Any,
) -> tuple[str, Registration]:
    """Return the name and the registration of a function as a tool; `about` are further fields of `Tool`. With
    `ignore_unknown`, arguments without a parameter are dropped, as the official SDK does. Raises `DeclarationError`.
    """
    function = plain(function)
    _refuse_options("tool", about, _TOOL_FIELDS)
    check_timeout(timeout)
    if not isinstance(about.get("annotations"), ToolAnnotations | None):
        raise DeclarationError("annotations= must be ToolAnnotations(read_only_hint=True, ...)")
    read = signature(
        function,
        context=Context,
        injected=is_injected,
        unstructured=UNSTRUCTURED,
        strict=strict,
        ignore_unknown=ignore_unknown,
    )
    tool = Tool(
        name=read.name if name is None else name,
        description=description or read.description or None,
        input_schema={},
        **message_fields(about),
    )
    registration = tool_registration(function, read, tool, timeout, task)
    set_metadata(registration, tags, scopes, middleware, version, needs)
    return tool.name, registration


def check_timeout(seconds: float | None) -> None:
    """Raise `DeclarationError` for an invalid timeout."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise DeclarationError(f"timeout= takes seconds, more than 0, as in timeout=30, not {seconds!r}")


def _refuse_options(kind: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise `DeclarationError` for options that are not fields of a tool or prompt."""
    for option in given:
        if option in known:
            continue
        import difflib

        options = [*((*_PARAMETERS, *_TOOL_PARAMETERS) if kind == "tool" else _PARAMETERS[:-3]), *known]
        close = difflib.get_close_matches(option, options, 1)
        if close and option not in _REPLACEMENTS:
            raise DeclarationError(f"a {kind} has no option {option}=, did you mean {close[0]}=?")
        instead = _REPLACEMENTS.get(option, f"its options are {', '.join(options)}")
        raise DeclarationError(f"a {kind} has no option {option}=: {instead}")


def declare_prompt(
    registry: Registry,
    function: Callable[P, R],
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Iterable[str] = (),
    scopes: Iterable[str] = (),
    version: str | None = None,
    middleware: Sequence[Middleware] = (),
    **about: Any,
) -> Completable[P, R]:
    """Register a function as a prompt; `about` are further fields of `Prompt`. Raises `DeclarationError`."""
    _refuse_options("prompt", about, _PROMPT_FIELDS)
    read = signature(plain(function), context=Context, injected=is_injected, unstructured=UNSTRUCTURED, texts=True)
    prompt = Prompt(
        name=read.name if name is None else name,
        description=description or read.description or None,
        **message_fields(about),
    )
    registration = prompt_registration(plain(function), read, prompt)
    registration.completions = ArgumentCompletions(f"prompt {prompt.name!r}", read)
    set_metadata(registration, tags, scopes, middleware, version)
    registry.add("prompt", prompt.name, registration)
    return _completable(function, registration)


def declare_resource(
    registry: Registry,
    function: Callable[P, R],
    uri: str,
    *,
    name: str | None = None,
    description: str | None = None,
    size: int | None = None,
    cache: CacheHint = NO_CACHE,
    tags: Iterable[str] = (),
    scopes: Iterable[str] = (),
    middleware: Sequence[Middleware] = (),
    unsafe_variables: bool = False,
    **about: Any,
) -> Completable[P, R]:
    """Register a function as a resource, or with `{variables}` in the URI as a resource template; `about` are further
    fields of `Resource` or `ResourceTemplate`, as `message_fields` returns them. Raises `DeclarationError`.
    """
    if _SCHEME.match(uri) is None:
        raise DeclarationError(f"resource {uri!r} has no URI scheme; write 'resource://{uri}'")
    read = signature(plain(function), context=Context, injected=is_injected, unstructured=UNSTRUCTURED, texts=True)
    marked = partial(set_metadata, tags=tags, scopes=scopes, middleware=middleware)
    fields = {"name": name or read.name, "description": description or read.description or None, **about}
    if "{" in uri:
        template = ResourceTemplate(uri_template=uri, **fields)
        return _declare_template(registry, function, read, template, cache, marked, unsafe_variables)
    registration = resource_registration(plain(function), read, Resource(uri=uri, size=size, **fields), uri)
    registration.completions, registration.cache = ArgumentCompletions(f"resource {uri!r}", read, ()), cache
    marked(registration)
    registry.add("resource", uri, registration)
    return _completable(function, registration)


def _declare_template(
    registry: Registry,
    function: Callable[P, R],
    read: Signature,
    about: ResourceTemplate,
    cache: CacheHint,
    marked: Callable[[Registration], None],
    unsafe_variables: bool,
) -> Completable[P, R]:
    from accord.server.declare.templates import Template

    template = Template(about.uri_template, unsafe_variables=unsafe_variables)
    unknown = {name for name in template.variables if not read.has_parameter(name)}
    if unknown:
        raise DeclarationError(
            f"resource {template.text!r}: {read.name}() has no parameter for {', '.join(sorted(unknown))}"
        )
    registration = resource_registration(plain(function), read, about, template.text, template.variables)
    registration.completions, registration.cache = (
        ArgumentCompletions(f"template {template.text!r}", read, template.variables),
        cache,
    )
    marked(registration)
    registry.add("resource template", template.text, (template, registration))
    return _completable(function, registration)


def _completable(function: Callable[P, R], registration: Registration) -> Completable[P, R]:
    return Completable(function, partial(complete, registration))


def complete(registration: Registration, argument: str, function: Callable[..., Any]) -> None:
    """Register a completer for an argument of a prompt or a template. Raises `DeclarationError`."""
    if registration.completions is not None:
        registration.completions.add(argument, function, Context)


def complete_by_name(registry: Registry, ref: str, argument: str, function: Callable[..., Any]) -> None:
    """Register a completer for the prompt of that name or the template of that text. Raises `DeclarationError`."""
    _, registration = registry.templates.get(ref, (None, registry.prompts.get(ref)))
    if registration is None:
        raise DeclarationError(f"there is no prompt or resource template {ref!r} to complete; declare it first")
    complete(registration, argument, function)


def is_injected(hint: Any, default: Any) -> bool:
    """Return whether the server fills a parameter, with input from the client or with a dependency."""
    return is_dependency(hint, default) or is_question(hint, default)


def set_metadata(
    registration: Registration,
    tags: Iterable[str],
    scopes: Iterable[str],
    middleware: Sequence[Middleware],
    version: str | None = None,
    needs: Iterable[str] = (),
) -> None:
    """Set the access metadata and the middleware of a registration. Raises `DeclarationError`."""
    if version is not None and not isinstance(version, str):
        raise DeclarationError(f"version= must be a string: write version={str(version)!r}")
    if tags or scopes or needs or version is not None:
        registration.metadata = AccessMetadata(
            words("tags", tags), _scopes("scopes", scopes), version, _scopes("needs", needs)
        )
    registration.middleware = middleware_steps(middleware)


def _scopes(option: str, scopes: Iterable[str]) -> frozenset[str]:
    if not scopes:
        return frozenset()
    from accord.server.auth.scope_hierarchy import scope_set

    return scope_set(option, scopes)


def message_fields(about: dict[str, Any]) -> dict[str, Any]:
    """Return options as fields of a message: sequences as lists, without None, and with a valid `_meta`.

    Raises `DeclarationError`.
    """
    found = {key: value for key, value in about.items() if value is not None}
    if "meta" in found:
        check_declared(found["meta"])
    if "icons" in found:
        found["icons"] = list(found["icons"])
    return found


def check_declared(meta: Meta) -> None:
    """Raise `DeclarationError` unless `_meta` has valid keys and JSON values."""
    try:
        check_meta(meta)
        to_json(meta)
    except LocalProtocolError as exc:
        raise DeclarationError(str(exc)) from exc
    except ValueError as exc:
        raise DeclarationError(f"`meta` must be JSON: {exc}") from exc

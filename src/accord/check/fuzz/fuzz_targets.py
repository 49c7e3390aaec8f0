"""The targets of generated calls: tools, prompts, completions and templates with their variables.

Resources and pages of lists are called only with URIs and cursors from the server's results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from accord.check.engine.rule import Violation
from accord.check.fuzz.sequences import StepKind
from accord.check.probes.content import get_object, get_objects
from accord.check.probes.lists import LIST_KINDS
from accord.check.probes.probe import Probe
from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.server.declare.templates import Template

_MOST = 50
"""The maximum number of prompts, templates and completions that are called."""
_TEXT: JSONObject = {"type": "string"}
_VARIABLE: JSONObject = {"type": "string", "maxLength": 2000}
"""Bounded because headers contain URIs."""

Request: TypeAlias = tuple[str, JSONObject]
_Item = TypeVar("_Item")


class FuzzTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One target of calls. `schema` describes its arguments; `build_request` returns the method and params for them."""

    kind: StepKind
    name: str
    schema: JSONObject
    build_request: Callable[[Any], Request]
    item: JSONObject = {}
    """Its entry in the server's list."""

    @property
    def key(self) -> tuple[StepKind, str]:
        """Return what identifies the target."""
        return self.kind, self.name

    @property
    def needs_pooled_values(self) -> bool:
        """Return whether it accepts only values that the server returned before."""
        return self.kind in ("read", "list")


async def fuzz_targets(probe: Probe, left_out: list[str]) -> list[FuzzTarget]:
    """Return the targets that may be called, and append a sentence to `left_out` for each list over the limit.

    A list that fails counts as empty; the rules about lists report the failure.
    """
    tools = [
        tool
        for tool in await _list_or_empty(probe.callable_tools)
        if get_object(tool, "execution").get("taskSupport") != "required"
    ]
    prompts = _limited(await _list_or_empty(probe.prompts), "prompts", left_out)
    templates = _limited(list(_templates(await _list_or_empty(probe.templates))), "templates", left_out)
    completions = (
        [*_prompt_completions(prompts), *_template_completions(templates)]
        if probe.has_capability("completions")
        else []
    )
    return [
        *map(_tool, tools),
        *map(_prompt, prompts),
        *map(_template, templates),
        *_limited(completions, "arguments to complete", left_out),
        *_lists(probe),
    ]


def _limited(found: list[_Item], what: str, left_out: list[str]) -> list[_Item]:
    if len(found) > _MOST:
        left_out.append(f"of {len(found)} {what}, the first {_MOST} got generated calls")
    return found[:_MOST]


async def _list_or_empty(listed: Callable[[], Awaitable[list[JSONObject]]]) -> list[JSONObject]:
    try:
        return await listed()
    except Violation:
        return []


def _tool(tool: JSONObject) -> FuzzTarget:
    name = str(tool.get("name"))
    return FuzzTarget(
        kind="tool",
        name=name,
        schema=get_object(tool, "inputSchema"),
        build_request=lambda arguments: ("tools/call", {"name": name, "arguments": arguments}),
        item=tool,
    )


def _prompt(prompt: JSONObject) -> FuzzTarget:
    name = str(prompt.get("name"))
    listed = get_objects(prompt, "arguments")
    required = [str(each.get("name")) for each in listed if each.get("required") is True]
    return FuzzTarget(
        kind="prompt",
        name=name,
        schema=_texts([str(each.get("name")) for each in listed], required=required),
        build_request=lambda arguments: ("prompts/get", {"name": name, "arguments": arguments}),
        item=prompt,
    )


def _texts(names: list[str], of: JSONObject = _TEXT, required: list[str] | None = None) -> JSONObject:
    """Return the schema of an object with these members, all strings."""
    return {"type": "object", "properties": dict.fromkeys(names, of), "required": required or []}


def _templates(listed: list[JSONObject]) -> Iterator[Template]:
    for each in listed:
        try:
            yield Template(str(each.get("uriTemplate")))
        except DeclarationError:  # another rule reports it
            continue


def _template(template: Template) -> FuzzTarget:
    return FuzzTarget(
        kind="template",
        name=template.text,
        schema=_texts(list(template.variables), _VARIABLE),
        build_request=lambda arguments: ("resources/read", {"uri": template.expand(arguments)}),
    )


def _prompt_completions(prompts: list[JSONObject]) -> Iterator[FuzzTarget]:
    for prompt in prompts:
        name = str(prompt.get("name"))
        arguments = [str(each.get("name")) for each in get_objects(prompt, "arguments")]
        for argument in arguments:
            yield _completion({"type": "ref/prompt", "name": name}, name, argument, arguments)


def _template_completions(templates: list[Template]) -> Iterator[FuzzTarget]:
    for template in templates:
        for variable in template.variables:
            ref = {"type": "ref/resource", "uri": template.text}
            yield _completion(ref, template.text, variable, list(template.variables))


def _completion(ref: JSONObject, name: str, argument: str, arguments: list[str]) -> FuzzTarget:
    """Return the target that completes one argument; `known` is sent as `context`, which older revisions ignore."""
    others = [each for each in arguments if each != argument]

    def build_request(given: Any) -> Request:
        params = {"ref": ref, "argument": {"name": argument, **{key: given[key] for key in ("value",) if key in given}}}
        return "completion/complete", params | ({"context": {"arguments": given["known"]}} if "known" in given else {})

    schema = {**_texts(["value"], required=["value"])}
    if others:
        schema["properties"] = {**schema["properties"], "known": _texts(others)}
    return FuzzTarget(kind="completion", name=f"{name} {argument}", schema=schema, build_request=build_request)


def _lists(probe: Probe) -> Iterator[FuzzTarget]:
    """Yield the pages of lists, by cursor, and the resources, by the URIs in results."""
    for listing in LIST_KINDS:
        if probe.has_capability(listing.capability):
            yield _server_value_target(listing.method, "list", "cursor", [])
    if probe.has_capability("resources"):
        yield _server_value_target("resources/read", "read", "uri", ["uri"])


def _server_value_target(method: str, kind: StepKind, member: str, required: list[str]) -> FuzzTarget:
    return FuzzTarget(
        kind=kind,
        name=method,
        schema=_texts([member], required=required),
        build_request=lambda arguments: (method, arguments),
    )

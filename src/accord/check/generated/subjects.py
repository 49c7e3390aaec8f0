"""What of a server is called with generated arguments: tools, prompts, templates by their variables, completions; and
with what its results hold, resources and the pages of lists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from accord.check.blocks import inside, items
from accord.check.generated.sequences import StepKind
from accord.check.lists import LISTINGS
from accord.check.rule import Broken
from accord.check.talk import Talk
from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.server.templates import Template

_MOST = 50
"""Prompts, templates, and completions that are asked for."""
_TEXT: JSONObject = {"type": "string"}
_VARIABLE: JSONObject = {"type": "string", "maxLength": 2000}
"""URIs stand in headers, too."""

Request: TypeAlias = tuple[str, JSONObject]
_Item = TypeVar("_Item")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be called. `schema` is that of its arguments, `asks` makes method and params of them."""

    kind: StepKind
    name: str
    schema: JSONObject
    asks: Callable[[Any], Request]
    item: JSONObject = {}
    """As it was listed."""

    @property
    def key(self) -> tuple[StepKind, str]:
        """What tells it from others."""
        return self.kind, self.name

    @property
    def is_fed_only(self) -> bool:
        """Whether only what the server gave makes sense to it."""
        return self.kind in ("read", "list")


async def subjects(talk: Talk, left_out: list[str]) -> list[Subject]:
    """All that may be called; `left_out` is told of what there is too much of. A list that cannot be had gives none:
    that is for the rules about it.
    """
    tools = [tool for tool in await _had(talk.callable) if inside(tool, "execution").get("taskSupport") != "required"]
    prompts = _first(await _had(talk.prompts), "prompts", left_out)
    templates = _first(list(_templates(await _had(talk.templates))), "templates", left_out)
    completions = [*_prompt_completions(prompts), *_template_completions(templates)] if talk.has("completions") else []
    return [
        *map(_tool, tools),
        *map(_prompt, prompts),
        *map(_template, templates),
        *_first(completions, "arguments to complete", left_out),
        *_lists(talk),
    ]


def _first(found: list[_Item], what: str, left_out: list[str]) -> list[_Item]:
    if len(found) > _MOST:
        left_out.append(f"of {len(found)} {what} the first {_MOST} got generated calls")
    return found[:_MOST]


async def _had(listed: Callable[[], Awaitable[list[JSONObject]]]) -> list[JSONObject]:
    try:
        return await listed()
    except Broken:
        return []


def _tool(tool: JSONObject) -> Subject:
    name = str(tool.get("name"))
    return Subject(
        kind="tool",
        name=name,
        schema=inside(tool, "inputSchema"),
        asks=lambda arguments: ("tools/call", {"name": name, "arguments": arguments}),
        item=tool,
    )


def _prompt(prompt: JSONObject) -> Subject:
    name = str(prompt.get("name"))
    listed = items(prompt, "arguments")
    required = [str(each.get("name")) for each in listed if each.get("required") is True]
    return Subject(
        kind="prompt",
        name=name,
        schema=_texts([str(each.get("name")) for each in listed], required=required),
        asks=lambda arguments: ("prompts/get", {"name": name, "arguments": arguments}),
        item=prompt,
    )


def _texts(names: list[str], of: JSONObject = _TEXT, required: list[str] | None = None) -> JSONObject:
    """The schema of an object with these members, all texts."""
    return {"type": "object", "properties": dict.fromkeys(names, of), "required": required or []}


def _templates(listed: list[JSONObject]) -> Iterator[Template]:
    for each in listed:
        try:
            yield Template(str(each.get("uriTemplate")))
        except DeclarationError:  # for a rule of its own
            continue


def _template(template: Template) -> Subject:
    return Subject(
        kind="template",
        name=template.text,
        schema=_texts(list(template.variables), _VARIABLE),
        asks=lambda arguments: ("resources/read", {"uri": template.expand(arguments)}),
    )


def _prompt_completions(prompts: list[JSONObject]) -> Iterator[Subject]:
    for prompt in prompts:
        name = str(prompt.get("name"))
        arguments = [str(each.get("name")) for each in items(prompt, "arguments")]
        for argument in arguments:
            yield _completion({"type": "ref/prompt", "name": name}, name, argument, arguments)


def _template_completions(templates: list[Template]) -> Iterator[Subject]:
    for template in templates:
        for variable in template.variables:
            ref = {"type": "ref/resource", "uri": template.text}
            yield _completion(ref, template.text, variable, list(template.variables))


def _completion(ref: JSONObject, name: str, argument: str, arguments: list[str]) -> Subject:
    """Completing one argument, while others are known (`context`, which earlier revisions do not look at)."""
    others = [each for each in arguments if each != argument]

    def asks(given: Any) -> Request:
        params = {"ref": ref, "argument": {"name": argument, **{key: given[key] for key in ("value",) if key in given}}}
        return "completion/complete", params | ({"context": {"arguments": given["known"]}} if "known" in given else {})

    schema = {**_texts(["value"], required=["value"])}
    if others:
        schema["properties"] = {**schema["properties"], "known": _texts(others)}
    return Subject(kind="completion", name=f"{name} {argument}", schema=schema, asks=asks)


def _lists(talk: Talk) -> Iterator[Subject]:
    """The pages of lists, by their cursors, and resources, by the URIs that were found."""
    for listing in LISTINGS:
        if talk.has(listing.capability):
            yield _fed(listing.method, "list", "cursor", [])
    if talk.has("resources"):
        yield _fed("resources/read", "read", "uri", ["uri"])


def _fed(method: str, kind: StepKind, member: str, required: list[str]) -> Subject:
    return Subject(
        kind=kind,
        name=method,
        schema=_texts([member], required=required),
        asks=lambda arguments: (method, arguments),
    )

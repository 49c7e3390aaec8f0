"""The input of a user in a chat: `/name` inserts a prompt of a server, `@uri` the text of a resource.

A name or URI may be shortened if only one fits; if several fit, they are listed, also at Tab. In an argument, a `?` at
the end lists the values that the server suggests.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import click

from accord.cli import keyboard
from accord.cli.columns import ColumnRow, one_line, rows
from accord.cli.keyboard import PromptRefused
from accord.cli.screen import quoted, screen
from accord.errors import AccordError
from accord.host.host import Host
from accord.messages.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Resource,
    ResourceContents,
    SamplingMessageContentBlock,
    TextContent,
)
from accord.messages.prompts import Prompt, PromptArgument
from accord.messages.sampling import SamplingMessage
from accord.visible_text import truncate

ReadLine = Callable[[str], Awaitable[str | None]]
"""Prints a prompt and returns the line that the user types; None at the end of the input."""

_REFERENCE = re.compile(r"(?<!\S)@(\S+)")
_MAX_LISTED = 20
_MAX_RESOURCE = 200_000
"""Characters of a resource that the model gets."""

Item = TypeVar("Item")


class NotSent(Exception):
    """The line is no message; the text says why."""


# --- prompts ---------------------------------------------------------------------------------------------------


async def prompt_messages(host: Host, line: str, read: ReadLine) -> list[SamplingMessage]:
    """Return the messages of the prompt in `/name KEY=VALUE...`; the user is asked for the other arguments.

    Raises `NotSent`, `PromptRefused`, and the errors of `Host.get_prompt`.
    """
    name, *words = _words(line.removeprefix("/"))
    prompt = _the_one(await host.list_prompts(), lambda each: each.name, name, "prompt", "/")
    given = dict(word.partition("=")[::2] for word in words)
    arguments: dict[str, str] = {}
    for argument in prompt.arguments or ():
        value = given.pop(argument.name, None)
        if value is None:
            value = await _argument(host, prompt, argument, read)
        if value is not None:
            arguments[argument.name] = value
    if given:
        raise NotSent(f"the prompt {prompt.name} has no argument {next(iter(given))!r}")
    result = await host.get_prompt(prompt.name, arguments)
    messages = [SamplingMessage(role=each.role, content=[_block(each.content)]) for each in result.messages]
    for message in result.messages:
        block = _block(message.content)
        screen.print_line(f"  {message.role}:")
        screen.print_line(quoted(block.text if isinstance(block, TextContent) else f"[{type(block).__name__}]"))
    return messages


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line) or [""]
    except ValueError as exc:
        raise NotSent(f"{one_line(line)!r}: {exc}") from exc


async def _argument(host: Host, prompt: Prompt, argument: PromptArgument, read: ReadLine) -> str | None:
    """Return the value that the user types; None for an argument that is left out. Raises `PromptRefused`."""
    if argument.description:
        screen.print_line(quoted(argument.description))
    label = click.style(one_line(argument.title or argument.name, 60), bold=True)
    hint = "" if argument.required else click.style(" (may be left out)", dim=True)
    while True:
        value = await read(f"  {label}{hint}: ")
        if value is None or value.strip() == keyboard.DECLINE:
            raise PromptRefused
        if value.endswith("?"):
            await _list_values(host, prompt, argument, value[:-1])
        elif value:
            return value
        elif not argument.required:
            return None


async def _list_values(host: Host, prompt: Prompt, argument: PromptArgument, start: str) -> None:
    try:
        values = (await host.complete(prompt=prompt.name, argument=argument.name, value=start)).values
    except AccordError as exc:
        screen.print_line(f"  no suggestions: {one_line(str(exc))}")
        return
    for value in values[:_MAX_LISTED]:
        screen.print_line(quoted(one_line(value)))
    if not values:
        screen.print_line("  no suggestions")


# --- resources -------------------------------------------------------------------------------------------------


async def message_blocks(host: Host, line: str) -> list[SamplingMessageContentBlock]:
    """Return a message of the user as content blocks, with the resources that it names.

    Raises `NotSent`, and the errors of `Host.read_resource`.
    """
    blocks: list[SamplingMessageContentBlock] = [TextContent(text=line)]
    for reference in dict.fromkeys(_REFERENCE.findall(line)):
        uri = await _uri(host, reference)
        if uri is not None:
            contents = (await host.read_resource(uri)).contents
            blocks += [_resource_block(uri, each) for each in contents]
            screen.print_line(click.style(f"  read {one_line(uri)}", dim=True))
    return blocks


async def _uri(host: Host, reference: str) -> str | None:
    """Return the URI that is meant; None for a word that is no reference, such as a name."""
    resources = await host.list_resources()
    uris = {resource.uri for resource in resources}
    if reference in uris:
        return reference
    if not any(_fits(resource, reference) for resource in resources):
        return reference if "://" in reference else None
    return _the_one(resources, lambda each: each.uri, reference, "resource", "@").uri


def _fits(resource: Resource, start: str) -> bool:
    return resource.uri.startswith(start)


def _the_one(items: Iterable[Item], name: Callable[[Item], str], start: str, kind: str, mark: str) -> Item:
    """Return the item of a name, or the only one that begins so. Raises `NotSent` after listing those that fit."""
    items = list(items)
    fitting = [item for item in items if name(item) == start] or [
        item for item in items if name(item).startswith(start)
    ]
    if len(fitting) == 1:
        return fitting[0]
    for item in (fitting or items)[:_MAX_LISTED]:
        screen.print_line(f"  {mark}{one_line(name(item))}")
    if fitting:
        raise NotSent(f"{len(fitting)} {kind}s begin with {mark}{one_line(start)}")
    raise NotSent(f"no {kind} begins with {mark}{one_line(start)}")


def _resource_block(uri: str, contents: ResourceContents) -> SamplingMessageContentBlock:
    if contents.text is not None:
        return TextContent(text=f"Resource {uri}:\n{truncate(contents.text, _MAX_RESOURCE)}")
    if contents.blob is not None and (contents.mime_type or "").startswith("image/"):
        return ImageContent(data=contents.blob, mime_type=contents.mime_type or "")
    return TextContent(text=f"Resource {uri} is binary: {contents.mime_type or 'of unknown type'}")


def _block(block: ContentBlock) -> SamplingMessageContentBlock:
    """Return a block of a prompt as one that a model takes."""
    if isinstance(block, TextContent | ImageContent | AudioContent):
        return block
    if isinstance(block, EmbeddedResource):
        return _resource_block(block.resource.uri, block.resource)
    return TextContent(text=f"See {block.uri}")


# --- completion ------------------------------------------------------------------------------------------------


async def completed(host: Host, line: str) -> str | None:
    """Return a line with its last name completed, as far as it is clear; print the names that fit if it is not.

    Returns None if the line ends with neither the name of a prompt nor a URI.
    """
    before, start = line[: line.rfind(" ") + 1], line[line.rfind(" ") + 1 :]
    if not start.startswith("@") and not (start.startswith("/") and not before):
        return None
    try:
        names = await (_references(host) if start.startswith("@") else _commands(host))
    except AccordError:
        return line
    fitting = [name for name in names if name.startswith(start) and name.isprintable()]
    if len(fitting) == 1:
        return f"{before}{fitting[0]} "
    common = _common_start(fitting)
    if len(common) > len(start):
        return before + common
    screen.print_prompt()
    for name in fitting[:_MAX_LISTED]:
        screen.print_prompt(f"  {one_line(name)}")
    return line


def _common_start(names: Sequence[str]) -> str:
    first, last = (min(names), max(names)) if names else ("", "")
    length = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    return first[:length]


async def _commands(host: Host) -> list[str]:
    own = [command.name for command in COMMANDS if command.name.startswith("/") and command.name.islower()]
    return [*own, *(f"/{prompt.name}" for prompt in await host.list_prompts())]


async def _references(host: Host) -> list[str]:
    return [f"@{resource.uri}" for resource in await host.list_resources()]


# --- lists -----------------------------------------------------------------------------------------------------


async def print_tools(host: Host) -> None:
    """Print the tools that the model may call."""
    tools = await host.list_tools()
    _print_rows([ColumnRow(tool.name, "", (tool.description or "").partition("\n")[0]) for tool in tools], "tools")


def print_servers(host: Host) -> None:
    """Print the state of each server."""
    servers = [
        ColumnRow(
            name,
            "",
            "; ".join(
                filter(
                    None,
                    (
                        status.state,
                        status.reason,
                        f"{status.unapproved} definitions wait for an approval" if status.unapproved else "",
                    ),
                )
            ),
        )
        for name, status in host.servers.items()
    ]
    _print_rows(servers, "servers")


async def print_help(host: Host) -> None:
    """Print the commands, and the prompts of the servers."""
    _print_rows(COMMANDS, "commands")
    prompts = await host.list_prompts()
    if prompts:
        screen.print_line("prompts:")
        _print_rows(
            [ColumnRow(f"/{each.name}{_arguments(each)}", "", each.description or "") for each in prompts], "prompts"
        )


def _arguments(prompt: Prompt) -> str:
    return "".join(f" {argument.name}" for argument in prompt.arguments or ())


def _print_rows(items: Sequence[ColumnRow], kind: str) -> None:
    for line in rows(items):
        screen.print_line(line)
    if not items:
        screen.print_line(f"  no {kind}")


COMMANDS = (
    ColumnRow("/help", "", "Show this list."),
    ColumnRow("/tools", "", "List the tools that the model may call."),
    ColumnRow("/servers", "", "List the servers, and why one is not available."),
    ColumnRow("/quit", "", "End the chat; so do Ctrl-D, and Ctrl-C twice."),
    ColumnRow("/NAME [KEY=VALUE]...", "", "Insert a prompt of a server; it is asked for the other arguments."),
    ColumnRow("@URI", "", "In a message: insert the text of a resource."),
)

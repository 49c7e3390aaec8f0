"""The tools and prompts of all servers under one name each: `server_tool`, as `Server.mount` names them.

A new server therefore changes no existing name. Changes to tools (`ToolChange`) apply to the server's own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from accord.errors import DeclarationError, InvalidParams
from accord.host.definitions import Definitions, prompt_of, tool_of
from accord.host.state import Pin
from accord.messages.base import JSONObject
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.server.compose.change import ChangedTool, ToolChange
from accord.server.compose.mount_names import MountNames


class CataloguedTool(msgspec.Struct, frozen=True):
    """A tool under its name in the catalogue."""

    server: str
    definition: Tool
    """The tool as the server defines it."""
    pin: Pin
    shown: Tool
    """The tool as the catalogue lists it."""
    change: ChangedTool | None = None

    def arguments(self, arguments: Mapping[str, Any]) -> JSONObject:
        """Return arguments under the server's names, with fixed values and defaults. Raises `InvalidArguments`."""
        return dict(arguments) if self.change is None else self.change.inner_arguments(arguments)


class CataloguedPrompt(msgspec.Struct, frozen=True):
    """A prompt under its name in the catalogue."""

    server: str
    name: str
    """The server's name of it."""
    pin: Pin
    shown: Prompt


Item = TypeVar("Item", CataloguedTool, CataloguedPrompt)


class ServerCatalogue:
    """The listed tools and prompts of one server. Definitions are decoded once."""

    def __init__(self, server: str, changes: Mapping[str, ToolChange]) -> None:
        self._server = server
        self._names = MountNames(server)
        self._changes = changes
        self._tools: dict[str, CataloguedTool] = {}
        """By the digest of the definition."""
        self.tools: dict[str, CataloguedTool] = {}
        self.prompts: dict[str, CataloguedPrompt] = {}
        self.errors: list[str] = []
        """Changes that do not fit their tool, which is left out."""

    def update(self, definitions: Definitions) -> None:
        """Take the listed definitions."""
        tools, self._tools, self.errors = self._tools, {}, []
        self.tools, self.prompts = {}, {}
        for pin in definitions.listed.values():
            if pin.kind == "tool":
                self._add_tool(pin, tools.get(pin.digest))
            elif pin.kind == "prompt":
                prompt = prompt_of(pin)
                shown = msgspec.structs.replace(prompt, name=self._names.name(prompt.name))
                self.prompts[shown.name] = CataloguedPrompt(self._server, prompt.name, pin, shown)

    def _add_tool(self, pin: Pin, known: CataloguedTool | None) -> None:
        try:
            tool = known or self._catalogued(pin)
        except DeclarationError as exc:
            self.errors.append(f"the change of the tool {pin.name!r} does not fit: {exc}")
            return
        self._tools[pin.digest] = tool
        change = self._changes.get(pin.name)
        if change is not None and change.hidden:
            return
        if tool.shown.name in self.tools:
            self.errors.append(f"two tools would both be named {tool.shown.name!r}; the first is listed")
            return
        self.tools[tool.shown.name] = tool

    def _catalogued(self, pin: Pin) -> CataloguedTool:
        definition = tool_of(pin)
        change = self._changes.get(pin.name)
        changed = None if change is None else ChangedTool(change, definition)
        shown = definition if changed is None else changed.define(definition)
        shown = msgspec.structs.replace(shown, name=self._names.name(shown.name))
        return CataloguedTool(self._server, definition, pin, shown, changed)


class HostCatalogue:
    """The catalogues of all servers, by the name of the server."""

    def __init__(self, servers: Mapping[str, ServerCatalogue]) -> None:
        self.servers: dict[str, ServerCatalogue] = dict(servers)

    def tools(self) -> list[CataloguedTool]:
        """Return the listed tools, in the order of the servers. Of two with one name, see `find_tool`."""
        return _first_approved(tool for server in self.servers.values() for tool in server.tools.values())

    def find_tool(self, name: str) -> CataloguedTool | None:
        """Return the tool of a name, or None. Of two, it is the one that was approved first, so that no server can take
        the name of a tool of another one.
        """
        found = [tool for server in self.servers.values() if (tool := server.tools.get(name)) is not None]
        return min(found, key=lambda tool: tool.pin.at, default=None)

    def prompts(self) -> list[Prompt]:
        """Return the listed prompts, in the order of the servers. Of two with one name, see `prompt`."""
        prompts = (prompt for server in self.servers.values() for prompt in server.prompts.values())
        return [prompt.shown for prompt in _first_approved(prompts)]

    def unknown_tool(self, name: str) -> InvalidParams:
        """Return the error for a name that no tool has."""
        return InvalidParams(f"unknown tool {name!r:.200}{_hint(name, self._tool_names())}")

    def prompt(self, name: str) -> CataloguedPrompt:
        """Return the prompt of a name; of two, as for tools, the one that was approved first. Raises
        `InvalidParams`.
        """
        found = [prompt for server in self.servers.values() if (prompt := server.prompts.get(name)) is not None]
        if not found:
            raise InvalidParams(f"unknown prompt {name!r:.200}")
        return min(found, key=lambda prompt: prompt.pin.at)

    def _tool_names(self) -> Iterable[str]:
        return (name for server in self.servers.values() for name in server.tools)

    def equal_names(self) -> list[str]:
        """Return the names that tools, or prompts, of two servers have, with their kind: `tool 'a_b_c'`, if the server
        `a_b` has `c`, and `a` has `b_c`.
        """
        prompts = (name for server in self.servers.values() for name in server.prompts)
        return [*_repeated("tool", self._tool_names()), *_repeated("prompt", prompts)]


def _repeated(kind: str, names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [f"{kind} {name!r}" for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def _first_approved(items: Iterable[Item]) -> list[Item]:
    """Return the tools or prompts; of two with one name, the one that was approved first."""
    found: dict[str, Item] = {}
    for item in items:
        other = found.get(item.shown.name)
        if other is None or item.pin.at < other.pin.at:
            found[item.shown.name] = item
    return list(found.values())


def _hint(name: str, names: Iterable[str]) -> str:
    """Return the beginning of a hint for a name without its server."""
    ends = [each for each in names if each.endswith(f"_{name}")]
    return f"; there is {', '.join(ends[:3])}" if ends and name else ""

"""The capabilities of clients and servers. An open set: unknown capabilities are valid."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from accord.messages.base import JSONObject, Model, in_use, lives, open_ended, since

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
"""The name of the extension that has tasks from 2026-07-28 on."""

TOOL_TASKS = "tasks.requests.tools.call"
"""The capability of a server whose tools can run as tasks (2025-11-25)."""


class ListCapability(Model):
    """Capability of a list (`prompts`, `tools`), and whether the server notifies of its changes."""

    list_changed: bool | None = None


class ResourcesCapability(Model):
    """`resources`: with optional notifications of updates of single resources, and of list changes."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class RootsCapability(Model):
    """`roots`: with optional notifications of changes."""

    list_changed: Annotated[bool | None, since("2024-11-05", until="2026-07-28")] = None


@open_ended
class SamplingCapability(Model):
    """`sampling`: with optional context of servers, and optional tools."""

    context: Annotated[JSONObject | None, since("2025-11-25")] = None
    tools: Annotated[JSONObject | None, since("2025-11-25")] = None


@open_ended
@lives(since="2025-06-18")
class ElicitationCapability(Model):
    """`elicitation`: by form, by URL; an empty object means by form only."""

    form: Annotated[JSONObject | None, since("2025-11-25")] = None
    url: Annotated[JSONObject | None, since("2025-11-25")] = None


@lives(since="2025-11-25", until="2026-07-28")
class ToolTasks(Model):
    """Tool requests that a server can run as tasks."""

    call: JSONObject | None = None


@lives(since="2025-11-25", until="2026-07-28")
class SamplingTasks(Model):
    """Sampling requests that a client can run as tasks."""

    create_message: JSONObject | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ElicitationTasks(Model):
    """Elicitation requests that a client can run as tasks."""

    create: JSONObject | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ServerTaskRequests(Model):
    """The requests that a server can run as tasks."""

    tools: ToolTasks | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ClientTaskRequests(Model):
    """The requests that a client can run as tasks."""

    sampling: SamplingTasks | None = None
    elicitation: ElicitationTasks | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ServerTasksCapability(Model):
    """`tasks` of a server."""

    list: JSONObject | None = None
    cancel: JSONObject | None = None
    requests: ServerTaskRequests | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ClientTasksCapability(Model):
    """`tasks` of a client."""

    list: JSONObject | None = None
    cancel: JSONObject | None = None
    requests: ClientTaskRequests | None = None


@open_ended
class ClientCapabilities(Model):
    """The capabilities that a client offers to a server."""

    experimental: dict[str, JSONObject] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: Annotated[ElicitationCapability | None, since("2025-06-18")] = None
    tasks: Annotated[ClientTasksCapability | None, since("2025-11-25", until="2026-07-28")] = None
    extensions: Annotated[dict[str, JSONObject] | None, since("2026-07-28"), in_use()] = None


@open_ended
class ServerCapabilities(Model):
    """The capabilities that a server offers to a client."""

    experimental: dict[str, JSONObject] | None = None
    logging: JSONObject | None = None
    completions: Annotated[JSONObject | None, since("2025-03-26")] = None
    prompts: ListCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListCapability | None = None
    tasks: Annotated[ServerTasksCapability | None, since("2025-11-25", until="2026-07-28")] = None
    extensions: Annotated[dict[str, JSONObject] | None, since("2026-07-28"), in_use()] = None


def declares(capabilities: ClientCapabilities | ServerCapabilities, path: str) -> bool:
    """Return whether the capability `path`, such as `resources.subscribe`, is declared.

    An empty `elicitation` declares `elicitation.form`. `extensions:com.example/x` and `experimental:NAME` are entries
    of open sets.
    """
    open_set, colon, entry = path.partition(":")
    if colon:
        return entry in (getattr(capabilities, open_set, None) or {})
    value: object = capabilities
    for name in path.split("."):
        if name == "form" and isinstance(value, ElicitationCapability) and value.url is None:
            return True
        value = getattr(value, name, None)
    return value is not None and value is not False


Capabilities = TypeVar("Capabilities", ClientCapabilities, ServerCapabilities)

SESSION_CAPABILITIES = frozenset(("logging", "resources.subscribe"))
"""Capabilities of a server whose requests change the session."""


def without_sessions(capabilities: ServerCapabilities) -> ServerCapabilities:
    """Return the capabilities of a server without those that need a session."""
    return msgspec.structs.replace(
        capabilities,
        logging=None,
        tasks=None,
        tools=None if capabilities.tools is None else ListCapability(),
        prompts=None if capabilities.prompts is None else ListCapability(),
        resources=None if capabilities.resources is None else ResourcesCapability(),
    )


def for_handshake(capabilities: Capabilities) -> Capabilities:
    """Return the capabilities of a side for `initialize`: tasks are a capability of the core there, no extension."""
    if TASKS_EXTENSION not in (capabilities.extensions or {}):
        return capabilities
    rest = {name: settings for name, settings in (capabilities.extensions or {}).items() if name != TASKS_EXTENSION}
    return msgspec.structs.replace(capabilities, extensions=rest or None)


def for_discover(capabilities: ServerCapabilities) -> ServerCapabilities:
    """Return the capabilities of a server for `server/discover`, where tasks are an extension only."""
    return msgspec.structs.replace(capabilities, tasks=None)


def required_capabilities(path: str) -> JSONObject:
    """Return the capabilities that a client must declare for `path`: `elicitation.url` is `{"elicitation": {"url":
    {}}}`."""
    open_set, colon, entry = path.partition(":")
    names = [open_set, entry] if colon else [_to_camel_case(name) for name in path.split(".")]
    declared: JSONObject = {}
    for name in reversed(names):
        declared = {name: declared}
    return declared


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)

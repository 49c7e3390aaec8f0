"""What a client or a server says it can do. An open set: unknown capabilities are no mistake."""

from __future__ import annotations

from typing import Annotated

import msgspec

from accord.messages.base import JSONObject, Model, lives, open_ended, since


class ListCapability(Model):
    """A list that can be asked for (`prompts`, `tools`), and perhaps tells when it changes."""

    list_changed: bool | None = None


class ResourcesCapability(Model):
    """`resources`: perhaps with updates of single resources, and of the list."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class RootsCapability(Model):
    """`roots`: perhaps the client tells when they change."""

    list_changed: Annotated[bool | None, since("2024-11-05", until="2026-07-28")] = None


@open_ended
class SamplingCapability(Model):
    """`sampling`: perhaps with context of servers, and with tools."""

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
    """Which requests a server can run as tasks."""

    tools: ToolTasks | None = None


@lives(since="2025-11-25", until="2026-07-28")
class ClientTaskRequests(Model):
    """Which requests a client can run as tasks."""

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
    """What a client can do for a server."""

    experimental: dict[str, JSONObject] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: Annotated[ElicitationCapability | None, since("2025-06-18")] = None
    tasks: Annotated[ClientTasksCapability | None, since("2025-11-25", until="2026-07-28")] = None
    extensions: Annotated[dict[str, JSONObject] | None, since("2026-07-28")] = None


@open_ended
class ServerCapabilities(Model):
    """What a server can do for a client."""

    experimental: dict[str, JSONObject] | None = None
    logging: JSONObject | None = None
    completions: Annotated[JSONObject | None, since("2025-03-26")] = None
    prompts: ListCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListCapability | None = None
    tasks: Annotated[ServerTasksCapability | None, since("2025-11-25", until="2026-07-28")] = None
    extensions: Annotated[dict[str, JSONObject] | None, since("2026-07-28")] = None


def declares(capabilities: ClientCapabilities | ServerCapabilities, path: str) -> bool:
    """Whether `path`, such as `resources.subscribe`, is declared. An empty `elicitation` means by form.

    `extensions:com.example/x` and `experimental:NAME` are entries of open sets.
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


SESSION_CAPABILITIES = frozenset(("logging", "resources.subscribe"))
"""Capabilities of a server whose requests change what it remembers of a client."""


def without_sessions(capabilities: ServerCapabilities) -> ServerCapabilities:
    """What is left of the capabilities of a server that remembers nothing between two requests."""
    return msgspec.structs.replace(
        capabilities,
        logging=None,
        tasks=None,
        tools=None if capabilities.tools is None else ListCapability(),
        prompts=None if capabilities.prompts is None else ListCapability(),
        resources=None if capabilities.resources is None else ResourcesCapability(),
    )


def required_capabilities(path: str) -> JSONObject:
    """What a client would have to declare to have `path`: `elicitation.url` is `{"elicitation": {"url": {}}}`."""
    open_set, colon, entry = path.partition(":")
    names = [open_set, entry] if colon else [_to_camel_case(name) for name in path.split(".")]
    declared: JSONObject = {}
    for name in reversed(names):
        declared = {name: declared}
    return declared


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)

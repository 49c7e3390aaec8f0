"""Every rule, in the order in which they are tried and reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from accord.check.rule import Rule

AREAS: tuple[str, ...] = (
    "shapes",
    "envelope",
    "ids",
    "errors",
    "codes",
    "meta",
    "lifecycle",
    "capabilities",
    "discover",
    "batch",
    "ping",
    "cancel",
    "progress",
    "schemas",
    "icons",
    "tools",
    "tool_calls",
    "tool_results",
    "resources",
    "resource_reads",
    "prompts",
    "completion",
    "logging",
    "pagination",
    "caching",
    "rough",
    "asking",
    "asking_forms",
    "asking_models",
    "asking_answers",
    "rounds",
    "subscriptions",
    "tasks",
    "task_states",
    "task_results",
    "task_requests",
    "ext_tasks",
    "ext_task_states",
    "ext_task_ids",
    "ext_task_requests",
    "ext_task_news",
    "stdio",
    "stdio_weather",
    "sse",
    "http_messages",
    "http_sessions",
    "http_guard",
    "http_versions",
    "http_headers",
    "http_streams",
    "http_weather",
    "http_rough",
    "generated",
)
"""Modules of this folder that have rules about servers."""

CLIENT_AREAS: tuple[str, ...] = (
    "envelope",
    "shapes",
    "opening",
    "offered",
    "meta",
    "versions",
    "http",
    "sessions",
    "streams",
    "sse",
    "headers",
    "stdio",
    "answers",
    "declared",
    "asked",
    "rounds",
    "round_forms",
    "pages",
    "changes",
    "cancel",
    "fitting",
    "robust",
    "schemas",
    "caching",
    "ext_tasks",
)
"""Modules of the folder `clients` in it, which have those about clients."""


@cache
def server_rules() -> tuple[Rule, ...]:
    """Return the rules about servers."""
    return tuple(_rules(__name__, AREAS))


@cache
def client_rules() -> tuple[Rule, ...]:
    """Return the rules about clients."""
    return tuple(_rules(f"{__name__}.clients", CLIENT_AREAS))


def _rules(folder: str, areas: tuple[str, ...]) -> Iterator[Rule]:
    for area in areas:
        module = import_module(f"{folder}.{area}")
        yield from (value for value in vars(module).values() if isinstance(value, Rule) and value.cases)

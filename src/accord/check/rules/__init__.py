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
    "client_envelope",
    "client_shapes",
    "client_opening",
    "client_offered",
    "client_meta",
    "client_versions",
    "client_http",
    "client_sessions",
    "client_streams",
    "client_sse",
    "client_headers",
    "client_stdio",
    "client_answers",
    "client_declared",
    "client_asked",
    "client_rounds",
    "client_round_forms",
    "client_pages",
    "client_changes",
    "client_cancel",
    "client_fitting",
    "client_robust",
    "client_schemas",
    "client_caching",
    "client_ext_tasks",
)
"""The same about clients."""


@cache
def server_rules() -> tuple[Rule, ...]:
    """Those about servers."""
    return tuple(_rules(AREAS))


@cache
def client_rules() -> tuple[Rule, ...]:
    """Those about clients."""
    return tuple(_rules(CLIENT_AREAS))


def _rules(areas: tuple[str, ...]) -> Iterator[Rule]:
    for area in areas:
        module = import_module(f"{__name__}.{area}")
        yield from (value for value in vars(module).values() if isinstance(value, Rule) and value.cases)

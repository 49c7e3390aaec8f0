"""All rules, in the order in which they run and are reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from accord.check.engine.rule import Rule

AREAS: tuple[str, ...] = (
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
    "cancellation",
    "progress",
    "schemas",
    "tools",
    "tool_calls",
    "resources",
    "resource_reads",
    "prompts",
    "completion",
    "logging",
    "pagination",
    "caching",
    "robustness",
    "input_requests",
    "elicitation",
    "multi_round_trip",
    "subscriptions",
    "tasks",
    "task_states",
    "task_results",
    "ext_tasks",
    "ext_task_states",
    "ext_task_ids",
    "ext_task_requests",
    "ext_task_notifications",
    "apps",
    "skills",
    "stdio",
    "stdio_faults",
    "sse",
    "http_messages",
    "http_sessions",
    "http_versions",
    "http_headers",
    "http_streams",
    "http_framing",
    "authorization",
    "authorization_scopes",
    "authorization_metadata",
    "tokens",
    "principals",
    "principal_requests",
    "generated",
)
"""Modules of this folder with rules about servers."""

CLIENT_AREAS: tuple[str, ...] = (
    "envelope",
    "initialization",
    "meta",
    "version_negotiation",
    "http",
    "streams",
    "sse",
    "headers",
    "stdio",
    "responses",
    "client_features",
    "url_elicitation",
    "multi_round_trip",
    "pagination",
    "notifications",
    "cancellation",
    "consistency",
    "robustness",
    "schemas",
    "caching",
    "ext_tasks",
    "auth_requests",
    "auth_discovery",
    "auth_metadata",
    "auth_registration",
    "auth_scopes",
    "auth_responses",
    "auth_tokens",
)
"""Modules of the folder `clients` with rules about clients."""

AUTHORIZATION_SERVER_AREAS: tuple[str, ...] = ("metadata", "registration", "authorization", "tokens")
"""Modules of the folder `authorization_servers` with rules about authorization servers."""


@cache
def server_rules() -> tuple[Rule, ...]:
    """Return the rules about servers."""
    return tuple(_rules(__name__, AREAS))


@cache
def client_rules() -> tuple[Rule, ...]:
    """Return the rules about clients."""
    return tuple(_rules(f"{__name__}.clients", CLIENT_AREAS))


@cache
def authorization_server_rules() -> tuple[Rule, ...]:
    """Return the rules about authorization servers."""
    return tuple(_rules(f"{__name__}.authorization_servers", AUTHORIZATION_SERVER_AREAS))


def rules_by_role() -> dict[str, tuple[Rule, ...]]:
    """Return all rules, by whom they are about."""
    return {
        "servers": server_rules(),
        "clients": client_rules(),
        "authorization servers": authorization_server_rules(),
    }


def all_rules() -> tuple[Rule, ...]:
    """Return all rules."""
    return tuple(rule for rules in rules_by_role().values() for rule in rules)


def _rules(folder: str, areas: tuple[str, ...]) -> Iterator[Rule]:
    for area in areas:
        module = import_module(f"{folder}.{area}")
        yield from (value for value in vars(module).values() if isinstance(value, Rule) and value.cases)

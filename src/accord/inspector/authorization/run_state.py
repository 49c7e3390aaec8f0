"""The state of a run, as the page shows it: without secrets."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from accord.inspector.authorization.evidence import StepState
from accord.inspector.authorization.settings import RunSettings
from accord.inspector.authorization.token_state import TokenState

RunActivity: TypeAlias = Literal["idle", "running", "waiting"]


class UserPage(msgspec.Struct, frozen=True, rename="camel"):
    """The page that the user opens to log in: https, or http on loopback."""

    url: str
    """The whole URL."""
    user_code: str = ""
    """The code to enter there, for a login on another device."""


class StepSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the list of steps."""

    step: str
    state: StepState
    text: str
    cure: str


class RunState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The state of a run that the page shows."""

    url: str
    """The URL of the MCP server."""
    steps: list[StepSummary]
    actions: list[StepSummary]
    """What was done with tokens: refresh, revocation."""
    next_step: str | None
    activity: RunActivity
    is_waiting: bool
    """Whether a step waits for the user: for the callback, or for another device."""
    is_login_needed: bool
    redirect_uri: str | None
    settings: RunSettings
    """Without the secret."""
    has_secret: bool
    tokens: TokenState | None
    """Of the run."""
    stored_tokens: TokenState | None
    """Of the stored login."""
    is_saved: bool
    """Whether the stored login is that of the run."""
    needed_scopes: list[str]
    """The scopes that the last refusal with status 403 names."""

"""All commands by name: one line for each part of the inspector."""

from __future__ import annotations

from collections.abc import Mapping

from accord.inspector import (
    app_commands,
    call_commands,
    catalogue,
    conformance,
    diagnosis,
    found_servers,
    model_view,
    notification_commands,
    question_commands,
    raw_commands,
    server_commands,
)
from accord.inspector.authorization import commands as authorization_commands
from accord.inspector.commands import PageCommand
from accord.inspector.forms import commands as forms
from accord.inspector.traffic import commands as traffic, session_commands

COMMANDS: Mapping[str, PageCommand] = {
    **call_commands.COMMANDS,
    **catalogue.COMMANDS,
    **conformance.COMMANDS,
    **diagnosis.COMMANDS,
    **found_servers.COMMANDS,
    **model_view.COMMANDS,
    **notification_commands.COMMANDS,
    **question_commands.COMMANDS,
    **raw_commands.COMMANDS,
    **server_commands.COMMANDS,
    **forms.COMMANDS,
    **app_commands.COMMANDS,
    **authorization_commands.COMMANDS,
    **traffic.COMMANDS,
    **session_commands.COMMANDS,
}
"""The commands of the page."""

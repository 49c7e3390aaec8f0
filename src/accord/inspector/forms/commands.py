"""The commands of forms. The page sends the schema with each, so nothing is stored between them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from accord.inspector.commands import CommandParams, PageCommand
from accord.inspector.forms.check import ValueCheck, check_value
from accord.inspector.forms.describe import describe_form
from accord.inspector.forms.description import FormDescription
from accord.inspector.workspace import Workspace


class DescribeFormParams(CommandParams, frozen=True):
    """`references`: the place to describe, as `expand` of a former description has them; the whole schema without."""

    schema_json: str
    references: tuple[str, ...] = ()


class CheckValueParams(CommandParams, frozen=True):
    """A value and its schema."""

    schema_json: str
    value_json: str


async def describe(workspace: Workspace, params: DescribeFormParams) -> FormDescription:
    """Describe the form of a JSON Schema."""
    return await asyncio.to_thread(describe_form, params.schema_json, params.references)


async def check(workspace: Workspace, params: CheckValueParams) -> ValueCheck:
    """Check a value against a JSON Schema."""
    return await asyncio.to_thread(check_value, params.schema_json, params.value_json)


COMMANDS: Mapping[str, PageCommand] = {
    "forms/describe": PageCommand(DescribeFormParams, describe),
    "forms/check": PageCommand(CheckValueParams, check),
}

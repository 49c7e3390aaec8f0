"""The steps of the protocol: revision, lists, schemas."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from accord.client.authorization import authorization_error
from accord.client.client import Client
from accord.client.target import Remote
from accord.errors import AccordError, SchemaError
from accord.host.doctor.configuration_steps import FILE_STEPS, PROGRAM_STEPS, TARGET_STEPS
from accord.host.doctor.diagnosis import Step, StepResult, StepTable
from accord.host.doctor.http_steps import HTTP_STEPS
from accord.host.doctor.known_facts import KnownFacts
from accord.host.doctor.network_steps import NETWORK_STEPS
from accord.host.doctor.process_steps import START_STEPS
from accord.messages.revision import REVISIONS
from accord.messages.tools import Tool
from accord.schema.validate import compile

_MAX_TOOLS = 1_000
_MAX_SCHEMA_ERRORS = 10


# --- protocol revision -----------------------------------------------------------------------------------------------


async def check_revision(facts: KnownFacts) -> StepResult:
    """Agree with the server on a revision of the protocol."""
    attempt = await facts.connected()
    if attempt.error is not None:
        noise = [f"stdout, not a message: {line}" for line in attempt.noise]
        return StepResult("protocol revision", "failed", [str(attempt.error), *noise], _revision_remedy(facts))
    info, revision = attempt.client.server_info, attempt.client.revision
    name = f"{info.name} {info.version}" if info is not None else "a server without a name"
    evidence = [f"{name}, revision {revision}"]
    if revision == REVISIONS[0]:
        return StepResult("protocol revision", "warning", evidence, "this is the oldest revision: update the server")
    return StepResult("protocol revision", "passed", evidence)


def _revision_remedy(facts: KnownFacts) -> str:
    attempt = facts.attempt
    assert attempt is not None, "the connection was tried"
    if attempt.timed_out:
        if isinstance(facts.target, Remote):
            return "the server begins an answer and does not end it: look at its log, and at proxies before it"
        if attempt.noise:
            return "it writes to stdout what are no messages: is it an MCP server, and over stdio?"
        return "it runs and does not answer: is it an MCP server, and over stdio? A slow start needs a longer --timeout"
    if "revision" in str(attempt.error):
        return f"update the server: it must support one of {', '.join(REVISIONS)}"
    return "is it an MCP server? accord check TARGET tests it in detail"


# --- lists -----------------------------------------------------------------------------------------------------------


async def check_lists(facts: KnownFacts) -> StepResult:
    """Read all lists that the server declares."""
    client = (await facts.connected()).client
    declared = list(_declared(client))
    evidence: list[str] = []
    for name, read in declared:
        try:
            items = await read(fresh=True)
        except AccordError as exc:
            return StepResult("lists", "failed", [*evidence, f"{name}: {exc}"], _list_remedy(exc, facts))
        if name == "tools":
            facts.tools = items
        evidence.append(f"{name}: {len(items):,}")
    if not declared:
        return StepResult(
            "lists", "warning", ["the server declares no tools, resources or prompts"], "is that intended?"
        )
    return StepResult("lists", "passed", evidence)


def _list_remedy(error: AccordError, facts: KnownFacts) -> str:
    if authorization_error(error) is not None:
        return f"this list needs a login: accord auth explain {facts.target}"
    return "the server declares this list, and fails to return it: look at its log"


def _declared(client: Client) -> Iterator[tuple[str, Any]]:
    capabilities = client.server_capabilities
    if capabilities is None:
        return
    if capabilities.tools is not None:
        yield "tools", client.list_tools
    if capabilities.resources is not None:
        yield "resources", client.list_resources
        yield "resource templates", client.list_resource_templates
    if capabilities.prompts is not None:
        yield "prompts", client.list_prompts


# --- schemas ---------------------------------------------------------------------------------------------------------


async def check_schemas(facts: KnownFacts) -> StepResult:
    """Compile the schemas of the tools, as many as there is time for."""
    client, deadline = (await facts.connected()).client, time.monotonic() + facts.subject.seconds
    errors: list[str] = []
    checked = 0
    for tool in facts.tools[:_MAX_TOOLS]:
        if time.monotonic() >= deadline:
            break
        errors += _schema_errors(tool, client)
        checked += 1
    if errors:
        shown = errors[:_MAX_SCHEMA_ERRORS]
        more = [f"… and {len(errors) - len(shown):,} more"] if len(errors) > len(shown) else []
        remedy = "correct these schemas in the server: models get wrong arguments, and hosts refuse such tools"
        return StepResult("schemas", "failed", [*shown, *more], remedy)
    evidence = [f"tools with valid schemas: {checked:,}"]
    if checked < len(facts.tools):
        remedy = "so many tools, or so large schemas, are slow in every client: reduce them"
        return StepResult("schemas", "warning", [*evidence, f"not checked: {len(facts.tools) - checked:,}"], remedy)
    return StepResult("schemas", "passed", evidence)


def _schema_errors(tool: Tool, client: Client) -> Iterator[str]:
    schemas = {"inputSchema": tool.input_schema, "outputSchema": tool.output_schema}
    for name, schema in schemas.items():
        if schema is None:
            continue
        try:
            compile(schema, client.limits)
        except SchemaError as exc:
            yield f"{tool.name!r:.100} {name}: {exc}"
    if tool.input_schema.get("type") != "object":
        yield f'{tool.name!r:.100} inputSchema: its "type" must be "object"'


PROTOCOL_STEPS = (
    Step("protocol revision", check_revision),
    Step("lists", check_lists),
    Step("schemas", check_schemas),
)

STEPS = StepTable(
    file=FILE_STEPS,
    target=TARGET_STEPS,
    program=(*PROGRAM_STEPS, *START_STEPS),
    url=(*NETWORK_STEPS, *HTTP_STEPS),
    protocol=PROTOCOL_STEPS,
)
"""All steps."""

"""The client that the official suite is run against: it plays the scenario that the environment names.

    MCP_CONFORMANCE_SCENARIO=tools_call python tests/conformance/client.py http://127.0.0.1:3000/mcp

Nothing says which revision the server speaks: the client finds that out from the bare URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from accord import Client, ElicitParams
from accord.auth.credential_store import CredentialStore
from accord.auth.oauth import OAuth
from accord.auth.program_grants import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from accord.errors import SkillChanged
from accord.schema.forms import defaults

Play = Callable[[Client], Awaitable[None]]

SCENARIOS: dict[str, Play] = {}
"""What there is to play, by the suite's name."""

SAMPLE = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
"""A value of each type, for a server that does not mind which."""


def scenario(*names: str) -> Callable[[Play], Play]:
    """Make a function what is played in the scenarios of these names."""

    def note(play: Play) -> Play:
        SCENARIOS.update(dict.fromkeys(names, play))
        return play

    return note


@scenario("initialize", "request-metadata")
async def say_hello(client: Client) -> None:
    """A server that says it has nothing: a client opens, and sees that it is there."""
    await client.ping()


@scenario("json-schema-ref-no-deref")
async def list_tools(client: Client) -> None:
    """Where a schema refers to another host, nobody goes there."""
    await client.list_tools()


@scenario("tools_call")
async def call(client: Client) -> None:
    """Numbers arrive as numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


@scenario("sse-retry")
async def reconnect(client: Client) -> None:
    """The stream of a call ends before its answer, which comes on another."""
    await client.list_tools()
    await client.call_tool("test_reconnection")


@scenario("elicitation-sep1034-client-defaults")
async def be_asked(client: Client) -> None:
    """A form comes back with its defaults."""
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


@scenario("http-invalid-tool-headers")
async def call_all(client: Client) -> None:
    """Tools that a server declares wrongly are not among them."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, required(tool.input_schema))


@scenario("http-standard-headers")
async def use_all(client: Client) -> None:
    """One request of every kind that says in its headers what it is about."""
    await call_all(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name, {each.name: "x" for each in prompt.arguments or () if each.required})


@scenario("http-custom-headers")
async def mirror(client: Client) -> None:
    """The calls that the suite wants, to the letter."""
    await client.list_tools()
    for wanted in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(wanted["name"], wanted["arguments"])


@scenario("sep-2322-client-request-state")
async def carry_state(client: Client) -> None:
    """Calls that ask, with a state and without, and one that does not."""
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


@scenario("json-schema-2020-12-preservation")
async def echo_schema(client: Client) -> None:
    """A schema goes back as it came."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


@scenario("sep-2640-client-no-prefetch")
async def list_skills(client: Client) -> None:
    """What is listed is not read."""
    assert await client.list_skills()


@scenario("sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter")
async def load_skill(client: Client) -> None:
    """A skill that is not what its entry says is not used."""
    (skill,) = await client.list_skills()
    try:
        await client.read_skill_file(await client.load_skill(skill), "references/FORMS.md")
    except SkillChanged as exc:
        print(exc, file=sys.stderr)


def required(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a schema, where these are simple."""
    properties = schema.get("properties", {})
    return {name: SAMPLE[properties[name]["type"]] for name in schema.get("required", ())}


def person(question: ElicitParams) -> dict[str, Any]:
    """Somebody who leaves a form as it is."""
    return defaults(question.requested_schema or {})


CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
"""The client ID metadata document that the suite's authorization server knows; it is never fetched."""


async def call_first_tool(client: Client) -> None:
    """Use the server after a login, which happens when it refuses a request."""
    tools = await client.list_tools()
    await client.call_tool(tools[0].name)


async def visit(url: str) -> str:
    """Return the callback to which the suite's authorization server redirects at once: there is no user."""
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as response:
        return response.headers["Location"]


def login(scenario: str) -> OAuth | ClientCredentials | EnterpriseManaged | WorkloadIdentity:
    """Return the login of a scenario; the suite's context may have a client ID."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if scenario == "auth/client-credentials-jwt":
        algorithm = context.get("signing_algorithm", "ES256")
        return ClientCredentials(context["client_id"], key=context["private_key_pem"], algorithm=algorithm)
    if scenario == "auth/client-credentials-basic":
        return ClientCredentials(context["client_id"], secret=context["client_secret"])
    if scenario == "auth/wif-jwt-bearer":
        return WorkloadIdentity(context["client_id"], context["valid_jwt"])
    if scenario == "auth/enterprise-managed-authorization":
        return EnterpriseManaged(
            context["client_id"],
            secret=context["client_secret"],
            idp_token_endpoint=context["idp_token_endpoint"],
            idp_client_id=context["idp_client_id"],
            id_token=context["idp_id_token"],
        )
    return OAuth(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_metadata_url=CLIENT_METADATA,
        authorize=visit,
        store=CredentialStore(":memory:"),
    )


async def main(url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    needs_login = scenario.startswith("auth/")
    play = call_first_tool if needs_login else SCENARIOS[scenario]
    auth = login(scenario) if needs_login else None
    async with Client(
        url, auth=auth, elicitation=person, sampling=lambda request: "words", roots=[], timeout=20
    ) as client:
        await play(client)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))

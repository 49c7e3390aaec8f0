"""Ten thousand operations of one document are declared in a moment; what each takes is read when it is asked for."""

from __future__ import annotations

from accord import Client, Server

from tests.measure import assert_linear, costs_at_most
from tests.server.openapi.echo import JSON, answering, body, document, parameter

MODELS = 200


def model(number: int) -> JSON:
    following = {"$ref": f"#/components/schemas/Model{(number + 1) % MODELS}"}
    properties: JSON = {"id": {"type": "integer"}, "name": {"type": "string", "nullable": True}}
    return {"type": "object", "properties": {**properties, **({"next": following} if number % 5 else {})}}


def large(operations: int) -> JSON:
    """A document of so many operations, two for each path."""
    paths = {}
    for number in range(operations // 2):
        reference = {"$ref": f"#/components/schemas/Model{number % MODELS}"}
        paths[f"/things{number}/{{id}}"] = {
            "parameters": [parameter("id", "path", {"type": "integer"})],
            "get": {**answering(reference), "operationId": f"get_{number}", "tags": ["t"], "summary": "Get one"},
            "put": {**answering(reference), **body(reference), "operationId": f"put_{number}"},
        }
    components = {"schemas": {f"Model{number}": model(number) for number in range(MODELS)}}
    return document(paths, version="3.0.3", components=components)


def declare(operations: int) -> None:
    imported = Server("large").add_openapi(large(operations), base_url="https://api.test")
    assert len(imported.tools) == operations


def test_the_time_grows_with_the_operations_and_no_faster() -> None:
    assert_linear(declare, 1_000)


async def test_what_each_of_them_takes_is_read_in_a_moment_too() -> None:
    server = Server("large")
    server.add_openapi(large(1_000), base_url="https://api.test")
    async with Client(server) as client:
        with costs_at_most(600):
            tools = await client.list_tools()
    assert len(tools) == 1_000
    assert tools[1].input_schema["properties"]["name"] == {"type": ["string", "null"]}

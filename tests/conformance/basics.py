"""Scenarios of what a server has: opening, tools, resources, prompts, completion, logging."""

from __future__ import annotations

import base64
from typing import Any

from accord.messages.revision import is_in_revision

from tests.conformance.peer import KEY, Peer
from tests.conformance.scenario import scenario
from tests.conformance.server import SCHEMA

JSONObject = dict[str, Any]


@scenario("server-initialize", until="2026-07-28", opens=False)
async def initialize(peer: Peer) -> None:
    """The handshake negotiates the requested revision, and names the server."""
    await peer.open()
    assert peer.opened["protocolVersion"] == peer.revision
    assert peer.opened["serverInfo"] == {"name": "everything", "version": "1.0.0"}
    assert set(peer.opened["capabilities"]) >= {"tools", "resources", "prompts", "logging"}


@scenario("ping", until="2026-07-28")
async def ping(peer: Peer) -> None:
    """The result of a ping is empty."""
    assert await peer.result("ping") == {}


@scenario("logging-set-level", until="2026-07-28")
async def set_level(peer: Peer) -> None:
    """A valid level has an empty result; an unknown level is an error."""
    assert await peer.result("logging/setLevel", {"level": "info"}) == {}
    assert (await peer.refused("logging/setLevel", {"level": "loud"}))["code"] == -32602


@scenario("tools-call-with-logging")
async def logging(peer: Peer) -> None:
    """At level debug, all log messages of the tool arrive before its result."""
    params: JSONObject = {"name": "test_tool_with_logging", "arguments": {}}
    if peer.rules.handshake:
        await peer.result("logging/setLevel", {"level": "debug"})
    else:
        params["_meta"] = {f"{KEY}logLevel": "debug"}
    result = await peer.result("tools/call", params)
    assert text_of(result) == "Tool with logging executed successfully"
    logged = [told["params"] for told in peer.told if told["method"] == "notifications/message"]
    assert [(each["level"], each["data"]) for each in logged] == [
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ]


@scenario("completion-complete")
async def complete(peer: Peer) -> None:
    """An argument of a prompt is completed from the text typed so far."""
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    result = await peer.result("completion/complete", {"ref": ref, "argument": {"name": "arg1", "value": "test"}})
    assert result["completion"]["values"] == ["test1", "test2"]


# --- tools -----------------------------------------------------------------------------------------------------------


@scenario("tools-list")
async def tools_list(peer: Peer) -> None:
    """Every tool has a name, a description and a schema; the list is the same for each request."""
    tools = (await peer.result("tools/list"))["tools"]
    assert tools[0]["name"] == "test_simple_text"
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)
    assert len({tool["name"] for tool in tools}) == len(tools)
    assert (await peer.result("tools/list"))["tools"] == tools


@scenario("json-schema-2020-12")
async def json_schema(peer: Peer) -> None:
    """A schema is listed unchanged, including its anchors and conditions."""
    tools = {tool["name"]: tool for tool in (await peer.result("tools/list"))["tools"]}
    assert tools["json_schema_2020_12_tool"]["inputSchema"] == SCHEMA


@scenario("tools-call-simple-text")
async def simple_text(peer: Peer) -> None:
    """A tool without parameters is called without arguments."""
    result = await peer.result("tools/call", {"name": "test_simple_text"})
    assert result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]


@scenario("tools-call-image")
async def image(peer: Peer) -> None:
    """An image, in base64."""
    (block,) = (await peer.call("test_image_content"))["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(block["data"], validate=True).startswith(b"\x89PNG")


@scenario("tools-call-audio")
async def audio(peer: Peer) -> None:
    """Audio, in base64; in revisions without audio, the same bytes as a resource."""
    (block,) = (await peer.call("test_audio_content"))["content"]
    if block["type"] == "resource":
        assert peer.revision == "2024-11-05"
        block = {"mimeType": block["resource"]["mimeType"], "data": block["resource"]["blob"]}
    assert block["mimeType"] == "audio/wav"
    assert base64.b64decode(block["data"], validate=True).startswith(b"RIFF")


@scenario("tools-call-embedded-resource")
async def embedded_resource(peer: Peer) -> None:
    """A result with an embedded resource."""
    (block,) = (await peer.call("test_embedded_resource"))["content"]
    assert block["type"] == "resource"
    assert block["resource"] == {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }


@scenario("tools-call-mixed-content")
async def mixed_content(peer: Peer) -> None:
    """Several kinds of content in one result, in order; in revisions without resource links, a link is text."""
    content = (await peer.call("test_multiple_content_types"))["content"]
    link = "resource_link" if is_in_revision(peer.revision, "2025-06-18", None) else "text"
    assert [block["type"] for block in content] == ["text", "image", "resource", link]


@scenario("tools-call-error")
async def error(peer: Peer) -> None:
    """A failed tool returns a tool error, not a protocol error."""
    result = await peer.call("test_error_handling")
    assert result["isError"] is True
    assert text_of(result) == "This tool intentionally returns an error for testing"


@scenario("tools-call-with-progress")
async def progress(peer: Peer) -> None:
    """Three progress notifications with the token of the call, before its result."""
    result = await peer.call("test_tool_with_progress", _meta={"progressToken": "progress-test-1"})
    steps = [told["params"] for told in peer.told if told["method"] == "notifications/progress"]
    assert [(step["progressToken"], step["progress"], step["total"]) for step in steps] == [
        ("progress-test-1", 0, 100),
        ("progress-test-1", 50, 100),
        ("progress-test-1", 100, 100),
    ]
    assert text_of(result) == "progress-test-1"


# --- resources -------------------------------------------------------------------------------------------------------


@scenario("resources-list")
async def resources_list(peer: Peer) -> None:
    """Every resource has a URI and a name."""
    resources = (await peer.result("resources/list"))["resources"]
    others = [each for each in resources if not each["uri"].startswith("skill://")]
    assert {each["uri"] for each in others} == {
        "test://static-text",
        "test://static-binary",
        "test://watched-resource",
        "ui://everything/weather",
    }
    assert "skill://refunds/SKILL.md" in {each["uri"] for each in resources}
    assert all(each["name"] for each in resources)
    assert all(each["description"] for each in others)


@scenario("resources-read-text")
async def read_text(peer: Peer) -> None:
    """A text resource, with its URI and type."""
    (contents,) = (await peer.result("resources/read", {"uri": "test://static-text"}))["contents"]
    assert contents == {
        "uri": "test://static-text",
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    }


@scenario("resources-read-binary")
async def read_binary(peer: Peer) -> None:
    """A binary resource, in base64."""
    (contents,) = (await peer.result("resources/read", {"uri": "test://static-binary"}))["contents"]
    assert (contents["uri"], contents["mimeType"]) == ("test://static-binary", "image/png")
    assert base64.b64decode(contents["blob"], validate=True).startswith(b"\x89PNG")


@scenario("resources-templates-read")
async def read_template(peer: Peer) -> None:
    """A resource of a template is read by its URI."""
    templates = (await peer.result("resources/templates/list"))["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == ["test://template/{id}/data"]
    (contents,) = (await peer.result("resources/read", {"uri": "test://template/123/data"}))["contents"]
    assert contents["uri"] == "test://template/123/data"
    assert '"id":"123"' in contents["text"]


@scenario("sep-2164-resource-not-found")
async def resource_not_found(peer: Peer) -> None:
    """Reading an unknown resource is an error with its URI, not an empty result."""
    uri = "test://nonexistent-resource-for-conformance-testing"
    error = await peer.refused("resources/read", {"uri": uri})
    assert error["code"] == (-32002 if peer.rules.handshake else -32602)
    assert error["data"] == {"uri": uri}


@scenario("resources-subscribe", until="2026-07-28")
async def subscribe(peer: Peer) -> None:
    """A client subscribes to a resource."""
    assert await peer.result("resources/subscribe", {"uri": "test://watched-resource"}) == {}


@scenario("resources-unsubscribe", until="2026-07-28")
async def unsubscribe(peer: Peer) -> None:
    """A client unsubscribes from a resource."""
    assert await peer.result("resources/subscribe", {"uri": "test://watched-resource"}) == {}
    assert await peer.result("resources/unsubscribe", {"uri": "test://watched-resource"}) == {}


# --- prompts ---------------------------------------------------------------------------------------------------------


@scenario("prompts-list")
async def prompts_list(peer: Peer) -> None:
    """Every prompt has a name, a description and its arguments."""
    prompts = {prompt["name"]: prompt for prompt in (await peer.result("prompts/list"))["prompts"]}
    assert all(prompt["description"] for prompt in prompts.values())
    arguments = prompts["test_prompt_with_arguments"]["arguments"]
    assert [(each["name"], each["required"]) for each in arguments] == [("arg1", True), ("arg2", True)]
    assert "arguments" not in prompts["test_simple_prompt"]


@scenario("prompts-get-simple")
async def get_prompt(peer: Peer) -> None:
    """A prompt without arguments."""
    (message,) = (await peer.result("prompts/get", {"name": "test_simple_prompt"}))["messages"]
    text = {"type": "text", "text": "This is a simple prompt for testing."}
    assert message == {"role": "user", "content": text}


@scenario("prompts-get-with-args")
async def get_prompt_with_arguments(peer: Peer) -> None:
    """A prompt with its arguments in the text."""
    params = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "testValue1", "arg2": "testValue2"}}
    (message,) = (await peer.result("prompts/get", params))["messages"]
    assert message["content"]["text"] == "Prompt with arguments: arg1='testValue1', arg2='testValue2'"


@scenario("prompts-get-embedded-resource")
async def get_prompt_with_resource(peer: Peer) -> None:
    """A prompt with an embedded resource and text."""
    params = {
        "name": "test_prompt_with_embedded_resource",
        "arguments": {"resourceUri": "test://example-resource"},
    }
    resource, text = (await peer.result("prompts/get", params))["messages"]
    assert resource["content"]["type"] == "resource"
    assert resource["content"]["resource"]["uri"] == "test://example-resource"
    assert text["content"]["text"] == "Please process the embedded resource above."


@scenario("prompts-get-with-image")
async def get_prompt_with_image(peer: Peer) -> None:
    """A prompt with an image and text."""
    image, text = (await peer.result("prompts/get", {"name": "test_prompt_with_image"}))["messages"]
    assert (image["content"]["type"], image["content"]["mimeType"]) == ("image", "image/png")
    assert text["content"]["text"] == "Please analyze the image above."


def text_of(result: JSONObject) -> str:
    """The first text of a result."""
    return str(next(block["text"] for block in result["content"] if block["type"] == "text"))

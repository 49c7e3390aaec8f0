"""Scenarios of what a server asks: by a request of its own, and inside a result (2026-07-28)."""

from __future__ import annotations

from typing import Any

from tests.conformance.basics import text_of
from tests.conformance.peer import CAPABILITIES, ROOTS, Peer, accepted, said, state_of
from tests.conformance.scenario import scenario

JSONObject = dict[str, Any]

ELICIT, SAMPLE, LIST_ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


@scenario("tools-call-sampling")
async def sampling(peer: Peer) -> None:
    """The tool sends a sampling request, and returns the response of the model."""
    peer.answers = {SAMPLE: said("This is a test response from the client")}
    result = await peer.call("test_sampling", {"prompt": "Test prompt for sampling"})
    (asked,) = peer.asked
    assert asked["method"] == SAMPLE
    message = {"role": "user", "content": {"type": "text", "text": "Test prompt for sampling"}}
    assert asked["params"] == {"messages": [message], "maxTokens": 100}
    assert text_of(result) == "LLM response: This is a test response from the client"


@scenario("tools-call-elicitation", since="2025-06-18")
async def elicitation(peer: Peer) -> None:
    """The tool sends an elicitation request, and returns the values of the user."""
    peer.answers = {ELICIT: accepted(username="testuser", email="test@example.com")}
    result = await peer.call("test_elicitation", {"message": "Please provide your information"})
    (asked,) = peer.asked
    assert asked["params"]["message"] == "Please provide your information"
    assert set(asked["params"]["requestedSchema"]["properties"]) == {"username", "email"}
    assert text_of(result) == (
        'User response: action=accept, content={"username":"testuser","email":"test@example.com"}'
    )


@scenario("elicitation-sep1034-defaults", since="2025-06-18")
async def defaults(peer: Peer) -> None:
    """The fields of a form have defaults; in 2025-06-18 only boolean fields."""
    wanted: dict[str, Any] = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    peer.answers = {ELICIT: accepted(**wanted)}
    result = await peer.call("test_elicitation_sep1034_defaults")
    properties = peer.asked[0]["params"]["requestedSchema"]["properties"]
    types = {name: properties[name]["type"] for name in wanted}
    assert types == {"name": "string", "age": "integer", "score": "number", "status": "string", "verified": "boolean"}
    assert properties["status"]["enum"] == ["active", "inactive", "pending"]
    kept = wanted if peer.rules.form_defaults else {"verified": True}
    assert {name: each["default"] for name, each in properties.items() if "default" in each} == kept
    assert text_of(result).startswith("Elicitation completed: action=accept")


@scenario("elicitation-sep1330-enums", since="2025-11-25")
async def enums(peer: Peer) -> None:
    """Every form of an enum field; the tool returns the answer unchanged."""
    chosen = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    }
    peer.answers = {ELICIT: accepted(**chosen)}
    result = await peer.call("test_elicitation_sep1330_enums")
    schema = peer.asked[0]["params"]["requestedSchema"]["properties"]
    assert set(schema["untitledSingle"]) == {"type", "enum"}
    assert set(schema["titledSingle"]["oneOf"][0]) == {"const", "title"}
    assert len(schema["legacyEnum"]["enum"]) == len(schema["legacyEnum"]["enumNames"])
    assert set(schema["untitledMulti"]["items"]) == {"type", "enum"}
    assert set(schema["titledMulti"]["items"]["anyOf"][0]) == {"const", "title"}
    assert '"titledMulti":["value1","value2"]' in text_of(result)


# --- inside a result -------------------------------------------------------------------------------------------------


@scenario("input-required-result-basic-elicitation", since="2026-07-28")
async def basic_elicitation(peer: Peer) -> None:
    """An elicitation request, with a key chosen by the tool."""
    peer.answers = {ELICIT: accepted(name="Alice")}
    required = await peer.start("test_input_required_result_elicitation")
    assert required["inputRequests"]["user_name"]["method"] == ELICIT
    assert required["inputRequests"]["user_name"]["params"]["message"] == "What is your name?"
    result = await again(peer, "test_input_required_result_elicitation", required)
    assert text_of(result) == "Hello, Alice!"


@scenario("input-required-result-basic-sampling", since="2026-07-28")
async def basic_sampling(peer: Peer) -> None:
    """A sampling request."""
    peer.answers = {SAMPLE: said("The capital of France is Paris.")}
    required = await peer.start("test_input_required_result_sampling")
    assert methods(required) == [SAMPLE]
    result = await again(peer, "test_input_required_result_sampling", required)
    assert text_of(result) == "Sampling result: The capital of France is Paris."


@scenario("input-required-result-basic-list-roots", since="2026-07-28")
async def basic_list_roots(peer: Peer) -> None:
    """A request for the roots of the client."""
    peer.answers = {LIST_ROOTS: ROOTS}
    required = await peer.start("test_input_required_result_list_roots")
    assert methods(required) == [LIST_ROOTS]
    result = await again(peer, "test_input_required_result_list_roots", required)
    assert text_of(result) == "Found 1 root(s)"


@scenario("input-required-result-request-state", since="2026-07-28")
async def request_state(peer: Peer) -> None:
    """The client returns the request state, and the server accepts it."""
    peer.answers = {ELICIT: accepted(ok=True)}
    required = await peer.start("test_input_required_result_request_state")
    assert isinstance(required["requestState"], str)
    assert required["inputRequests"]
    result = await again(peer, "test_input_required_result_request_state", required)
    assert "state-ok" in text_of(result)


@scenario("input-required-result-multiple-input-requests", since="2026-07-28")
async def multiple_input_requests(peer: Peer) -> None:
    """Independent input requests are sent in one response."""
    peer.answers = {ELICIT: accepted(name="Alice"), SAMPLE: said("Hello there!"), LIST_ROOTS: ROOTS}
    required = await peer.start("test_input_required_result_multiple_inputs")
    assert methods(required) == [ELICIT, SAMPLE, LIST_ROOTS]
    assert "requestState" in required
    result = await again(peer, "test_input_required_result_multiple_inputs", required)
    assert text_of(result) == "Name: Alice; Greeting: Hello there!; Roots: 1"


@scenario("input-required-result-multi-round", since="2026-07-28")
async def multi_round(peer: Peer) -> None:
    """Several rounds of input requests, each with its own request state."""
    tool = "test_input_required_result_multi_round"
    peer.answers = {ELICIT: accepted(name="Alice")}
    first = await peer.start(tool)
    second = await again(peer, tool, first)
    assert second["resultType"] == "input_required"
    assert second["requestState"] != first["requestState"]
    peer.answers = {ELICIT: accepted(color="Blue")}
    result = await again(peer, tool, second)
    assert text_of(result) == "Multi-round complete for Alice who likes Blue, at table 7"


@scenario("input-required-result-missing-input-response", since="2026-07-28")
async def missing_input_response(peer: Peer) -> None:
    """A response with an unknown key is ignored, and the request is sent again, with or without a request state."""
    tool = "test_input_required_result_elicitation"
    wrong = {"wrong_key": accepted(data="wrong")}
    for state in ({}, state_of(await peer.start(tool))):
        params = {"name": tool, "arguments": {}, "inputResponses": wrong, **state}
        result = await peer.result("tools/call", params)
        assert result["resultType"] == "input_required"
        assert list(result["inputRequests"]) == ["user_name"]


@scenario("input-required-result-non-tool-request", since="2026-07-28")
async def non_tool_request(peer: Peer) -> None:
    """A prompt can request input, too."""
    peer.answers = {ELICIT: accepted(context="Testing InputRequiredResult")}
    params = {"name": "test_input_required_result_prompt"}
    required = await peer.result("prompts/get", params)
    assert methods(required) == [ELICIT]
    result = await peer.again("prompts/get", params, required)
    assert result["messages"][0]["content"]["text"] == "Prompt with context: Testing InputRequiredResult"


@scenario("input-required-result-result-type", since="2026-07-28")
async def result_type(peer: Peer) -> None:
    """A result with input requests has the result type `input_required`."""
    required = await peer.result("tools/call", {"name": "test_input_required_result_elicitation", "arguments": {}})
    assert required["resultType"] == "input_required"


@scenario("input-required-result-unsupported-methods", since="2026-07-28")
async def unsupported_methods(peer: Peer) -> None:
    """Lists do not request input."""
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        assert (await peer.result(method))["resultType"] == "complete"


@scenario("input-required-result-tampered-state", since="2026-07-28")
async def tampered_state(peer: Peer) -> None:
    """A modified request state is a protocol error; the original state remains valid."""
    tool = "test_input_required_result_tampered_state"
    peer.answers = {ELICIT: accepted(ok=True)}
    required = await peer.start(tool)
    state = required["requestState"] + "-TAMPERED"
    answers = {key: accepted(ok=True) for key in required["inputRequests"]}
    params = {"name": tool, "arguments": {}, "inputResponses": answers, "requestState": state}
    assert (await peer.refused("tools/call", params))["code"] == -32602
    assert text_of(await again(peer, tool, required)) == "integrity-ok: state verified"


@scenario("input-required-result-capability-check", since="2026-07-28")
async def capability_check(peer: Peer) -> None:
    """The server requests no input that the client did not declare in the capabilities of this request."""
    required = await peer.start("test_input_required_result_capabilities", capabilities={"sampling": {}})
    assert methods(required) == [SAMPLE]


@scenario("input-required-result-ignore-extra-params", since="2026-07-28")
async def ignore_extra_params(peer: Peer) -> None:
    """Responses to unknown input requests have no effect; allowed unsolicited responses are used.

    The suite sends them with its first request. Where a question does not say that it may be answered `unasked`,
    nothing but the state of a question says that it was asked, so an answer counts only with that.
    """
    tool = "test_input_required_result_elicitation"
    extra = {"unknown_extra_key": accepted(foo="bar"), "another_unexpected": accepted(baz=123)}
    params = {"name": tool, "arguments": {}, "inputResponses": {"user_name": accepted(name="Alice"), **extra}}
    assert text_of(await peer.result("tools/call", params)) == "Hello, Alice!"
    tool = "test_input_required_result_request_state"
    answers = {"confirm": accepted(ok=True), **extra}
    unasked = await peer.result("tools/call", {"name": tool, "arguments": {}, "inputResponses": answers})
    assert unasked["resultType"] == "input_required"
    assert "state-ok" in text_of(await again(peer, tool, unasked, answers))


@scenario("input-required-result-validate-input", since="2026-07-28")
async def validate_input(peer: Peer) -> None:
    """An invalid response does not complete a call."""
    tool = "test_input_required_result_elicitation"
    required = await peer.start(tool)
    for responses in ({"user_name": 12345}, None):
        for state in ({}, state_of(required)):
            params = {"name": tool, "arguments": {}, "inputResponses": responses, **state}
            answer = await peer.ask("tools/call", params)
            if "error" in answer:
                assert answer["error"]["code"] == -32602
            else:
                assert answer["result"]["resultType"] == "input_required"


async def again(peer: Peer, tool: str, required: JSONObject, answers: JSONObject | None = None) -> JSONObject:
    """The call again, with answers."""
    params = {"name": tool, "arguments": {}}
    return await peer.again("tools/call", params, required, answers, capabilities=CAPABILITIES)


def methods(required: JSONObject) -> list[str]:
    """What is asked, in order."""
    return [each["method"] for each in required["inputRequests"].values()]

"""Servers with a wrong handshake, with capabilities that are not so, or with a memory that 2026-07-28 forbids."""

from __future__ import annotations

from typing import Any

from accord import Server

from tests.check.mutants.change import Change
from tests.check.mutants.errors import recoded, unheard
from tests.check.mutants.table import mutant


@mutant("lifecycle/hello", revision="2025-06-18")
def no_version_of_the_server(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        answer.get("result", {}).get("serverInfo", {}).pop("version", None)
        return answer


@mutant("lifecycle/same-version", revision="2025-03-26")
def another_revision_for_the_second_client(change: Change) -> None:
    seen: list[Any] = []

    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        known = request.get("params", {}).get("protocolVersion") == "2025-03-26"
        seen.append(answer)
        if known and len(seen) > 1 and "result" in answer:
            answer["result"]["protocolVersion"] = "2024-11-05"
        return answer


@mutant("lifecycle/other-version", revision="2025-11-25")
def every_revision_is_fine(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            answer["result"]["protocolVersion"] = request["params"]["protocolVersion"]
        return answer


@mutant("lifecycle/other-version", revision="2025-11-25")
def a_revision_that_it_does_not_speak(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        if request.get("params", {}).get("protocolVersion") == "1900-01-01":
            answer["result"]["protocolVersion"] = "1999-01-01"
        return answer


@mutant("lifecycle/newest-version", revision="2025-06-18")
def the_oldest_revision_for_an_unknown_one(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        if request.get("params", {}).get("protocolVersion") == "1900-01-01":
            answer["result"]["protocolVersion"] = "2024-11-05"
        return answer


@mutant("lifecycle/no-early-requests", revision="2025-06-18")
def roots_before_the_client_is_ready(change: Change) -> None:
    change.before("initialize")(lambda request: [{"jsonrpc": "2.0", "id": "early", "method": "roots/list"}])


@mutant("lifecycle/handshake-first", revision="2025-11-25")
def a_list_before_the_handshake(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "result": {"tools": []}} if "error" in answer else answer


@mutant("lifecycle/opens-after-error", revision="2024-11-05")
def a_wrong_initialize_that_cannot_be_mended(change: Change) -> None:
    error = {"code": -32600, "message": "initialize was refused before"}

    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        is_last = request["id"] == 9  # after a list and seven wrong ones
        return {"jsonrpc": "2.0", "id": 9, "error": error} if is_last else answer


@mutant("lifecycle/bad-hello", revision="2025-06-18")
def a_client_without_a_name(change: Change) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "right", "version": "1"}}

    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        bare = "params" in request and "clientInfo" not in request["params"]
        return {"jsonrpc": "2.0", "id": answer["id"], "result": hello} if bare else answer


@mutant("lifecycle/initialize-twice", revision="2025-11-25")
def silence_for_a_second_initialize(change: Change) -> None:
    change.answers("initialize")(lambda request, answer: None if request["id"] == 2 else answer)


@mutant("lifecycle/open-capabilities", revision="2025-06-18")
def only_known_capabilities(change: Change) -> None:
    unheard(change, lambda message: "accordCheckNobody" in message.get("params", {}).get("capabilities", {}))


def only_tools(request: Any, answer: Any) -> Any:
    answer.get("result", {}).get("capabilities", {}).pop("prompts", None)
    return answer


def a_change_of_prompts(request: Any) -> list[Any]:
    return [{"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}]


@mutant("capabilities/only-declared", revision="2025-11-25")
def changes_of_prompts_that_it_does_not_have(change: Change) -> None:
    change.answers("initialize")(only_tools)
    change.before("tools/call")(a_change_of_prompts)


@mutant("capabilities/declared-early", revision="2024-11-05")
def changes_of_prompts_without_prompts(change: Change) -> None:
    change.answers("initialize")(only_tools)
    change.before("tools/call")(a_change_of_prompts)


@mutant("capabilities/revision", revision="2025-06-18")
def a_notification_of_the_next_revision(change: Change) -> None:
    params = {"elicitationId": "1"}
    message = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}
    change.before("tools/list")(lambda request: [message])


@mutant("capabilities/revision-early", revision="2025-03-26")
def a_question_of_the_next_revision(change: Change) -> None:
    params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    change.before("tools/list")(
        lambda request: [{"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}]
    )


@mutant("capabilities/served", revision="2024-11-05")
def prompts_without_a_list(change: Change) -> None:
    unheard(change, lambda message: message.get("method") == "prompts/list")


@mutant("capabilities/gated")
def prompts_that_are_not_declared(change: Change) -> None:
    change.answers("server/discover")(only_tools)


@mutant("discover/answered")
def a_second_discovery_without_revisions(change: Change) -> None:
    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        if request["id"] != 1:  # the first request of a conversation
            answer["result"]["supportedVersions"] = []
        return answer


@mutant("discover/unsupported-version")
def another_code_for_an_unknown_revision(change: Change) -> None:
    recoded(change, -32022, -32600)


def filled(message: Any) -> Any:
    """The message with the `_meta` that it should have."""
    if not isinstance(message, dict) or "id" not in message:
        return message
    params = message.get("params") or {}
    meta = params.get("_meta") or {}
    whole = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    return {**message, "params": {**params, "_meta": whole}}


@mutant("discover/missing-meta")
def defaults_for_what_is_missing(change: Change) -> None:
    change.heard(filled)


@mutant("discover/missing-capabilities-code")
def another_code_for_what_is_missing(change: Change) -> None:
    recoded(change, -32602, -32600)


@mutant("discover/anonymous-client")
def nobody_without_a_name(change: Change) -> None:
    info, revision = "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/protocolVersion"
    unheard(change, lambda message: revision in str(message) and info not in str(message))


@mutant("discover/stateless")
def nothing_before_a_discovery(change: Change) -> None:
    unheard(change, lambda message: message.get("id") == 1 and message["method"] == "tools/list")


@mutant("discover/many-at-once")
def one_client_for_each_connection(change: Change) -> None:
    change.heard(lambda message: None if "accord-check-7" in str(message) else message)


@mutant("discover/initialize-names-versions", server=lambda: Server("modern", revisions=["2026-07-28"]), calls=False)
def a_bare_refusal_of_initialize(change: Change) -> None:
    @change.answers("initialize")
    def _(request: Any, answer: Any) -> Any:
        return {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32601, "message": "Method not found"}}


@mutant("discover/extension-names")
def an_extension_without_a_domain(change: Change) -> None:
    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        answer.get("result", {}).get("capabilities", {})["extensions"] = {"tasks": {}}
        return answer


@mutant("discover/unknown-extension")
def only_known_extensions(change: Change) -> None:
    unheard(change, lambda message: "com.example/accord-check-nobody" in str(message))

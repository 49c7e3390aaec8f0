"""Servers whose prompts are wrong."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import Fickle, changing, showing
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import refuse, undeclare

PLAN = {"messages": [{"role": "user", "content": {"type": "text", "text": "Plan"}}], "resultType": "complete"}


def given(change: Change, when: Any) -> None:
    """Give a prompt where there was an error."""

    @change.answers("prompts/get")
    def _(request: Any, answer: Any) -> Any:
        known = "error" not in answer or not when(request["params"])
        return answer if known else {"jsonrpc": "2.0", "id": request["id"], "result": PLAN}


def block(change: Change, kind: str, alter: Any) -> None:
    """Change the blocks of one kind."""

    @change.answers("prompts/get")
    def _(request: Any, answer: Any) -> Any:
        for message in answer.get("result", {}).get("messages", ()):
            if message["content"]["type"] == kind:
                alter(message["content"])
        return answer


@mutant("prompts/declared", revision="2025-11-25")
def prompts_that_are_not_declared(change: Change) -> None:
    undeclare(change, "prompts")


@mutant("prompts/listed", revision="2024-11-05")
def a_capability_without_a_list(change: Change) -> None:
    refuse(change, "prompts/list")


@mutant("prompts/same-everywhere", server=Fickle)
def prompts_of_each_connection(change: Change) -> None:
    """The server is wrong by itself."""


@mutant("prompts/list-changed", server=changing)
def a_list_that_changes_in_silence(change: Change) -> None:
    change.notifications("notifications/prompts/list_changed")(lambda message: None)


@mutant("prompts/unique-names", revision="2025-06-18")
def two_prompts_of_one_name(change: Change) -> None:
    @change.answers("prompts/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["prompts"].append(answer["result"]["prompts"][0])
        return answer


@mutant("prompts/given", revision="2025-06-18")
def an_argument_that_is_not_called_required(change: Change) -> None:
    @change.answers("prompts/list")
    def _(request: Any, answer: Any) -> Any:
        for prompt in answer["result"]["prompts"]:
            for argument in prompt["arguments"]:
                argument.pop("required", None)
        return answer


@mutant("prompts/unknown-name", revision="2025-03-26")
def a_prompt_for_any_name(change: Change) -> None:
    given(change, lambda params: isinstance(params.get("name"), str) and params["name"] != "plan")


@mutant("prompts/required-arguments")
def a_prompt_without_its_argument(change: Change) -> None:
    given(change, lambda params: params.get("name") == "plan" and params.get("arguments") == {})


@mutant("prompts/inputs-checked")
def a_prompt_for_a_number(change: Change) -> None:
    given(change, lambda params: params.get("name") == 5)


@mutant("prompts/inputs-checked", revision="2024-11-05")
def a_prompt_for_a_list_of_arguments(change: Change) -> None:
    given(change, lambda params: isinstance(params.get("arguments"), list))


@mutant("prompts/media", server=showing, revision="2024-11-05")
def a_picture_that_is_no_base64(change: Change) -> None:
    block(change, "image", lambda each: each.update(data="\N{WHITE SQUARE}"))


@mutant("prompts/media", server=showing)
def a_picture_with_its_extension(change: Change) -> None:
    block(change, "image", lambda each: each.update(mimeType=".png"))


@mutant("prompts/embedded", server=showing)
def a_file_without_a_mime_type(change: Change) -> None:
    block(change, "resource", lambda each: each["resource"].pop("mimeType", None))


@mutant("prompts/embedded", server=showing, revision="2025-03-26")
def a_file_with_a_path(change: Change) -> None:
    block(change, "resource", lambda each: each["resource"].update(uri="C:\\file"))

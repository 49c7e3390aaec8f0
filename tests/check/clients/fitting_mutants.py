"""Wrong clients whose words do not fit what was said before."""

from __future__ import annotations

from typing import Any

from tests.check.clients.mutants import DECLARED, NEW, VERSION, is_answer, on
from tests.check.clients.wrong import Change, Said, mutant

FORMS = "2025-06-18"


@mutant("client-changes/unsubscribe")
def unsubscribes_from_everything(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if not on("resources/read", message):
            return message
        end = {"jsonrpc": "2.0", "id": f"end-{message['id']}", "method": "resources/unsubscribe"}
        return [message, {**end, "params": {"uri": message["params"]["uri"]}}]


@mutant("client-opening/listed-version", revision=NEW)
def goes_on_in_another_revision(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"]["_meta"][VERSION] = "2027-01-01"
        return message


@mutant("client-answers/content", revision=FORMS)
def sends_what_was_declined(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if is_answer(message) and "action" in message.get("result", {}):
            message["result"]["action"] = "decline"
        return message


@mutant("client-answers/content")
def fills_in_a_page(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if is_answer(message) and "action" in message.get("result", {}):
            message["result"]["content"] = {"name": "Ada"}
        return message


@mutant("client-answers/content", revision=NEW)
def sends_what_was_cancelled(change: Change) -> None:
    _answers(change, lambda answer: answer | {"action": "cancel"} if "content" in answer else answer)


@mutant("client-meta/extension-names", revision=NEW)
def declares_a_plain_name(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if "id" in message:
            message["params"]["_meta"][DECLARED]["extensions"] = {"search": {}}
        return message


@mutant("client-rounds/roots", revision=NEW)
def sends_paths(change: Change) -> None:
    _answers(change, lambda answer: {"roots": [{"uri": "/srv/a"}]} if "roots" in answer else answer)


def _answers(change: Change, alter: Any) -> None:
    """Change what is answered inside requests."""

    @change.sends
    def _(message: Said) -> Any:
        responses = message.get("params", {}).get("inputResponses", {})
        responses.update({name: alter(answer) for name, answer in responses.items()})
        return message


@mutant("client-answers/sampling-tools")
def takes_a_choice_it_cannot_use(change: Change) -> None:
    change.options["sampling_tools"] = False

    @change.sends
    def _(message: Said) -> Any:
        return {"jsonrpc": "2.0", "id": "choice", "result": {}} if message.get("id") == "choice" else message

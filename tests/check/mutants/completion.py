"""Servers that complete wrongly."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import changing
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import refuse, undeclare


def proposed(change: Change, completion: Any, when: Any) -> None:
    """Propose something, for some params."""

    @change.answers("completion/complete")
    def _(request: Any, answer: Any) -> Any:
        result = {"completion": completion, "resultType": "complete"}
        wanted = when(request["params"], answer)
        return {"jsonrpc": "2.0", "id": request["id"], "result": result} if wanted else answer


def answered(params: Any, answer: Any) -> bool:
    return "result" in answer


@mutant("completion/declared", revision="2025-03-26")
def completion_that_is_not_declared(change: Change) -> None:
    undeclare(change, "completions")


@mutant("completion/unsupported", server=changing)
def nothing_proposed_by_who_does_not_complete(change: Change) -> None:
    proposed(change, {"values": []}, lambda params, answer: params.get("ref", {}).get("name") == "accord-check-nobody")


@mutant("completion/answered", revision="2025-11-25")
def a_capability_without_completion(change: Change) -> None:
    refuse(change, "completion/complete")


@mutant("completion/most")
def a_hundred_and_one_values(change: Change) -> None:
    proposed(change, {"values": [str(number) for number in range(101)]}, answered)


@mutant("completion/most", revision="2024-11-05")
def a_hundred_and_one_values_in_2024(change: Change) -> None:
    proposed(change, {"values": [str(number) for number in range(101)]}, answered)


@mutant("completion/total", revision="2025-06-18")
def a_total_of_what_was_left_out(change: Change) -> None:
    proposed(change, {"values": ["a", "b"], "total": 0}, answered)


@mutant("completion/unknown-prompt")
def nothing_proposed_for_an_unknown_prompt(change: Change) -> None:
    def unknown(params: Any, answer: Any) -> bool:
        return params.get("ref") == {"type": "ref/prompt", "name": "accord-check-nobody"} and "argument" in params

    proposed(change, {"values": []}, unknown)


@mutant("completion/missing-argument")
def nothing_proposed_for_no_argument(change: Change) -> None:
    proposed(change, {"values": []}, lambda params, answer: "ref" in params and "argument" not in params)


@mutant("completion/inputs-checked", revision="2024-11-05")
def a_reference_of_any_type(change: Change) -> None:
    proposed(change, {"values": []}, lambda params, answer: "nobody" in str(params.get("ref", {}).get("type")))


@mutant("completion/inputs-checked")
def a_value_that_is_a_number(change: Change) -> None:
    proposed(change, {"values": []}, lambda params, answer: params.get("argument", {}).get("value") == 5)

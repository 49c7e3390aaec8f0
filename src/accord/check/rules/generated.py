"""What generated calls show: what ends a server, makes it hang, does not fit its own schemas, is given away.

The calls are made once for all of these rules (`generated.exploring`): of the tools that may be called, with arguments
made from their schemas, of prompts, templates and completions. `generated.troubles` says what breaks which rule.
"""

from __future__ import annotations

from accord.check.engine.rule import Rule, Violation
from accord.check.fuzz import hint_checks, memory_growth, response_checks
from accord.check.fuzz.fuzz_client import CASE_NAME
from accord.check.fuzz.fuzz_result import FuzzResult

_CALLS = "server/tools#calling-tools"
_ERRORS = "server/tools#error-handling"
_SECURITY = "server/tools#security-considerations"
_TOOL = "server/tools#tool"
_PROMPT_ERRORS = "server/prompts#error-handling"


def _fuzz_rule(rule: Rule, symptom: str = "", needs: str | None = "tools") -> Rule:
    """The rule, with its case; `symptom` is that of an ordinary rule that sees the same mistake."""

    @rule.case(CASE_NAME, kind="generated", needs=needs, calls=needs == "tools")
    def check(explored: FuzzResult) -> list[Violation]:
        return [fault.violation(symptom) for fault in explored.failures if fault.rule == rule.id]

    return rule


CRASH = _fuzz_rule(
    Rule(
        response_checks.CRASH,
        "must",
        "No call of a tool ends the server, and no prompt, resource or completion does.",
        at=_CALLS,
        cause="The handler exits, or an exception leaves it that nobody catches: catch it around the call, and answer "
        "with `isError`.",
    ),
    needs=None,
)

HANG = _fuzz_rule(
    Rule(
        response_checks.HANG,
        "must",
        "While a call is at work, the server still answers others.",
        at=_CALLS,
        cause="The handler blocks the event loop: run it in a thread, or await what it waits for.",
    ),
    needs=None,
)

UNANSWERED = _fuzz_rule(
    Rule(
        response_checks.UNANSWERED,
        "should",
        "Every call is answered, in a time that its arguments do not drive without bounds.",
        at=_CALLS,
        cause="The handler waits for what never comes, or an argument without `maximum` says how much there is to do.",
    ),
    needs=None,
)

OUTPUT = _fuzz_rule(
    Rule(
        response_checks.OUTPUT,
        "must",
        "Whatever its arguments are, the result of a tool with an `outputSchema` has `structuredContent` that fits it.",
        at="server/tools#output-schema",
        since="2025-06-18",
        cause="The schema describes what the tool mostly returns, and not what it returns for these arguments.",
    ),
    symptom="tools/structured",
)

REFUSED = _fuzz_rule(
    Rule(
        response_checks.REFUSED,
        "should",
        "Arguments that the schema of a tool allows are not answered with a JSON-RPC error.",
        at=(_ERRORS, "schema#calltoolresult"),
        cause="An exception of the tool becomes an error of the protocol, which the model never sees: catch it, and "
        "answer with `isError`; or the schema allows more than the tool does.",
    )
)

ACCEPTED = _fuzz_rule(
    Rule(
        response_checks.ACCEPTED,
        "must",
        "A call without a required argument, or with one of another type, is refused.",
        at=(_SECURITY, _ERRORS),
        cause="The schema is shown to clients, and nothing on the server looks at it.",
    ),
    symptom="tools/arguments-checked",
)

LIMITS = _fuzz_rule(
    Rule(
        response_checks.LIMITS,
        "should",
        "An argument outside of the bounds, the pattern or the values that its schema gives is refused.",
        at=(_SECURITY, _ERRORS),
        cause="Types are checked, and the rest of the schema is not.",
    )
)

ARGUMENT_ERRORS = _fuzz_rule(
    Rule(
        response_checks.ARGUMENT_ERRORS,
        "should",
        "That arguments do not fit is told in the result of the tool, with `isError`, so that the model can mend them.",
        at=_ERRORS,
        since="2025-11-25",
        cause="Arguments are checked before the tool is found: a JSON-RPC error does not reach the model.",
    ),
    symptom="tools/argument-errors",
)

INTERNALS = _fuzz_rule(
    Rule(
        response_checks.INTERNALS,
        "should",
        "Answers do not hold traces of exceptions, folders of the server's code, or secrets of its environment.",
        at=_SECURITY,
        cause="The text of an exception is passed on as it is: log it, and tell the client what to do instead.",
    ),
    needs=None,
)

CODES = _fuzz_rule(
    Rule(
        response_checks.CODES,
        "should",
        "Arguments that a prompt, a template or a completion does not like are not answered as if the request were "
        "broken, or its method unknown.",
        at=(_PROMPT_ERRORS, "server/resources#error-handling", "server/utilities/completion#error-handling"),
        cause="One code stands for all errors: -32602 is for arguments, -32603 for what goes wrong inside.",
    ),
    needs=None,
)

PROMPT_ARGUMENTS = _fuzz_rule(
    Rule(
        response_checks.PROMPT_ARGUMENTS,
        "should",
        "A prompt without an argument that it requires, or with one that is no text, is refused.",
        at=_PROMPT_ERRORS,
        cause="The list says what the arguments are, and nothing on the server looks at them.",
    ),
    symptom="prompts/required-arguments",
    needs="prompts",
)

MEMORY = _fuzz_rule(
    Rule(
        memory_growth.MEMORY,
        "should",
        "The memory of a server does not grow with the calls that it answers.",
        at=_CALLS,
        cause="Every call leaves something behind: a list that is only added to, a cache without a bound.",
    ),
    needs=None,
)

READ_ONLY = _fuzz_rule(
    Rule(
        hint_checks.READ_ONLY,
        "should",
        "A tool with `readOnlyHint` leaves what can be listed and read as it was.",
        at=(_TOOL, "schema#toolannotations"),
        since="2025-03-26",
        cause="The hint was copied from another tool: hosts run such tools without asking.",
    )
)

IDEMPOTENT = _fuzz_rule(
    Rule(
        hint_checks.IDEMPOTENT,
        "should",
        "A tool with `idempotentHint` changes nothing more when it is called again in the same way.",
        at=(_TOOL, "schema#toolannotations"),
        since="2025-03-26",
        cause="Each call adds something: hosts repeat such calls when an answer is lost.",
    )
)

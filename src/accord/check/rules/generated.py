"""What generated calls show: what ends a server, makes it hang, does not fit its own schemas, is given away.

The calls are made once for all of these rules (`generated.exploring`): of the tools that may be called, with arguments
made from their schemas, of prompts, templates and completions. `generated.troubles` says what breaks which rule.
"""

from __future__ import annotations

from accord.check.engine.rule import Violation, rule
from accord.check.fuzz import hint_checks, memory_growth, response_checks
from accord.check.fuzz.fuzz_client import CASE_NAME
from accord.check.fuzz.fuzz_result import FuzzResult

_CALLS = "server/tools#calling-tools"
_ERRORS = "server/tools#error-handling"
_SECURITY = "server/tools#security-considerations"
_TOOL = "server/tools#tool"
_PROMPT_ERRORS = "server/prompts#error-handling"


@rule(
    response_checks.CRASH,
    "must",
    case=CASE_NAME,
    kind="generated",
    at=_CALLS,
    cause="The handler exits, or an exception leaves it that nobody catches: catch it around the call, and answer "
    "with `isError`.",
)
def generated_crash(found: FuzzResult) -> list[Violation]:
    """No call of a tool ends the server, and no prompt, resource or completion does."""
    return found.violations(response_checks.CRASH)


@rule(
    response_checks.HANG,
    "must",
    case=CASE_NAME,
    kind="generated",
    at=_CALLS,
    cause="The handler blocks the event loop: run it in a thread, or await what it waits for.",
)
def generated_hang(found: FuzzResult) -> list[Violation]:
    """While a call is at work, the server still answers others."""
    return found.violations(response_checks.HANG)


@rule(
    response_checks.UNANSWERED,
    "should",
    case=CASE_NAME,
    kind="generated",
    at=_CALLS,
    cause="The handler waits for what never comes, or an argument without `maximum` says how much there is to do.",
)
def generated_unanswered(found: FuzzResult) -> list[Violation]:
    """Every call is answered, in a time that its arguments do not drive without bounds."""
    return found.violations(response_checks.UNANSWERED)


@rule(
    response_checks.OUTPUT,
    "must",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at="server/tools#output-schema",
    since="2025-06-18",
    cause="The schema describes what the tool mostly returns, and not what it returns for these arguments.",
)
def generated_output(found: FuzzResult) -> list[Violation]:
    """Whatever its arguments are, the result of a tool with an `outputSchema` has `structuredContent` that fits it."""
    return found.violations(response_checks.OUTPUT, symptom="tools/structured")


@rule(
    response_checks.REFUSED,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=(_ERRORS, "schema#calltoolresult"),
    cause="An exception of the tool becomes an error of the protocol, which the model never sees: catch it, and "
    "answer with `isError`; or the schema allows more than the tool does.",
)
def generated_refused(found: FuzzResult) -> list[Violation]:
    """Arguments that the schema of a tool allows are not answered with a JSON-RPC error."""
    return found.violations(response_checks.REFUSED)


@rule(
    response_checks.ACCEPTED,
    "must",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=(_SECURITY, _ERRORS),
    cause="The schema is shown to clients, and nothing on the server looks at it.",
)
def generated_accepted(found: FuzzResult) -> list[Violation]:
    """A call without a required argument, or with one of another type, is refused."""
    return found.violations(response_checks.ACCEPTED, symptom="tools/arguments-checked")


@rule(
    response_checks.LIMITS,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=(_SECURITY, _ERRORS),
    cause="Types are checked, and the rest of the schema is not.",
)
def generated_limits(found: FuzzResult) -> list[Violation]:
    """An argument outside of the bounds, the pattern or the values that its schema gives is refused."""
    return found.violations(response_checks.LIMITS)


@rule(
    response_checks.ARGUMENT_ERRORS,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=_ERRORS,
    since="2025-11-25",
    cause="Arguments are checked before the tool is found: a JSON-RPC error does not reach the model.",
)
def generated_argument_errors(found: FuzzResult) -> list[Violation]:
    """That arguments do not fit is told in the result of the tool, with `isError`, so that the model can mend them."""
    return found.violations(response_checks.ARGUMENT_ERRORS, symptom="tools/argument-errors")


@rule(
    response_checks.INTERNALS,
    "should",
    case=CASE_NAME,
    kind="generated",
    at=_SECURITY,
    cause="The text of an exception is passed on as it is: log it, and tell the client what to do instead.",
)
def generated_internals(found: FuzzResult) -> list[Violation]:
    """Answers do not hold traces of exceptions, folders of the server's code, or secrets of its environment."""
    return found.violations(response_checks.INTERNALS)


@rule(
    response_checks.CODES,
    "should",
    case=CASE_NAME,
    kind="generated",
    at=(_PROMPT_ERRORS, "server/resources#error-handling", "server/utilities/completion#error-handling"),
    cause="One code stands for all errors: -32602 is for arguments, -32603 for what goes wrong inside.",
)
def generated_codes(found: FuzzResult) -> list[Violation]:
    """Arguments that a prompt, a template or a completion does not like are not answered as if the request were broken,
    or its method unknown.
    """
    return found.violations(response_checks.CODES)


@rule(
    response_checks.PROMPT_ARGUMENTS,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="prompts",
    at=_PROMPT_ERRORS,
    cause="The list says what the arguments are, and nothing on the server looks at them.",
)
def generated_prompt_arguments(found: FuzzResult) -> list[Violation]:
    """A prompt without an argument that it requires, or with one that is no text, is refused."""
    return found.violations(response_checks.PROMPT_ARGUMENTS, symptom="prompts/required-arguments")


@rule(
    memory_growth.MEMORY,
    "should",
    case=CASE_NAME,
    kind="generated",
    at=_CALLS,
    cause="Every call leaves something behind: a list that is only added to, a cache without a bound.",
)
def generated_memory(found: FuzzResult) -> list[Violation]:
    """The memory of a server does not grow with the calls that it answers."""
    return found.violations(memory_growth.MEMORY)


@rule(
    hint_checks.READ_ONLY,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=(_TOOL, "schema#toolannotations"),
    since="2025-03-26",
    cause="The hint was copied from another tool: hosts run such tools without asking.",
)
def generated_read_only(found: FuzzResult) -> list[Violation]:
    """A tool with `readOnlyHint` leaves what can be listed and read as it was."""
    return found.violations(hint_checks.READ_ONLY)


@rule(
    hint_checks.IDEMPOTENT,
    "should",
    case=CASE_NAME,
    kind="generated",
    needs="tools",
    calls=True,
    at=(_TOOL, "schema#toolannotations"),
    since="2025-03-26",
    cause="Each call adds something: hosts repeat such calls when an answer is lost.",
)
def generated_idempotent(found: FuzzResult) -> list[Violation]:
    """A tool with `idempotentHint` changes nothing more when it is called again in the same way."""
    return found.violations(hint_checks.IDEMPOTENT)

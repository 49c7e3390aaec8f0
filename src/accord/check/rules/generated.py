"""Generated calls: crashes, hangs, results that do not match their schemas, and leaks.

The calls are made once for all of these rules (`fuzz.fuzz_run`): of the tools that may be called, with arguments from
their schemas, of prompts, resource templates and completions. `fuzz.response_checks` decides which rule a response
breaks.
"""

from __future__ import annotations

from functools import partial

from accord.check.engine.rule import Violation, rule
from accord.check.fuzz import hint_checks, memory_growth, response_checks
from accord.check.fuzz.fuzz_client import CASE_NAME
from accord.check.fuzz.fuzz_result import FuzzResult

_CALLS = "server/tools#calling-tools"
_ERRORS = "server/tools#error-handling"
_SECURITY = "server/tools#security-considerations"
_TOOL = "server/tools#tool"
_PROMPT_ERRORS = "server/prompts#error-handling"

_rule = partial(rule, case=CASE_NAME, kind="generated")


@_rule(
    response_checks.CRASH,
    "must",
    at=_CALLS,
    cause="The handler exits the process, or its exception is not caught: catch it around the call, "
    "and return `isError`.",
)
def generated_crash(found: FuzzResult) -> list[Violation]:
    """No call of a tool, prompt, resource or completion ends the server."""
    return found.violations(response_checks.CRASH)


@_rule(
    response_checks.HANG,
    "must",
    at=_CALLS,
    cause="The handler blocks the event loop: run it in a thread, or use async functions.",
)
def generated_hang(found: FuzzResult) -> list[Violation]:
    """The server answers other requests while a call runs."""
    return found.violations(response_checks.HANG)


@_rule(
    response_checks.UNANSWERED,
    "should",
    at=_CALLS,
    cause="The handler waits forever, or an argument without `maximum` controls the amount of work.",
)
def generated_unanswered(found: FuzzResult) -> list[Violation]:
    """The server answers each call in a time that its arguments cannot extend without limit."""
    return found.violations(response_checks.UNANSWERED)


@_rule(
    response_checks.OUTPUT,
    "must",
    needs="tools",
    calls=True,
    at="server/tools#output-schema",
    since="2025-06-18",
    cause="The schema describes the usual result of the tool, but not the result for these arguments.",
)
def generated_output(found: FuzzResult) -> list[Violation]:
    """The result of a tool with an `outputSchema` has matching `structuredContent` for all arguments."""
    return found.violations(response_checks.OUTPUT, symptom="tools/structured")


@_rule(
    response_checks.REFUSED,
    "should",
    needs="tools",
    calls=True,
    at=(_ERRORS, "schema#calltoolresult"),
    cause="An exception of the tool becomes a JSON-RPC error, which the model does not see: catch "
    "it, and return `isError`; or the schema allows more than the tool does.",
)
def generated_refused(found: FuzzResult) -> list[Violation]:
    """Arguments that match the schema of a tool do not return a JSON-RPC error."""
    return found.violations(response_checks.REFUSED)


@_rule(
    response_checks.ACCEPTED,
    "must",
    needs="tools",
    calls=True,
    at=(_SECURITY, _ERRORS),
    cause="The schema is sent to clients, but the server does not validate arguments with it.",
)
def generated_accepted(found: FuzzResult) -> list[Violation]:
    """The server refuses a call without a required argument, or with an argument of another type."""
    return found.violations(response_checks.ACCEPTED, symptom="tools/arguments-checked")


@_rule(
    response_checks.LIMITS,
    "should",
    needs="tools",
    calls=True,
    at=(_SECURITY, _ERRORS),
    cause="The types are validated, but not the other keywords of the schema.",
)
def generated_limits(found: FuzzResult) -> list[Violation]:
    """The server refuses an argument outside the bounds, the pattern or the enum of its schema."""
    return found.violations(response_checks.LIMITS)


@_rule(
    response_checks.ARGUMENT_ERRORS,
    "should",
    needs="tools",
    calls=True,
    at=_ERRORS,
    since="2025-11-25",
    cause="Arguments are validated before the tool is called: the model does not see a JSON-RPC error.",
)
def generated_argument_errors(found: FuzzResult) -> list[Violation]:
    """A tool result with `isError` reports invalid arguments, so that the model can correct them."""
    return found.violations(response_checks.ARGUMENT_ERRORS, symptom="tools/argument-errors")


@_rule(
    response_checks.INTERNALS,
    "should",
    at=_SECURITY,
    cause="The text of an exception is sent to the client: log it, and explain what to do instead.",
)
def generated_internals(found: FuzzResult) -> list[Violation]:
    """Responses contain no tracebacks, paths of server code, or secrets from the environment."""
    return found.violations(response_checks.INTERNALS)


@_rule(
    response_checks.CODES,
    "should",
    at=(_PROMPT_ERRORS, "server/resources#error-handling", "server/utilities/completion#error-handling"),
    cause="All errors have one code: -32602 is for arguments, -32603 for internal errors.",
)
def generated_codes(found: FuzzResult) -> list[Violation]:
    """Invalid arguments of a prompt, a template or a completion do not return the codes for invalid requests or
    unknown methods.
    """
    return found.violations(response_checks.CODES)


@_rule(
    response_checks.PROMPT_ARGUMENTS,
    "should",
    needs="prompts",
    at=_PROMPT_ERRORS,
    cause="The arguments are listed, but the server does not validate them.",
)
def generated_prompt_arguments(found: FuzzResult) -> list[Violation]:
    """The server refuses a prompt without a required argument, or with an argument that is not a string."""
    return found.violations(response_checks.PROMPT_ARGUMENTS, symptom="prompts/required-arguments")


@_rule(
    memory_growth.MEMORY,
    "should",
    at=_CALLS,
    cause="Each call leaves data behind: a list that only grows, or a cache without a limit.",
)
def generated_memory(found: FuzzResult) -> list[Violation]:
    """The memory of a server does not grow with the number of calls."""
    return found.violations(memory_growth.MEMORY)


@_rule(
    hint_checks.READ_ONLY,
    "should",
    needs="tools",
    calls=True,
    at=(_TOOL, "schema#toolannotations"),
    since="2025-03-26",
    cause="The hint was copied from another tool: hosts run such tools without approval.",
)
def generated_read_only(found: FuzzResult) -> list[Violation]:
    """A tool with `readOnlyHint` does not change any list or resource."""
    return found.violations(hint_checks.READ_ONLY)


@_rule(
    hint_checks.IDEMPOTENT,
    "should",
    needs="tools",
    calls=True,
    at=(_TOOL, "schema#toolannotations"),
    since="2025-03-26",
    cause="Each call has a further effect: hosts repeat such calls when a response is lost.",
)
def generated_idempotent(found: FuzzResult) -> list[Violation]:
    """A second, equal call of a tool with `idempotentHint` changes nothing."""
    return found.violations(hint_checks.IDEMPOTENT)

"""The steps of a program: its start, and what it writes besides messages."""

from __future__ import annotations

import shlex

from accord.client.target import Command
from accord.errors import ConnectError, ConnectionLost
from accord.host.command_approval import describe_target
from accord.host.doctor.diagnosis import Step, StepResult
from accord.host.doctor.known_facts import KnownFacts, is_timeout

NOT_STARTED = "accord found this server by itself, and starts or contacts it only if you say so: --start"

_HINTS = (
    ("ModuleNotFoundError", "a Python package is missing: install it for this Python, or correct the interpreter"),
    ("Cannot find module", "a Node.js module is missing: install the dependencies of the server"),
    ("MODULE_NOT_FOUND", "a Node.js module is missing: install the dependencies of the server"),
    ("can't open file", "the script does not exist: correct its path, and write it absolute"),
    ("npm error 404", "the npm package does not exist: correct its name"),
    ("npm ERR! 404", "the npm package does not exist: correct its name"),
    ("SyntaxError", "the program is not valid for this version of its interpreter"),
    ("EADDRINUSE", "its port is in use: is another copy running?"),
    ("Permission denied", "it may not use a file that it needs"),
)
"""Texts in stderr, and what to do."""


async def may_start(facts: KnownFacts) -> bool:
    """Return whether the server may be started, or contacted: the user named it, or agrees."""
    ask, target = facts.subject.may_start, facts.target
    if ask is None:
        return True
    assert target is not None, "the steps of the configuration have passed"
    entry = None if facts.entry is None else facts.entry.entry
    description = describe_target(target, entry)
    # Without what only looks secret: a stranger's entry could have its command or URL redacted too.
    agrees = await ask(facts.subject.name, [facts.user_secrets.redact(line) for line in description.lines()])
    return agrees and describe_target(target, entry).digest == description.digest  # what starts is what was shown


async def check_start(facts: KnownFacts) -> StepResult:
    """Start the program."""
    if not await may_start(facts):
        return StepResult("process start", "not-checked", [NOT_STARTED])
    attempt = await facts.connected()
    for cause in attempt.causes():
        if isinstance(cause, ConnectionLost) and cause.exit_code is not None:
            return _exited(facts, str(cause).partition("; ")[0], list(attempt.stderr))
        reason = cause.__cause__
        if isinstance(cause, ConnectError) and isinstance(reason, OSError | ValueError) and not is_timeout(reason):
            return StepResult("process start", "failed", [str(cause)], "correct the command")
    return StepResult("process start", "passed", [f"started: {facts.target}"])


def _exited(facts: KnownFacts, what: str, stderr: list[str]) -> StepResult:
    assert isinstance(facts.target, Command), "the step is for a program"
    lines = [f"stderr: {line}" for line in stderr] or ["it wrote nothing to stderr"]
    text = "\n".join(stderr)
    remedy = next((cure for sign, cure in _HINTS if sign in text), "run the command in a terminal, and read its errors")
    if stderr == [] and facts.subject.path is None:
        remedy = f"run it in a terminal, and see why it ends: {shlex.join(facts.target.argv[:1])} ..."
    return StepResult("process start", "failed", [what, *lines], remedy)


async def check_stderr(facts: KnownFacts) -> StepResult:
    """Look at what the program writes to stderr, and at lines on stdout that are no messages."""
    attempt = await facts.connected()
    evidence = [f"stderr: {line}" for line in attempt.stderr] or ["it wrote nothing to stderr"]
    if attempt.noise:
        noise = [f"stdout, not a message: {line}" for line in attempt.noise]
        remedy = "the server must print to stderr: stdout belongs to the protocol, and some clients end the connection"
        return StepResult("stderr", "warning", [*noise, *evidence], remedy)
    return StepResult("stderr", "passed", evidence)


START_STEPS = (Step("process start", check_start), Step("stderr", check_stderr))

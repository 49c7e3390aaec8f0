"""The steps that read the configuration: file, entry, references, program. Nothing is started or contacted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from accord.client.target import Command, Remote, parse
from accord.client.variables import VARIABLE
from accord.errors import AccordError, TargetError
from accord.host.doctor.diagnosis import Step, StepResult
from accord.host.doctor.known_facts import KnownFacts
from accord.host.host_files import read_host_file
from accord.host.secret_references import texts, with_secrets
from accord.redaction import names_secret
from accord.transport.process import child_environment

# --- file ------------------------------------------------------------------------------------------------------------


async def check_file(facts: KnownFacts) -> StepResult:
    """Read the file."""
    subject = facts.subject
    assert subject.path is not None, "the step is for a server in a file"
    try:
        facts.file = subject.file or read_host_file(subject.path, subject.form, project=subject.project)
    except TargetError as exc:
        remedy = "correct the file there; nothing in it was changed" if subject.path.exists() else "correct the path"
        return StepResult("file", "failed", [str(exc)], remedy)
    return StepResult("file", "passed", [f"{subject.path}: servers: {len(facts.file.entries)}"])


# --- entry -----------------------------------------------------------------------------------------------------------


async def check_entry(facts: KnownFacts) -> StepResult:
    """Find the entry in the file, and validate it."""
    assert facts.file is not None, "the file was read"
    names = ", ".join(facts.file.entries) or "none"
    facts.entry = facts.file.entries.get(facts.subject.name)
    if facts.entry is None:
        text = f"{facts.file.path} has no server {facts.subject.name!r}; there are {names}"
        return StepResult("entry", "failed", [text], "name one of these, or add it to the file")
    if facts.entry.entry is None:
        return StepResult("entry", "failed", [f"{facts.entry.where}: {facts.entry.error}"], "correct the entry")
    evidence = [f"{facts.entry.where}: {'a URL' if 'url' in facts.entry.entry else 'a program'}"]
    if not facts.entry.enabled:
        return StepResult("entry", "warning", [*evidence, "it is disabled"], "the host does not use it: enable it")
    return StepResult("entry", "passed", evidence)


async def check_target(facts: KnownFacts) -> StepResult:
    """Take a target that is not in a file."""
    target = facts.subject.target
    assert target is not None, "it was parsed before"
    facts.target = facts.subject.adjust(target)
    _add_secrets(facts, facts.target)
    return StepResult("entry", "passed", [f"{'a URL' if isinstance(target, Remote) else 'a command'}: {target}"])


# --- references ------------------------------------------------------------------------------------------------------


async def check_references(facts: KnownFacts) -> StepResult:
    """Replace the references to variables and to the keyring."""
    assert facts.entry is not None, "the entry was found"
    assert facts.entry.entry is not None, "the entry is valid"
    entry: Any = facts.entry.entry
    evidence, missing = _variables(facts, entry)
    if missing:
        remedy = f"set {' and '.join(missing)} in the environment in which the host starts"
        return StepResult("references", "failed", evidence, remedy)
    try:
        entry = await _with_keyring(entry, facts, evidence)
        target = parse(entry)
        assert isinstance(target, Command | Remote), "an entry has a command or a URL"
        facts.target = facts.subject.adjust(target)
    except AccordError as exc:
        return StepResult("references", "failed", [*evidence, str(exc)], "correct the entry, or what it refers to")
    _add_secrets(facts, facts.target)
    return StepResult("references", "passed", evidence or ["none"])


def _variables(facts: KnownFacts, entry: Any) -> tuple[list[str], list[str]]:
    """Return what was found of each variable, and the names of those that are missing."""
    evidence, missing = [], []
    found = [match.groups() for text in texts(entry) for match in VARIABLE.finditer(text)]
    for name, default in dict.fromkeys(found):
        value = os.environ.get(name)
        if value and names_secret(name):
            _add_user_secret(facts, value)
        if value:
            evidence.append(f"the environment variable {name} is set")
        elif default is not None:
            evidence.append(f"the environment variable {name} is not set; the default is used")
        elif value is not None:
            evidence.append(f"the environment variable {name} is empty")
        else:
            evidence.append(f"the environment variable {name} is not set")
            missing.append(name)
    return evidence, list(dict.fromkeys(missing))


async def _with_keyring(entry: Any, facts: KnownFacts, evidence: list[str]) -> Any:
    """Return an entry with the secrets of the keyring in place of references. Raises `TargetError`."""
    replaced = await with_secrets(entry)
    for before, after in zip(texts(entry), texts(replaced), strict=True):
        if before != after:
            _add_user_secret(facts, after)
            evidence.append(f"the keyring has the secret of {before}")
    return replaced


def _add_user_secret(facts: KnownFacts, value: str) -> None:
    facts.redactor.add_permanent([value])
    facts.user_secrets.add_permanent([value])


def _add_secrets(facts: KnownFacts, target: Command | Remote) -> None:
    """Add what must not be shown."""
    if isinstance(target, Remote):
        url = urlsplit(target.url)
        facts.redactor.add_permanent([*(target.headers or {}).values(), url.password or ""])
        facts.redactor.add_permanent(value for _, value in parse_qsl(url.query))
    else:
        env = target.env or {}
        facts.redactor.add_permanent(value for name, value in env.items() if names_secret(name))


# --- program ---------------------------------------------------------------------------------------------------------


async def check_program(facts: KnownFacts) -> StepResult:
    """Find the program and the working directory."""
    target = facts.target
    assert isinstance(target, Command), "the step is for a program"
    return _find_program(target, facts)


def _find_program(target: Command, facts: KnownFacts) -> StepResult:
    if target.cwd is not None and not os.path.isdir(target.cwd):
        return StepResult("program", "failed", [f"the directory {target.cwd} does not exist"], 'correct "cwd"')
    name = target.argv[0]
    path = child_environment(target.env, inherit=target.inherit_env).get("PATH", "")
    found = os.path.join(target.cwd or "", name) if os.path.dirname(name) else shutil.which(name, path=path)
    if found is None:
        remedy = f"install {name}, or write its absolute path: desktop hosts have another PATH than a terminal"
        return StepResult("program", "failed", [f"{name} is not on PATH", f"PATH: {path or 'not set'}"], remedy)
    return _found_program(os.path.abspath(found), name, facts)


def _found_program(path: str, name: str, facts: KnownFacts) -> StepResult:
    if not os.path.isfile(path):
        what = "is a directory" if os.path.isdir(path) else "does not exist"
        return StepResult("program", "failed", [f"{path} {what}"], "correct the path of the program, or install it")
    if not os.access(path, os.X_OK):
        return StepResult("program", "failed", [f"{path} is not executable"], f"make it executable: chmod +x {path}")
    evidence = [path]
    if facts.subject.host and not Path(name).is_absolute():
        evidence.append(f"found on the PATH here; {facts.subject.host} may have another one")
    return StepResult("program", "passed", evidence)


FILE_STEPS = (Step("file", check_file), Step("entry", check_entry), Step("references", check_references))
TARGET_STEPS = (Step("entry", check_target),)
PROGRAM_STEPS = (Step("program", check_program),)

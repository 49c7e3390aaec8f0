"""Start a rewritten program and report its failure: `start(file, texts)`.

The program is imported in a separate process, from the rewritten texts, whether or not they are written to disk. Its
servers do not serve: a call of `run()` ends the import. Then all their definitions are built, which evaluates the rest
of each declaration.
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import linecache
import os
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from types import ModuleType
from typing import Any, NoReturn

import msgspec

from accord.compat.name_map import FOREIGN_PACKAGES
from accord.errors import AccordError, DeclarationError
from accord.messages.revision import LATEST, RULES
from accord.server.core.registration import Registration
from accord.server.server import Server

SECONDS = 30.0
"""The timeout for importing the program and listing what its servers offer."""

_SCRIPT = '; put code that only a script runs under `if __name__ == "__main__":`'


class StartResult(msgspec.Struct):
    """The result of starting a program."""

    failed: str | None = None
    """Why the program failed, with advice if available; None if it started."""
    line: int | None = None
    """The line of the rewritten text that failed."""
    file: str = ""
    """The file of the line."""
    offers: dict[str, int] | None = None
    """The number of tools, resources, templates and prompts: {"tool": 2}; None without a server among the program's
    names.
    """


class _StartJob(msgspec.Struct):
    file: str
    texts: dict[str, str]


def start(file: Path, texts: Mapping[Path, str], *, seconds: float = SECONDS) -> StartResult:
    """Import `file` in a separate process and count what its servers offer. `texts` are the rewritten programs."""
    job = _StartJob(str(file.resolve()), {str(path.resolve()): text for path, text in texts.items()})
    command = [sys.executable, "-P", "-m", __name__]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            answer, _ = process.communicate(msgspec.json.encode(job), seconds)
        except TimeoutExpired:
            process.kill()
            return StartResult(f"the import did not finish in {seconds:g} s{_SCRIPT}", file=job.file)
    try:
        return msgspec.json.decode(answer.rpartition(b"\n")[2], type=StartResult)
    except msgspec.DecodeError:
        return StartResult(f"the import ended the process with exit code {process.returncode}", file=job.file)


# --- in the program's process ----------------------------------------------------------------------------------


class _ServeCalled(BaseException):
    """Ends the import when the program calls `run()`; a BaseException, so that `except Exception` does not catch it."""


class _Loader(SourceFileLoader):
    """A loader that reads a file from its rewritten text, without a bytecode cache."""

    text = ""

    def get_data(self, path: str) -> bytes:
        return self.text.encode() if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("the rewritten text is not in a file")


class _Finder(MetaPathFinder):
    """A finder that loads the rewritten programs in place of their files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or spec.origin not in self._texts:
            return None
        return self.spec(name, spec.origin)

    def spec(self, name: str, file: str) -> ModuleSpec:
        """Return the module spec of a file with its rewritten text."""
        loader = _Loader(name, file)
        loader.text = self._texts[file]
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        assert spec is not None, "a loader was given"
        return spec


def main() -> None:
    """Run the job on stdin; the last line of stdout is the result."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=_StartJob)
    for file, text in job.texts.items():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    result = _start(job)
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(result))
    sys.stdout.flush()
    os._exit(0)  # threads of the program may still run


def _start(job: _StartJob) -> StartResult:
    try:
        servers = _servers(job)
        if not servers:
            return StartResult(file=job.file)
        return StartResult(file=job.file, offers=dict(sum(map(_count_offers, servers), Counter())))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as exc:  # the import may raise anything
        return _failure(exc, job)


def _servers(job: _StartJob) -> list[Server]:
    """Import the program and return the servers among its names."""
    started: list[Server] = []

    def run(server: Server, *_: Any, **__: Any) -> NoReturn:
        started.append(server)
        raise _ServeCalled

    for name in ("run", "run_async"):
        setattr(Server, name, run)
    finder = _Finder(job.texts)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(Path(job.file).parent))
    spec = finder.spec(Path(job.file).stem, job.file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    assert spec.loader is not None, "it was made with one"
    with suppress(_ServeCalled):
        spec.loader.exec_module(module)
    public = [value for value in vars(module).values() if isinstance(value, Server)]
    return list({id(server): server for server in (*public, *started)}.values())


def _count_offers(server: Server) -> Counter[str]:
    """Return the number of registrations by kind. Raises `_DefinitionFailed`."""
    registry, rules = server.registry, RULES[LATEST]
    kinds: dict[str, list[Registration]] = {
        "tool": list(registry.tools.values()),
        "resource": list(registry.resources.values()),
        "template": [registration for _, registration in registry.templates.values()],
        "prompt": list(registry.prompts.values()),
    }
    for registration in itertools.chain(*kinds.values()):
        try:
            registration.define(rules)
        except DeclarationError as exc:
            raise _DefinitionFailed(registration.function) from exc
    return Counter({kind: len(registrations) for kind, registrations in kinds.items() if registrations})


class _DefinitionFailed(Exception):
    """A definition that cannot be built; `__cause__` is the error."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.code: Any = getattr(inspect.unwrap(function), "__code__", None)


def _failure(error: BaseException, job: _StartJob) -> StartResult:
    """Return the message of an error, with its line and file in the program."""
    if isinstance(error, _DefinitionFailed):
        in_program = error.code is not None and error.code.co_filename in job.texts
        location = (error.code.co_firstlineno, error.code.co_filename) if in_program else (None, job.file)
        return StartResult(str(error.__cause__), *location)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in job.texts]
    location = (frames[-1].lineno, frames[-1].filename) if frames else (getattr(error, "lineno", None), job.file)
    return StartResult(_describe(error), *location)


def _describe(error: BaseException) -> str:
    """Return the message of an error, with advice."""
    match error:
        case AccordError():
            return str(error)
        case SystemExit(code=code):
            return f"the import exited the program ({code!r}){_SCRIPT}"
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] in FOREIGN_PACKAGES:
            return f"{name} has no counterpart in accord; see docs/switching.md"
        case ModuleNotFoundError(name=str(name)):
            return f"{name} is not installed in accord's environment; install it there, or use --no-start"
        case ImportError(name=str(name)) if name.startswith("accord.compat"):
            return str(error).partition(" (")[0]
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{message}; see docs/switching.md for the differences"


if __name__ == "__main__":
    main()

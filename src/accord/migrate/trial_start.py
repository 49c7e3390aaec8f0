"""Start a rewritten program and report what fails: `start(file, texts)`.

The program is imported in a process of its own, from the rewritten texts, whether they have been written or not. Its
servers do not serve: a call of `run()` ends the import. Then everything that they offer is listed, which is when the
rest of a declaration is read.
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
"""How long a program may take to import and to list what it offers."""

_SCRIPT = '; what only a script does belongs under `if __name__ == "__main__":`'


class StartResult(msgspec.Struct):
    """What became of a program that was started."""

    failed: str | None = None
    """Why it does not start, with the cure where there is one; None for one that does."""
    line: int | None = None
    """The line of the rewritten text that fails."""
    file: str = ""
    """The file that the line is in."""
    offers: dict[str, int] | None = None
    """How many its servers offer of each kind: {"tool": 2}; None where no server is among its names."""


class _StartJob(msgspec.Struct):
    file: str
    texts: dict[str, str]


def start(file: Path, texts: Mapping[Path, str], *, seconds: float = SECONDS) -> StartResult:
    """Import `file` in a process of its own, and list what its servers offer. `texts` are the rewritten programs."""
    job = _StartJob(str(file.resolve()), {str(path.resolve()): text for path, text in texts.items()})
    command = [sys.executable, "-P", "-m", __name__]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            answer, _ = process.communicate(msgspec.json.encode(job), seconds)
        except TimeoutExpired:
            process.kill()
            return StartResult(f"it did not finish its import in {seconds:g} s{_SCRIPT}", file=job.file)
    try:
        return msgspec.json.decode(answer.rpartition(b"\n")[2], type=StartResult)
    except msgspec.DecodeError:
        return StartResult(f"it ended the process with exit code {process.returncode}", file=job.file)


# --- in the process of the program -----------------------------------------------------------------------------


class _ServeCalled(BaseException):
    """The program came as far as to serve: nothing of it can catch this by mistake."""


class _Loader(SourceFileLoader):
    """Loads a file from its rewritten text, without a cache."""

    text = ""

    def get_data(self, path: str) -> bytes:
        return self.text.encode() if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("the text is not in a file yet")


class _Finder(MetaPathFinder):
    """Finds the rewritten programs in the place of their files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or spec.origin not in self._texts:
            return None
        return self.spec(name, spec.origin)

    def spec(self, name: str, file: str) -> ModuleSpec:
        """The module of a file, from its text."""
        loader = _Loader(name, file)
        loader.text = self._texts[file]
        found = importlib.util.spec_from_file_location(name, file, loader=loader)
        assert found is not None, "a loader was given"
        return found


def main() -> None:
    """Do the job that stands on stdin; the last line of stdout says what became of it."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=_StartJob)
    for file, text in job.texts.items():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    found = _start(job)
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(found))
    sys.stdout.flush()
    os._exit(0)  # threads of the program may go on


def _start(job: _StartJob) -> StartResult:
    try:
        servers = _servers(job)
        if not servers:
            return StartResult(file=job.file)
        return StartResult(file=job.file, offers=dict(sum(map(_count_offers, servers), Counter())))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as exc:  # the program may raise anything while it is imported
        return _failure(exc, job)


def _servers(job: _StartJob) -> list[Server]:
    """The servers among the names of the program, once it is imported."""
    reached: list[Server] = []

    def run(server: Server, *_: Any, **__: Any) -> NoReturn:
        reached.append(server)
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
    named = [value for value in vars(module).values() if isinstance(value, Server)]
    return list({id(server): server for server in (*named, *reached)}.values())


def _count_offers(server: Server) -> Counter[str]:
    """How many a server offers of each kind. Raises `_DefinitionFailed`."""
    registry, rules = server.registry, RULES[LATEST]
    kinds: dict[str, list[Registration]] = {
        "tool": list(registry.tools.values()),
        "resource": list(registry.resources.values()),
        "template": [offer for _, offer in registry.templates.values()],
        "prompt": list(registry.prompts.values()),
    }
    for offer in itertools.chain(*kinds.values()):
        try:
            offer.define(rules)
        except DeclarationError as exc:
            raise _DefinitionFailed(offer.function) from exc
    return Counter({kind: len(offers) for kind, offers in kinds.items() if offers})


class _DefinitionFailed(Exception):
    """The definition of a function cannot be made; the cause says why."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.code: Any = getattr(inspect.unwrap(function), "__code__", None)


def _failure(error: BaseException, job: _StartJob) -> StartResult:
    """What an error of the program says, where in it, and how to cure it."""
    if isinstance(error, _DefinitionFailed):
        known = error.code is not None and error.code.co_filename in job.texts
        place = (error.code.co_firstlineno, error.code.co_filename) if known else (None, job.file)
        return StartResult(str(error.__cause__), *place)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in job.texts]
    place = (own[-1].lineno, own[-1].filename) if own else (getattr(error, "lineno", None), job.file)
    return StartResult(_describe(error), *place)


def _describe(error: BaseException) -> str:
    """What an error says, and what to do."""
    match error:
        case AccordError():
            return str(error)
        case SystemExit(code=code):
            return f"it ended the program ({code!r}) while it was imported{_SCRIPT}"
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] in FOREIGN_PACKAGES:
            return f"{name} has no counterpart in accord; see docs/switching.md"
        case ModuleNotFoundError(name=str(name)):
            return f"{name} is not installed where accord is; install it there, or start nothing (--no-start)"
        case ImportError(name=str(name)) if name.startswith("accord.compat"):
            return str(error).partition(" (")[0]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{said}; see docs/switching.md for what differs"


if __name__ == "__main__":
    main()

"""A server in a Python file: finding it, and serving it over stdio.

While the file is imported, descriptor 1 is stderr and descriptor 0 is /dev/null: whatever it prints or reads, the wire
stays whole. What goes wrong is told in terms of the file; the frames of accord are left out.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import TextIO, cast

import accord
from accord.cli import failures
from accord.errors import AccordError, DeclarationError, TargetError
from accord.server.server import Server
from accord.transport.stdio import GuardedStdout

NAMES = ("server", "mcp", "app")
"""What people call their server."""

_ACCORD_DIR = str(Path(accord.__file__).parent) + os.sep


def main(target: str) -> int:
    """Serve `FILE.py[:name]` over stdio until the client goes; the exit code."""
    try:
        server = load(target)
    except (AccordError, KeyboardInterrupt) as exc:
        return failures.report_error(exc)
    print_waiting(target)
    server.run()
    return 0


def print_waiting(target: str) -> None:
    """At a terminal, say on stderr why nothing happens: a program is meant to be at the other end of stdin."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None:
        print(
            f"accord: {target} serves over stdio and waits for a client on stdin; "
            f"try `accord list {target}`, or serve HTTP with `accord run {target} --http :8000`; Ctrl-C ends it",
            file=sys.stderr,
        )


def load(target: str) -> Server:
    """The server in `FILE.py[:name]`. Raises `TargetError`."""
    path, _, name = target.partition(".py:") if ".py:" in target else (target, "", "")
    file = Path(_relative_path(path + ".py" if name else path.removesuffix(":")))
    if file.suffix != ".py":
        raise TargetError(f"{target}: give FILE.py or FILE.py:name")
    if not file.is_file():
        raise TargetError(f"{file}: no such file")
    server = find(_import(file), name, file)
    try:
        server.registry.resolve()
    except DeclarationError as exc:  # which has file and line in it
        raise TargetError(str(exc)) from exc
    return server


def find(module: ModuleType, name: str, file: Path) -> Server:
    """The server called `name`, or the one that is meant where no name is given. Raises `TargetError`."""
    servers = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name:
        return servers[name] if name in servers else _not_found(module, name, file, servers)
    for usual in NAMES:
        if usual in servers:
            return servers[usual]
    distinct = {id(server): server for server in servers.values()}
    if len(distinct) == 1:
        return distinct.popitem()[1]
    if not servers:
        raise TargetError(f'{file} has no Server: it needs one, as in `server = Server("{file.stem}")`')
    raise TargetError(f"{file} has several servers; name one: {_choices(file, servers)}")


def _not_found(module: ModuleType, name: str, file: Path, servers: dict[str, Server]) -> Server:
    choices = f"; it has {_choices(file, servers)}" if servers else ""
    if not hasattr(module, name):
        raise TargetError(f"{file} has no {name!r}{choices}")
    kind = type(getattr(module, name))
    called = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    raise TargetError(f"{file}: {name!r} is of type {called}, not an accord Server{choices}")


def _choices(file: Path, servers: dict[str, Server]) -> str:
    return ", ".join(f"{file}:{name}" for name in servers)


# --- importing -------------------------------------------------------------------------------------------------


def _import(file: Path) -> ModuleType:
    """The file as a module that is not `__main__`, its directory first on the path. Raises `TargetError`."""
    sys.path.insert(0, str(file.resolve().parent))
    name = file.stem if file.stem not in sys.modules else f"{file.stem}__served"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise TargetError(f"{file}: Python cannot import this")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    with _redirected_streams():
        try:
            spec.loader.exec_module(module)
        except SyntaxError as exc:
            raise TargetError(_syntax(exc, file)) from exc
        except DeclarationError as exc:
            raise TargetError(f"{_place(exc, file)}: {exc}") from exc
        except SystemExit as exc:
            raise TargetError(
                f"{file} ended the program ({exc.code!r}) while it was imported; "
                'what only a script does belongs under `if __name__ == "__main__":`'
            ) from exc
        except Exception as exc:
            raise TargetError(f"{file} could not be imported\n{_trace(exc)}") from exc
    return module


@contextmanager
def _redirected_streams() -> Iterator[None]:
    """Descriptor 0 at its end and descriptor 1 on stderr, for Python, C code and children alike."""
    with ExitStack() as undo:
        with suppress(OSError):  # a standard stream that is closed needs no care
            null = os.open(os.devnull, os.O_RDONLY)
            undo.callback(os.close, null)
            for fd, stand_in in ((0, null), (1, 2)):
                kept = os.dup(fd)
                undo.callback(os.close, kept)
                undo.callback(os.dup2, kept, fd)
                os.dup2(stand_in, fd)
        undo.enter_context(redirect_stdout(cast(TextIO, GuardedStdout())))
        yield


def _syntax(exc: SyntaxError, file: Path) -> str:
    shown = "".join(traceback.TracebackException.from_exception(exc).format_exception_only()).splitlines()
    return "\n".join(
        [f"{(exc.filename and _relative_path(exc.filename)) or file}:{exc.lineno}: {exc.msg}", *shown[1:-1]]
    )


def _place(exc: BaseException, file: Path) -> str:
    """Where in the author's own code it was raised."""
    own = [frame for frame in traceback.extract_tb(exc.__traceback__) if not _foreign(frame.filename)]
    return f"{_relative_path(own[-1].filename)}:{own[-1].lineno}" if own else str(file)


def _trace(exc: BaseException) -> str:
    told: traceback.TracebackException | None = traceback.TracebackException.from_exception(exc)
    whole = told
    while told is not None:
        told.stack = traceback.StackSummary.from_list([f for f in told.stack if not _foreign(f.filename)])
        told = told.__cause__ or told.__context__
    return "".join(whole.format() if whole else ()).rstrip()


def _foreign(filename: str) -> bool:
    return filename.startswith((_ACCORD_DIR, "<frozen importlib"))


def _relative_path(filename: str) -> str:
    """As a person would write it from here."""
    path, here = Path(filename), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else filename

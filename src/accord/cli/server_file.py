"""Load a server from a Python file, and serve it over stdio.

During the import, descriptor 1 is stderr and descriptor 0 is /dev/null: output and input of the file cannot corrupt
the protocol stream. Errors name the file; accord's own stack frames are left out.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
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

_PARENT_POLL_SECONDS = 1.0

NAMES = ("server", "mcp", "app")
"""The usual names of the server variable."""

_ACCORD_DIR = str(Path(accord.__file__).parent) + os.sep


def main(target: str) -> int:
    """Serve `FILE.py[:name]` over stdio until the client disconnects, and return the exit code."""
    try:
        server = load(target)
    except (AccordError, KeyboardInterrupt) as exc:
        return failures.report_error(exc)
    print_waiting(target)
    server.run()
    return 0


def print_waiting(target: str) -> None:
    """Print a note if stdin is a terminal, because the server waits for a client program on stdin."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None:
        print(
            f"accord: {target} serves over stdio and waits for a client on stdin; "
            f"try `accord list {target}`, or serve HTTP with `accord run {target} --http :8000`; Ctrl-C ends it",
            file=sys.stderr,
        )


def load(target: str) -> Server:
    """Return the server in `FILE.py[:name]`. Raises `TargetError`."""
    path, _, name = target.partition(".py:") if ".py:" in target else (target, "", "")
    file = Path(_relative_path(path + ".py" if name else path.removesuffix(":")))
    if file.suffix != ".py":
        raise TargetError(f"{target}: give FILE.py or FILE.py:name")
    if not file.is_file():
        raise TargetError(f"{file}: no such file")
    if report := os.environ.get("ACCORD_DEV_IMPORTS"):
        from accord.dev.import_report import report_imports

        report_imports(report)
        # before the import, which may hang: a server learns from nothing else that accord dev was killed
        threading.Thread(target=_end_with, args=(os.getppid(),), name="accord dev watch", daemon=True).start()
    server = find(_import(file), name, file)
    try:
        server.registry.resolve()
    except DeclarationError as exc:  # which names file and line
        raise TargetError(str(exc)) from exc
    return server


def _end_with(parent: int) -> None:
    """End this process once `accord dev`, which has started it, is gone without ending it."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def find(module: ModuleType, name: str, file: Path) -> Server:
    """Return the server called `name`, or without a name the usual or only one. Raises `TargetError`."""
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
    type_name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    raise TargetError(f"{file}: {name!r} is of type {type_name}, not an accord Server{choices}")


def _choices(file: Path, servers: dict[str, Server]) -> str:
    return ", ".join(f"{file}:{name}" for name in servers)


# --- importing -------------------------------------------------------------------------------------------------


def _import(file: Path) -> ModuleType:
    """Import the file as a module other than `__main__`, with its directory first on the path. Raises `TargetError`."""
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
    """Redirect descriptor 0 to /dev/null and descriptor 1 to stderr, for Python, C code and child processes."""
    with ExitStack() as stack:
        with suppress(OSError):  # a standard stream may be closed
            null = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, null)
            for fd, replacement in ((0, null), (1, 2)):
                saved = os.dup(fd)
                stack.callback(os.close, saved)
                stack.callback(os.dup2, saved, fd)
                os.dup2(replacement, fd)
        stack.enter_context(redirect_stdout(cast(TextIO, GuardedStdout())))
        yield


def _syntax(exc: SyntaxError, file: Path) -> str:
    lines = "".join(traceback.TracebackException.from_exception(exc).format_exception_only()).splitlines()
    return "\n".join(
        [f"{(exc.filename and _relative_path(exc.filename)) or file}:{exc.lineno}: {exc.msg}", *lines[1:-1]]
    )


def _place(exc: BaseException, file: Path) -> str:
    """Return the line of the user's own code where an exception was raised."""
    frames = [frame for frame in traceback.extract_tb(exc.__traceback__) if not _is_internal(frame.filename)]
    return f"{_relative_path(frames[-1].filename)}:{frames[-1].lineno}" if frames else str(file)


def _trace(exc: BaseException) -> str:
    current: traceback.TracebackException | None = traceback.TracebackException.from_exception(exc)
    formatted = current
    while current is not None:
        current.stack = traceback.StackSummary.from_list([f for f in current.stack if not _is_internal(f.filename)])
        current = current.__cause__ or current.__context__
    return "".join(formatted.format() if formatted else ()).rstrip()


def _is_internal(filename: str) -> bool:
    return filename.startswith((_ACCORD_DIR, "<frozen importlib"))


def _relative_path(filename: str) -> str:
    """Return a path relative to the working directory if possible."""
    path, here = Path(filename), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else filename

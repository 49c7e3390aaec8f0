"""Make a virtual environment inside the checkout, or leave it alone when it is already right.

    scripts/python scripts/env.py FOLDER [--project] [--group NAME]... [--require REQUIREMENT]...

`--project` installs the checkout itself (editable), `--group` one of the dependency groups of pyproject.toml,
which pip can do itself only from 25.1 on. A stamp in the folder holds a digest of everything that
went in; it is written last, so an interrupted run is made again. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import uv

ROOT = Path(__file__).resolve().parent.parent
STAMP = "accord-stamp"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--project", action="store_true")
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--require", action="append", default=[])
    options = parser.parse_args()

    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*options.require]
    for group in options.group:
        wanted += requirements(pyproject, group)
    sources = {name: pyproject.get(name) for name in ("build-system", "project")} if options.project else {}
    folder = (ROOT / options.folder).resolve()
    stamp = digest([sys.version, sys.base_prefix, str(folder), sources, wanted])
    arguments = [*(["--editable", str(ROOT)] if options.project else []), *wanted]
    with locked(folder):
        if written(folder) != stamp:
            make(folder, arguments)
            (folder / STAMP).write_text(stamp, encoding="ascii")
    return 0


def requirements(pyproject: dict[str, dict[str, list[str]]], group: str) -> list[str]:
    """The requirements of one dependency group."""
    groups = pyproject.get("dependency-groups", {})
    if group not in groups:
        raise SystemExit(f"pyproject.toml has no dependency group {group!r}; it has {', '.join(groups)}")
    return groups[group]


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def written(folder: Path) -> str | None:
    """The stamp of an environment that is whole, if there is one."""
    try:
        return (folder / STAMP).read_text(encoding="ascii")
    except FileNotFoundError:
        return None


def make(folder: Path, arguments: list[str]) -> None:
    name = os.path.relpath(folder, ROOT)
    say(f"{name}: installing with Python {sys.version.split()[0]}")
    begun = time.monotonic()
    if not with_uv(folder, arguments):
        with_pip(folder, arguments)
    say(f"{name}: ready after {time.monotonic() - begun:.0f} s")


def with_uv(folder: Path, arguments: list[str]) -> bool:
    """Whether uv could do it; what it complains of is told, and pip may still have a way."""
    with locked(uv.FOLDER):
        command, environment = uv.command(), uv.environment()
    if command is None or environment is None:
        return False
    venv.create(folder, clear=True)
    install = [*command, "pip", "install", "--quiet", "--python", str(python_of(folder)), *arguments]
    return run(install, environment) == 0


def with_pip(folder: Path, arguments: list[str]) -> None:
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(python_of(folder)), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq"]
    code = run([*pip, *arguments], {})
    if code:
        name = os.path.relpath(folder, ROOT)
        raise SystemExit(f"{name}: pip failed with exit code {code}; its words are above")


def run(command: list[str], environment: dict[str, str]) -> int:
    """Its exit code. Scripts that are piped into each other must not lose a line to it: it reads and writes nothing
    of ours."""
    environment = {**os.environ, **environment}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    return done.returncode


def python_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time per folder: two scripts started together do not build over each other."""
    try:
        import fcntl
    except ImportError:  # Windows: no lock, and scripts/ are bash anyway
        yield
        return
    locks = ROOT / ".cache" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / folder.name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`accord migrate`: a program of another library, rewritten for accord; the difference first."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

import click

from accord.cli.failures import printable
from accord.cli.settings import traceback_option
from accord.errors import TargetError
from accord.migrate.rewrite import RewriteResult, rewrite
from accord.migrate.trial_start import StartResult, start

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("files", metavar="FILE.py...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the files; without it they are only shown, and you are asked.")
@click.option("--native", is_flag=True, help="Use accord's own words where that is certain, not only its compat names.")
@click.option("--no-start", is_flag=True, help="Do not start the result to see whether it works.")
@traceback_option
def command(files: tuple[Path, ...], write: bool, native: bool, no_start: bool) -> int:
    """Rewrite programs that are written for FastMCP, or for the official SDK.

    The import lines lead to accord.compat then, where the same names mean the same. With --native, the program says it
    in accord's own words; give all files of a program at once. What has to be done by hand is listed by line.

    The result is started: each file is imported in a process of its own, and what its servers offer is listed. What
    fails is reported with its line. Programs that do something else when they are imported do that; --no-start skips
    it.

    The exit code is 1 where something is left to do by hand, or where the result does not start.
    """
    found = {file: _migrate(file, write=write, native=native) for file in files}
    started = no_start or _all_start(found)
    return 0 if started and not any(one.manual_steps for one in found.values()) else 1


def _migrate(file: Path, *, write: bool, native: bool) -> RewriteResult:
    text, encoding = read(file)
    try:
        found = rewrite(text, native=native)
    except SyntaxError as exc:
        raise TargetError(f"{file}:{exc.lineno}: {exc.msg}; nothing was changed") from exc
    _show(file, text, found)
    if found.text != text and (write or _confirm(file)):
        replace(file, found.text.encode(encoding))
        click.echo(f"{file}: written", err=True)
    return found


def replace(file: Path, content: bytes) -> None:
    """Write a file as a whole: where that fails, as on a full disk, it stays as it was. Raises `TargetError`."""
    file = file.resolve()  # a link stays one
    fresh = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        with fresh.open("xb") as out:
            shutil.copymode(file, fresh)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
    except OSError as exc:
        fresh.unlink(missing_ok=True)
        raise TargetError(f"{file} cannot be written: {exc}; it is as it was") from exc


def _all_start(found: Mapping[Path, RewriteResult]) -> bool:
    """Start every file that uses what stands for another library, and say what fails; whether nothing does."""
    texts = {file: one.text for file, one in found.items()}
    failed = False
    for file, one in found.items():
        if one.foreign:
            started = start(file, texts)
            failed = failed or started.failed is not None
            _show_start(file, one, started)
    return not failed


def _show_start(file: Path, one: RewriteResult, started: StartResult) -> None:
    if started.failed is None:
        counts = [f"{count} {kind}{'s' * (count > 1)}" for kind, count in (started.offers or {}).items()]
        offers = "" if started.offers is None else f", and offers {', '.join(counts) or 'nothing'}"
        click.echo(f"{file}: it starts{offers}", err=True)
    elif started.line is None:
        click.echo(f"{file}: it does not start: {printable(started.failed)}", err=True)
    elif started.line not in {left.line for left in one.manual_steps}:  # which were listed
        place = file if Path(started.file) == file.resolve() else started.file
        click.echo(f"{place}:{started.line}: it does not start: {printable(started.failed)}", err=True)


def read(file: Path) -> tuple[str, str]:
    """The text of a program as it stands, with its line ends, and its encoding. Raises `TargetError`."""
    try:
        with file.open("rb") as raw:
            encoding, _ = tokenize.detect_encoding(raw.readline)
        text = file.read_bytes().decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as exc:
        raise TargetError(f"{file} cannot be read: {exc}") from exc
    if "\r" in text.replace("\r\n", ""):
        raise TargetError(f"{file} has lines that end in a lone CR; save it with the usual line ends first")
    return text, encoding


def _show(file: Path, text: str, found: RewriteResult) -> None:
    if found.text == text:
        click.echo(f"{file}: nothing to rewrite", err=True)
    old, new = text.splitlines(keepends=True), found.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, f"{file}", f"{file}, for accord"):
        shown = printable(line.rstrip("\r\n"))
        click.echo(click.style(shown, fg=_COLOURS.get(line[0])) if line[0] in _COLOURS else shown)
    for one in found.manual_steps:
        click.echo(f"{file}:{one.line}: {printable(one.text)}", err=True)


def _confirm(file: Path) -> bool:
    """What the person at the terminal says; nobody there is a no."""
    return sys.stdin.isatty() and sys.stdout.isatty() and click.confirm(f"Write {file}?", err=True)

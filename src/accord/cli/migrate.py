"""`accord migrate`: rewrite a program of another library for accord, and print the diff first."""

from __future__ import annotations

import difflib
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path

import click

from accord.cli.failures import printable
from accord.cli.settings import traceback_option
from accord.errors import TargetError
from accord.file_replacement import replace_file
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
    """Rewrite programs for FastMCP or the official SDK.

    The imports then name accord.compat, where the same names mean the same. With --native, the program uses accord's
    own API where that is certain; pass all files of a program at once. Manual steps are listed by line.

    The result is started: each file is imported in a separate process, and the tools, resources and prompts of its
    servers are counted. A failure is reported with its line. Importing a program runs its top-level code; --no-start
    skips this.

    The exit code is 1 if manual steps remain, or if the result does not start.
    """
    results = {file: _migrate(file, write=write, native=native) for file in files}
    starts = no_start or _all_start(results)
    return 0 if starts and not any(result.manual_steps for result in results.values()) else 1


def _migrate(file: Path, *, write: bool, native: bool) -> RewriteResult:
    text, encoding = read(file)
    try:
        result = rewrite(text, native=native)
    except SyntaxError as exc:
        raise TargetError(f"{file}:{exc.lineno}: {exc.msg}; nothing was changed") from exc
    except (RecursionError, MemoryError) as exc:  # MemoryError is what the parser of Python raises
        raise TargetError(f"{file}: its expressions or blocks are nested too deeply; nothing was changed") from exc
    _show(file, text, result)
    if result.text != text and (write or _confirm(file)):
        replace(file, result.text.encode(encoding), was=text.encode(encoding))
        click.echo(f"{file}: written", err=True)
    return result


def replace(file: Path, content: bytes, *, was: bytes) -> None:
    """Replace the content of a file in one step; an error, or another content than before, leaves it unchanged. Raises
    `TargetError`.
    """
    target = file.resolve()  # a link stays a link

    def check_unchanged() -> None:
        if target.read_bytes() != was:
            raise TargetError(f"{file}: it changed meanwhile; nothing was written")

    try:
        replace_file(target, content, target, check=check_unchanged)
    except OSError as exc:
        raise TargetError(f"{file} cannot be written: {exc.strerror or exc}; it is as it was") from exc


def _all_start(results: Mapping[Path, RewriteResult]) -> bool:
    """Start every file that uses another library and report failures; return whether all start."""
    texts = {file: result.text for file, result in results.items()}
    failed = False
    for file, result in results.items():
        if result.foreign:
            trial = start(file, texts)
            failed = failed or trial.failed is not None
            _show_start(file, result, trial)
    return not failed


def _show_start(file: Path, result: RewriteResult, trial: StartResult) -> None:
    if trial.failed is None:
        counts = [f"{count} {kind}{'s' * (count > 1)}" for kind, count in (trial.offers or {}).items()]
        offers = "" if trial.offers is None else f", and offers {', '.join(counts) or 'nothing'}"
        click.echo(f"{file}: it starts{offers}", err=True)
    elif trial.line is None:
        click.echo(f"{file}: it does not start: {printable(trial.failed)}", err=True)
    elif trial.line not in {step.line for step in result.manual_steps}:  # else a manual step already names this line
        location = file if Path(trial.file) == file.resolve() else trial.file
        click.echo(f"{location}:{trial.line}: it does not start: {printable(trial.failed)}", err=True)


def read(file: Path) -> tuple[str, str]:
    """Return the text of a program with its line ends, and its encoding. Raises `TargetError`."""
    try:
        with file.open("rb") as raw:
            encoding, _ = tokenize.detect_encoding(raw.readline)
        content = file.read_bytes()
        text = content.decode(encoding)
        is_preserved = text.encode(encoding) == content
    except (OSError, SyntaxError, UnicodeError, LookupError) as exc:  # LookupError: its codec is not one for texts
        raise TargetError(f"{file} cannot be read: {exc}") from exc
    if not is_preserved:
        raise TargetError(f"{file} is in {encoding}, which would change other bytes; save it as UTF-8 first")
    if "\r" in text.replace("\r\n", ""):
        raise TargetError(f"{file} has lines that end in a lone CR; save it with the usual line ends first")
    return text, encoding


def _show(file: Path, text: str, result: RewriteResult) -> None:
    if result.text == text:
        click.echo(f"{file}: nothing to rewrite", err=True)
    old, new = text.splitlines(keepends=True), result.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, f"{file}", f"{file}, for accord"):
        text_line = printable(line.rstrip("\r\n"))
        click.echo(click.style(text_line, fg=_COLOURS.get(line[0])) if line[0] in _COLOURS else text_line)
    for step in result.manual_steps:
        click.echo(f"{file}:{step.line}: {printable(step.text)}", err=True)


def _confirm(file: Path) -> bool:
    """Return whether the user at the terminal agrees; without a terminal, return False."""
    return sys.stdin.isatty() and sys.stdout.isatty() and click.confirm(f"Write {file}?", err=True)

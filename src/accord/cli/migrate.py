"""`accord migrate`: a program of another library, rewritten for accord; the difference first."""

from __future__ import annotations

import difflib
import sys
import tokenize
from pathlib import Path

import click

from accord.cli.failures import printable
from accord.cli.settings import traceback_option
from accord.errors import TargetError
from accord.migrate.edits import Left
from accord.migrate.rewrite import Rewritten, rewrite

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("files", metavar="FILE.py...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the files; without it they are only shown, and you are asked.")
@click.option("--native", is_flag=True, help="Use accord's own words where that is certain, not only its compat names.")
@traceback_option
def command(files: tuple[Path, ...], write: bool, native: bool) -> int:
    """Rewrite programs that are written for FastMCP, or for the official SDK.

    The import lines lead to accord.compat then, where the same names mean the same. With --native, the program says it
    in accord's own words; give all files of a program at once. What has to be done by hand is listed by line.

    The exit code is 1 where something is left to do by hand.
    """
    left = [one for file in files for one in _migrate(file, write=write, native=native)]
    return 1 if left else 0


def _migrate(file: Path, *, write: bool, native: bool) -> list[Left]:
    text, encoding = read(file)
    try:
        found = rewrite(text, native=native)
    except SyntaxError as exc:
        raise TargetError(f"{file}:{exc.lineno}: {exc.msg}; nothing was changed") from exc
    _show(file, text, found)
    if found.text != text and (write or _agreed(file)):
        file.write_bytes(found.text.encode(encoding))
        click.echo(f"{file}: written", err=True)
    return found.left


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


def _show(file: Path, text: str, found: Rewritten) -> None:
    if found.text == text:
        click.echo(f"{file}: nothing to rewrite", err=True)
    old, new = text.splitlines(keepends=True), found.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, f"{file}", f"{file}, for accord"):
        shown = printable(line.rstrip("\r\n"))
        click.echo(click.style(shown, fg=_COLOURS.get(line[0])) if line[0] in _COLOURS else shown)
    for one in found.left:
        click.echo(f"{file}:{one.line}: {printable(one.why)}", err=True)


def _agreed(file: Path) -> bool:
    """What the person at the terminal says; nobody there is a no."""
    return sys.stdin.isatty() and sys.stdout.isatty() and click.confirm(f"Write {file}?", err=True)

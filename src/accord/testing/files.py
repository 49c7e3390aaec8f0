"""Files that tests compare with: written on request, never by accident."""

from __future__ import annotations

from pathlib import Path


def read_expected(file: Path) -> str:
    """Its text. Raises `AssertionError` that says how it is written, where there is none."""
    __tracebackhide__ = True
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AssertionError(
            f"there is no {file} yet: pytest --accord-update writes it, or update=True; then look at it and commit it"
        ) from None


def write_expected(file: Path, text: str) -> None:
    """Write it, with the folder that it stands in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")

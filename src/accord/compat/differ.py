"""Errors for names and options of another library that have no equivalent in accord."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from accord.errors import DeclarationError


class Different(DeclarationError):
    """A name or option that accord implements differently or not at all; the message names the alternative."""


def significant_options(options: Mapping[str, Any], ignored: Collection[str]) -> dict[str, Any]:
    """Return the options without the `ignored` ones, which change nothing that a client sees."""
    return {key: value for key, value in options.items() if key not in ignored}


def refuse(caller: str, options: Mapping[str, Any], advice: Mapping[str, str]) -> None:
    """Raise `Different` for the first option that is set: `advice` says what to write for some names."""
    for name, value in options.items():
        if value is not None and value is not False:
            hint = advice.get(name, "leave it out: accord has nothing of the kind")
            raise Different(f"{caller} takes no {name}= in accord: {hint}")

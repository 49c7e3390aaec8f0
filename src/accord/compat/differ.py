"""What cannot mean the same is refused where it is written, with the words to write instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from accord.errors import DeclarationError


class Different(DeclarationError):
    """Something of another library that accord does in its own way, or not at all; the text says what to write."""


def significant_options(options: Mapping[str, Any], nothing: Collection[str]) -> dict[str, Any]:
    """Options without those that say nothing of what a client sees."""
    return {key: value for key, value in options.items() if key not in nothing}


def refuse(where: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Raise `Different` for what was given and is not taken: `known` says what to write for each of some names."""
    for name, value in given.items():
        if value is not None and value is not False:
            advice = known.get(name, "leave it out: accord has nothing of the kind")
            raise Different(f"{where} takes no {name}= in accord: {advice}")

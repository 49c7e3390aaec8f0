"""The choice of a model for a sampling request: by its hints first, then by its priorities (client, Sampling).

"Hints are treated as substrings that can match model names flexibly; multiple hints are evaluated in order of
preference; clients MAY map hints to equivalent models from different providers." They only advise: the host defines
the models and their costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from accord.messages.sampling import ModelPreferences


class HostModel(msgspec.Struct, frozen=True):
    """A model of the host, with traits from 0 to 1 relative to its others. Raises `ValueError` for any other value."""

    name: str
    cost: float = 0.5
    """1 is the most expensive."""
    speed: float = 0.5
    """1 is the fastest."""
    intelligence: float = 0.5
    """1 is the most capable."""

    def __post_init__(self) -> None:
        for trait in ("cost", "speed", "intelligence"):
            value = getattr(self, trait)
            if not 0 <= value <= 1:
                raise ValueError(f"{trait} of {self.name!r} is from 0 to 1, not {value}")


def choose_model(
    preferences: ModelPreferences | None,
    models: Sequence[HostModel],
    *,
    equivalents: Mapping[str, Sequence[str]] | None = None,
) -> HostModel:
    """Return the model that suits a server's preferences best; of equal ones, the first.

    The first hint that is part of a name decides, ignoring case; if it matches several names, priorities decide.
    `equivalents` (`{"sonnet": ["gemini-1.5-pro"]}`) applies if no hint matches: it maps part of a hint to parts of
    names. Raises `ValueError` when there are no models.
    """
    if not models:
        raise ValueError("models is empty; give at least one")
    preferences = preferences or ModelPreferences()
    hints = [hint.name.strip().casefold() for hint in preferences.hints or () if hint.name and hint.name.strip()]
    candidates = _hinted(hints, models) or _hinted(_mapped(hints, equivalents or {}), models) or models
    return max(candidates, key=lambda model: _score(model, preferences))


def _hinted(hints: Iterable[str], models: Sequence[HostModel]) -> list[HostModel]:
    """Return the models that the first matching hint names."""
    for hint in hints:
        if matching := [model for model in models if hint in model.name.casefold()]:
            return matching
    return []


def _mapped(hints: Sequence[str], equivalents: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for hint in hints:
        for part, names in equivalents.items():
            if part.casefold() in hint:
                yield from (name.casefold() for name in names)


def _score(model: HostModel, preferences: ModelPreferences) -> float:
    """Return a model's traits weighted by the priorities: "higher values prefer cheaper models"."""
    return (
        _weight(preferences.cost_priority) * (1 - model.cost)
        + _weight(preferences.speed_priority) * model.speed
        + _weight(preferences.intelligence_priority) * model.intelligence
    )


def _weight(priority: float | None) -> float:
    """Return a server's priority, bounded to 0 to 1."""
    return min(1, max(0, priority or 0))

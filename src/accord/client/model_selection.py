"""The choice of a model for a sampling request: by its hints first, then by its priorities (client, Sampling).

"Hints are treated as substrings that can match model names flexibly; multiple hints are evaluated in order of
preference; clients MAY map hints to equivalent models from different providers." They only advise: the host defines
the models and their costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from accord.messages.sampling import ModelPreferences

_AVERAGE = 0.5
"""Of a trait that is not given."""


class HostModel(msgspec.Struct, frozen=True):
    """A model of the host, with traits from 0 to 1 relative to its others. Raises `ValueError` for any other value."""

    name: str
    cost: float = _AVERAGE
    """1 is the most expensive."""
    speed: float = _AVERAGE
    """1 is the fastest."""
    intelligence: float = _AVERAGE
    """1 is the most capable."""

    def __post_init__(self) -> None:
        for trait in ("cost", "speed", "intelligence"):
            value = getattr(self, trait)
            if not 0 <= value <= 1:
                raise ValueError(f"{trait} of {self.name!r} is from 0 to 1, not {value}")


class NamedModel(Protocol):
    """The part of a model that `choose_model` needs: its name. It also reads the traits of `HostModel`, and takes 0.5
    for one that the model does not have.
    """

    @property
    def name(self) -> str:
        """Return the name, to which hints are compared."""


_Model = TypeVar("_Model", bound=NamedModel)


def choose_model(
    preferences: ModelPreferences | None,
    models: Sequence[_Model],
    *,
    equivalents: Mapping[str, Sequence[str]] | None = None,
) -> _Model:
    """Return the model that suits a server's preferences best; of equal ones, the first.

    `models` are `HostModel`s, or any objects with a `name`, such as those of `accord.host`; a trait of `HostModel` that
    they do not have is 0.5.

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


def _hinted(hints: Iterable[str], models: Sequence[_Model]) -> list[_Model]:
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


def _score(model: NamedModel, preferences: ModelPreferences) -> float:
    """Return a model's traits weighted by the priorities: "higher values prefer cheaper models"."""
    return (
        _weight(preferences.cost_priority) * (1 - _trait(model, "cost"))
        + _weight(preferences.speed_priority) * _trait(model, "speed")
        + _weight(preferences.intelligence_priority) * _trait(model, "intelligence")
    )


def _trait(model: NamedModel, trait: str) -> float:
    value: float = getattr(model, trait, _AVERAGE)
    return value


def _weight(priority: float | None) -> float:
    """Return a server's priority, bounded to 0 to 1."""
    return min(1, max(0, priority or 0))

"""Drawing values from a strategy without a test: so many of a schema, the same ones for the same seed.

Hypothesis now and then takes a value that it finds in the source of the modules which are loaded. Which ones those are
is nobody's choice, and has nothing to do with the server: a backend of our own leaves that out.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

from accord.check.fuzz.values import values

try:
    from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
except ImportError:  # releases before 6.131 take no values from modules
    _BACKEND = "hypothesis"
else:
    _BACKEND = "accord"

    class SeedOnlyProvider(HypothesisProvider):
        """Nothing but the seed decides what is drawn."""

        def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
            return None

    AVAILABLE_PROVIDERS[_BACKEND] = f"{__name__}.{SeedOnlyProvider.__name__}"


def draw_values(schema: Any, count: int, seed: int) -> list[Any]:
    """At most so many values that fit. Raises `GenerationError`."""
    found: list[Any] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        backend=_BACKEND,
    )
    @given(values(schema))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found

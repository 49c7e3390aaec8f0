"""Drawing values from a strategy without a test: so many of a schema, the same ones for the same seed."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

from accord.check.generated.values import values


def drawn(schema: Any, count: int, seed: int) -> list[Any]:
    """At most so many values that fit. Raises `Unserved`."""
    found: list[Any] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(values(schema))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found

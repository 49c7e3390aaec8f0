"""Limits on what a provider of models may use, and on how long and how often accord tries."""

from __future__ import annotations

import msgspec


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one model. Sizes are in bytes, times in seconds: `AnthropicModel(name, limits=ModelLimits(retries=0))`.

    Raises `ValueError` for a value that is not positive (`retries` may be 0).
    """

    retries: int = 4
    """How often a request is sent again after a failure that may pass. It is never sent again once text of the answer
    was passed on."""
    retry_seconds: float = 8
    """The longest pause before a retry that accord chooses itself. The pause is random, between 0 and a bound that
    begins with 0.5 and doubles."""
    retry_after_seconds: float = 60
    """The longest pause that the provider may set (`Retry-After`); if it sets a longer one, the call fails at once."""
    connect_seconds: float = 30
    """Time to open a connection."""
    silence_seconds: float = 300
    """Time without any data from the provider."""
    total_seconds: float = 1_200
    """Time for one call, retries and pauses included."""
    response_bytes: int = 64 << 20
    """All events of a stream together."""
    event_bytes: int = 16 << 20
    """One event of a stream, or an answer that is not streamed. The last event of the Responses API repeats the whole
    answer."""
    tool_calls: int = 128
    """Uses of tools in one answer; an answer with more is an error."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if not (value > 0 or (field == "retries" and value == 0)):
                raise ValueError(f"{field} of ModelLimits must be positive, not {value}")

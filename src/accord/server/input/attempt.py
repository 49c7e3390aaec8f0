"""One request of a call that may request input from the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from accord.messages import codec
from accord.server.core.registration import Registration


class Attempt(msgspec.Struct):
    """One request of a call: its target, and the answers to earlier questions."""

    registration: Registration
    subject: str
    """The name of the tool or prompt, or the URI."""
    arguments: Any
    """JSON, or a dict."""
    state: str | None = None
    answers: Mapping[str, Any] | None = None
    becomes_task: bool = False
    """Whether the call may become a task, whose handler runs once: only declared questions are asked before."""

    def arguments_json(self) -> bytes:
        """Return the arguments as JSON."""
        return self.arguments if isinstance(self.arguments, Raw) else codec.encode(self.arguments or {})

    def answers_json(self) -> dict[str, bytes]:
        """Return the answers, each as JSON."""
        return {key: codec.encode(answer) for key, answer in (self.answers or {}).items()}

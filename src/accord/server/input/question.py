"""The base class of questions; separate from its subclasses, so that a server without questions does not import
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from accord.server.declare.parameters import find_marker

if TYPE_CHECKING:
    from accord.messages.input_required import InputRequest
    from accord.messages.revision import Rules

R = TypeVar("R", covariant=True)


class InputQuestion(ABC, Generic[R]):
    """A question to the client; `R` is the type of its answer."""

    method: ClassVar[str]
    """The method of the request: "elicitation/create"."""
    request_type: ClassVar[type[Any]]
    """The type of the request inside an `input_required` result."""
    unasked: bool = False
    """Whether an answer is accepted without a state that proves that the server asked."""

    @cached_property
    def encoded_by_revision(self) -> dict[str, Any]:
        """The question encoded for each revision, cached: a declared question is the same in every call."""
        return {}

    @property
    @abstractmethod
    def needs(self) -> str:
        """The capability that the client must have declared, as a path: "elicitation.url"."""

    @abstractmethod
    def params(self, rules: Rules) -> Any:
        """Return the params of the request in this revision. Raises `NotSupported`."""

    def inside(self, rules: Rules) -> InputRequest:
        """Return the request inside an `input_required` result. Raises `NotSupported`."""
        return self.request_type(params=self.params(rules))  # type: ignore[no-any-return]

    @abstractmethod
    def read(self, answer: bytes) -> R:
        """Decode the answer of a client (JSON). Raises `msgspec.ValidationError`, `Mismatch`."""


def question_in(hint: Any) -> InputQuestion[Any] | None:
    """Return the question in an annotation. Raises `DeclarationError`, as `find_marker`."""
    return find_marker(hint, InputQuestion)  # type: ignore[type-abstract]  # which is looked for, not made


def is_question(hint: Any, default: Any) -> bool:
    """Return whether the value of a parameter is requested from the client."""
    return question_in(hint) is not None

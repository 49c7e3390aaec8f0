"""What every question is, whatever it asks for; apart from the kinds, so that a server that asks nothing loads none."""

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
    """Something to ask; `R` is the type of its answer."""

    method: ClassVar[str]
    """What it is called on the wire: "elicitation/create"."""
    request_type: ClassVar[type[Any]]
    """The request as it stands inside a result."""
    unasked: bool = False
    """Whether an answer counts that comes without the state that says it was asked."""

    @cached_property
    def encoded_by_revision(self) -> dict[str, Any]:
        """It in the words of each revision, made once: a declared question is the same in every call."""
        return {}

    @property
    @abstractmethod
    def needs(self) -> str:
        """The capability that the client must have declared, as a path: "elicitation.url"."""

    @abstractmethod
    def params(self, rules: Rules) -> Any:
        """The params of the request, as this revision has them. Raises `NotSupported`."""

    def inside(self, rules: Rules) -> InputRequest:
        """The question as it stands inside an `input_required` result. Raises `NotSupported`."""
        return self.request_type(params=self.params(rules))  # type: ignore[no-any-return]

    @abstractmethod
    def read(self, answer: bytes) -> R:
        """The answer of a client (JSON) as its type. Raises `msgspec.ValidationError`, `Mismatch`."""


def question_in(hint: Any) -> InputQuestion[Any] | None:
    """The question that a hint is annotated with. Raises `DeclarationError`, as `find_marker`."""
    return find_marker(hint, InputQuestion)  # type: ignore[type-abstract]  # which is looked for, not made


def is_question(hint: Any, default: Any) -> bool:
    """Whether a parameter is asked for instead of given."""
    return question_in(hint) is not None

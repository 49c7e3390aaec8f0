"""Questions declared in a handler's signature: `ok: Annotated[bool, Elicit("Delete {path}?")]`.

They are asked before the handler runs, all of them at once, and a model can never set them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Union, get_args, get_origin

import msgspec

from accord.errors import DeclarationError, MissingClientCapability, NotSupported, ToolError
from accord.schema.records import MISSING
from accord.server.declare.parameters import Parameter
from accord.server.input.base import InputRequester
from accord.server.input.question import InputQuestion, question_in
from accord.server.input.questions import Accepted, Cancelled, Declined, Elicit, Sample, Sampled


class InputParameter(msgspec.Struct, frozen=True):
    """A parameter whose value is requested from the client."""

    name: str
    question: InputQuestion[Any]
    value: Callable[[Any], Any]
    """Converts an answer to the argument. Raises `ToolError` if there is no value."""
    default: Any = MISSING
    uses_arguments: bool = False
    """Whether its text contains values of other parameters."""
    other_defaults: Mapping[str, Any] = {}
    """The defaults of other parameters, for its text."""

    def question_for(self, values: Mapping[str, Any]) -> InputQuestion[Any]:
        """Return the question for a call with these arguments."""
        question = self.question
        return (
            question.filled({**self.other_defaults, **values})
            if self.uses_arguments and isinstance(question, Elicit)
            else question
        )

    def is_available(self, question: InputQuestion[Any], requester: InputRequester) -> bool:
        """Return whether to ask; if that is impossible, "a declared parameter takes its default or the call is
        refused".
        """
        if self.default is MISSING:
            return True  # asking raises the reason if it is impossible
        try:
            requester.require_available(question)
        except (NotSupported, MissingClientCapability):
            return False
        return True


def input_parameter(parameter: Parameter, names: Collection[str], defaults: Mapping[str, Any]) -> InputParameter:
    """Return an input parameter; its text may contain values of other parameters (`names`), with these defaults.

    Raises `DeclarationError`.
    """
    name, default = parameter.name, parameter.default
    question = question_in(parameter.hint)
    assert question is not None
    wanted = get_args(parameter.hint)[0]
    if isinstance(question, Elicit):
        unknown = question.places - set(names)
        if unknown:
            raise DeclarationError(f"{name!r} asks about {', '.join(sorted(unknown))}, which is not a parameter")
        type_, value = _form_of(wanted, _AcceptedData(name, default))
        return InputParameter(name, question.typed(type_), value, default, bool(question.places), defaults)
    if isinstance(question, Sample) and wanted is str:
        return InputParameter(name, question, _text, default)
    return InputParameter(name, question, _whole, default)


def _form_of(wanted: Any, agreed: Callable[[Any], Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type of the form, and the conversion of its outcome: unchanged if `Declined` is among the types."""
    arms = get_args(wanted)
    form_types = [arm for arm in arms if arm not in (Declined, Cancelled)]
    if not form_types or (len(form_types) == len(arms) and get_origin(form_types[0]) is not Accepted):
        return wanted, agreed
    if get_origin(form_types[0]) is Accepted:
        return get_args(form_types[0])[0], _whole
    return Union[tuple(form_types)], _unwrapped  # noqa: UP007  # as many as there are


class _AcceptedData:
    """A function that returns the data of an accepted form, else the default. Raises `ToolError` without a default."""

    def __init__(self, name: str, default: Any) -> None:
        self._name = name
        self._default = default

    def __call__(self, outcome: Any) -> Any:
        if isinstance(outcome, Accepted):
            return outcome.data
        if self._default is not MISSING:
            return self._default
        reaction = "declined" if isinstance(outcome, Declined) else "did not answer"
        raise ToolError(f"the user {reaction} the request for {self._name!r}, so nothing was done")


def _whole(answer: Any) -> Any:
    return answer


def _unwrapped(outcome: Any) -> Any:
    return outcome.data if isinstance(outcome, Accepted) else outcome


def _text(answer: Sampled) -> str:
    return answer.text

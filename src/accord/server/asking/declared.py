"""Questions that stand in a handler's signature: `ok: Annotated[bool, Elicit("Delete {path}?")]`.

They are asked before the body runs, all of them at once, and never part of what a model may give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_origin

import msgspec

from accord.errors import DeclarationError, MissingClientCapability, NotSupported, ToolError
from accord.schema.records import MISSING
from accord.server.asking.asker import Asker
from accord.server.asking.question import Question, question_in
from accord.server.asking.questions import Accepted, Cancelled, Declined, Elicit, Sample, Sampled

_OUTCOMES = (Accepted, Declined, Cancelled)


class Declared(msgspec.Struct, frozen=True):
    """A parameter that is asked for."""

    name: str
    question: Question[Any]
    value: Callable[[Any], Any]
    """What the function gets of an answer. Raises `ToolError` where there is nothing to give it."""
    default: Any = MISSING

    def filled(self, values: Mapping[str, Any]) -> Question[Any]:
        """The question as it is asked in a call with these arguments."""
        return self.question.filled(values) if isinstance(self.question, Elicit) else self.question

    def can_be_asked(self, question: Question[Any], asker: Asker) -> bool:
        """Whether it can be asked; where not, "a declared parameter takes its default or the call is refused".

        Raises `NotSupported`, `MissingClientCapability`.
        """
        try:
            asker.check(question)
        except (NotSupported, MissingClientCapability):
            if self.default is MISSING:
                raise
            return False
        return True


def declare(name: str, hint: Any, default: Any, others: Sequence[str]) -> Declared:
    """A parameter that is asked for; `others` may be named in its text. Raises `DeclarationError`."""
    question = question_in(hint)
    assert question is not None
    wanted = get_args(hint)[0]
    if isinstance(question, Elicit):
        unknown = question.places - set(others)
        if unknown:
            raise DeclarationError(f"{name!r} asks about {', '.join(sorted(unknown))}, which is no parameter")
        return _declare_form(name, question, wanted, default)
    if isinstance(question, Sample) and wanted is str:
        return Declared(name, question, _text, default)
    return Declared(name, question, _whole, default)


def _declare_form(name: str, question: Elicit[Any], wanted: Any, default: Any) -> Declared:
    """A form of the type of its parameter; with `Declined` among them the function gets the whole outcome."""
    arms = get_args(wanted)
    if not any(get_origin(arm) is Accepted or arm in _OUTCOMES for arm in arms):
        return Declared(name, question.typed(wanted), _Agreed(name, default), default)
    (asked,) = [arm for arm in arms if arm not in (Declined, Cancelled)] or [None]
    if get_origin(asked) is Accepted:
        return Declared(name, question.typed(get_args(asked)[0]), _whole, default)
    return Declared(name, question.typed(asked), _unwrapped, default)


class _Agreed:
    """The data of an accepted form; else the default, else the call ends here."""

    def __init__(self, name: str, default: Any) -> None:
        self._name = name
        self._default = default

    def __call__(self, outcome: Any) -> Any:
        if isinstance(outcome, Accepted):
            return outcome.data
        if self._default is not MISSING:
            return self._default
        said = "declined" if isinstance(outcome, Declined) else "did not answer"
        raise ToolError(f"the person {said} when asked for {self._name!r}, so nothing was done")


def _whole(answer: Any) -> Any:
    return answer


def _unwrapped(outcome: Any) -> Any:
    return outcome.data if isinstance(outcome, Accepted) else outcome


def _text(answer: Sampled) -> str:
    return answer.text

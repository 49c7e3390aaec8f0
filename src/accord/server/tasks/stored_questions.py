"""Questions of tasks of 2025-11-25, and the answers to them, as the store has them: any process that serves
`tasks/result` asks them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from accord.errors import INTERNAL_ERROR, AccordError, AnswerError, RequestTimeout
from accord.messages.envelope import ErrorObject
from accord.server.input.direct import read_response
from accord.server.input.question import InputQuestion


class StoredQuestion(msgspec.Struct):
    """A request to the client, and the capability that it needs."""

    method: str
    params: Raw
    needs: str


class _Failure(msgspec.Struct, array_like=True):
    """Stored in place of an answer: why there is none. It is an array, and so unlike any result."""

    message: str
    is_timeout: bool
    error: ErrorObject


_decode_failure = msgspec.json.Decoder(_Failure).decode
_decode_question = msgspec.json.Decoder(StoredQuestion).decode


def decode_question(stored: bytes) -> StoredQuestion:
    """Return a question of the store."""
    return _decode_question(stored)


def encode_failure(failure: AccordError) -> bytes:
    """Return what is stored in place of an answer."""
    error = ErrorObject(INTERNAL_ERROR, str(failure))
    if isinstance(failure, AnswerError):
        error = ErrorObject(failure.error.code, failure.error.message, failure.error.data)
    return msgspec.json.encode(_Failure(str(failure), isinstance(failure, RequestTimeout), error))


def read_answer(question: InputQuestion[Any], answer: bytes) -> Any:
    """Decode a stored answer. Raises `InvalidResult`, and the error that is stored in its place."""
    try:
        failure = _decode_failure(answer)
    except msgspec.MsgspecError:
        return read_response(question, answer)
    if failure.is_timeout:
        raise RequestTimeout(failure.message)
    raise AnswerError(failure.message, failure.error.to_exception())

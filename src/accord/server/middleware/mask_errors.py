"""MaskErrors: what went wrong inside stays inside."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from accord.errors import InternalError, ProtocolError, ToolError
from accord.server.dispatch import EXPECTED_ERRORS, is_cancelled
from accord.server.middleware.request import CallNext, Request

log: logging.Logger = logging.getLogger("accord.server")

_CLIENT_ERRORS = (*EXPECTED_ERRORS, ProtocolError)
"""What says by itself what a client is to know."""


class MaskErrors:
    """Tell clients of an unexpected error no more than a reference: `an internal error, reference 7f3a91c2`.

    The log has the same reference with the traceback. What is meant for the client passes: `ToolError`, arguments that
    do not fit, errors of the protocol, time that ran out, answers that did not come; and the types in `show`.
    """

    def __init__(self, show: tuple[type[Exception], ...] = ()) -> None:
        self._show: tuple[type[Exception], ...] = (*_CLIENT_ERRORS, *show)

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `ToolError` or `InternalError` in the place of what is masked."""
        try:
            return await call_next(request)
        except self._show:
            raise
        except BaseException as exc:
            if request.over or is_cancelled(exc):
                raise
            raise _masked(request, exc) from None


def _masked(request: Request, exc: BaseException) -> Exception:
    reference = secrets.token_hex(4)
    log.error("accord: %s %.200r failed, reference %s", request.method, request.name, reference, exc_info=exc)
    text = f"an internal error, reference {reference}"
    return ToolError(text) if request.method == "tools/call" else InternalError(text)

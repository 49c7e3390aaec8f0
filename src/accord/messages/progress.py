"""What may be said about a request in flight: how far it is, and that it is no longer wanted."""

from __future__ import annotations

from typing import Annotated

from .base import Number, ProgressToken, RequestId, required, since
from .bounds import Remark
from .meta import NotificationParams


class ProgressParams(NotificationParams):
    """Params of `notifications/progress` (basic, Progress)."""

    progress_token: ProgressToken
    progress: Number
    total: Number | None = None
    message: Annotated[Remark | None, since("2025-03-26")] = None


class CancelledParams(NotificationParams):
    """Params of `notifications/cancelled` (basic, Cancellation).

    In 2025-11-25 the id may be absent, since a task is cancelled by `tasks/cancel` instead.
    """

    request_id: Annotated[RequestId | None, required(until="2025-11-25"), required(since="2026-07-28")] = None
    reason: Remark | None = None

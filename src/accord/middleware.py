"""Middleware around calls: its protocol, and the middleware that comes with accord."""

from accord.server.middleware.caching import Caching, MemoryResults, ResultStore
from accord.server.middleware.errors import MaskErrors, Retry
from accord.server.middleware.limits import MemoryRates, RateLimit, RateStore, SizeLimit, SQLiteRates, Timeout
from accord.server.middleware.request import CallNext, Middleware, Request
from accord.server.middleware.scopes import RequireScopes
from accord.server.middleware.timing import Timing

__all__ = [
    "Caching",
    "CallNext",
    "MaskErrors",
    "MemoryRates",
    "MemoryResults",
    "Middleware",
    "RateLimit",
    "RateStore",
    "Request",
    "RequireScopes",
    "ResultStore",
    "Retry",
    "SQLiteRates",
    "SizeLimit",
    "Timeout",
    "Timing",
]

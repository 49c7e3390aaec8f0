"""Failures of a provider of models: what it answered, whether a retry may help, and what the user can do.

A `ProviderFailure` stays inside the package; `model_error` makes a `ModelError` of it, without secrets.
"""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Any

import msgspec

from accord.errors import AccordError, ModelError, visible
from accord.host.models.retries import is_retryable, retry_after
from accord.transport.http.redaction import SecretRedactor

_TEXT_CHARACTERS = 500
_CODE_CHARACTERS = 100

_PERMANENT_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
        "billing_error",
    }
)
"""Errors that waiting does not cure, though some have status 429: the account has reached a limit of its spending."""

_PASSING_CODES = frozenset(
    {
        "overloaded_error",
        "rate_limit_error",
        "api_error",
        "timeout_error",
        "server_error",
        "rate_limit_exceeded",
        "server_is_overloaded",
        "slow_down",
        "service_unavailable_error",
    }
)
"""Errors inside a stream, which has no other status than 200, that may pass."""

_ADVICE = {
    400: "change the request; options= adds and removes members of it",
    401: "check the API key",
    403: "check what the API key may use",
    404: "check the name of the model and base_url",
    413: "shorten the messages",
    422: "change the request; options= adds and removes members of it",
    429: "wait, or ask the provider for higher limits",
}


class ProviderFailure(AccordError):
    """One failed attempt. `retry` says whether another attempt may succeed, `advice` what the user can do."""

    def __init__(
        self,
        reason: str,
        *,
        retry: bool = False,
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(reason)
        self.retry: bool = retry
        self.status: int | None = status
        self.code: str = code
        self.retry_after: float | None = retry_after
        self.advice: str = advice


def response_failure(status: int, headers: Mapping[str, str], body: bytes) -> ProviderFailure:
    """Return the failure for a response with another status than 200. Names of headers are in lower case."""
    codes, message = _error_of(_decode(body))
    text = message or " ".join(body[: 2 * _TEXT_CHARACTERS].decode(errors="replace").split())
    reason = _reason(f"HTTP {status} {_phrase(status)}".rstrip(), codes, text)
    if request_id := headers.get("request-id") or headers.get("x-request-id"):
        reason += f" (request id {_short(request_id, _CODE_CHARACTERS)})"
    permanent = not _PERMANENT_CODES.isdisjoint(codes)
    advice = _ADVICE.get(status, "")
    if permanent:
        advice = "raise the spending limit of the account, or add credit to it"
    elif 300 <= status < 400:
        advice = (
            f"redirects are not followed; set base_url to {_short(headers.get('location', ''), 200) or 'its target'}"
        )
    return ProviderFailure(
        reason,
        retry=is_retryable(status, headers) and not permanent,
        status=status,
        code=codes[0] if codes else "",
        retry_after=retry_after(headers),
        advice=advice,
    )


def event_failure(error: Any) -> ProviderFailure:
    """Return the failure for an error inside a stream, or inside a response with status 200."""
    codes, message = _error_of(error)
    reason = _reason("it reported an error instead of an answer", codes, message)
    return ProviderFailure(
        reason, retry=not _PASSING_CODES.isdisjoint(codes), code=codes[0] if codes else "", advice=""
    )


def model_error(failure: ProviderFailure, what: str, secrets: SecretRedactor, attempts: int = 1) -> ModelError:
    """Return the error for the last failure of a call of `what`, "claude-sonnet-5 at api.anthropic.com"."""
    parts = [f"{what}: {failure}"]
    if attempts > 1:
        parts.append(f"{attempts} attempts failed")
    if failure.retry_after is not None and failure.retry:
        parts.append(f"it allows a retry after {failure.retry_after:g} s")
    if failure.advice:
        parts.append(failure.advice)
    text = visible(secrets.redact("; ".join(parts)))
    code = visible(secrets.redact(failure.code))
    return ModelError(text, status=failure.status, code=code, retry_after=failure.retry_after)


def _reason(what: str, codes: list[str], message: str) -> str:
    details = ": ".join(part for part in (codes[0] if codes else "", _short(message, _TEXT_CHARACTERS)) if part)
    return f"{what}: {details}" if details else what


def _error_of(found: Any) -> tuple[list[str], str]:
    """Return the names of an error, the most general first, and its message.

    Anthropic and OpenAI send `{"error": {"type", "code", "message"}}`, others a text as `error`, `message` or `detail`,
    or all of it in a list.
    """
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        return [], found if isinstance(found, str) else ""
    error = found.get("error") or found
    if not isinstance(error, dict):
        return [], str(error)
    details = error.get("details")
    inner = details.get("error_code") if isinstance(details, dict) else None
    names = [error.get("type"), error.get("code"), inner]
    codes = [_short(name, _CODE_CHARACTERS) for name in names if isinstance(name, str) and name not in ("", "error")]
    message = error.get("message") or error.get("detail") or ""
    return codes, message if isinstance(message, str) else msgspec.json.encode(message).decode()


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _short(text: str, most: int) -> str:
    text = visible(" ".join(text[: 4 * most].split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else ""

"""Conversion of an API's response to the result of a tool or resource: text, an image, audio, a file, or an error."""

from __future__ import annotations

import http
from base64 import b64encode
from typing import Any

import msgspec

from accord.errors import Mismatch, ToolError, visible
from accord.messages.codec import decode_text
from accord.messages.content import AudioContent, EmbeddedResource, ImageContent, ResourceContents
from accord.redaction import redact
from accord.schema.validate import Validator
from accord.server.openapi.body import is_written
from accord.server.openapi.messages import APIAnswer
from accord.transport.http.failures import excerpt
from accord.transport.http.redaction import SecretRedactor, without_credentials


def check_status(route: object, answer: APIAnswer, secrets: SecretRedactor) -> None:
    """Raise `ToolError` unless the status is 2xx: with the status and the beginning of the body, redacted."""
    if 200 <= answer.status < 300:
        return
    parts = [f"{route}: {status_of(answer)}"]
    if (retry_after := answer.headers.get("retry-after")) and answer.status in (429, 503):
        parts.append(
            f"try again after {visible(secrets.redact(retry_after))[:50]}{' s' if retry_after.isdecimal() else ''}"
        )
    if answer.body:
        parts.append(f"it says {redact(excerpt(answer.body, secrets))}")
    raise ToolError("; ".join(parts))


def status_of(answer: APIAnswer) -> str:
    """Return the status with its phrase: "HTTP 404 Not Found"."""
    try:
        return f"HTTP {answer.status} {http.HTTPStatus(answer.status).phrase}"
    except ValueError:
        return f"HTTP {answer.status}"


def as_content(answer: APIAnswer, url: str) -> Any:
    """Return the content of a tool without structured output."""
    media_type = answer.media_type
    if not answer.body:
        return status_of(answer)
    if is_text(answer):
        return answer.text
    data = b64encode(answer.body).decode("ascii")
    if media_type.startswith("image/"):
        return ImageContent(data=data, mime_type=media_type)
    if media_type.startswith("audio/"):
        return AudioContent(data=data, mime_type=media_type)
    return EmbeddedResource(
        resource=ResourceContents(uri=without_credentials(url), mime_type=media_type or None, blob=data)
    )


def is_text(answer: APIAnswer) -> bool:
    """Return whether a body is text, by its media type, or by its bytes if it has none."""
    if answer.media_type:
        return is_written(answer.media_type)
    try:
        answer.body.decode()
    except UnicodeDecodeError:
        return False
    return True


def decode_value(answer: APIAnswer, validator: Validator, *, strict: bool) -> Any:
    """Return the decoded value of a response. Raises `Mismatch` if it does not match the schema.

    Unless `strict`, null members are removed if the value does not match with them: many APIs write null for absent
    values.
    """
    try:
        value = decode_text(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Mismatch(f"not JSON: {exc}") from exc
    try:
        validator.validate(value)
    except Mismatch:
        if strict:
            raise
        value = _without_nulls(value)
        validator.validate(value)
    return value


def _without_nulls(value: Any) -> Any:
    try:
        return _prune(value)
    except RecursionError as exc:
        raise Mismatch("nested too deep") from exc


def _prune(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _prune(member) for name, member in value.items() if member is not None}
    return [_prune(item) for item in value] if isinstance(value, list) else value

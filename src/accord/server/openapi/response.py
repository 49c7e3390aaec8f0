"""What an API answers, as what a tool or a resource gives: text, an image, sound, a file; or the error that it is."""

from __future__ import annotations

import http
from base64 import b64encode
from typing import Any

import msgspec

from accord.errors import Mismatch, ToolError, visible
from accord.messages.content import AudioContent, EmbeddedResource, ImageContent, ResourceContents
from accord.redaction import redact
from accord.schema.validate import Validator
from accord.server.openapi.body import is_written
from accord.server.openapi.messages import APIAnswer
from accord.transport.http.failures import excerpt
from accord.transport.http.redaction import SecretRedactor, without_credentials


def check_status(what: object, answer: APIAnswer, secrets: SecretRedactor) -> None:
    """Raise `ToolError` for anything but success: the status, and how the body begins, without secrets."""
    if 200 <= answer.status < 300:
        return
    said = [f"{what}: {status_of(answer)}"]
    if (after := answer.headers.get("retry-after")) and answer.status in (429, 503):
        said.append(f"try again after {visible(secrets.redact(after))[:50]}{' s' if after.isdecimal() else ''}")
    if answer.body:
        said.append(f"it says {redact(excerpt(answer.body, secrets))}")
    raise ToolError("; ".join(said))


def status_of(answer: APIAnswer) -> str:
    """A status in words: "HTTP 404 Not Found"."""
    try:
        return f"HTTP {answer.status} {http.HTTPStatus(answer.status).phrase}"
    except ValueError:
        return f"HTTP {answer.status}"


def as_content(answer: APIAnswer, url: str) -> Any:
    """What a tool without structured output gives."""
    kind = answer.media_type
    if not answer.body:
        return status_of(answer)
    if is_text(answer):
        return answer.text
    data = b64encode(answer.body).decode("ascii")
    if kind.startswith("image/"):
        return ImageContent(data=data, mime_type=kind)
    if kind.startswith("audio/"):
        return AudioContent(data=data, mime_type=kind)
    return EmbeddedResource(resource=ResourceContents(uri=without_credentials(url), mime_type=kind or None, blob=data))


def is_text(answer: APIAnswer) -> bool:
    """Whether a body is text: by its type, and where that is not said by what it holds."""
    if answer.media_type:
        return is_written(answer.media_type)
    try:
        answer.body.decode()
    except UnicodeDecodeError:
        return False
    return True


def decode_value(answer: APIAnswer, validator: Validator, *, strict: bool) -> Any:
    """The value that an answer holds. Raises `Mismatch` where it is not as described.

    Unless `strict`, members that are null are left out where only that makes it fit: APIs write null for "not there".
    """
    try:
        value = msgspec.json.decode(answer.body)
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
        return _pruned(value)
    except RecursionError as exc:
        raise Mismatch("nested too deep") from exc


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _pruned(member) for name, member in value.items() if member is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value

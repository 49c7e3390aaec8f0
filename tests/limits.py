"""Limits of a test, from names of one level."""

from __future__ import annotations

from typing import Any

from accord import ClientLimits, HTTPLimits, Limits


def limits_of(**fields: Any) -> Limits:
    """Return limits: `http_sessions` is `sessions` of `HTTPLimits`, `client_pages` is `pages` of `ClientLimits`."""
    http = {name[5:]: fields.pop(name) for name in list(fields) if name.startswith("http_")}
    client = {name[7:]: fields.pop(name) for name in list(fields) if name.startswith("client_")}
    return Limits(**fields, http=HTTPLimits(**http), client=ClientLimits(**client))

"""The token of a stored login, for a check: it opens connections of its own, and logs nobody in."""

from __future__ import annotations

import msgspec

from accord.auth.oauth import OAuth
from accord.client.target import Remote
from accord.inspector.commands import InspectorError

_BEARER = "bearer "


async def stored_token(server: Remote) -> str | None:
    """Return the access token of the stored login at a server, renewed if it has expired; None without a login.

    Raises `InspectorError` for a token that is bound to a key, and `AuthorizationError` if it cannot be renewed.
    """
    has_token = "authorization" in {name.lower() for name in server.headers or {}}
    if has_token or not isinstance(server.auth, OAuth | None):
        return None
    login = msgspec.structs.replace(server.auth or OAuth(), interactive=False)
    credentials = login.credentials(server.url)
    try:
        headers = await credentials.renew("POST", server.url)
    finally:
        await credentials.close()
    authorization = headers.get("authorization", "")
    if not authorization:
        return None
    if not authorization.lower().startswith(_BEARER):
        cure = "give the check a bearer token, under Options"
        raise InspectorError("the stored login is bound to a key, which a check does not have", cure)
    return authorization[len(_BEARER) :]

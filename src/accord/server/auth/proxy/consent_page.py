"""The pages of the proxy: consent, and errors. They have no script, and no page may frame them.

A page of an attacker can lead one click of a user to this page, by closing a window in front of it in the middle of a
double click. So one click is not enough: the browser demands the check mark.

Every text of a client is escaped. The page names what a user can judge: the client as it names itself, the host that
vouches for it, where the login is sent, and the scopes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from urllib.parse import urlsplit

from accord.server.auth.proxy.login_flow import BegunLogin
from accord.server.auth.proxy.redirect_uris import display_host, is_local

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:3rem auto;padding:0 1rem;color:#222}"
    "h1{font-size:1.4rem}dt{color:#666}dd{margin:0 0 .6rem;font-weight:600;overflow-wrap:anywhere}"
    ".warning{border-left:4px solid #c60;padding:.2rem 1rem;background:#fff6ec}"
    "button{font:inherit;padding:.5rem 1.5rem;margin:1rem .8rem 0 0}"
)
_STYLE_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()

PAGE_HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'".encode(),
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, older browsers would send `Origin: null`
)
"""Headers of every page. There is no `form-action`: browsers apply it to the redirects after a form, too, and these
lead to the provider and to the client.
"""


def consent_page(begun: BegunLogin, server: str, provider: str, action: str) -> str:
    """Return the page on which the user decides. `action` is the URL of the form."""
    client, request = begun.client, begun.request
    rows = [("Program (it chose this name itself)", client.name)]
    if client.is_document:
        rows.append(("Published by", urlsplit(client.client_id).netloc))
    rows.append(("The login is sent to", display_host(request.redirect_uri)))
    rows.append(("Access", ", ".join(request.scopes) or "everything that this server offers"))
    details = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    warning = _local_warning(client.name) if is_local(request.redirect_uri) else ""
    return _page(
        f"Allow access to {server}?",
        f"<p>A program asks for access to <strong>{escape(server)}</strong> in your name. "
        f"If you allow it, you log in at {escape(provider)} next.</p>"
        f"<dl>{details}</dl>{warning}"
        f'<form method="post" action="{escape(action)}">'
        f'<input type="hidden" name="pending" value="{escape(begun.id)}">'
        '<label><input type="checkbox" required> I have just begun to log in with this program</label><br>'
        '<button type="submit" name="decision" value="allow">Allow</button>'
        '<button type="submit" name="decision" value="deny" formnovalidate>Do not allow</button></form>',
    )


def _local_warning(name: str) -> str:
    return (
        '<p class="warning"><strong>The login is sent to a program on your computer (localhost).</strong> '
        f"Any program there can claim to be {escape(name)}. Allow this only if you have just begun to log in with it."
        "</p>"
    )


def error_page(description: str) -> str:
    """Return the page for a login that cannot go on."""
    return _page("The login cannot go on", f"<p>{escape(description)}</p><p>Nothing was granted.</p>")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>"
    )

"""The issuer of the benchmarks of authorization: its keys, its tokens, and proofs of clients."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from contextlib import AbstractContextManager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, Self

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

AUDIENCE = "https://bench.example/mcp"
KEYS: dict[str, ECKey | RSAKey] = {
    "ES256": ECKey.generate_key("P-256", {"kid": "ES256"}),
    "RS256": RSAKey.generate_key(2048, {"kid": "RS256"}),
}
CLIENT = ECKey.generate_key("P-256")
"""The key of a client."""

_SIGNING = jws.JWSRegistry(algorithms=[*KEYS])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signed(header: dict[str, Any], claims: dict[str, Any], key: ECKey | RSAKey) -> str:
    text = f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(claims).encode())}"
    return f"{text}.{_encoded(_SIGNING.get_alg(header['alg']).sign(text.encode(), key))}"


class Issuer(AbstractContextManager["Issuer"]):
    """An authorization server on loopback, in a thread, which publishes its keys."""

    def __init__(self) -> None:
        documents: dict[str, Any] = {"/jwks": {"keys": [key.as_dict(private=False) for key in KEYS.values()]}}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(documents.get(self.path, {})).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *parts: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url: str = f"http://127.0.0.1:{self._server.server_port}"
        self.jwks_uri: str = f"{self.url}/jwks"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, algorithm: str = "ES256", bound: bool = False, user: str = "3f2a9c4b8e1d") -> str:
        """Return a new token with the claims that many issuers send; `bound` is whether it belongs to `CLIENT`."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": f"auth0|{user}",
            "aud": [AUDIENCE, f"{self.url}/userinfo"],
            "exp": now + 3_600,
            "iat": now,
            "jti": secrets.token_hex(16),
            "client_id": "3MVG9lKcPoNINVBIPJjdw1J9LLM82HnFVVX19KY1uA5mu0",
            "scope": "openid profile email read write",
            **({"cnf": {"jkt": CLIENT.thumbprint()}} if bound else {}),
        }
        return _signed({"alg": algorithm, "typ": "at+jwt", "kid": algorithm}, claims, KEYS[algorithm])


def proof(token: str) -> str:
    """Return a new proof of `CLIENT` for a POST with a token."""
    public = {name: value for name, value in CLIENT.as_dict(private=False).items() if name != "kid"}
    claims = {
        "htm": "POST",
        "htu": AUDIENCE,
        "iat": int(time.time()),
        "jti": secrets.token_hex(16),
        "ath": _encoded(sha256(token.encode()).digest()),
    }
    return _signed({"alg": "ES256", "typ": "dpop+jwt", "jwk": public}, claims, CLIENT)

"""HTTP: options of a server, authentication, and settings of a client."""

from accord.auth.credential_store import CredentialStore
from accord.auth.oauth import OAuth
from accord.server.auth.api_keys import APIKeys
from accord.server.auth.authentication import Auth
from accord.server.auth.refusals import Forbidden, Unauthorized
from accord.server.core.principal import Principal
from accord.server.http.options import HTTPOptions
from accord.transport.http.settings import HTTPSettings

__all__ = [
    "APIKeys",
    "Auth",
    "CredentialStore",
    "Forbidden",
    "HTTPOptions",
    "HTTPSettings",
    "OAuth",
    "Principal",
    "Unauthorized",
]

"""HTTP: options of a server, authentication, and settings of a client."""

from accord.auth.credential_store import CredentialStore
from accord.auth.oauth import OAuth
from accord.auth.program_grants import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from accord.server.auth.api_keys import APIKeys
from accord.server.auth.authentication import Auth
from accord.server.auth.introspection import Introspection
from accord.server.auth.jwt import JWT
from accord.server.auth.proxy.oauth_proxy import OAuthProxy
from accord.server.auth.refusals import Forbidden, Unauthorized
from accord.server.core.principal import Principal, Upstream
from accord.server.http.options import HTTPOptions
from accord.transport.http.settings import HTTPSettings

__all__ = [
    "JWT",
    "APIKeys",
    "Auth",
    "ClientCredentials",
    "CredentialStore",
    "EnterpriseManaged",
    "Forbidden",
    "HTTPOptions",
    "HTTPSettings",
    "Introspection",
    "OAuth",
    "OAuthProxy",
    "Principal",
    "Unauthorized",
    "Upstream",
    "WorkloadIdentity",
]

"""HTTP: options of a server, authentication, and settings of a client."""

from accord.server.core.principal import Principal
from accord.server.http.auth import APIKeys, Auth, Forbidden, Unauthorized
from accord.server.http.options import HTTPOptions
from accord.transport.http.settings import HTTPSettings

__all__ = [
    "APIKeys",
    "Auth",
    "Forbidden",
    "HTTPOptions",
    "HTTPSettings",
    "Principal",
    "Unauthorized",
]

"""Servers made of an HTTP API: options, routes, and the requests and responses that hooks see."""

from accord.server.declare.imported import Imported
from accord.server.openapi.importer import OpenAPIOptions
from accord.server.openapi.messages import APIAnswer, APIRequest
from accord.server.openapi.operation import Route
from accord.server.openapi.routes import READS_AS_RESOURCES, RouteMap

__all__ = [
    "READS_AS_RESOURCES",
    "APIAnswer",
    "APIRequest",
    "Imported",
    "OpenAPIOptions",
    "Route",
    "RouteMap",
]

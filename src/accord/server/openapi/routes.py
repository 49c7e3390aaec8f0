"""The mapping of operations to tools, resources and templates: an ordered table, or a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from accord.errors import DeclarationError
from accord.server.openapi.operation import Route

Into = Literal["tool", "resource", "template", "skip"]


def check_into(into: Into) -> Into:
    """Return `into`. Raises `DeclarationError` for an invalid value."""
    if into not in get_args(Into):
        raise DeclarationError(f"an operation must become one of {', '.join(get_args(Into))}, not {into!r:.100}")
    return into


class RouteMap(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: what matching operations become. Raises `DeclarationError` for an invalid row.

    `RouteMap(pattern="^/admin/", into="skip")` leaves out the operations under `/admin/`.
    """

    into: Into
    """`tool`; `resource`, which is a template if the operation has required arguments; `template`, with optional query
    parameters too; `skip`.
    """
    methods: Collection[str] | None = None
    """HTTP methods such as `{"GET"}`; None matches all."""
    pattern: str = ""
    """A regular expression that is searched in the path template."""
    tags: Collection[str] = ()
    """Tags that the operation must have, all of them."""

    def __post_init__(self) -> None:
        check_into(self.into)
        if isinstance(self.methods, str) or isinstance(self.tags, str):
            raise DeclarationError('methods and tags must be sets: RouteMap(methods={"GET"}, ...)')
        try:
            re.compile(self.pattern)
        except re.error as exc:
            raise DeclarationError(f"the pattern {self.pattern!r:.200} of a RouteMap is not valid: {exc}") from exc

    def fits(self, route: Route) -> bool:
        """Return whether this row matches an operation."""
        methods = self.methods
        return (
            (methods is None or route.method in {method.upper() for method in methods})
            and re.search(self.pattern, route.path) is not None
            and route.tags.issuperset(self.tags)
        )


Routes: TypeAlias = Sequence[RouteMap] | Callable[[Route], Into | None]
"""A table whose first matching row decides, or a function. Any other operation becomes a tool."""

READS_AS_RESOURCES: Sequence[RouteMap] = (
    RouteMap(methods={"GET"}, pattern=r"\{", into="template"),
    RouteMap(methods={"GET"}, into="resource"),
)
"""Maps GET operations to resources, or to templates where the path has variables."""


def check_routes(routes: Routes) -> Routes:
    """Return `routes`. Raises `DeclarationError` unless it is a table or a function."""
    if not callable(routes) and (isinstance(routes, str) or not all(isinstance(row, RouteMap) for row in routes)):
        raise DeclarationError(
            f"routes= must be a list of RouteMap(...) or a function that takes a Route, not {routes!r:.200}"
        )
    return routes


def decide(routes: Routes, route: Route) -> Into:
    """Return what an operation becomes. Raises `DeclarationError` if a function returns an invalid value."""
    if callable(routes):
        return check_into(routes(route) or "tool")
    return next((row.into for row in routes if row.fits(route)), "tool")

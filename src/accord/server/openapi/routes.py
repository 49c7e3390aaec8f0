"""Which operation becomes what: a table that is read from its top, or a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from accord.errors import DeclarationError
from accord.server.openapi.operation import Route

Into = Literal["tool", "resource", "template", "skip"]


def check_into(into: Into) -> Into:
    """Raises `DeclarationError` for what nothing can become."""
    if into not in get_args(Into):
        raise DeclarationError(f"an operation must become one of {', '.join(get_args(Into))}, not {into!r:.100}")
    return into


class RouteMap(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: what becomes of the operations that fit all of what it says. Raises `DeclarationError`.

    `RouteMap(pattern="^/admin/", into="skip")` leaves out what is for administrators.
    """

    into: Into
    """`tool`; `resource`, at one URI or as a template where something has to be given; `template`, with the parameters
    of its query too; `skip`."""
    methods: Collection[str] | None = None
    """`{"GET"}`; all of them if None."""
    pattern: str = ""
    """A regular expression that is found in the path, as the document has it."""
    tags: Collection[str] = ()
    """The operation has all of these."""

    def __post_init__(self) -> None:
        check_into(self.into)
        if isinstance(self.methods, str) or isinstance(self.tags, str):
            raise DeclarationError('methods and tags must be sets: RouteMap(methods={"GET"}, ...)')
        try:
            re.compile(self.pattern)
        except re.error as exc:
            raise DeclarationError(f"the pattern {self.pattern!r:.200} of a RouteMap is not valid: {exc}") from exc

    def fits(self, route: Route) -> bool:
        """Whether it speaks of this operation."""
        methods = self.methods
        return (
            (methods is None or route.method in {method.upper() for method in methods})
            and re.search(self.pattern, route.path) is not None
            and route.tags.issuperset(self.tags)
        )


Routes: TypeAlias = Sequence[RouteMap] | Callable[[Route], Into | None]
"""A table, whose first row that fits decides, or a function. What neither decides becomes a tool."""

READS_AS_RESOURCES: Sequence[RouteMap] = (
    RouteMap(methods={"GET"}, pattern=r"\{", into="template"),
    RouteMap(methods={"GET"}, into="resource"),
)
"""What is only read becomes a resource, or a template of resources where its path has variables."""


def check_routes(routes: Routes) -> Routes:
    """Raises `DeclarationError` for what is neither a table nor a function."""
    if not callable(routes) and (isinstance(routes, str) or not all(isinstance(row, RouteMap) for row in routes)):
        raise DeclarationError(
            f"routes= must be a list of RouteMap(...) or a function that takes a Route, not {routes!r:.200}"
        )
    return routes


def decide(routes: Routes, route: Route) -> Into:
    """What becomes of an operation. Raises `DeclarationError` for what a function must not say."""
    if callable(routes):
        return check_into(routes(route) or "tool")
    return next((row.into for row in routes if row.fits(route)), "tool")

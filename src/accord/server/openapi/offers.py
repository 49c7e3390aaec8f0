"""Operations as a server offers them: a tool, a resource, a template of resources.

Nothing is read from the document before somebody lists or calls. An operation that then turns out not to be usable is
listed as such, and says why when it is called; the others do not notice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw

from accord.errors import InvalidArguments, Mismatch, ResourceNotFound, SchemaError, ToolError
from accord.messages.base import JSONObject
from accord.messages.content import Resource, TextContent
from accord.messages.resources import ResourceTemplate
from accord.messages.revision import Rules
from accord.messages.tools import CallToolResult, Tool, ToolAnnotations
from accord.schema.cost import measure
from accord.schema.validate import Validator, compile
from accord.server.context import Context
from accord.server.handmade import Handmade
from accord.server.offer import Marks, Offer
from accord.server.openapi.answers import as_content, check_status, fitting, is_text, status_of
from accord.server.openapi.calls import Call
from accord.server.openapi.operation import Route
from accord.server.openapi.traffic import APIAnswer, Send
from accord.server.results import encode
from accord.server.templates import Template

log: logging.Logger = logging.getLogger("accord.server")

_READS = {"GET", "HEAD", "OPTIONS", "TRACE"}
_IDEMPOTENT = {*_READS, "PUT", "DELETE"}


class ImportedTool:
    """An operation as a tool: what it takes, what it does, and what it gives back."""

    def __init__(self, name: str, call: Call) -> None:
        self._name = name
        self._call = call
        self.annotations: ToolAnnotations = annotations_of(call.route)

    @cached_property
    def _made(self) -> Handmade:
        """The tool with its schemas, read from the document now."""
        return Handmade(self._tool(), None, self._call.api.limits)

    @cached_property
    def _unusable(self) -> str | None:
        """Why it cannot be called, if so. Found out once: what a document holds may be costly to look at."""
        try:
            measure(self._call.input_schema, self._call.api.limits)
            compile(self._call.input_schema, self._call.api.limits)
        except SchemaError as exc:
            log.warning("accord: the operation %s cannot be called: %s", self._call.route, exc)
            return f"{self._call.route} of the OpenAPI document cannot be called: {exc}"
        return None

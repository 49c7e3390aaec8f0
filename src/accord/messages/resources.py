"""Resources: content of a server that clients read (server, Resources)."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from accord.messages.base import Meta, Model, lives, since
from accord.messages.bounds import URI, Name
from accord.messages.content import Annotations, Resource, ResourceContents
from accord.messages.identity import Icon
from accord.messages.meta import CacheableResult, InputResponseParams, ListResult, NotificationParams, Params


class ResourceTemplate(Model):
    """A family of resources, by an RFC 6570 template of their URIs."""

    uri_template: URI
    name: Name
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    mime_type: Name | None = None
    annotations: Annotations | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


class ListResourcesResult(ListResult):
    """Result of `resources/list`."""

    resources: list[Resource]


class ListResourceTemplatesResult(ListResult):
    """Result of `resources/templates/list`."""

    resource_templates: list[ResourceTemplate]


class ReadResourceParams(InputResponseParams):
    """Params of `resources/read`; a retry carries the answers in `input_responses`."""

    uri: URI


class ReadResourceResult(CacheableResult):
    """Result of `resources/read`."""

    contents: list[ResourceContents]


@lives(until="2026-07-28")
class SubscribeParams(Params):
    """Params of `resources/subscribe`."""

    uri: URI


@lives(until="2026-07-28")
class UnsubscribeParams(Params):
    """Params of `resources/unsubscribe`."""

    uri: URI


class ResourceUpdatedParams(NotificationParams):
    """Params of `notifications/resources/updated`; the URI may be that of a part of the resource."""

    uri: URI

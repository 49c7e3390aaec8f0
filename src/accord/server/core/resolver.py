"""Resolution of names to registrations that a client may see, and the visible items of lists.

Everything that answers a client gets its registrations here, so hidden ones never leave this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.errors import DeclarationError, InternalError, InvalidParams, ResourceNotFound
from accord.messages import codec
from accord.messages.completion import PromptReference, Reference
from accord.messages.meta import Params
from accord.server.compose.access import Viewer, viewer_of
from accord.server.compose.versions import VERSION, limit_versions
from accord.server.core.registration import Registration
from accord.server.core.registry import KINDS
from accord.server.middleware.chain import NO_SCOPES
from accord.wire.headers import PER_REQUEST_REVISIONS, PROTOCOL_VERSION, Mirrored, check_parameters

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.compose.provider_resolver import ProviderResolver
    from accord.server.core.peer import Peer
    from accord.server.core.registry import Registry
    from accord.session.pending_request import PendingRequest


class Resolver:
    """The name resolution of one running server."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    async def resolve_call(self, name: str, arguments: Raw, pending: PendingRequest, peer: Peer) -> Registration:
        """Return the tool that a client calls, after checking its headers against the arguments. Raises
        `InvalidParams`, also for a tool that this client may not see, and `HeaderMismatch`.
        """
        registration = await self._find("tool", name, pending, peer)
        version = _select_version(registration, "tool", name, pending, peer)
        headers = pending.headers
        if registration is not None and headers is not None and headers.get(PROTOCOL_VERSION) in PER_REQUEST_REVISIONS:
            *_, listed = viewer_of(peer, pending).versions(registration).values()
            check_headers(listed, headers, arguments)  # the client knows the version that the list shows
        return version

    async def resolve_tool(self, name: str, pending: PendingRequest, peer: Peer) -> Registration:
        """Return a tool. Raises `InvalidParams`, also for a tool that this client may not see."""
        return _select_version(await self._find("tool", name, pending, peer), "tool", name, pending, peer)

    def declared_tool(self, name: str, pending: PendingRequest, peer: Peer) -> Registration:
        """As `resolve_tool`, without the tools of providers."""
        return _select_version(self._registry.tools.get(name), "tool", name, pending, peer)

    async def _find(self, kind: str, name: str, pending: PendingRequest, peer: Peer) -> Registration | None:
        """Return a "tool" or "prompt". If the client may not see a declared one, the providers are asked as for one
        that does not exist: otherwise an error or a delay of a provider would reveal it.
        """
        registration = self._registry.find(kind, name)
        if not self._registry.view.has_providers:
            return registration
        viewer = viewer_of(peer, pending)
        if registration is None:
            return await self.providers.find(kind, name, viewer.can_see)
        if not viewer.versions(registration):
            await self.providers.find(kind, name, _nobody)
        return registration

    async def resolve_prompt(self, name: str, pending: PendingRequest, peer: Peer) -> Registration:
        """Return a prompt. Raises `InvalidParams`, also for a prompt that this client may not see."""
        registration = await self._find("prompt", name, pending, peer)
        return _select_version(registration, "prompt", name, pending, peer)

    async def resolve_resource(
        self, uri: str, pending: PendingRequest, peer: Peer
    ) -> tuple[Registration, dict[str, Any]]:
        """Return the resource or template for a URI, and the values of the template's variables.

        Raises `ResourceNotFound`, also for a URI that this client may not see.
        """
        try:
            registration, variables = self._registry.resource(uri)
        except ResourceNotFound:
            found = await self._provided_resource(uri, viewer_of(peer, pending))
            if found is not None:
                return found, {}
            if self._registry.view.has_rules or self._registry.view.requires_scopes or peer.visibility is not None:
                raise ResourceNotFound(uri=uri) from None  # the reason would reveal the template
            raise
        view = self._registry.view
        everybody = (
            registration.is_public
            and peer.visibility is None
            and not view.requires_scopes
            and not view.has_visibility_rules
        )
        if everybody or viewer_of(peer, pending).can_read(self._registry, registration, uri):
            return registration, variables
        if self._registry.view.has_providers:
            await self.providers.find("resource", uri, _nobody)
        raise ResourceNotFound(uri=uri)

    async def _provided_resource(self, uri: str, viewer: Viewer) -> Registration | None:
        """Return the resource of a provider that the viewer may read; None if there is none."""
        if not self._registry.view.has_providers:
            return None
        return await self.providers.find("resource", uri, lambda each: viewer.can_read(self._registry, each, uri))

    def is_public(self, registration: Registration, uri: str) -> bool:
        """Return whether every client may read the resource of a URI, whatever its scopes."""
        view = self._registry.view
        return (registration.is_public and not view.requires_scopes and not view.has_visibility_rules) or Viewer(
            NO_SCOPES
        ).can_read(self._registry, registration, uri)

    async def resolve_completion(self, ref: Reference, pending: PendingRequest, peer: Peer) -> Registration | None:
        """Return the prompt, resource or template whose arguments are completed; None for one that a provider may have.

        Raises `InvalidParams`, also for one that this client may not see.
        """
        registry, viewer = self._registry, viewer_of(peer, pending)
        kind, name = ("prompt", ref.name) if isinstance(ref, PromptReference) else ("resource", ref.uri)
        try:
            registration = registry.completion_target(ref)
        except InvalidParams:
            if registry.view.has_providers and await self._may_ask_provider(ref, kind, name, viewer):
                return None
            raise
        if kind == "prompt" and viewer.versions(registration):
            return _select_version(registration, kind, name, pending, peer)
        if kind != "prompt" and (
            viewer.can_see(registration)
            if name in registration.names
            else viewer.can_read(registry, registration, name)
        ):
            return registration
        if registry.view.has_providers and await self._may_ask_provider(ref, kind, name, viewer, hidden=True):
            return None  # as for one that does not exist
        raise InvalidParams(f"no {'prompt' if kind == 'prompt' else 'resource template'} {name!r:.200}")

    async def _may_ask_provider(
        self, ref: Reference, kind: str, name: str, viewer: Viewer, *, hidden: bool = False
    ) -> bool:
        """Return whether a provider may be asked for completions. With rules, or where a declared registration may be
        hidden, providers are asked only about registrations that they have, since rules may name these. `hidden`: a
        declared registration is hidden, and one of a provider does not take its place.
        """
        view = self._registry.view
        if not view.has_rules and viewer.visibility is None and not view.requires_scopes:
            return True
        if kind == "prompt":
            return await self.providers.find(kind, name, _nobody if hidden else viewer.can_see) is not None
        template = (await self.providers.listed("resources/templates/list")).get(name)
        if template is not None and not hidden and viewer.can_see(template):
            return True
        if template is not None or hidden:
            await self.providers.find("resource", name, _nobody)
            return False
        return await self._provided_resource(name, viewer) is not None

    def may_see_uri(self, uri: str, pending: PendingRequest, peer: Peer) -> bool:
        """Return whether this client may see a URI that a template could have."""
        return viewer_of(peer, pending).may_know(self._registry, "resource", uri)

    async def list_visible(self, method: str, viewer: Viewer) -> dict[str, dict[str | None, Registration]]:
        """Return the items of a list that a viewer may see, by name, each with its visible versions, the newest
        last.
        """
        items = await self._list_all(method)
        if method == "resources/list":
            return {
                uri: {None: registration}
                for uri, registration in items.items()
                if viewer.can_list(self._registry, registration, uri)
            }
        found = {name: viewer.versions(registration) for name, registration in items.items()}
        return {name: versions for name, versions in found.items() if versions}

    async def _list_all(self, method: str) -> dict[str, Registration]:
        view = self._registry.view
        provided = await self.providers.listed(method) if view.has_providers else {}
        found = dict(view.listed(method))
        for name, registration in provided.items():
            found.setdefault(name, registration)
        return self._registry.without_searchable(method, found, provided)

    def visible_definition(
        self, pending: PendingRequest, name: str, definition: Any, listed: Collection[str], viewer: Viewer
    ) -> Any:
        """Return the visible part of a definition that middleware put into a list, where `listed` has the names that
        the viewer sees: a registration of that name may exist and be hidden. Return None for a hidden one; for a hidden
        version, the newest visible one.
        """
        kind = KINDS[pending.method.name]
        if name not in listed and not viewer.may_know(self._registry, kind, name):
            return None
        registration = self._registry.find(kind, name)
        if registration is None or registration.metadata.version is None or VERSION not in (definition.meta or {}):
            return definition
        versions = viewer.versions(registration)
        return limit_versions(definition, versions, pending.rules) if versions else None

    @property
    def providers(self) -> ProviderResolver:
        """The registrations of providers."""
        from accord.server.compose.provider_resolver import ProviderResolver

        return ProviderResolver(self._registry, self._limits)


def _nobody(registration: Registration) -> bool:
    """Return False: a client may see no item that providers have under the name of a hidden one."""
    return False


def mirrored_arguments(registration: Registration) -> Mirrored:
    """Return the arguments of a tool that headers repeat. Raises `InternalError` for a tool whose schema cannot be
    created.
    """
    try:
        return registration.mirrored
    except DeclarationError as exc:
        raise InternalError(str(exc)) from exc


def check_headers(registration: Registration, headers: Mapping[bytes, bytes], arguments: Raw) -> None:
    """Raise `HeaderMismatch` if `Mcp-Param-*` headers differ from the arguments of a tool ("Servers MUST reject
    requests"), and the error of `mirrored_arguments`.
    """
    if mirrored := mirrored_arguments(registration):
        check_parameters(mirrored, headers, arguments)


def _select_version(
    registration: Registration | None, kind: str, name: str, pending: PendingRequest, peer: Peer
) -> Registration:
    """Return the version that a request names, of those that this client may see; the newest if it names none. Raises
    `InvalidParams`, also if there is none.
    """
    found = {} if registration is None else viewer_of(peer, pending).versions(registration)
    if not found:
        raise InvalidParams(f"no {kind} {name!r:.200}")
    *_, newest = found.values()
    wanted = None if None in found else (codec.decode_params(Params, pending.params).meta or {}).get(VERSION)
    if wanted is None:
        return newest
    version = found.get(wanted) if isinstance(wanted, str) else None
    if version is None:
        known = ", ".join(filter(None, found))
        raise InvalidParams(f"{kind} {name!r:.200} has no version {wanted!r:.200}; it has {known}")
    return version

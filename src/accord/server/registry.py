"""What a server offers: tools, resources and prompts, each as declared, and their lists.

Things may come and go at any time and from any thread: whoever goes through them goes through a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.errors import DeclarationError, InvalidParams, ResourceNotFound
from accord.messages.capabilities import ListCapability, ResourcesCapability, ServerCapabilities
from accord.messages.completion import PromptReference, Reference
from accord.messages.prompts import ListPromptsResult
from accord.messages.resources import ListResourcesResult, ListResourceTemplatesResult
from accord.messages.revision import Rules
from accord.messages.tools import ListToolsResult
from accord.server.offer import Offer
from accord.server.pages import Pages

if TYPE_CHECKING:
    from accord.server.templates import Template

Pack = Callable[[Any, Rules], Raw]
"""Makes the bytes of a list."""

_LISTS = {
    "tool": "tools/list",
    "prompt": "prompts/list",
    "resource": "resources/list",
    "resource template": "resources/templates/list",
}
"""Where each kind of thing is listed; what stands before the first slash is what changes with it."""


class Registry:
    """Everything one server offers, by name, in the order of declaration.

    `changed` is called with "tools", "prompts" or "resources" when these are no longer what they were.
    """

    def __init__(self, pack: Pack, page_size: int, changed: Callable[[str], None] = lambda what: None) -> None:
        self.tools: dict[str, Offer] = {}
        self.prompts: dict[str, Offer] = {}
        self.resources: dict[str, Offer] = {}
        self.templates: dict[str, tuple[Template, Offer]] = {}
        self._changed = changed
        self._declared: set[str] = set()
        self._kinds: dict[str, dict[str, Any]] = {
            "tool": self.tools,
            "prompt": self.prompts,
            "resource": self.resources,
            "resource template": self.templates,
        }
        self.lists: dict[str, Pages] = {
            "tools/list": _pages(self.tools, ListToolsResult, "tools", pack, page_size),
            "prompts/list": _pages(self.prompts, ListPromptsResult, "prompts", pack, page_size),
            "resources/list": _pages(self.resources, ListResourcesResult, "resources", pack, page_size),
            "resources/templates/list": _pages(
                self.templates, ListResourceTemplatesResult, "resource_templates", pack, page_size
            ),
        }

    def add(self, kind: str, name: str, offer: Any) -> None:
        """Add one ("tool", "prompt", "resource", "resource template"). Raises `DeclarationError` for a taken name."""
        if name in self._kinds[kind]:
            raise DeclarationError(f"{kind} {name!r} is declared twice; give one of them another name")
        self._kinds[kind][name] = offer
        self._renew(kind)

    def remove(self, kind: str, name: str) -> None:
        """Take one away; calls that it serves go on. Raises `DeclarationError` where there is none."""
        if self._kinds[kind].pop(name, None) is None:
            raise DeclarationError(f"there is no {kind} {name!r} to remove")
        self._renew(kind)

    def _renew(self, kind: str) -> None:
        list_ = _LISTS[kind]
        self.lists[list_].clear()
        self._changed(list_.partition("/")[0])

    # --- what it can do ----------------------------------------------------------------------------------------

    def capabilities(self, *, may_log: bool = False) -> ServerCapabilities:
        """What the server can say it has. What it once said holds: clients were told, and ask.

        `may_log`: there are handlers elsewhere that can log.
        """
        self._declared.update(self._found())
        if may_log:
            self._declared.add("logging")
        lists = ListCapability(list_changed=True)
        return ServerCapabilities(
            tools=lists if "tools" in self._declared else None,
            prompts=lists if "prompts" in self._declared else None,
            resources=ResourcesCapability(subscribe=True, list_changed=True) if "resources" in self._declared else None,
            completions={} if "completions" in self._declared else None,
            logging={} if "logging" in self._declared else None,
        )

    def _found(self) -> set[str]:
        """The capabilities that what is there now makes up; each is there before anything may ask for it."""
        found = {_LISTS[kind].partition("/")[0] for kind, offers in self._kinds.items() if offers}
        for offer in self._offers():
            if offer.proposals:
                found.add("completions")
            if offer.context or (offer.proposals is not None and offer.proposals.context):
                found.add("logging")
        return found

    def _offers(self) -> list[Offer]:
        templates = [offer for _, offer in list(self.templates.values())]
        return [*self.tools.values(), *self.prompts.values(), *self.resources.values(), *templates]

    # --- by name -----------------------------------------------------------------------------------------------

    def tool(self, name: str) -> Offer:
        """A tool by its name. Raises `InvalidParams`."""
        offer = self.tools.get(name)
        if offer is None:
            raise InvalidParams(f"no tool {name!r}")
        return offer

    def prompt(self, name: str) -> Offer:
        """A prompt by its name. Raises `InvalidParams`."""
        offer = self.prompts.get(name)
        if offer is None:
            raise InvalidParams(f"no prompt {name!r}")
        return offer

    def resource(self, uri: str) -> tuple[Offer, dict[str, Any]]:
        """The resource that answers for a URI, and what its template read out of it. Raises `ResourceNotFound`."""
        offer = self.resources.get(uri)
        if offer is not None:
            return offer, {}
        for template, offer in list(self.templates.values()):
            found = template.match(uri)
            if found is not None:
                return offer, found
        raise ResourceNotFound(uri=uri)

    def completed(self, ref: Reference) -> Offer:
        """The prompt, template or resource that someone types arguments for. Raises `InvalidParams`."""
        if isinstance(ref, PromptReference):
            return self.prompt(ref.name)
        _, offer = self.templates.get(ref.uri, (None, None))
        if offer is not None:
            return offer
        try:
            return self.resource(ref.uri)[0]
        except ResourceNotFound as error:
            raise InvalidParams(f"no resource template {ref.uri!r}") from error


def _pages(offers: Mapping[str, Any], result: type, field: str, pack: Pack, size: int) -> Pages:
    def definitions() -> dict[str, Any]:
        held = list(offers.items())
        return {name: (offer[1] if isinstance(offer, tuple) else offer).define for name, offer in held}

    def packed(items: Any, cursor: str | None, rules: Rules) -> Raw:
        return pack(result(**{field: items}, next_cursor=cursor), rules)

    return Pages(definitions, packed, size)

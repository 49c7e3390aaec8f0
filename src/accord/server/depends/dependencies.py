"""The dependencies of one function that is offered: filled before it runs, closed when it is over."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from accord.errors import DeclarationError, ToolError
from accord.server.depends.exit_stack import FastExitStack
from accord.server.depends.markers import Dependency, HandleMarker
from accord.server.depends.plan import DependencyPlan, Overrides

if TYPE_CHECKING:
    from accord.server.context import Context
    from accord.server.input.call import HandlerCall
    from accord.server.invoker import Invoker
    from accord.server.registration import Registration


class Dependencies:
    """By parameter. Raises `DeclarationError` for what cannot be filled."""

    def __init__(self, name: str, wanted: Mapping[str, Dependency], named: Mapping[str, HandleMarker]) -> None:
        self._name = name
        self._wanted = wanted
        self._handles = named
        self._plan = DependencyPlan(wanted, {})
        self._overridden: tuple[Overrides, DependencyPlan] | None = None

    @property
    def context(self) -> bool:
        """Whether one of them takes the context."""
        return self._plan.context or bool(self._handles)

    def call(
        self, calling: Invoker, offer: Registration, args: Any, kwargs: dict[str, Any], call: HandlerCall | None
    ) -> Awaitable[Any]:
        """Fill them, and call the function; to be awaited at once. Raises what either raises."""
        plan = self._plan
        if plan.simple is not None and not (self._handles or calling.server.overrides or offer.owner):
            for name, make in plan.simple:
                kwargs[name] = make()
            return calling.invoke(offer, args, kwargs)
        overrides = calling.server.overrides
        if offer.owner is not None and offer.owner.overrides:
            overrides = {**offer.owner.overrides, **overrides}
        if overrides:
            plan = self._overridden_plan(overrides)
        context = calling.context(offer, call) if call is not None else None
        if plan.context and context is None:
            raise DeclarationError(
                f"{self._name}: what overrides a dependency takes a Context only if that does as well"
            )
        if self._handles and context is not None:
            kwargs = {**kwargs, **self._resolve_handles(kwargs, context)}
        if plan.plain:
            return calling.invoke(offer, args, {**kwargs, **plan.fill_plain(context)})
        return self._call(plan, calling, offer, args, kwargs, context)

    async def _call(
        self,
        plan: DependencyPlan,
        calling: Invoker,
        offer: Registration,
        args: Any,
        kwargs: dict[str, Any],
        context: Context | None,
    ) -> Any:
        entered = FastExitStack()
        try:
            lifetime = (offer.owner or calling.server).lifetimes.current()
            filled = await plan.fill(entered, context, lifetime)
            value = await calling.invoke(offer, args, {**kwargs, **filled})
        except BaseException as exc:
            await entered.fail(exc)
            raise ToolError(f"a dependency of {self._name} kept its error to itself: raise it at the `yield`") from exc
        await entered.close()
        return value

    def _resolve_handles(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """What texts stand for; a default that is no text stays what it is."""
        return {
            name: named.find(text, context)
            for name, named in self._handles.items()
            if isinstance(text := given.get(name), str)
        }

    def _overridden_plan(self, overrides: Overrides) -> DependencyPlan:
        """The plan with other functions in it."""
        known = self._overridden
        if known is None or known[0] != overrides:
            known = self._overridden = overrides, DependencyPlan(self._wanted, overrides)
        return known[1]

"""The dependencies of one function that is offered: filled before it runs, closed when it is over."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from accord.errors import DeclarationError, ToolError
from accord.server.depends.entered import Entered
from accord.server.depends.mark import Dependency, Named
from accord.server.depends.plan import Overrides, Plan

if TYPE_CHECKING:
    from accord.server.asking.call import Call
    from accord.server.calling import Calling
    from accord.server.context import Context
    from accord.server.offer import Offer


class Dependencies:
    """By parameter. Raises `DeclarationError` for what cannot be filled."""

    def __init__(self, name: str, wanted: Mapping[str, Dependency], named: Mapping[str, Named]) -> None:
        self._name = name
        self._wanted = wanted
        self._named = named
        self._plan = Plan(wanted, {})
        self._overridden: tuple[Overrides, Plan] | None = None

    @property
    def context(self) -> bool:
        """Whether one of them takes the context."""
        return self._plan.context or bool(self._named)

    def call(
        self, calling: Calling, offer: Offer, args: Any, kwargs: dict[str, Any], call: Call | None
    ) -> Awaitable[Any]:
        """Fill them, and call the function; to be awaited at once. Raises what either raises."""
        plan = self._plan
        if plan.simple is not None and not (self._named or calling.server.overrides or offer.home):
            for name, make in plan.simple:
                kwargs[name] = make()
            return calling.invoke(offer, args, kwargs)
        overrides = calling.server.overrides
        if offer.home is not None and offer.home.overrides:
            overrides = {**offer.home.overrides, **overrides}
        if overrides:
            plan = self._replaced(overrides)
        context = calling.context(offer, call) if call is not None else None
        if plan.context and context is None:
            raise DeclarationError(
                f"{self._name}: what overrides a dependency takes a Context only if that does as well"
            )
        if self._named and context is not None:
            kwargs = {**kwargs, **self._found(kwargs, context)}
        if plan.plain:
            return calling.invoke(offer, args, {**kwargs, **plan.now(context)})
        return self._call(plan, calling, offer, args, kwargs, context)

    async def _call(
        self, plan: Plan, calling: Calling, offer: Offer, args: Any, kwargs: dict[str, Any], context: Context | None
    ) -> Any:
        entered = Entered()
        try:
            lifetime = (offer.home or calling.server).lifetimes.here()
            filled = await plan.fill(entered, context, lifetime)
            value = await calling.invoke(offer, args, {**kwargs, **filled})
        except BaseException as exc:
            await entered.fail(exc)
            raise ToolError(f"a dependency of {self._name} kept its error to itself: raise it at the `yield`") from exc
        await entered.leave()
        return value

    def _found(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """What texts stand for; a default that is no text stays what it is."""
        return {
            name: named.find(text, context)
            for name, named in self._named.items()
            if isinstance(text := given.get(name), str)
        }

    def _replaced(self, overrides: Overrides) -> Plan:
        """The plan with other functions in it."""
        known = self._overridden
        if known is None or known[0] != overrides:
            known = self._overridden = overrides, Plan(self._wanted, overrides)
        return known[1]

"""Calls of handlers: through their middleware, with injected parameters, on the event loop or in a thread, with a
deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from accord.errors import DeclarationError, ToolError
from accord.limits import Limits
from accord.messages.content import ResourceContents
from accord.server.compose.access import check_readable, is_readable_by_all
from accord.server.core.context import Context, RunningServer
from accord.server.core.exit_stack import FastExitStack
from accord.server.core.mounted_registration import MountedRegistration, owner_of
from accord.server.core.resolver import Resolver
from accord.server.core.results import ResultEncoder, contents_of
from accord.server.core.workers import WorkerPool
from accord.server.middleware.chain import build_chain
from accord.server.middleware.request import Handler, Request
from accord.transport.deadlines import with_deadline

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.core.registration import Registration
    from accord.server.depends.dependencies import Dependencies, DependencyPlan
    from accord.server.depends.markers import HandleMarker
    from accord.server.input.call import HandlerCall
    from accord.session.pending_request import PendingRequest

T = TypeVar("T")


class Invoker:
    """The invoker of the functions of one running server."""

    def __init__(self, server: RunningServer, encoder: ResultEncoder, limits: Limits) -> None:
        self.server: RunningServer = server
        self._encoder = encoder
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        """The event loop of the server; plain `def` handlers run in threads beside it."""
        self._limits = limits
        self._time_limit = "HTTPLimits.tool_seconds" if server.limits.tool_seconds is None else "Limits.tool_seconds"
        self._workers = WorkerPool(limits)

    def close(self) -> None:
        """Stop the worker threads."""
        self._workers.close()

    def invoke_with_middleware(
        self,
        registration: Registration,
        name: str,
        arguments: Any,
        pending: PendingRequest,
        peer: Peer,
        call: HandlerCall | None,
    ) -> Awaitable[Any]:
        """Call a registered function through its middleware; await the result at once. Raises what the function and the
        middleware raise.
        """
        if registration.chain is None:
            return self.invoke_registration(registration, arguments, call)
        return registration.chain(Request(None, self, pending, peer, name, registration, arguments, call))

    def run_middleware(
        self,
        end: Handler,
        name: str,
        registration: Registration | None,
        arguments: Any,
        pending: PendingRequest,
        peer: Peer,
    ) -> Awaitable[Any]:
        """Run `end` instead of a function through the middleware of the server and of the registration, without
        middleware that takes a context; await the result at once. As `invoke_with_middleware`.
        """
        around = (
            self.server.registry.middleware
            if registration is None
            else (*self.server.registry.middleware, *registration.middleware)
        )
        chain = build_chain([step for step in around if not step.context])
        return (chain or end)(Request(end, self, pending, peer, name, registration, arguments, None))

    def invoke_registration(
        self, registration: Registration, arguments: Any, call: HandlerCall | None, prefix: str = ""
    ) -> Awaitable[Any]:
        """Call a registered function without its middleware. As `invoke_with_middleware`."""
        if call is None:
            args, kwargs = registration.bind(arguments, None)
            return self.invoke_bound(registration, args, kwargs, None)
        args, kwargs = registration.bind(arguments, self.context(registration, call) if registration.context else None)
        if not registration.input_parameters:
            return self.invoke_bound(registration, args, kwargs, call)
        return self._invoke_with_input(
            registration, args, kwargs, call, call.resolve_input(registration.input_parameters, arguments, prefix)
        )

    def context(self, registration: Registration | None, call: HandlerCall) -> Context:
        """Return the context of a call for a registered function."""
        server = registration.owner if isinstance(registration, MountedRegistration) else self.server
        return server.context_type(server, self, call)

    async def read_resource(self, server: RunningServer, uri: str, call: HandlerCall) -> list[ResourceContents]:
        """Read a resource within another call. Raises `ResourceNotFound`, also for a resource that the client of that
        call may not see, and what the resource's function raises.
        """
        if call.peer.visibility is not None:
            call.record("session")
        if not is_readable_by_all(self.server.registry, server.registry, uri):
            call.is_personal = True
        if server is not self.server:
            check_readable(self.server.registry, server.registry, uri, call.pending, call.peer)
        registration, variables = await Resolver(server.registry, self._limits).resolve_resource(
            uri, call.pending, call.peer
        )
        home = owner_of(registration) or server
        if home is not self.server:  # a mounted server must run, and its functions need it as their owner
            await self.server.lifetimes.current().start_mounted(home.lifetimes)
            registration = MountedRegistration.of(registration, home)
        value = await self.invoke_registration(registration, variables, call, f"{uri} ")
        return contents_of(value, uri, registration.define(call.pending.rules).mime_type)

    def decode_result(self, request: Request, value: Any) -> Any:
        """Return the value of a handler as the decoded result to send; the results of extensions stay unchanged. Raises
        `ToolError`.
        """
        registration, _, call, pending = request.inside
        if isinstance(value, self.server.extension_methods.result_types):
            return value
        public = call is None or not call.is_personal
        return self._encoder.decode_handled(value, request.asked_for, registration, pending, public=public)

    async def _invoke_with_input(
        self, registration: Registration, args: Any, kwargs: Any, call: HandlerCall, filled: Awaitable[Any]
    ) -> Any:
        """Request the input parameters from the client, then call the function."""
        return await self.invoke_bound(registration, args, {**kwargs, **await filled}, call)

    def invoke_bound(
        self, registration: Registration, args: Any, kwargs: Any, call: HandlerCall | None
    ) -> Awaitable[Any]:
        """Call the function with these arguments and its dependencies, within its timeout."""
        if registration.dependencies is not None:
            work = self._invoke_with_dependencies(registration.dependencies, registration, args, kwargs, call)
        elif registration.is_async:
            work = registration.function(*args, **kwargs)
        else:
            work = self._workers.run(registration.function, *args, **kwargs)
        seconds, limit = registration.timeout, ""
        if seconds is None:
            seconds, limit = self._limits.tool_seconds, self._time_limit
        if seconds is None:
            return work
        if call is None:
            return with_deadline(seconds, work, None, limit)
        if call.task is None:
            return call.with_deadline(seconds, work, limit)
        own_limit = registration.timeout is not None
        if call.task.is_task and not own_limit:  # the ttl limits a task
            return work
        return call.with_deadline(seconds, work, limit, until_task=not own_limit)

    def _invoke_with_dependencies(
        self,
        wanted: Dependencies,
        registration: Registration,
        args: Any,
        kwargs: dict[str, Any],
        call: HandlerCall | None,
    ) -> Awaitable[Any]:
        """Resolve the dependencies of a function, and call it. Raises what either raises."""
        overrides, owner = self.server.overrides, owner_of(registration)
        if owner is not None and owner.overrides:
            overrides = {**owner.overrides, **overrides}
        plan = wanted.plan(overrides)
        if plan.simple is not None and not wanted.handles:
            for name, make in plan.simple:
                kwargs[name] = make()
            return self._invoke_filled(registration, args, kwargs)
        context = self.context(registration, call) if call is not None else None
        if plan.context and context is None:
            raise DeclarationError(f"{wanted.name}: an override may take a Context only if the dependency does")
        if wanted.handles and context is not None:
            kwargs = {**kwargs, **_resolve_handles(wanted.handles, kwargs, context)}
        if plan.plain:
            return self._invoke_filled(registration, args, {**kwargs, **plan.fill_plain(context)})
        return self._invoke_entered(wanted.name, plan, registration, args, kwargs, context)

    async def _invoke_entered(
        self,
        name: str,
        plan: DependencyPlan,
        registration: Registration,
        args: Any,
        kwargs: dict[str, Any],
        context: Context | None,
    ) -> Any:
        entered = FastExitStack()
        try:
            lifetime = (owner_of(registration) or self.server).lifetimes.current()
            filled = await plan.fill(entered, context, lifetime.get_dependency)
            value = await self._invoke_filled(registration, args, {**kwargs, **filled})
        except BaseException as exc:
            await entered.fail(exc)
            raise ToolError(f"a dependency of {name} swallowed an exception: raise it at its `yield`") from exc
        await entered.close()
        return value

    def with_deadline(self, seconds: float, work: Awaitable[T], call: HandlerCall | None) -> Awaitable[T]:
        """Await `work` for at most `seconds`, not counting the time that the client takes to answer. Raises
        `OutOfTime`.
        """
        return with_deadline(seconds, work) if call is None else call.with_deadline(seconds, work)

    def _invoke_filled(self, registration: Registration, args: Any, kwargs: Any) -> Awaitable[Any]:
        """Call the function with all of its arguments, dependencies too."""
        return (
            registration.function(*args, **kwargs)
            if registration.is_async
            else self._workers.run(registration.function, *args, **kwargs)
        )


def _resolve_handles(handles: Mapping[str, HandleMarker], given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the values of handles; a default that is not a string stays unchanged."""
    return {
        name: handle.resolve(text, context.principal)
        for name, handle in handles.items()
        if isinstance(text := given.get(name), str)
    }

"""`accord watch`: print the notifications of a server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import click

from accord.cli import completion
from accord.cli.answer_options import AnswerOptions, asking_options, client_options
from accord.cli.columns import one_line
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import run_with_client
from accord.cli.screen import screen
from accord.cli.settings import ConnectionSettings, positive_seconds, settings_options
from accord.cli.trace import log_level_option, notice_json, notice_text
from accord.client.client import Client
from accord.client.notifications import Notice, NotificationBuffer
from accord.client.subscription import Missed, Subscription
from accord.errors import AccordError, NotSupported
from accord.limits import DEFAULT_LIMITS
from accord.messages import codec
from accord.messages.methods import table
from accord.messages.notifications import SubscriptionsAcknowledgedParams

_LISTS = {
    "tools_list_changed": "changes of the tools",
    "prompts_list_changed": "changes of the prompts",
    "resources_list_changed": "changes of the resources",
}


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.option("--resource", "uris", multiple=True, metavar="URI", help="Subscribe to this resource; may be repeated.")
@click.option(
    "--for", "seconds", type=float, metavar="SECONDS", callback=positive_seconds, help="Stop after this time."
)
@log_level_option
@asking_options
@settings_options
def command(
    target: str,
    uris: tuple[str, ...],
    seconds: float | None,
    log_level: str | None,
    answers: AnswerOptions,
    settings: ConnectionSettings,
) -> int:
    """Print the notifications of a server until Ctrl-C, or until the server ends.

    One line each: the time, the method, the content. With --json, one JSON object per line. The granted subscriptions
    are printed to stderr.
    """

    buffer: NotificationBuffer[Notice] = NotificationBuffer(DEFAULT_LIMITS.notices, DEFAULT_LIMITS.notice_bytes)

    def enqueue(notice: Notice) -> None:
        buffer.put(notice, len(codec.encode(notice.params)))

    async def watch(client: Client) -> None:
        async with AsyncExitStack() as stack:
            subscription = await _subscribe(client, uris, stack)
            _print_subscribed(client, subscription, log_level)
            closing = asyncio.ensure_future(_close_at_end(buffer, client, subscription))
            stack.callback(closing.cancel)
            await _print(buffer, settings)
            screen.print_line("the server has ended the subscription")

    async def work(client: Client) -> None:
        stop = asyncio.Event()
        _end_on_signals(stop)
        await _wait_first([watch(client), stop.wait()], seconds)
        if buffer.dropped:
            screen.warn(f"{buffer.dropped} notifications came faster than they could be shown")

    options = {"on_notification": enqueue, "log_level": log_level}  # includes the notifications during the handshake
    return run_with_client(target, settings, work, {**client_options(target, answers), **options})


def _end_on_signals(stop: asyncio.Event) -> None:
    """End the command at Ctrl-C or SIGTERM without an error; a second signal does not wait for the server to close."""
    task = asyncio.current_task()

    def end(number: int) -> None:
        if stop.is_set() and task is not None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            task.cancel()
        stop.set()

    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end, number)


async def _subscribe(client: Client, uris: tuple[str, ...], stack: AsyncExitStack) -> Subscription | None:
    """Subscribe to all changes; return None if the server supports none, but sends log messages."""
    try:
        return await stack.enter_async_context(client.subscribe(*uris, tools=True, prompts=True, resources=True))
    except NotSupported:
        if uris or not _has_log(client):
            raise
        return None


def _has_log(client: Client) -> bool:
    """Return whether the server sends log messages on its own; from 2026-07-28 on they belong to a request."""
    capabilities = client.server_capabilities
    without_request = "logging/setLevel" in table(client.revision, "client")
    return without_request and (capabilities is None or capabilities.logging is not None)


def _print_subscribed(client: Client, subscription: Subscription | None, log_level: str | None) -> None:
    granted, missing = _granted_and_refused(subscription)
    if _has_log(client):
        granted.append("log messages")
    elif log_level:
        missing.append("log messages by themselves")
    screen.print_line(f"watching ({client.revision}): {', '.join(granted)}")
    if missing:
        screen.print_line(f"not told by this server: {', '.join(missing)}")


def _granted_and_refused(subscription: Subscription | None) -> tuple[list[str], list[str]]:
    """Return the requested notifications that the server granted, and the others."""
    if subscription is None:
        return [], list(_LISTS.values())
    requested, granted_filter = subscription.wish, subscription.granted
    granted = [name for field, name in _LISTS.items() if getattr(granted_filter, field)]
    refused = [name for field, name in _LISTS.items() if not getattr(granted_filter, field)]
    uris = granted_filter.resource_subscriptions or []
    return (
        granted + [one_line(uri) for uri in uris],
        refused + [one_line(uri) for uri in requested.resource_subscriptions or () if uri not in uris],
    )


async def _print(buffer: NotificationBuffer[Notice], settings: ConnectionSettings) -> None:
    """Print the notifications until the end. Raises the error that ended them."""
    while True:
        try:
            notice = await buffer.get()
        except StopAsyncIteration:
            return
        if not isinstance(notice.params, SubscriptionsAcknowledgedParams):  # already reported on stderr
            line = notice_json if settings.as_json else notice_text
            screen.print_line(line(notice, datetime.now()), err=False)  # both formats escape control characters
        await asyncio.sleep(0)  # lets signal handlers run when many notifications wait


async def _close_at_end(buffer: NotificationBuffer[Notice], client: Client, subscription: Subscription | None) -> None:
    """Close the buffer when the subscription has ended; notifications before that are still printed."""
    try:
        await _wait_ended(client, subscription)
    except (AccordError, OSError) as exc:  # stderr may be closed
        buffer.close(exc)
    else:
        buffer.close()


async def _wait_ended(client: Client, subscription: Subscription | None) -> None:
    """Wait until the server ends the subscription. Raises `ConnectionLost`."""
    if subscription is None:
        async with client.notifications() as stream:
            async for _ in stream:
                continue
        return
    async for event in subscription:
        if isinstance(event, Missed):
            screen.warn(one_line(event.why))


async def _wait_first(coroutines: list[Coroutine[Any, Any, Any]], seconds: float | None = None) -> None:
    """Wait for the first coroutine, with a timeout in seconds, and cancel the others. Raises the error of the first."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

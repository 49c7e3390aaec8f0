"""`accord watch`: what a server tells, as it comes."""

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
    asking: AnswerOptions,
    settings: ConnectionSettings,
) -> int:
    """Print the notifications of a server until Ctrl-C, or until the server ends.

    A line each: the time, what it is, what it says. With --json, one JSON object in a line each. What the server has
    agreed to tell is said on stderr.
    """

    told: NotificationBuffer[Notice] = NotificationBuffer(DEFAULT_LIMITS.notices, DEFAULT_LIMITS.notice_bytes)

    def tell(notice: Notice) -> None:
        told.put(notice, len(codec.encode(notice.params)))

    async def watch(client: Client) -> None:
        async with AsyncExitStack() as stack:
            subscription = await _subscribe(client, uris, stack)
            _print_subscribed(client, subscription, log_level)
            closing = asyncio.ensure_future(_close_at_end(told, client, subscription))
            stack.callback(closing.cancel)
            await _print(told, settings)
            screen.print_line("the server has ended the subscription")

    async def work(client: Client) -> None:
        stop = asyncio.Event()
        _end_on_signals(stop)
        await _wait_first([watch(client), stop.wait()], seconds)
        if told.dropped:
            screen.warn(f"{told.dropped} notifications came faster than they could be shown")

    options = {"on_notification": tell, "log_level": log_level}  # what comes with the opening is told as well
    return run_with_client(target, settings, work, {**client_options(target, asking), **options})


def _end_on_signals(stop: asyncio.Event) -> None:
    """Ctrl-C and SIGTERM are the way to end it, and no failure; a second one does not wait for the goodbye."""
    task = asyncio.current_task()

    def end() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)


async def _subscribe(client: Client, uris: tuple[str, ...], stack: AsyncExitStack) -> Subscription | None:
    """All that there is to subscribe to; None where that is nothing, and log messages come all the same."""
    try:
        return await stack.enter_async_context(client.subscribe(*uris, tools=True, prompts=True, resources=True))
    except NotSupported:
        if uris or not _has_log(client):
            raise
        return None


def _has_log(client: Client) -> bool:
    """Whether log messages come by themselves; from 2026-07-28 on they belong to a request."""
    offered = client.server_capabilities
    by_themselves = "logging/setLevel" in table(client.revision, "client")
    return by_themselves and (offered is None or offered.logging is not None)


def _print_subscribed(client: Client, subscription: Subscription | None, log_level: str | None) -> None:
    granted, refused = _granted_and_refused(subscription)
    if _has_log(client):
        granted.append("log messages")
    elif log_level:
        refused.append("log messages by themselves")
    screen.print_line(f"watching ({client.revision}): {', '.join(granted)}")
    if refused:
        screen.print_line(f"not told by this server: {', '.join(refused)}")


def _granted_and_refused(subscription: Subscription | None) -> tuple[list[str], list[str]]:
    """What the server has agreed to tell of, and what it has not."""
    if subscription is None:
        return [], list(_LISTS.values())
    wish, given = subscription.wish, subscription.granted
    granted = [name for field, name in _LISTS.items() if getattr(given, field)]
    refused = [name for field, name in _LISTS.items() if not getattr(given, field)]
    uris = given.resource_subscriptions or []
    return (
        granted + [one_line(uri) for uri in uris],
        refused + [one_line(uri) for uri in wish.resource_subscriptions or () if uri not in uris],
    )


async def _print(told: NotificationBuffer[Notice], settings: ConnectionSettings) -> None:
    """Print what comes, to the end. Raises the error that it ended with."""
    while True:
        try:
            notice = await told.get()
        except StopAsyncIteration:
            return
        if not isinstance(notice.params, SubscriptionsAcknowledgedParams):  # that was said on stderr
            line = notice_json if settings.as_json else notice_text
            screen.print_line(line(notice, datetime.now()), err=False)  # both are printable
        await asyncio.sleep(0)  # what waits may be much, and a signal comes between


async def _close_at_end(told: NotificationBuffer[Notice], client: Client, subscription: Subscription | None) -> None:
    """Take no more when the subscription has ended: what came before is still to be printed."""
    try:
        await _wait_ended(client, subscription)
    except (AccordError, OSError) as exc:  # stderr may be closed
        told.close(exc)
    else:
        told.close()


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


async def _wait_first(endings: list[Coroutine[Any, Any, Any]], seconds: float | None = None) -> None:
    """Wait for the first of them, so many seconds at most, and cancel the others. Raises what it raises."""
    tasks = [asyncio.ensure_future(each) for each in endings]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""`accord ping`: measure the round-trip time to a server."""

from __future__ import annotations

import time
from statistics import fmean

import click

from accord.cli import completion
from accord.cli.columns import heading
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import run_with_client
from accord.cli.settings import ConnectionSettings, settings_options
from accord.client.client import Client


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.option("-n", "--count", type=click.IntRange(1), default=3, show_default=True, help="How often.")
@settings_options
def command(target: str, count: int, settings: ConnectionSettings) -> int:
    """Open a server and measure round trips to it."""
    started = time.perf_counter()

    async def work(client: Client) -> None:
        connect_ms = _milliseconds(started)
        if not settings.as_json:
            _print_server(client, connect_ms)
        trips = []
        for number in range(1, count + 1):
            start = time.perf_counter()
            await client.ping()
            trips.append(_milliseconds(start))
            if not settings.as_json:
                click.echo(f"{number:>3}  {trips[-1]:.2f} ms")
        _print_summary(client, connect_ms, trips, settings)

    return run_with_client(target, settings, work)


def _print_server(client: Client, connect_ms: float) -> None:
    info = client.server_info
    name = f"{info.name} {info.version}" if info else "a server without a name"
    click.echo(f"{heading(name)} · revision {client.revision} · opened in {connect_ms:.0f} ms")


def _print_summary(client: Client, connect_ms: float, trips: list[float], settings: ConnectionSettings) -> None:
    if settings.as_json:
        echo_json(
            {
                "server": client.server_info,
                "revision": client.revision,
                "openedMs": round(connect_ms, 3),
                "roundTripsMs": [round(trip, 3) for trip in trips],
            }
        )
    elif len(trips) > 1:
        click.echo(f"min {min(trips):.2f}  mean {fmean(trips):.2f}  max {max(trips):.2f} ms")


def _milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1000

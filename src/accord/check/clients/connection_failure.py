"""Why a client opened nothing, in words that tell what to do."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.http_requests import describe_exchange
from accord.check.clients.run import ClientRun
from accord.check.message_log import LogEntry

_PLACES = {"http": "{url}", "sse": "{url}", "stdio": "{server}"}
_SHOWN = 200
_REQUESTS = 4


def describe_failure(runs: Sequence[ClientRun]) -> str:
    """Of first runs in which nothing was opened, that in which the client came furthest. There is at least one."""
    best = max(runs, key=lambda run: (len([*run.messages()]), len(_received_entries(run)), len(run.exchanges)))
    words = f"; it said:\n{best.output}" if best.output else ""
    return f"opened a connection in none of {', '.join(run.revision for run in runs)}: {_reason(best)}{words}"


def _reason(run: ClientRun) -> str:
    methods = [str(each.method) for each in run.messages() if each.method is not None]
    if methods:
        said = ", ".join(dict.fromkeys(methods))
        return f"in {run.revision} it sent {said}, did not go on, and {_ending(run)}"
    if heard := _received_entries(run):
        line = heard[0].raw
        shown = line.decode(errors="replace") if isinstance(line, bytes) else line.reason
        return f"what it sent is no message of MCP: {shown!r:.{_SHOWN}}"
    if run.exchanges:
        last = "; ".join(_exchange_line(each) for each in run.exchanges[-_REQUESTS:])
        return f"in {run.revision} its requests led nowhere ({last}), and it {_ending(run)}"
    begun = "started the server, said nothing" if run.conversations else "never connected"
    begun = "connected, sent no HTTP" if run.connections else begun
    place = _PLACES[run.transport]
    return f"it {begun}, and {_ending(run)}; does it speak to what stands in place of {place}, without being asked to?"


def _received_entries(run: ClientRun) -> list[LogEntry]:
    return [said for each in run.conversations for said in each.log.entries if said.direction == "←"]


def _exchange_line(exchange: ClientExchange) -> str:
    """`POST /sse with initialize: 405`."""
    carried = "" if describe_exchange(exchange) == exchange.verb else f" with {describe_exchange(exchange):.{_SHOWN}}"
    return f"{exchange.verb} {exchange.target:.{_SHOWN}}{carried}: {exchange.status or 'no answer'}"


def _ending(run: ClientRun) -> str:
    """How it ended, without its subject."""
    seconds = run.finished_at - run.started_at
    if run.ending == "itself":
        return f"ended by itself with {run.exit_code} after {seconds:.1f} s"
    return f"had to be ended after {seconds:.0f} s"

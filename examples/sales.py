"""A chart of sales inside the conversation, with a button that refreshes it; hosts without apps show the text.

accord inspect examples/sales.py
python examples/sales.py 127.0.0.1:8000
"""

import random
import sys
from dataclasses import dataclass
from typing import Annotated

from accord import Chart, Server, ToolAnnotations, ToolOutput

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
READS = ToolAnnotations(read_only_hint=True)

server = Server("shop", instructions="Show sales with the tool `sales`; it draws a chart where the host can.")
chart = server.add_ui(
    "ui://shop/sales",
    Chart("month", ["orders", "returns"], title="Orders and returns", rows="months", refresh="refresh"),
    title="Sales",
    border=True,
)


@dataclass
class Month:
    month: str
    orders: int
    returns: int


@dataclass
class Sales:
    year: int
    months: list[Month]


def measure(year: int) -> Sales:
    now = random.Random()
    return Sales(year, [Month(name, now.randint(200, 900), now.randint(5, 90)) for name in MONTHS])


@server.tool(ui=chart, annotations=READS)
def sales(year: Annotated[int, "Which year"]) -> ToolOutput[Sales]:
    """Show the orders and returns of each month of a year."""
    found = measure(year)
    text = "; ".join(f"{each.month}: {each.orders} orders, {each.returns} returns" for each in found.months)
    return ToolOutput(found, content=[f"{year}. {text}"])


@server.tool(ui=chart, visibility=["app"], annotations=READS)
def refresh(year: int) -> Sales:
    """Return the sales of a year as they are now, for the chart."""
    return measure(year)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(http=sys.argv[1])
    else:
        server.run()

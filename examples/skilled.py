"""A shop whose server brings the instructions for its tools: two skills, as resources (extension Skills).

accord list examples/skilled.py
python examples/skilled.py 127.0.0.1:8000
"""

import sys
from pathlib import Path
from typing import Literal

from accord import Server

server = Server("shop", instructions="Refund orders by the skill skill://refunds/SKILL.md.")
server.add_skills(Path(__file__).parent / "skills")


@server.tool
def order(number: int) -> Literal["paid", "open"]:
    """Say whether an order is paid."""
    return "paid" if number % 2 else "open"


@server.tool
def refund(number: int, amount: float) -> str:
    """Refund an amount of an order."""
    return f"refunded {amount:.2f} of order {number}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(http=sys.argv[1])
    else:
        server.run()

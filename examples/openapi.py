"""An HTTP API as a server: a FastAPI application, called in this process; the same works for any OpenAPI document.

    accord list examples/openapi.py
    accord call examples/openapi.py order bread=rye count=2
    accord read examples/openapi.py api://breads/rye

An API over HTTP takes one line: Server.from_openapi("api.json", base_url="https://api.example.com/v1").
"""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from accord import Server
from accord.openapi import READS_AS_RESOURCES, RouteMap

app = FastAPI(title="bakery", version="1.0.0")
PRICES = {"rye": 3.5, "wheat": 2.0}


class Bread(BaseModel):
    """A kind of bread with its price."""

    name: str
    price: float


class Order(BaseModel):
    """An order of bread."""

    bread: str
    count: int = 1


class Bill(BaseModel):
    """The total of an order."""

    total: float


@app.get("/breads")
async def breads() -> list[Bread]:
    """Return all kinds of bread."""
    return [Bread(name=name, price=price) for name, price in PRICES.items()]


@app.get("/breads/{name}")
async def bread(name: str) -> Bread:
    """Return one kind of bread."""
    if name not in PRICES:
        raise HTTPException(404, "we do not bake that")
    return Bread(name=name, price=PRICES[name])


@app.post("/orders")
async def order(request: Order) -> Bill:
    """Order bread."""
    return Bill(total=(await bread(request.bread)).price * request.count)


@app.post("/admin/close")
async def close() -> str:
    """Close the bakery."""
    return "closed"


# The first matching row decides: routes for administrators are skipped, GET routes become resources, and all others
# become tools.
server = Server.from_fastapi(app, routes=[RouteMap(pattern="^/admin/", into="skip"), *READS_AS_RESOURCES])


if __name__ == "__main__":
    server.run()

"""An HTTP API as a server: a FastAPI application, called in this process; the same works for any OpenAPI document.

accord list examples/openapi.py
accord call examples/openapi.py order bread=rye count=2
accord read examples/openapi.py api://breads/rye

For an API over HTTP it is one line: Server.from_openapi("api.json", base_url="https://api.example.com/v1").
"""

from __future__ import annotations

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from accord import Server
from accord.openapi import READS_AS_RESOURCES, RouteMap

app = FastAPI(title="bakery", version="1.0.0")
PRICES = {"rye": 3.5, "wheat": 2.0}


class Bread(BaseModel):
    """What we bake."""

    name: str
    price: float


class Order(BaseModel):
    """What somebody orders."""

    bread: str
    count: int = 1


class Bill(BaseModel):
    """What it costs."""

    total: float


@app.get("/breads")
async def breads() -> list[Bread]:
    """All breads."""
    return [Bread(name=name, price=price) for name, price in PRICES.items()]


@app.get("/breads/{name}")
async def bread(name: str) -> Bread:
    """One bread."""
    if name not in PRICES:
        raise HTTPException(404, "we do not bake that")
    return Bread(name=name, price=PRICES[name])


@app.post("/orders")
async def order(wanted: Order) -> Bill:
    """Order bread."""
    return Bill(total=(await bread(wanted.bread)).price * wanted.count)


@app.post("/admin/close")
async def close() -> str:
    """Close the bakery."""
    return "closed"


# The first row that fits decides: what is for administrators is left out, what is only read becomes resources, and
# everything else a tool.
server = Server.from_fastapi(app, routes=[RouteMap(pattern="^/admin/", into="skip"), *READS_AS_RESOURCES])


if __name__ == "__main__":
    server.run()

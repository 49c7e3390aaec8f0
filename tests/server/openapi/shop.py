"""A FastAPI application as people write them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Cookie, FastAPI, Header, HTTPException, Query, Request, Response
from pydantic import BaseModel


class Item(BaseModel):
    """Something to buy."""

    name: str
    price: float | None = None
    tags: list[str] = []


class Part(BaseModel):
    """A part, made of parts."""

    name: str
    parts: list[Part] = []


def make(log: list[str] | None = None) -> FastAPI:
    """The application; `log` is told when it begins and ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        if log is not None:
            log.append("up")
        yield {"stock": 3}
        if log is not None:
            log.append("down")

    app = FastAPI(title="shop", version="2.0", lifespan=lifespan)
    old = APIRouter(prefix="/old", tags=["old"])

    @app.get("/items/{item_id}")
    async def read_item(item_id: int, request: Request, q: str | None = None) -> Item:
        """One item."""
        if item_id == 404:
            raise HTTPException(404, f"no item; you sent {request.headers.get('x-api-key')}")
        return Item(name=f"{item_id} {q}", tags=[f"stock {getattr(request.state, 'stock', None)}"])

    @app.get("/items")
    async def find_items(tag: Annotated[list[str], Query()] = [], most: int = 10) -> list[Item]:  # noqa: B006
        """Items, by their tags."""
        return [Item(name=one) for one in tag][:most]

    @app.post("/items/{item_id}", status_code=201)
    async def change_item(item_id: str, item: Item) -> Item:
        """Change one."""
        return item.model_copy(update={"name": f"{item_id}: {item.name}"})

    @app.delete("/items/{item_id}", status_code=204)
    async def delete_item(item_id: int) -> None:
        """Delete one."""

    @app.post("/assemble")
    async def assemble(part: Part) -> Part:
        """Put a part together."""
        return part

    @app.get("/who")
    async def who(
        x_api_key: Annotated[str | None, Header()] = None,
        authorization: Annotated[str | None, Header()] = None,
        x_team: Annotated[str | None, Header()] = None,
        seen: Annotated[str | None, Cookie()] = None,
    ) -> dict[str, str | None]:
        """Who asks."""
        return {"key": x_api_key, "authorization": authorization, "team": x_team, "seen": seen}

    @app.get("/picture", response_class=Response)
    async def picture() -> Response:
        """A picture."""
        return Response(b"\x89PNG", media_type="image/png")

    @old.get("/{name}", deprecated=True)
    async def by_name(name: str) -> str:
        """An old one."""
        return name

    app.include_router(old)
    return app

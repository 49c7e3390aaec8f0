"""A shop whose handlers receive their database as a parameter: see docs/dependencies.md."""

import sqlite3
from collections.abc import Iterator
from typing import Annotated

from accord import Depends, Server

server = Server("shop")


def get_db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect("shop.db")
    try:
        yield db  # the handler runs here, and its exception is raised here
        db.commit()
    finally:
        db.close()


Db = Annotated[sqlite3.Connection, Depends(get_db)]


@server.tool
async def order(item: str, db: Db, count: int = 1) -> str:
    """Order an item."""
    db.execute("create table if not exists orders (item, count)")
    db.execute("insert into orders values (?, ?)", (item, count))
    return f"{count} {item} ordered"


@server.resource("orders://{item}")
async def ordered(item: str, db: Db) -> str:
    (count,) = db.execute("select sum(count) from orders where item = ?", (item,)).fetchone()
    return f"{count or 0} {item}"


if __name__ == "__main__":
    server.run()

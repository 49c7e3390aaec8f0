"""The blocking client for programs without asyncio: `accord.sync.Client`.

from accord.sync import Client

with Client("weather.py") as client:
    print(client.call_tool("forecast", {"city": "Oslo"}).data)
"""

from accord.sync.client import Client as Client
from accord.sync.streams import (
    NoticeStream as NoticeStream,
    Subscription as Subscription,
)

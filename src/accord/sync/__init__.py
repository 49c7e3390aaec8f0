"""The client for programs that do not use asyncio: `accord.sync.Client`, which blocks.

from accord.sync import Client

with Client("weather.py") as client:
    print(client.call_tool("forecast", {"city": "Oslo"}).data)
"""

from accord.sync.client import Client as Client
from accord.sync.streams import (
    NoticeStream as NoticeStream,
    Subscription as Subscription,
)

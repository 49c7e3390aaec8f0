"""A program that appends to an audit log, and prints the hash of each entry that is stored.

    python writer.py LOG ANCHOR COUNT [BYTES]

With BYTES, it is killed in the middle of a write: after so many bytes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from accord.host.audit.event import AuditEvent
from accord.host.audit.log import AuditLog


def kill_after(left: int) -> None:
    """Let the process die once it has written so many bytes to files."""
    write = os.write

    def counted(fd: int, data: Any) -> int:
        nonlocal left
        if fd > 2:
            left -= write(fd, data[:left])
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return len(data)
        return write(fd, data)

    os.write = counted


async def main(path: str, anchor: str, count: int) -> None:
    async with AuditLog(path, anchor=anchor or None) as audit:
        for number in range(count):
            event = AuditEvent(kind="sending", call=f"{os.getpid()}-{number}", server="files", tool="write_file")
            print(await audit.append(event), flush=True)


if __name__ == "__main__":
    if sys.argv[4:]:
        kill_after(int(sys.argv[4]))
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

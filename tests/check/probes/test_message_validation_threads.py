"""Messages are checked in several threads at once: the types of a revision are built once, by one of them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, threading
from accord.check.probes.message_log import LogEntry
from accord.check.probes.message_validation import message_mismatches

sys.setswitchinterval(1e-6)
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}, "_meta": META}}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [{"type": "text", "text": "a"}]}}
entry = LogEntry(direction="<", raw=b"", at=0.0)
ready = threading.Barrier(4)

def check():
    ready.wait()
    for revision in ("2026-07-28", "2025-11-25", "2025-06-18"):
        list(message_mismatches(revision, "client", REQUEST, {}, entry))
        list(message_mismatches(revision, "server", RESULT, {(int, 1): REQUEST}, entry))

threads = [threading.Thread(target=check) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_messages_can_be_checked_in_several_threads_at_once() -> None:
    for _ in range(4):
        subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)

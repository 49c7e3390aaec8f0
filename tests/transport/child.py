"""A child process that behaves as its first argument says, badly as a rule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

SLEEPER = [sys.executable, "-c", "import time; time.sleep(1000)"]
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(1000)"


def say(text: object) -> None:
    print(text, flush=True)


def echo() -> None:
    for line in sys.stdin:
        say(line.rstrip("\n"))


def dies() -> None:
    print("line one", file=sys.stderr)
    print("line two", file=sys.stderr)
    sys.exit(3)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deaf() -> None:
    """Ignore the end of the input and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(os.getpid())
    time.sleep(1000)


def wrapper() -> None:
    """Start a process that stays behind."""
    say(subprocess.Popen(SLEEPER, stdin=subprocess.DEVNULL).pid)
    echo()


def deaf_family() -> None:
    """Leave a process behind that ignores SIGTERM."""
    left = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    assert left.stdout is not None
    left.stdout.readline()
    say(left.pid)


def daemon() -> None:
    """Exit, while a process in a session of its own holds stdout."""
    say(subprocess.Popen([*SLEEPER[:2], "import time; time.sleep(1000)"], start_new_session=True).pid)
    sys.exit(4)


def chatter() -> None:
    """Write far more to stderr than a pipe holds, then answer."""
    for n in range(20_000):
        print(f"noise {n}", file=sys.stderr)
    echo()


def closes_stdout() -> None:
    os.close(1)
    time.sleep(1000)


def environment() -> None:
    say(sorted(os.environ))


globals()[sys.argv[1]]()

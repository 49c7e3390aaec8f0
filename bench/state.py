"""The request state of a question: sealing and checking a state of 300 bytes.

The floor is one HMAC and one base64 each way, from the standard library and without checks.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

from accord.server.input.request_state import Keyring
from bench.inside import Step, of_step
from bench.measure import Figure

SIZE = 300
KEY = bytes(range(32))

AIM, FLOOR = 10, 8.0
"""The maximum microseconds of sealing and checking together, and the lowest measured time of the floor."""


def run() -> list[Figure]:
    return [of_step("seal and check a state of 300 bytes", *sealing(), aim=AIM / FLOOR)]


def sealing() -> tuple[Step, Step]:
    payload = bytes(SIZE)
    keyring = Keyring([KEY])

    def floor() -> bytes:
        text = urlsafe_b64encode(payload)
        hmac.digest(KEY, text, "sha256")
        hmac.digest(KEY, text, "sha256")
        return urlsafe_b64decode(text)

    return floor, lambda: keyring.open(keyring.seal(payload), max_bytes=SIZE)

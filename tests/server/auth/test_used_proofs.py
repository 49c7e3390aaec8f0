"""Each proof is accepted once; memory is bounded, and one key does not displace the proofs of another."""

from __future__ import annotations

import pytest

from accord.server.auth import used_proofs
from accord.server.auth.used_proofs import PROOF_SECONDS, UsedProofs


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def used(clock: Clock) -> UsedProofs:
    return UsedProofs(clock)


def test_a_proof_is_accepted_once_for_each_key(used: UsedProofs) -> None:
    assert used.add("ann", "1", 1_000)
    assert not used.add("ann", "1", 1_000)
    assert used.add("bob", "1", 1_000)
    assert used.add("ann", "2", 1_000)
    assert len(used) == 3


@pytest.mark.parametrize("pause", [1, 50, 119])
def test_a_proof_is_remembered_for_as_long_as_it_is_valid(used: UsedProofs, clock: Clock, pause: int) -> None:
    used.add("ann", "first", clock.now)
    sent = clock.now
    while clock.now + pause < sent + PROOF_SECONDS:
        clock.now += pause
        used.add("ann", str(clock.now), clock.now)
    assert not used.add("ann", "first", sent)


def test_proofs_and_keys_are_forgotten_once_they_are_not_valid(used: UsedProofs, clock: Clock) -> None:
    for number in range(100):
        used.add(f"key {number}", "1", clock.now)
    clock.now += PROOF_SECONDS
    used.add("ann", "1", clock.now)
    assert len(used) == 1
    for _ in range(5):
        clock.now += PROOF_SECONDS / 2
        for number in range(10):
            used.add("ann", f"{clock.now} {number}", clock.now)
    assert len(used) <= 40


def test_a_key_with_many_proofs_has_its_older_ones_barred(
    used: UsedProofs, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(used_proofs, "PROOFS_PER_KEY", 100)
    used.add("bob", "1", clock.now)
    for number in range(1_000):
        clock.now = 1_000 + number / 16
        assert used.add("ann", str(number), clock.now)
        assert len(used) <= 201
    for number in range(1_000):
        assert not used.add("ann", str(number), 1_000 + number / 16)
    assert not used.add("bob", "1", 1_000)


def test_all_proofs_are_bounded_and_others_keep_theirs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(used_proofs, "PROOFS", 1_000)
    used = UsedProofs(clock)
    for number in range(100):
        assert used.add(f"key {number}", "1", clock.now)
    for number in range(10_000):
        clock.now += 0.001
        assert used.add(f"flood {number % 3}", str(number), clock.now)
        assert len(used) <= 1_300
    assert not any(used.add(f"key {number}", "1", 1_000) for number in range(100))


def test_keys_are_bounded(used: UsedProofs, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(used_proofs, "KEYS", 50)
    for number in range(500):
        used.add(f"key {number}", "1", clock.now)
    assert len(used) == 50

"""No interleaving runs a call that was not approved; an approval is for one call, once, and in time."""

from __future__ import annotations

import random
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from accord.host.consent import BoundCall, Consent, NotApproved, Proposal, digest

SECONDS = 100.0
FIELDS = BoundCall.__struct_fields__


def bound(**changes: str) -> BoundCall:
    return BoundCall(**({field: digest(field.encode()) for field in FIELDS} | changes))


calls = st.builds(BoundCall, *(st.sampled_from(["a", "b"]) for _ in FIELDS))


class ConsentMachine(RuleBasedStateMachine):
    """The host proposes, people answer, things change meanwhile, calls are sent; compared with a plain model."""

    def __init__(self) -> None:
        super().__init__()
        self.consent = Consent(seconds=SECONDS)
        self.now = 0.0
        self.stage: dict[str, str] = {}
        self.sent: list[tuple[str, BoundCall]] = []
        self.proposed: dict[str, Proposal] = {}

    proposals = Bundle("proposals")

    @rule(target=proposals, call=calls)
    def propose(self, call: BoundCall) -> Proposal:
        proposal = self.consent.propose(call, self.now)
        self.stage[proposal.token], self.proposed[proposal.token] = "proposed", proposal
        return proposal

    @rule(seconds=st.floats(0.1, SECONDS))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(proposal=proposals)
    def approve(self, proposal: Proposal) -> None:
        valid = self.stage[proposal.token] == "proposed" and self.now < proposal.expires
        if valid:
            assert self.consent.approve(proposal.token, self.now) == proposal
            self.stage[proposal.token] = "approved"
        else:
            with pytest.raises(NotApproved):
                self.consent.approve(proposal.token, self.now)

    @rule(proposal=proposals)
    def deny(self, proposal: Proposal) -> None:
        self.consent.deny(proposal.token)
        self.stage[proposal.token] = "denied"

    @rule(proposal=proposals, other=proposals)
    def deny_with_a_mixed_token(self, proposal: Proposal, other: Proposal) -> None:
        if proposal.token != other.token:
            self.consent.deny(f"{proposal.token.partition('.')[0]}.{other.token.partition('.')[2]}")

    @rule(proposal=proposals, call=calls)
    def send_any(self, proposal: Proposal, call: BoundCall) -> None:
        self._send(proposal, call)

    @rule(proposal=proposals)
    def send(self, proposal: Proposal) -> None:
        self._send(proposal, proposal.call)

    def _send(self, proposal: Proposal, call: BoundCall) -> None:
        stage = self.stage[proposal.token]
        in_time = self.now < proposal.expires
        try:
            self.consent.redeem(proposal.token, call, self.now)
        except NotApproved:
            assert not (stage == "approved" and in_time and call == proposal.call)
            if stage == "approved" and in_time:
                self.stage[proposal.token] = "lapsed"
        else:
            self.sent.append((proposal.token, call))
            assert (stage, in_time, call) == ("approved", True, proposal.call)
            self.stage[proposal.token] = "used"

    @invariant()
    def each_sent_call_was_approved_and_sent_once(self) -> None:
        tokens = [token for token, _ in self.sent]
        assert len(tokens) == len(set(tokens))
        assert all(self.proposed[token].call == call for token, call in self.sent)


TestConsentMachine = ConsentMachine.TestCase


@pytest.mark.parametrize("field", FIELDS)
def test_an_approval_lapses_when_anything_changes(field: str) -> None:
    consent = Consent()
    proposal = consent.propose(bound(), 0)
    consent.approve(proposal.token, 0)
    with pytest.raises(NotApproved, match="has lapsed"):
        consent.redeem(proposal.token, bound(**{field: "other"}), 1)
    with pytest.raises(NotApproved, match="unknown"):  # nor does it come back
        consent.redeem(proposal.token, bound(), 1)


def test_of_100_000_modified_approvals_none_is_accepted() -> None:
    consent, chance = Consent(), random.Random(7)
    proposal = consent.propose(bound(), 0)
    consent.approve(proposal.token, 0)
    for _ in range(100_000):
        token = modified(proposal.token, chance)
        with pytest.raises(NotApproved):
            consent.redeem(token, bound(), 1)
        with pytest.raises(NotApproved):
            consent.approve(token, 1)
        consent.deny(token)
    consent.redeem(proposal.token, bound(), 1)  # the right one was valid all the time


def modified(token: str, chance: random.Random) -> str:
    """Return another text: a character replaced, removed, added or swapped, or another case."""
    characters = list(token)
    place = chance.randrange(len(characters))
    match chance.randrange(5):
        case 0:
            characters[place] = chance.choice(
                [each for each in "0123456789abcdef.-é\ud800" if each != characters[place]]
            )
        case 1:
            del characters[place]
        case 2:
            characters.insert(place, chance.choice("0123456789abcdef."))
        case 3:
            characters = characters[:place]
        case 4:
            characters.append(chance.choice("0123456789abcdef\n ="))
    return "".join(characters)


def test_a_token_of_another_host_is_not_accepted() -> None:
    one, other = Consent(), Consent()
    proposal = one.propose(bound(), 0)
    one.approve(proposal.token, 0)
    with pytest.raises(NotApproved, match="another host"):
        other.redeem(proposal.token, bound(), 0)


def test_open_proposals_are_bounded() -> None:
    consent = Consent()
    first = consent.propose(bound(), 0)
    for _ in range(10_000):
        consent.propose(bound(), 0)
    with pytest.raises(NotApproved):
        consent.approve(first.token, 0)


def test_the_signature_covers_every_field() -> None:
    """As if somebody had changed the stored proposal itself."""
    consent: Any = Consent()
    for field in FIELDS:
        proposal = consent.propose(bound(), 0)
        consent.approve(proposal.token, 0)
        found = consent._open[proposal.token.partition(".")[0]]
        call = msgspec.structs.replace(proposal.call, **{field: "other"})
        found.proposal = Proposal(call, proposal.token, proposal.expires)
        with pytest.raises(NotApproved, match="signature"):
            consent.redeem(proposal.token, call, 1)

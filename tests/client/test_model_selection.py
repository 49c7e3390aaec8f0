"""Which model answers: hints in their order, then priorities, and always one that the host has."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accord.client.model_selection import HostModel, choose_model
from accord.messages.sampling import ModelHint, ModelPreferences

HAIKU = HostModel("claude-3-haiku", cost=0.1, speed=0.9, intelligence=0.4)
SONNET = HostModel("claude-3-Sonnet-20240229", cost=0.5, speed=0.5, intelligence=0.7)
OPUS = HostModel("claude-3-opus", cost=1, speed=0.1, intelligence=1)
GEMINI = HostModel("gemini-1.5-pro", cost=0.4, speed=0.6, intelligence=0.7)
CLAUDES = [OPUS, SONNET, HAIKU]
ALL = [*CLAUDES, GEMINI]


def prefers(
    *hints: str | None, cost: float | None = None, speed: float | None = None, intelligence: float | None = None
) -> ModelPreferences:
    return ModelPreferences(
        hints=[ModelHint(name=hint) for hint in hints],
        cost_priority=cost,
        speed_priority=speed,
        intelligence_priority=intelligence,
    )


@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        (None, OPUS),
        (ModelPreferences(), OPUS),
        (prefers(cost=0, speed=0, intelligence=0), OPUS),
        (prefers(cost=1), HAIKU),
        (prefers(speed=1), HAIKU),
        (prefers(speed=0.01), HAIKU),
        (prefers(intelligence=1), OPUS),
        (prefers(cost=0.2, intelligence=1), OPUS),
        (prefers(cost=1, intelligence=1), HAIKU),
        (prefers(cost=1, speed=0.1, intelligence=2.5), HAIKU),
        (prefers(cost=-5, intelligence=0.1), OPUS),
        (prefers("sonnet"), SONNET),
        (prefers("SONNET-2024"), SONNET),
        (prefers("gemini", "claude"), GEMINI),
        (prefers("gpt", "haiku", "opus"), HAIKU),
        (prefers("sonnet", intelligence=1, cost=1), SONNET),
        (prefers("claude", cost=1), HAIKU),
        (prefers("claude"), OPUS),
        (prefers("gpt", speed=1), HAIKU),
        (prefers(None, "", "  ", "gemini"), GEMINI),
        (prefers(None, "", " ", cost=1), HAIKU),
        (prefers(" gemini "), GEMINI),
    ],
)
def test_hints_decide_and_then_priorities(preferences: ModelPreferences | None, chosen: HostModel) -> None:
    assert choose_model(preferences, ALL) is chosen


@pytest.mark.parametrize(
    ("preferences", "models", "chosen"),
    [
        (prefers("claude-3-sonnet"), [OPUS, GEMINI], GEMINI),
        (prefers("claude-3-sonnet", "claude"), [GEMINI, OPUS], OPUS),
        (prefers("claude-3-sonnet"), [GEMINI, SONNET], SONNET),
        (prefers("gpt-4o", intelligence=1), [GEMINI, SONNET, OPUS], SONNET),
        (prefers("o1", intelligence=1), [GEMINI, OPUS], OPUS),
    ],
)
def test_an_equivalent_model_is_chosen_when_no_hint_fits(
    preferences: ModelPreferences, models: list[HostModel], chosen: HostModel
) -> None:
    equivalents = {"Sonnet": ["nowhere", "GEMINI-1.5"], "gpt-4": ["sonnet", "gemini"]}
    assert choose_model(preferences, models, equivalents=equivalents) is chosen


@pytest.mark.parametrize("models", [[SONNET, GEMINI], [GEMINI, SONNET]])
def test_the_first_of_equals_is_chosen(models: list[HostModel]) -> None:
    assert choose_model(prefers(intelligence=1), models) is models[0]


def test_without_models_there_is_nothing_to_choose() -> None:
    with pytest.raises(ValueError, match="models is empty"):
        choose_model(None, [])


@pytest.mark.parametrize("trait", ["cost", "speed", "intelligence"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), 75])
def test_a_trait_is_from_0_to_1(trait: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{trait} of 'x' is from 0 to 1"):
        HostModel("x", **{trait: value})


traits = st.floats(0, 1)
names = st.text("abAB-", min_size=1, max_size=5)
some_models = st.lists(st.builds(HostModel, names, traits, traits, traits), min_size=1, max_size=6)
priorities = st.none() | st.floats(-2, 2)
some_preferences = st.builds(
    prefers, names | st.none(), names, cost=priorities, speed=priorities, intelligence=priorities
)
some_equivalents = st.none() | st.dictionaries(names, st.lists(names, max_size=3), max_size=3)


@given(some_preferences, some_models, some_equivalents)
def test_the_chosen_one_is_always_there_and_the_first_hint_that_fits_wins(
    preferences: ModelPreferences, models: list[HostModel], equivalents: dict[str, list[str]] | None
) -> None:
    chosen = choose_model(preferences, models, equivalents=equivalents)
    assert any(chosen is model for model in models)
    assert choose_model(preferences, models, equivalents=equivalents) is chosen
    for hint in preferences.hints or []:
        fits = [model for model in models if hint.name and hint.name.lower() in model.name.lower()]
        if fits:
            assert chosen in fits
            break


@given(some_models)
def test_no_other_model_is_better_in_everything(models: list[HostModel]) -> None:
    chosen = choose_model(prefers(cost=0.3, speed=0.3, intelligence=0.3), models)
    sliver = 1e-6  # below it, sums of floats come out equal
    for model in models:
        cheaper, faster = model.cost < chosen.cost - sliver, model.speed > chosen.speed + sliver
        assert not (cheaper and faster and model.intelligence > chosen.intelligence + sliver)

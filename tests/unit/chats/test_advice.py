"""How the makers of a model advise to sample, and what becomes of it."""

from pathlib import Path

import pytest

from medusa_core.chats.presets import (
    BUILTIN,
    Presets,
    recommended,
)
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import PresetError
from medusa_core.messages import Advice
from medusa_core.models.advice import read_advice, tried_sampling

QWEN3 = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}


def test_recommended_sampling_is_read_from_the_model() -> None:
    assert read_advice(QWEN3) == Advice(0.6, 20, 0.95)
    gemma3 = {"do_sample": True, "top_k": 64, "top_p": 0.95}
    assert read_advice(gemma3) == Advice(1.0, 64, 0.95), "of temperature they say nothing"


@pytest.mark.parametrize("generation", [{}, {"temperature": 0.6}, {"do_sample": None, "top_k": 5}])
def test_a_model_without_do_sample_recommends_nothing(generation: dict[str, object]) -> None:
    assert read_advice(generation) is None


def test_do_sample_false_recommends_greedy() -> None:
    assert read_advice({"do_sample": False, "top_k": 5}) == Advice(temperature=0.0)


@pytest.mark.parametrize("value", [-1, "hot", float("nan"), [0.6], 1e9, True])
def test_a_senseless_number_is_ignored(value: object) -> None:
    assert read_advice({**QWEN3, "temperature": value}) == Advice(1.0, 20, 0.95)


def test_new_chats_begin_as_recommended_unless_the_user_chose() -> None:
    presets = Presets(None)
    presets.apply_advice(Advice(0.6, 20, 0.95))
    started = presets.beginning
    assert (started.rule, started.temperature, started.top_k, started.top_p) == (
        "sample",
        0.6,
        20,
        0.95,
    )
    matching = presets.matching(started)
    assert matching is not None
    assert matching.name == "Recommended"
    assert matching.is_builtin
    presets.use_for_new_chats(ChatSettings(temperature=1.2))
    assert presets.beginning.temperature == 1.2


def test_new_chats_sample_if_nothing_is_recommended() -> None:
    presets = Presets(None)
    assert presets.matching(presets.beginning) == BUILTIN[1], "before a model is known, too"
    assert presets.beginning.rule == "sample"
    presets.apply_advice(Advice(temperature=0.0))
    assert presets.matching(presets.beginning) == BUILTIN[0]
    presets.apply_advice(Advice(0.6))
    presets.apply_advice(None)
    assert presets.matching(presets.beginning) == BUILTIN[1]
    assert presets.all == BUILTIN


def test_greedy_is_kept_if_the_user_chose_it_for_new_chats(tmp_path: Path) -> None:
    Presets(tmp_path).save("Mine", ChatSettings(temperature=1.2))
    assert Presets(tmp_path).new_chats is None, "saving a preset chooses nothing"
    Presets(tmp_path).use_for_new_chats(ChatSettings())
    later = Presets(tmp_path)
    later.apply_advice(Advice(0.6))
    assert later.beginning == ChatSettings()


def test_the_name_of_the_recommendation_is_reserved(tmp_path: Path) -> None:
    presets = Presets(tmp_path)
    with pytest.raises(PresetError):
        presets.save("recommended", ChatSettings())
    assert presets.duplicate(recommended(Advice())).name == "Recommended 2"
    assert presets.all[: len(BUILTIN)] == BUILTIN


@pytest.mark.parametrize("name", ["SmolLM2-135M-Instruct.Q4_1", "Smollm2 135M 8k Lc100K Mix1 Ep2"])
def test_a_known_model_without_recommendation_gets_tried_values(name: str) -> None:
    tried = tried_sampling(name)
    assert tried is not None
    assert (tried.temperature, tried.repetition_penalty) == (0.4, 1.1)
    assert tried_sampling("SmolLM2-1.7B-Instruct") is None

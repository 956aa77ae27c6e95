"""The block schedule: one loaded layer serves the rows of all answers of a block."""

from pathlib import Path

import pytest

from medusa_core.engine.batch.room import sessions_for
from medusa_core.engine.batch_generate import answer_all
from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import Scheduler, StepResult
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    WeightFormats,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.offload.layer_stream import LayerStream
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.benchmarks.accelerate_offload import write_random
from tests.support.engine.laws import decode, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.shapes import resized
from tests.support.models.targets import STREAMED
from tests.support.models.tiny import write_tiny

SETTINGS = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=12)
PROMPTS = [user_says(f"number {n} " * (n + 1)) for n in range(6)]
NUM_HERE = 1
KINDS = {
    "float64 and 4-bit cache": ("float64", WeightFormats(cache="q4")),
    "compiled": ("float32", WeightFormats()),
}


@pytest.fixture(params=KINDS)
def offloaded(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """A target of which all layers but one come from the disk, with room for six."""
    dtype, formats = KINDS[request.param]
    model = write_tiny(tmp_path / "model", STREAMED)
    options = LoadOptions(dtype, formats=formats, context_tokens=128, sessions=6)
    target = load_target(model, None, with_layers_below(model, None, options, NUM_HERE))
    assert isinstance(target.runner, OffloadRunner | OffloadNativeRunner)
    return target


def block(target: Target) -> list[tuple[int, ...]]:
    """The answers, written in one block."""
    requests = [Generate(str(n), "", prompt, SETTINGS) for n, prompt in enumerate(PROMPTS)]
    reported = {}
    for answered in answer_all(target, requests, RowPolicy(target), len(PROMPTS)):
        assert isinstance(answered.done, GenerationDone)
        reported[int(answered.request.session_id)] = answered.done.token_ids
    return [reported[n] for n in range(len(PROMPTS))]


def test_a_loaded_layer_serves_all_answers_and_changes_none(
    offloaded: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [decode(offloaded, SETTINGS, prompt).token_ids for prompt in PROMPTS]
    taken: list[int] = []
    take = LayerStream.acquire

    def counted(self: LayerStream, layer: int) -> int:
        taken.append(layer)
        return take(self, layer)

    monkeypatch.setattr(LayerStream, "acquire", counted)
    assert block(offloaded) == alone
    passes = len(taken) / (offloaded.config.num_layers - NUM_HERE)
    # Two or three passes read the prompts, and each step of the block is one more.
    assert passes <= SETTINGS.max_new_tokens + 6 < sum(map(len, alone)) / 3
    runner = offloaded.runner
    assert isinstance(runner, OffloadRunner | OffloadNativeRunner)
    runner.tiers.weights.set_buffers(1)  # nothing is read ahead
    assert block(offloaded) == alone


def test_a_batch_plans_exactly_the_memory_of_its_conversations() -> None:
    rows = whole_rows(1000)
    assert sessions_for([1000] * 8, 8, 1000) == 8
    few = sessions_for([30] * 31 + [1000], 32, 1000)
    assert few * rows >= 31 * 32 + 1002
    assert few < 4
    assert sessions_for([10], 1, 1000) == 1


def test_all_planned_conversations_are_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_tiny(tmp_path / "model", STREAMED)
    whole = load_target(model, None, LoadOptions("float64", context_tokens=256))
    prompts = [user_says("word " * 40 + str(n)) for n in range(6)]
    longest = max(len(whole.tokenizer.encode_prompt(whole.template.render(p))) for p in prompts)
    length = longest + SETTINGS.max_new_tokens
    sessions = sessions_for([length] * len(prompts), len(prompts), length)
    target = load_target(
        model, None, LoadOptions("float64", context_tokens=length, sessions=sessions)
    )
    together, step = [], Scheduler.step

    def counted(self: Scheduler, running: list[Generation]) -> list[StepResult]:
        together.append(len(running))
        return step(self, running)

    monkeypatch.setattr(Scheduler, "step", counted)
    requests = [Generate(str(n), "", prompt, SETTINGS) for n, prompt in enumerate(prompts)]
    for answered in answer_all(target, requests, RowPolicy(target), len(prompts)):
        assert isinstance(answered.done, GenerationDone)
    assert together[0] == len(prompts)


def test_random_weights_in_16_bits_have_all_tensors_of_the_shape(tmp_path: Path) -> None:
    small = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96}
    config = resized("qwen2.5-0.5b", num_hidden_layers=2, head_dim=64, **small)
    write_random("qwen2.5-0.5b", config, tmp_path)
    names = ModelFiles.open(tmp_path).checkpoint().names
    assert "model.embed_tokens.weight" in names
    assert sum(name.startswith("model.layers.1.") for name in names) >= 9

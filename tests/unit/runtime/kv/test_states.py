"""States: what rows change, what is taken back, and what is known of earlier lengths."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from medusa_core.engine.direct import events_of
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import EngineError
from medusa_core.loading.memory.plan import kv_bytes
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerateSettings, GenerationDone
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape, StateShape
from medusa_core.runtime.backends.caches import LayerState, RecurrentSteps, RowTree
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.size import (
    STEP_ROWS,
    num_states,
    row_bytes,
    state_bytes,
    state_rows,
    whole_rows,
)
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import user_says

SHAPE = StateShape(4, 3, 5, 2, 6, 4)
DTYPE = torch.float64


def with_states(target: Target) -> ModelConfig:
    """A model of two recurrent layers around one of attention with wide heads."""
    config = target.config
    layers = (SHAPE, KvShape(1, 32), KvShape(2, 8), SHAPE)
    return replace(config, num_layers=4, blocks=(), cached_layers=layers)


@pytest.fixture
def kv(tiny: Target) -> TensorCache:
    return TensorCache(with_states(tiny), tiny.precision, 200)


def steps_of(num_rows: int, seed: int) -> RecurrentSteps:
    """Steps of some rows."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*sizes: int) -> Tensor:
        return torch.randn(num_rows, *sizes, generator=generator, dtype=DTYPE)

    decays = -draw(SHAPE.num_heads).abs()
    return RecurrentSteps(
        draw(SHAPE.num_key_heads, SHAPE.key_dim),
        draw(SHAPE.num_heads, SHAPE.value_dim),
        decays,
        draw(SHAPE.channels),
    )


def plain(steps: list[RecurrentSteps], rows: list[int]) -> LayerState:
    """The recurrence step by step."""
    state = torch.zeros(SHAPE.num_heads, SHAPE.key_dim, SHAPE.value_dim, dtype=DTYPE)
    tail = torch.zeros(SHAPE.conv_width - 1, SHAPE.channels, dtype=DTYPE)
    for each, row in zip(steps, rows, strict=True):
        for head in range(SHAPE.num_heads):
            key = each.keys[row, head // (SHAPE.num_heads // SHAPE.num_key_heads)]
            grown = torch.outer(key, each.updates[row, head])
            state[head] = each.decays[row, head].exp() * state[head] + grown
        tail = torch.cat([tail[1:], each.inputs[row : row + 1]])
    return LayerState(state, tail)


def run(kv: KvCache, num_rows: int, seed: int, keep: list[int]) -> RecurrentSteps:
    """Run a pass and keep some of its rows."""
    assert isinstance(kv, TensorCache)
    kv.reserve(num_rows)
    steps = steps_of(num_rows, seed)
    for layer in (0, 3):
        kv.put_steps(layer, steps)
    for layer, width in ((1, 32), (2, 8)):
        heads = 2 if layer == 1 else 4
        kv.write(layer, torch.full((num_rows, heads, width), float(seed), dtype=DTYPE))
    kv.commit(keep)
    return steps


def check(kv: TensorCache, expected: LayerState) -> None:
    kv.reserve(1)
    for layer in (0, 3):
        for found, wanted in zip(kv.state(layer), expected, strict=True):
            torch.testing.assert_close(found, wanted)


def test_only_the_accepted_path_changes_states(kv: TensorCache) -> None:
    first, second = run(kv, 5, 1, [0, 2, 4]), run(kv, 3, 2, [0])
    check(kv, plain([first, first, first, second], [0, 2, 4, 0]))
    assert kv.length == 4


@pytest.mark.parametrize("left", range(4))
def test_truncation_within_the_last_commit_loses_nothing(left: int, kv: TensorCache) -> None:
    first = run(kv, 2, 1, [0, 1])
    second = run(kv, 4, 2, [0, 1, 3])
    kv.truncate(2 + left)
    assert kv.length == 2 + min(left, 3)
    rows = [0, 1, 3][:left]
    check(kv, plain([first, first, *[second] * len(rows)], [0, 1, *rows]))


def test_deeper_truncation_returns_to_a_checkpoint_or_to_nothing(kv: TensorCache) -> None:
    first = run(kv, 2, 1, [0, 1])
    kv.reserve(1)  # so that both rows are applied
    kv.commit([])
    kv.checkpoint()
    for seed in (2, 3):
        run(kv, 1, seed, [0])
    kv.truncate(3)
    assert kv.length == 3
    run(kv, 1, 4, [0])
    run(kv, 1, 5, [0])
    kv.truncate(3)
    assert kv.length == 2
    check(kv, plain([first, first], [0, 1]))
    kv.truncate(1)
    assert kv.length == 0
    check(kv, plain([], []))


def test_a_failed_chunk_keeps_the_state_before_it_or_nothing(kv: TensorCache) -> None:
    run(kv, 2, 1, [0, 1])
    kv.reserve(3, decided=True)
    kv.truncate(2)
    assert kv.length == 0


def test_after_accepted_rows_the_last_step_can_be_rolled_back(kv: TensorCache) -> None:
    steps = steps_of(90, 7)
    before = plain([steps] * 89, list(range(89)))
    kv.reserve(90, decided=True)
    for layer in (0, 3):
        kv.put_state(layer, before)
        kv.put_steps(layer, RecurrentSteps(*(part[-1:] for part in steps)))
    kv.commit(range(90))
    kv.checkpoint()
    kv.truncate(89)
    assert kv.length == 89
    check(kv, before)


def test_steps_after_a_prefill_can_be_rolled_back(kv: TensorCache) -> None:
    run(kv, 2, 1, [0, 1])
    run(kv, 1, 2, [0])
    kv.checkpoint()
    kv.fill(40)
    for seed in (3, 4, 5):
        run(kv, 1, seed, [0])
    kv.truncate(40)
    assert kv.length == 40
    kv.truncate(2)
    assert kv.length == 0


def test_more_rows_than_can_be_rolled_back_are_refused(kv: TensorCache) -> None:
    assert kv.most_rows == STEP_ROWS
    with pytest.raises(EngineError, match="rows of a tree"):
        kv.reserve(STEP_ROWS + 1)


def test_a_growing_cache_keeps_its_states_and_the_planned_size(tiny: Target) -> None:
    config = with_states(tiny)
    pool = CachePool(config, DTYPE, torch.device("cpu"), 512, "", 8)
    row = row_bytes(config, 8)
    of_session = row * state_rows(config, 8, row)
    states = num_states(of_session, 512, config.context_tokens) * state_rows(config, 8, row)
    assert pool.nbytes == row * (512 + states)
    assert state_rows(config, 8, row) * row >= state_bytes(config, 8)

    def new_cache(capacity: int, memory: Tensor) -> TensorCache:
        return TensorCache(config, tiny.precision, capacity, memory=memory)

    kv = pool.allocate(new_cache, 16)
    assert isinstance(kv, TensorCache)
    steps = run(kv, 5, 1, [0, 2])
    beside = pool.allocate(new_cache, 16)
    grown = pool.grown(new_cache, kv, 100)  # elsewhere
    assert isinstance(grown, TensorCache)
    longer = pool.grown(new_cache, grown, 200)  # in its place
    assert longer is grown
    assert grown.capacity >= 200
    check(grown, plain([steps, steps], [0, 2]))
    assert beside.length == 0


def test_a_pool_of_a_whole_context_has_the_planned_bytes(tiny: Target) -> None:
    config = with_states(tiny)
    num_rows = whole_rows(config.context_tokens)
    pool = CachePool(config, DTYPE, torch.device("cpu"), num_rows, "", 8)
    assert pool.nbytes == kv_bytes(config, tiny.formats, config.context_tokens)


def test_states_shared_within_a_step_are_truncated_to_its_start(tiny: Target) -> None:
    config = with_states(tiny)
    pool = CachePool(config, torch.float32, torch.device("cpu"), 512, "", 4)
    precision = replace(tiny.precision, compute=torch.float32, cache=torch.float32)
    with torch.inference_mode():
        kv = pool.allocate(lambda n, memory: TensorCache(config, precision, n, memory=memory), 16)
    kv.reserve(3, decided=True)
    kv.truncate(0)
    assert kv.length == 0


def test_a_convolution_reads_the_inputs_of_a_rows_own_path() -> None:
    sees = torch.zeros(5, 5, dtype=torch.bool)
    for row, seen in enumerate([[0], [0, 1], [0, 2], [0, 1, 3], [0, 1, 3, 4]]):
        sees[row, seen] = True
    tail = 3
    assert RowTree(sees).inputs(4).tolist() == [
        [0, 1, 2, tail],
        [1, 2, tail, tail + 1],
        [1, 2, tail, tail + 2],
        [2, tail, tail + 1, tail + 3],
        [tail, tail + 1, tail + 3, tail + 4],
    ]
    one = RowTree(torch.ones(1, 1, dtype=torch.bool))
    assert one.inputs(2).tolist() == [[0, 1]]
    assert one.inputs(1).tolist() == [[0]]


def test_models_without_recurrent_layers_have_no_states(load: LoadTarget) -> None:
    target = load("tied", "float64")
    assert state_bytes(target.config, 8) == 0
    assert target.allocate_cache(8).states is None


@pytest.mark.parametrize("name", ["qwen3_5", "lfm2", "granitemoehybrid"])
def test_a_regenerated_answer_recomputes_no_token_and_an_edit_says_how_many(
    name: str, load: LoadTarget
) -> None:
    target = load(name, "float64")
    session, settings = Session(target), GenerateSettings(drafter="suffix", max_new_tokens=12)

    def ask(text: str) -> GenerationDone:
        request = Generate("s", "", user_says(text), settings)
        *_, done = events_of(start_generation(request, target, session, RowPolicy(target)))
        assert isinstance(done, GenerationDone)
        return done

    first, again = ask("Who lives in this house?"), ask("Who lives in this house?")
    assert again.text == first.text
    assert (again.num_cached_tokens, again.num_reread_tokens) == (first.num_prompt_tokens - 1, 0)
    edited = ask("Who lives in that house?")
    assert edited.num_reread_tokens > 0
    session.close()

"""The cache in 8 and in 4 bits, and attention to few rows: laws 1 to 3 hold for both."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import RequestError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    WeightFormats,
)
from medusa_core.runtime.backends.attention import attend_by_products, attend_sparsely
from medusa_core.runtime.kv.quantized import (
    QuantizedCache,
    pack,
    pack_blocks,
    unpack,
    unpack_blocks,
)
from medusa_core.runtime.kv.size import (
    packed_bytes,
    row_bytes,
    whole_rows,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    check_sources,
    decode,
    plain_scores,
    plainly,
    user_says,
)
from tests.support.models.peers import CONFIGS, peer_of
from tests.support.models.targets import TARGET_NAMES, Folders, options_of
from tests.support.models.tiny import write_text_files

KINDS = {
    "q8_0": WeightFormats(cache="q8_0"),
    "q4": WeightFormats(cache="q4"),
    "sparse": WeightFormats(attended=6),
    "both": WeightFormats(cache="q4", attended=6),
}
DRAFTERS = [spec for spec in drafter_registry().specs if spec.name != "none"]
EXACT = [rule for rule in rule_registry().specs if rule.choice.is_exact]
MESSAGES = user_says("the rest is silence, as far as one can see")
LoadKind = Callable[..., Target]


@pytest.fixture(scope="module")
def load_kind(folders: Folders) -> LoadKind:
    """Targets with quantized caches or sparse attention."""

    @cache
    def load(kind: str, name: str = "grouped", sessions: int = 1) -> Target:
        options = options_of(name, "float64", "cpu")
        options = replace(options, formats=KINDS[kind], sessions=sessions)
        return load_target(*folders[name], options)

    return load


def target_for(drafter: DrafterSpec, load_kind: LoadKind) -> Target:
    targets = (load_kind("both", name) for name in TARGET_NAMES if name != "pebble")
    return next(target for target in targets if drafter.serves(target))


# A cache doesn't know who drafts: one that reads states, one with a cache of its own, one of text.
@pytest.mark.parametrize(
    ("drafter", "rule"),
    by_turns(
        DRAFTERS, EXACT, daily=[drafter_registry().get(n) for n in ("medusa", "eagle", "suffix")]
    ),
)
def test_laws_1_to_3_hold_for_every_drafter(
    drafter: DrafterSpec, rule: RuleSpec, load_kind: LoadKind
) -> None:
    target = target_for(drafter, load_kind)
    settings = GenerateSettings(drafter=drafter.name, rule=rule.name, max_new_tokens=20, seed=3)
    plain = decode(target, plainly(settings), MESSAGES)
    drafted = decode(
        target, settings, MESSAGES, after_step=lambda session: check_cache(session, target, 1e-12)
    )
    check_same_tokens(plain, drafted)
    check_sources(drafted)


@pytest.mark.parametrize("kind", KINDS)
def test_accepted_paths_of_every_depth_equal_a_cache_without_drafts(
    kind: str, load_kind: LoadKind
) -> None:
    target = load_kind(kind)
    settings = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=40)
    plain = decode(target, plainly(settings), MESSAGES)
    oracle = oracle_spec(plain.prompt_ids + plain.token_ids)
    drafted = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle,
        after_step=lambda session: check_cache(session, target, 1e-12),
    )
    check_same_tokens(plain, drafted)
    assert max(drafted.done.accept_lengths) > 2
    assert drafted.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize("kind", KINDS)
def test_law_7_answers_that_share_a_pass_equal_those_of_each_alone(
    kind: str, load_kind: LoadKind
) -> None:
    target = load_kind(kind, "grouped", 4)
    settings = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=20)
    prompts = [user_says(text) for text in ("one", "two and three", "four " * 20)]
    alone = [decode(target, settings, prompt).token_ids for prompt in prompts]
    sessions = [Session(target) for _ in prompts]
    running = [
        start_generation(Generate(str(n), "", prompt, settings), target, session, RowPolicy(target))
        for n, (prompt, session) in enumerate(zip(prompts, sessions, strict=True))
    ]
    reported: dict[str, tuple[int, ...]] = {}
    scheduler = Scheduler()
    while running:
        for generation, events, error in scheduler.step(running):
            assert error is None
            for event in events:
                if isinstance(event, GenerationDone):
                    reported[generation.request.session_id] = event.token_ids
    assert [reported[str(n)] for n in range(len(prompts))] == alone
    for session in sessions:
        session.close()


def test_the_quantized_cache_takes_the_planned_memory_a_third_of_16_bits(
    load_kind: LoadKind,
) -> None:
    target = load_kind("q4")
    assert isinstance(target.allocate_cache(16), QuantizedCache)
    config = target.config
    assert target.caches.nbytes == target.plan.kv_bytes
    assert target.caches.nbytes == whole_rows(config.context_tokens) * row_bytes(config, 8, "q4")
    assert packed_bytes(128, "q4") * 8 / 128 == 4.5  # bits of a number, as the paper has it
    assert packed_bytes(80, "q4") == 48
    assert [packed_bytes(dim, "q4") for dim in (64, 256)] == [36, 144]


def test_the_cache_in_8_bits_takes_what_is_planned(load_kind: LoadKind) -> None:
    target = load_kind("q8_0")
    assert isinstance(target.allocate_cache(16), QuantizedCache)
    assert target.caches.nbytes == target.plan.kv_bytes
    assert packed_bytes(128, "q8_0") * 8 / 128 == 8.5  # bits of a number, as in Q8_0
    assert [packed_bytes(dim, "q8_0") for dim in (8, 64, 80, 96)] == [12, 68, 88, 104]


@pytest.mark.parametrize("head_dim", [8, 32, 64, 80, 96, 256])
def test_8_bits_lose_half_a_step_of_each_block(head_dim: int) -> None:
    rows = torch.randn(5, 2, head_dim, generator=torch.Generator().manual_seed(1)) * 3
    rows[0, 0] = 0
    rows[1] *= 1e8  # more than a scale in float16 holds
    rows[2] *= 1e-9
    packed = pack_blocks(rows)
    assert packed.shape == (5, 2, packed_bytes(head_dim, "q8_0"))
    assert all(torch.equal(pack_blocks(rows[n : n + 1])[0], packed[n]) for n in range(5))
    back = unpack_blocks(packed, head_dim)
    bounded = rows.clamp(-127 * 65504.0, 127 * 65504.0)
    for begin in range(0, head_dim, 32):
        block, own = back[..., begin : begin + 32], bounded[..., begin : begin + 32]
        step = own.abs().amax(-1, keepdim=True) / 127
        # 2⁻¹¹ of a number is lost where the scale is rounded down, 2⁻²⁵ where that is subnormal.
        assert ((block - own).abs() <= 0.51 * step + 127 * (step * 2**-11 + 2**-25)).all()
    assert not back[0, 0].any()
    assert torch.equal(pack_blocks(back[:1]), packed[:1])  # such rows lose nothing


def test_dequantized_values_are_within_half_a_step_of_their_group() -> None:
    rows = torch.randn(5, 2, 128, generator=torch.Generator().manual_seed(1)) * 3
    rows[0, 0, :64] = 2.5  # all alike
    rows[1] *= 1e6  # more than a float16 holds
    back = unpack(pack(rows, 64), 64)
    bounded = rows.clamp(-65504, 65504).unflatten(-1, (2, 64))
    step = (bounded.amax(-1) - bounded.amin(-1)) / 15
    error = (back.unflatten(-1, (2, 64)) - bounded).abs().amax(-1)
    assert (error <= 0.52 * step + 2e-3 * bounded.abs().amax(-1)).all()
    assert torch.equal(back[0, 0, :64], rows[0, 0, :64])


def test_a_row_is_quantized_by_itself() -> None:
    rows = torch.randn(7, 4, 64, generator=torch.Generator().manual_seed(2))
    together = pack(rows, 64)
    assert all(torch.equal(pack(rows[n : n + 1], 64)[0], together[n]) for n in range(7))


def test_a_cache_in_few_bits_loses_little_and_attention_to_few_rows_more(
    load_kind: LoadKind, folders: Folders
) -> None:
    full = load_target(*folders["grouped"], LoadOptions("float64"))
    ids = list(range(5, 60))
    expected = plain_scores(full, ids).log_softmax(-1)
    off = {
        kind: float((plain_scores(load_kind(kind), ids).log_softmax(-1) - expected).abs().mean())
        for kind in ("q8_0", "q4", "sparse")
    }
    assert 0 < off["q8_0"] < 0.1 * off["q4"] < 0.1
    assert off["sparse"] > 0


@pytest.mark.parametrize("masked", [False, True])
def test_sparse_attention_to_enough_rows_is_full_attention(masked: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    q, keys, values = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((3, 4, 8), (2, 12, 8), (2, 12, 8))
    )
    mask = None
    if masked:
        mask = torch.zeros(6, 12, dtype=torch.float64)
        mask[:, 5:] = float("-inf")
    full = attend_by_products(q, keys, values, mask)
    assert torch.equal(attend_sparsely(12)(q, keys, values, mask), full)
    five = attend_sparsely(5)(q, keys, values, mask)
    assert torch.allclose(five, full) == masked  # where five rows are seen, these are all


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss"])
def test_families_with_other_attention_refuse_sparse_attention(name: str, tmp_path: Path) -> None:
    found = next(config for config in CONFIGS if CONFIGS[config]().model_type == name)
    peer_of(found).save_pretrained(tmp_path)
    write_text_files(tmp_path)
    with pytest.raises(RequestError, match="takes all rows"):
        load_target(tmp_path, options=LoadOptions("float64", formats=WeightFormats(attended=4)))
    load_target(tmp_path, options=LoadOptions("float64", formats=WeightFormats(cache="q4")))


def test_an_unknown_cache_format_or_number_of_rows_is_refused(folders: Folders) -> None:
    for formats in (WeightFormats(cache="q3"), WeightFormats(attended=-1)):
        with pytest.raises(RequestError):
            load_target(folders["grouped"][0], options=LoadOptions(formats=formats))

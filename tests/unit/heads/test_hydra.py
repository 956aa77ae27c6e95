"""Hydra heads: read as published, drafting by the paper's equations, refused when wrong."""

import json
import re
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from medusa_core.__main__ import main
from medusa_core.engine.direct import generate
from medusa_core.errors import (
    CheckpointError,
    HeadsError,
    ModelError,
    RequestError,
)
from medusa_core.heads.head_files import open_head_files
from medusa_core.heads.hydra import HydraHeads
from medusa_core.heads.kind import Heads, kind_of, read_shape
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.heads.ranked import RankedTokens, rank_tokens
from medusa_core.hub.convert.convert import (
    ConversionLimits,
    convert,
)
from medusa_core.hub.convert.convert_source import find_source
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.pairing import (
    HeadsFit,
    match,
)
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Failed,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Planned,
    WeightFormats,
)
from medusa_core.runtime.tree.step import Chance, RowBudget
from medusa_core.speculation.drafters.drafter import NUM_RANKS
from medusa_core.speculation.drafters.grown import GrownDrafter
from medusa_core.speculation.drafters.growth import make_growth
from medusa_core.speculation.drafters.lineup import (
    drafter_registry,
    drafters_for,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    Source,
    source_registry,
)
from medusa_core.speculation.rules.sample import Sample
from medusa_core.speculation.rules.sampling import (
    Sampler,
    gumbel_noise,
)
from medusa_core.system.native.binding import native_library
from tests.support.engine.drafts import Scripted
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.held_bytes import held_bytes
from tests.support.models.hydra_files import (
    FILE,
    drafted_scores,
    random_hydra,
    settings_of,
    write_hydra,
)
from tests.support.models.targets import HYDRA
from tests.support.models.tiny import (
    TinySpec,
    random_heads,
    random_weights,
    write_heads,
    write_tiny,
)

PICKLE = "hydra_lm_head.pt"
HIDDEN, VOCABULARY = HYDRA.hidden_size, HYDRA.vocab_size
VECTORS = random_weights(HYDRA)["model.embed_tokens.weight"]
LIMITS = ConversionLimits(time_s=120, floor_bytes=0)
FIRST, LAST = "hydra_mlp.0.0.linear.weight", "hydra_lm_head.0.weight"
MESSAGES = user_says("read what came before")

Tensors = dict[str, Tensor]


def loaded(
    root: Path, tensors: Tensors, dtype: str = "float64", heads: str = "", **more: object
) -> Target:
    """The target with these heads, in a format."""
    model = root / "model"
    model = model if model.exists() else write_tiny(model, HYDRA)
    options = LoadOptions(dtype, "cpu", WeightFormats(heads=heads))
    return load_target(model, write_hydra(root / "heads", tensors, **more), options)


def heads_of(target: Target) -> HydraHeads:
    assert isinstance(target.heads, HydraHeads)
    return target.heads


def ranked_by(
    target: Target, hidden: Tensor, paths: Tensor, num_ranks: int, chance: Chance | None = None
) -> RankedTokens:
    """Rank what follows paths, which begin with one root."""
    drafts = array("i", paths[:, 1:].flatten().tolist())
    count, length = paths.shape
    root_id = int(paths[0, 0])
    return heads_of(target).ranked(hidden, root_id, drafts, count, length - 1, num_ranks, chance)


def by_path(ranked: RankedTokens, num_ranks: int) -> list[list[int]]:
    """Token ids of each path."""
    token_ids = ranked.token_ids.tolist()
    return [token_ids[at : at + num_ranks] for at in range(0, len(token_ids), num_ranks)]


def a_state(target: Target, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(HIDDEN, generator=generator).to(target.runner.hidden_dtype)


# What they draft ----------------------------------------------------------------------------------


@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_logits_equal_the_papers_equations(num_layers: int, has_bias: bool, tmp_path: Path) -> None:
    tensors = random_hydra(HYDRA, 4, num_layers, has_bias)
    target = loaded(tmp_path, tensors)
    heads, hidden = heads_of(target), a_state(target)
    assert heads.num_heads == 4
    for tail in ((), (5,), (5, 319), (319, 0, 5)):
        paths = [(root, *tail) for root in (0, 9, 200)]
        expected = torch.stack([drafted_scores(tensors, VECTORS, hidden, path) for path in paths])
        torch.testing.assert_close(heads.logits(hidden, torch.tensor(paths)), expected)


@pytest.mark.parametrize(
    ("dtype", "format_", "most"),
    [
        *(("float32", "fp32", 1e-5), ("bfloat16", "bf16", 0.03), ("bfloat16", "int8", 0.05)),
        ("float32", "q4", 0.2),
    ],
)
def test_logits_are_as_exact_as_their_weight_format(
    dtype: str, format_: str, most: float, tmp_path: Path
) -> None:
    tensors = random_hydra(HYDRA)
    target = loaded(tmp_path, tensors, dtype, format_)
    heads, hidden = heads_of(target), a_state(target)
    paths = [(3, 4, 5), (3, 5, 4)]
    found = heads.logits(hidden, torch.tensor(paths)).double()
    expected = torch.stack([drafted_scores(tensors, VECTORS, hidden, path) for path in paths])
    assert (found - expected).norm() / expected.norm() < most


def requested(source: Source, *paths: tuple[int, ...]) -> Candidates | None:
    flat = [token_id for path in paths for token_id in path]
    return source.candidates(Paths(len(paths), len(paths[0]), array("i", [*flat, 0, 0])))


def started(target: Target, hidden: Tensor, root_id: int, budget: RowBudget) -> Source:
    source = source_registry().get("hydra").build(target, budget)
    source.begin([1, 2])
    source.observe(Observation((2, root_id), hidden[None]))
    source.start(root_id, budget.most)
    return source


def test_every_path_of_a_level_gets_its_own_candidates(tmp_path: Path) -> None:
    tensors = random_hydra(HYDRA)
    target = loaded(tmp_path, tensors)
    hidden = a_state(target)
    source = started(target, hidden, 7, RowBudget(16))
    for paths in ([()], [(4,), (300,), (4,)], [(4, 300), (300, 4), (0, 319), (5, 5)]):
        reported = requested(source, *paths)
        assert reported is not None
        assert reported.counts is not None
        assert reported.counts.tolist() == [8] * len(paths)
        for index, path in enumerate(paths):
            chances = drafted_scores(tensors, VECTORS, hidden, (7, *path)).softmax(dim=-1)
            best = chances.topk(8)
            own = slice(8 * index, 8 * index + 8)
            assert reported.token_ids[own].tolist() == best.indices.tolist()
            assert reported.chances[own].tolist() == pytest.approx(best.values.tolist(), rel=1e-5)
    assert requested(source, (1, 2, 3)) is None


def test_a_tree_equals_one_grown_by_the_papers_equations(tmp_path: Path) -> None:
    tensors = random_hydra(HYDRA)
    target = loaded(tmp_path, tensors)
    for seed in range(4):
        hidden, root_id = a_state(target, seed), 30 + seed

        def says(path: tuple[int, ...], hidden: Tensor = hidden, root_id: int = root_id) -> Any:
            if len(path) == 3:
                return {}
            scores = drafted_scores(tensors, VECTORS, hidden, (root_id, *path))
            best = scores.softmax(dim=-1).topk(8)
            return dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))

        budget = RowBudget(16)
        expected = make_growth(budget, [1.0]).grow([Scripted(says)], 16)
        drafter = drafter_registry().get("hydra").build(target, budget)
        drafter.begin([1])
        drafter.observe(Observation((root_id,), hidden[None]))
        proposal = drafter.propose(root_id, 16)
        assert list(proposal.tree.token_ids[1:]) == list(expected.token_ids)
        assert proposal.expected_accepted == pytest.approx(expected.expected_accepted, rel=1e-5)
        assert {source.drafter for source in proposal.sources[1:]} == {"hydra"}


def test_ranks_and_levels_stay_within_the_budget(tmp_path: Path) -> None:
    target = loaded(tmp_path, random_hydra(HYDRA))
    hidden = a_state(target)

    def counts(budget: RowBudget, *paths: tuple[int, ...]) -> list[int]:
        reported = requested(started(target, hidden, 7, budget), *paths)
        return [] if reported is None or reported.counts is None else reported.counts.tolist()

    dear = array("f", [0.1 * row for row in range(64)])
    assert counts(RowBudget(64), ()) == [32]
    assert counts(RowBudget(64, dear), ()) == [5]
    assert counts(RowBudget(4), (), ()) == [NUM_RANKS] * 2
    assert counts(RowBudget(1), ()) == []
    assert counts(RowBudget(64, levels=0), ()) == []
    assert counts(RowBudget(64, levels=1), (5,)) == []
    assert counts(RowBudget(3), (5, 6)) == []
    assert counts(RowBudget(64), (5, 6)) == [32]


def test_nothing_is_drafted_without_a_hidden_state(tmp_path: Path) -> None:
    target = loaded(tmp_path, random_hydra(HYDRA))
    source = started(target, a_state(target), 7, RowBudget(8))
    source.truncate(1)
    assert requested(source, ()) is None
    source = started(target, a_state(target), 7, RowBudget(8))
    source.begin([1])
    source.start(1, 8)
    assert requested(source, ()) is None


@pytest.mark.parametrize("more", [{}, {"top_k": 40}, {"top_p": 0.9}], ids=str)
def test_under_sampling_candidates_are_ranked_with_the_noise_of_their_position(
    more: dict[str, Any], tmp_path: Path
) -> None:
    tensors = random_hydra(HYDRA)
    target = loaded(tmp_path, tensors)
    hidden, settings = a_state(target), GenerateSettings(rule="sample", seed=3, **more)
    sampler = Sampler(settings)

    def chance(scores: Tensor, token_ids: Tensor | None, depths: Any = None) -> Tensor:
        return sampler.shifted(scores, token_ids, 40, depths)

    for paths in ([(7,)], [(7, 4), (7, 300)], [(7, 4, 9), (7, 9, 4), (7, 0, 0)]):
        ranked = ranked_by(target, hidden, torch.tensor(paths), 5, chance)
        noise = gumbel_noise(3, 40 + len(paths[0]) - 1, VOCABULARY)
        for path, found in zip(paths, by_path(ranked, 5), strict=True):
            scores = drafted_scores(tensors, VECTORS, hidden, path)
            best = (sampler.filtered(scores) + noise).topk(5)
            num_kept = int(best.values.isfinite().sum())
            assert found[:num_kept] == best.indices[:num_kept].tolist()
        assert len(ranked.chances) == 5 * len(paths)
        assert all(0 <= chance <= 1 for chance in ranked.chances)


@pytest.mark.parametrize("more", [None, {}, {"top_k": 20}, {"top_p": 0.3}, {"min_p": 0.2}], ids=str)
def test_compiled_levels_draft_like_torch(more: dict[str, Any] | None, tmp_path: Path) -> None:
    target = loaded(tmp_path, random_hydra(HYDRA), "float32")
    heads, hidden, chance = heads_of(target), a_state(target), None
    assert len(heads._compiled) == heads.num_heads
    if more is not None:
        chance = Sample(GenerateSettings(rule="sample", seed=3, **more)).chance(40)
    for paths in ([(7,)], [(7, 4), (7, 300)], [(7, 4, 9), (7, 9, 4), (7, 0, 0)]):
        compiled = ranked_by(target, hidden, torch.tensor(paths), 5, chance)
        by_torch = None if chance is None else (lambda *asked: chance(*asked))  # not seeded
        logits = heads.logits(hidden, torch.tensor(paths))
        exact = rank_tokens(logits, 5, heads.vocabulary, by_torch, len(paths[0]))
        # What filters drop has no probability, and is in any order.
        kept = [place for place, chance_of in enumerate(exact.chances) if chance_of > 1e-20]
        assert len(kept) >= len(paths)
        for place in kept:
            assert compiled.token_ids[place] == exact.token_ids[place]
        # Without filters columns beyond the candidates have noise of its mean weight.
        error = 0.3 if more == {} else 1e-4
        assert list(compiled.chances) == pytest.approx(list(exact.chances), rel=error, abs=1e-6)


# What they are good for ---------------------------------------------------------------------------


def knowing(num_heads: int, model: Path) -> Tensors:
    """A target whose next token depends on the last one alone, and heads that know which it is."""
    path = model / "model.safetensors"
    weights = load_file(path)
    for name in weights:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            weights[name] = torch.zeros_like(weights[name])
    save_file(weights, path)
    # Of the last row alone, scaled by the norm, which changes no order.
    projection = 30 * weights["lm_head.weight"].float() * weights["model.norm.weight"].float()
    tensors: Tensors = {}
    for head in range(num_heads):
        reads = torch.zeros(HIDDEN, (head + 2) * HIDDEN)
        name = f"hydra_mlp.{head}.0"
        tensors[f"{name}.linear.weight"] = reads
        tensors[f"{name}.linear.bias"] = torch.zeros(HIDDEN)
        last = reads.clone()
        last[:, -HIDDEN:] = torch.eye(HIDDEN)
        tensors[f"{name}.res_connection.weight"] = last
        tensors[f"{name}.res_connection.bias"] = torch.zeros(HIDDEN)
        tensors[f"hydra_lm_head.{head}.weight"] = projection.clone()
    return tensors


@pytest.mark.parametrize("drafter", ["hydra", "composite"])
def test_heads_that_know_the_next_token_are_always_accepted(drafter: str, tmp_path: Path) -> None:
    tensors = knowing(3, write_tiny(tmp_path / "model", HYDRA))
    target = replace(loaded(tmp_path, tensors), eos_token_ids=frozenset())
    settings = GenerateSettings(drafter, "greedy", max_new_tokens=41, tree_rows=8)
    run = decode(target, settings, MESSAGES)
    check_same_tokens(decode(target, plainly(settings), MESSAGES), run)
    assert [len(step.token_ids) for step in run.steps[:1]] == [1]
    assert all(len(step.token_ids) >= 4 for step in run.steps[1:])
    heads = {(s.drafter, s.head) for step in run.steps[1:] for s in step.sources if s.head}
    if drafter == "hydra":
        assert heads == {("hydra", 1), ("hydra", 2), ("hydra", 3)}
    else:
        assert any("hydra" in name for name, _ in heads)


@pytest.mark.parametrize("rule", ["greedy", "sample"])
@pytest.mark.parametrize("drafter", ["hydra", "composite"])
def test_text_and_cache_equal_those_of_plain_decoding(
    drafter: str, rule: str, tmp_path: Path
) -> None:
    target = loaded(tmp_path, random_hydra(HYDRA, 5))
    settings = GenerateSettings(drafter, rule, seed=4, max_new_tokens=40, tree_rows=24)
    run = decode(
        target, settings, MESSAGES, after_step=lambda session: check_cache(session, target, 1e-12)
    )
    check_same_tokens(decode(target, plainly(settings), MESSAGES), run)
    assert any(step.num_rows == 24 for step in run.steps)


def test_drafters_of_medusa_heads_dont_use_hydra_heads(tmp_path: Path) -> None:
    target = loaded(tmp_path, random_hydra(HYDRA))
    names = [spec.name for spec in drafters_for(target)]
    assert names[0] == "composite"
    assert "hydra" in names
    assert not any(name.startswith("medusa") for name in names)
    with pytest.raises(RequestError):
        drafter_registry().get("medusa").build(target, RowBudget(8))
    medusa = load_target(
        tmp_path / "model", write_heads(tmp_path / "medusa", random_heads(HYDRA)), LoadOptions()
    )
    assert "hydra" not in {spec.name for spec in drafters_for(medusa)}
    for build in (drafter_registry().get("hydra").build, source_registry().get("hydra").build):
        with pytest.raises(RequestError) as caught:
            build(medusa, RowBudget(8))
        assert "Hydra" in caught.value.hint
    composite = drafter_registry().get("composite").build(target, RowBudget(8))
    assert isinstance(composite, GrownDrafter)


@pytest.mark.parametrize("name", ["hydra", "medusa"])
def test_the_engine_loads_measures_and_drafts_with_hydra_heads(name: str, tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", HYDRA)
    heads = write_hydra(tmp_path / "heads", knowing(3, model))
    engine = EngineHarness()
    try:
        event = engine.load(LoadModel("", "load", model, heads, LoadOptions("float32", "cpu")))
        assert isinstance(event, ModelLoaded)
        assert (event.num_heads, event.head_source) == (3, "hydra")
        assert [choice.name for choice in event.drafters][:2] == ["composite", "suffix"]
        assert "hydra" in {info.name for info in event.sources}
        engine.submit(Calibrate("", "calibrate"))
        engine.wait("calibrate", Calibrated)
        planned = engine.wait("calibrate", Planned)
        assert isinstance(planned, Planned)
        assert planned.best_nodes == ()  # there is no tree for all steps
        found = engine.answer("one", GenerateSettings(name, max_new_tokens=20))
        if name == "medusa":
            assert isinstance(found, Failed)
            return
        assert isinstance(found, GenerationDone)
        plain = engine.answer("one", GenerateSettings("none", max_new_tokens=20), "other")
        assert isinstance(plain, GenerationDone)
        assert found.token_ids == plain.token_ids
    finally:
        engine.close()


# What they take -----------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [0, 64])
@pytest.mark.parametrize(
    ("dtype", "format_"),
    [
        *(("float64", ""), ("float32", ""), ("float32", "fp32"), ("bfloat16", "bf16")),
        *(("bfloat16", "int8"), ("float32", "q4"), ("bfloat16", "q4"), ("", "")),
    ],
)
def test_the_plan_equals_the_allocated_memory(
    dtype: str, format_: str, padding: int, tmp_path: Path
) -> None:
    wider = replace(HYDRA, vocab_size=VOCABULARY + padding)
    target = loaded(tmp_path, random_hydra(wider, 3, 2), dtype, format_)
    heads = heads_of(target)
    assert heads.nbytes == held_bytes([heads._heads])
    planned = target.plan.heads_bytes
    assert heads.nbytes == planned
    if dtype == "float64":
        shapes = (t.numel() for t in random_hydra(wider, 3, 2).values())
        assert heads.nbytes == 8 * sum(shapes)


def test_padding_of_the_vocabulary_is_never_drafted(tmp_path: Path) -> None:
    wider = replace(HYDRA, vocab_size=VOCABULARY + 64)
    tensors = random_hydra(wider)
    for head in range(3):
        tensors[f"hydra_lm_head.{head}.bias"][VOCABULARY:] = 1000
    target = loaded(tmp_path, tensors)
    paths = torch.tensor([(7, 3)])
    ranked = ranked_by(target, a_state(target), paths, 32)
    assert max(ranked.token_ids) < VOCABULARY
    fewer = random_hydra(replace(HYDRA, vocab_size=VOCABULARY - 8))
    few = ranked_by(loaded(tmp_path, fewer), a_state(target), paths, 32)
    assert max(few.token_ids) < VOCABULARY - 8


def test_heads_use_the_targets_threads(tmp_path: Path) -> None:
    if native_library() is None:
        pytest.skip("no compiled step here")
    target = loaded(tmp_path, random_hydra(HYDRA), "float32")
    heads = heads_of(target)
    assert len(heads._native) == 3 * 3
    assert all(linear._workers is not None for linear in heads._native)
    settings = GenerateSettings("hydra", max_new_tokens=16)
    found = generate(target, MESSAGES, settings)
    assert found.token_ids == generate(target, MESSAGES, plainly(settings)).token_ids


# What is refused ----------------------------------------------------------------------------------


def read_for(folder: Path, target: Target) -> Heads:
    files = open_head_files(folder)
    kind, config = kind_of(files.checkpoint.names), target.config
    weights = target.shared_weights
    return kind.read(files, HeadsTarget(config, target.precision, weights, target.formats))


def refused(folder: Path, target: Target) -> ModelError:
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        read_for(folder, target)
    assert caught.value.hint
    return caught.value


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    return loaded(tmp_path_factory.mktemp("hydra"), random_hydra(HYDRA))


def without(*names: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        for name in list(tensors):
            if name.startswith(names):
                del tensors[name]

    return change


def put(name: str, tensor: Tensor) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.update({name: tensor})


def value(name: str, number: float) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name] = tensors[name].clone()
        tensors[name].flatten()[-1] = number

    return change


SQUARE = torch.zeros(HIDDEN, HIDDEN)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (without("hydra_mlp.0."), "no matrix hydra_mlp.0.0"),
        (without("hydra_lm_head."), "no matrix hydra_lm_head.0"),
        (without("hydra_mlp.1."), "lack 6 of"),
        (without("hydra_lm_head.2."), "lack 2 of 24 tensors, such as hydra_lm_head.2.bias"),
        (without("hydra_lm_head.2.bias"), "hydra_lm_head.2.bias"),
        (without("hydra_lm_head.0.bias"), "belong to no head: hydra_lm_head.1.bias"),
        (without("hydra_mlp.2.0.res"), "hydra_mlp.2.0.res_connection"),
        (without("hydra_mlp.2.1.linear.bias"), "hydra_mlp.2.1.linear.bias"),
        (without("hydra_mlp.2.", "hydra_lm_head.2."), "3 as hydra_num_heads, the heads have 2"),
        (put("hydra_mlp.0.0.linear.scale", SQUARE), "hydra_mlp.0.0.linear.scale"),
        (put("hydra_mlp.00.1.linear.weight", SQUARE), "hydra_mlp.00.1"),
        (put("hydra_mlp.0.1.res_connection.weight", SQUARE), "hydra_mlp.0.1.res_connection"),
        (put("0.0.linear.weight", SQUARE), "0.0.linear.weight"),
        (put("hydra_mlp.9999.0.linear.weight", SQUARE), "10000 heads"),
        (put("hydra_mlp.0.9999.linear.weight", SQUARE), "lack"),
        (put("prefix_embeding_layer.norm.weight", SQUARE[0]), "attention"),
        (put("cross_attn.q_proj.weight", SQUARE), "attention"),
        (put(FIRST, torch.zeros(HIDDEN, 3 * HIDDEN)), r"shape \[64, 192\], not \[64, 128\]"),
        (put(FIRST, torch.zeros(HIDDEN, HIDDEN)), "grounded_heads"),
        (put(FIRST, torch.zeros(HIDDEN)), "no matrix"),
        (put(FIRST, torch.zeros(0, 2 * HIDDEN)), "no matrix"),
        (put(LAST, torch.zeros(HIDDEN, VOCABULARY)), r"hydra_lm_head.0.weight has shape"),
        (put("hydra_lm_head.1.weight", torch.zeros(VOCABULARY - 1, HIDDEN)), r"\[319, 64\]"),
        (put("hydra_mlp.1.1.linear.bias", torch.zeros(1, HIDDEN)), r"\[1, 64\], not \[64\]"),
        (put(FIRST, torch.zeros(HIDDEN, 2 * HIDDEN, dtype=torch.int64)), "int64"),
        (value(FIRST, torch.nan), "holds what is no number"),
        (value("hydra_lm_head.2.bias", torch.inf), "hydra_lm_head.2.bias holds what is no number"),
    ],
)
def test_incomplete_heads_are_refused(
    change: Callable[[Tensors], None], reported: str, target: Target, tmp_path: Path
) -> None:
    tensors = random_hydra(HYDRA)
    settings = settings_of(tensors)
    change(tensors)
    folder = write_hydra(tmp_path, tensors, **settings)
    assert kind_of(open_head_files(folder).checkpoint.names).name == "hydra"
    error = refused(folder, target)
    assert re.search(reported, error.message), error.message


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        (replace(HYDRA, hidden_size=32), "hidden size of 32, the model has 64"),
        (replace(HYDRA, vocab_size=1000), "vocabulary of 1000, the model 320"),
        (replace(HYDRA, vocab_size=100), "vocabulary of 100, the model 320"),
    ],
)
def test_heads_for_another_target_are_refused(
    spec: TinySpec, reported: str, target: Target, tmp_path: Path
) -> None:
    assert reported in refused(write_hydra(tmp_path, random_hydra(spec)), target).message


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        *(({"hydra_head_arch": name}, name) for name in ("prefix-mlp", "cross-attn", "eagle-attn")),
        *(({"hydra_head_arch": odd}, "architecture") for odd in (None, 3, ["mlp"], "x" * 5000)),
        *(({"grounded_heads": odd}, "grounded_heads") for odd in (False, None, 0, "yes")),
        *(({"hidden_state_offset": odd}, "layers before") for odd in (1, -1, True, "0", None)),
        *(({"hydra_num_heads": odd}, "hydra_num_heads") for odd in (4, 2, 0, -3, True, "3", None)),
        *(({"hydra_num_heads": odd}, "hydra_num_heads") for odd in (10**30, [3], {}, 1e300)),
        *(({"hydra_num_layers": odd}, "hydra_num_layers") for odd in (1, 0, 10**9, float("nan"))),
    ],
    ids=lambda one: str(one)[:40],
)
def test_settings_that_contradict_the_tensors_are_refused(
    settings: dict[str, object], reported: str, target: Target, tmp_path: Path
) -> None:
    folder = write_hydra(tmp_path, random_hydra(HYDRA), **settings)
    error = refused(folder, target)
    assert reported in error.message
    assert len(error.message) < 200
    with pytest.raises(HeadsError):
        read_shape(folder)


def test_settings_may_be_missing_but_not_damaged(target: Target, tmp_path: Path) -> None:
    folder = write_hydra(tmp_path, random_hydra(HYDRA))
    (folder / "config.json").write_text("{}")
    assert read_shape(folder).num_heads == 3
    (folder / "config.json").unlink()
    assert read_shape(folder).num_heads == 3
    for text in ("[]", "{", "[" * 100_000, "\x00"):
        (folder / "config.json").write_text(text)
        assert isinstance(refused(folder, target), CheckpointError)


@pytest.mark.parametrize("kept", [0, 7, 100, 5000])
def test_a_truncated_file_is_refused(kept: int, target: Target, tmp_path: Path) -> None:
    folder = write_hydra(tmp_path, random_hydra(HYDRA))
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:kept])
    assert isinstance(refused(folder, target), CheckpointError)


def test_sizes_beyond_any_memory_are_refused_by_the_header_alone(
    target: Target, tmp_path: Path
) -> None:
    shape = [1 << 40, 1 << 41]
    header = json.dumps({FIRST: {"dtype": "F32", "shape": shape, "data_offsets": [0, 8]}}).encode()
    tmp_path.joinpath(FILE).write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert isinstance(refused(tmp_path, target), CheckpointError)


# Pickles, and folders -----------------------------------------------------------------------------


class Block(nn.Module):
    """A residual layer under the names of the published heads."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, HIDDEN)
        if inputs > HIDDEN:
            self.res_connection = nn.Linear(inputs, HIDDEN)


class Published(nn.Module):
    """Heads as trained: layers after the first are one module, saved under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.hydra_mlp = nn.ModuleList(
            nn.Sequential(Block((head + 2) * HIDDEN), *[Block(HIDDEN)] * 2) for head in range(2)
        )
        self.hydra_lm_head = nn.ModuleList(nn.Linear(HIDDEN, VOCABULARY) for _ in range(2))


def test_a_published_pickle_is_converted_and_drafts(target: Target, tmp_path: Path) -> None:
    source = tmp_path
    state = Published().half().state_dict()
    torch.save(state, source / PICKLE)
    settings = settings_of(dict(state))
    assert settings["hydra_num_layers"] == 3
    (source / "config.json").write_text(json.dumps(settings))
    assert "convert" in refused(source, target).hint
    assert "pickle" in look_into(source).problems[0]
    assert look_into(source).kind is ContentsKind.HEADS
    done = convert(find_source(source), is_consented=True, limits=LIMITS)
    assert [path.name for path in done.files] == [FILE]
    heads = read_for(source, target)
    assert isinstance(heads, HydraHeads)
    hidden = a_state(target)
    found = heads.logits(hidden, torch.tensor([(9, 4)]))[0]
    torch.testing.assert_close(found, drafted_scores(dict(state), VECTORS, hidden, (9, 4)))
    assert look_into(source).heads is not None


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        pytest.param(
            *(put("prefix_embeding_layer.norm.weight", SQUARE[0]), "attention"),
            marks=pytest.mark.slow,
        ),
        (without("hydra_lm_head.1"), "lack"),
    ],
)
def test_a_pickle_of_other_tensors_is_not_converted(
    change: Callable[[Tensors], None], reported: str, tmp_path: Path
) -> None:
    tensors = random_hydra(HYDRA)
    change(tensors)
    torch.save(tensors, tmp_path / PICKLE)
    with pytest.raises(HeadsError, match=reported):
        convert(find_source(tmp_path), is_consented=True, limits=LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == [PICKLE]


def test_a_folder_says_what_heads_it_contains_and_for_which_model(
    target: Target, tmp_path: Path
) -> None:
    model = look_into(write_tiny(tmp_path / "model", HYDRA))
    found = look_into(write_hydra(tmp_path / "heads", random_hydra(HYDRA)))
    assert (found.kind, found.storage, found.problems) == (ContentsKind.HEADS, "safetensors", ())
    assert model.target is not None
    assert found.heads is not None
    assert match(model.target, found.heads).fit is HeadsFit.FOREIGN
    assert found.heads.shape == read_shape(tmp_path / "heads")
    narrow = look_into(write_hydra(tmp_path / "narrow", random_hydra(TinySpec())))
    assert narrow.heads is not None
    assert match(model.target, narrow.heads).reason == "hidden size 32 ≠ 64"
    folder = write_hydra(tmp_path / "other", random_hydra(HYDRA), hydra_head_arch="prefix-mlp")
    assert "prefix-mlp" in look_into(folder).problems[0]


def test_the_command_shows_what_a_folder_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tensors = random_hydra(HYDRA)
    assert main(["heads", "show", str(write_hydra(tmp_path, tensors))]) == 0
    shown = capsys.readouterr().out
    count = sum(tensor.numel() for tensor in tensors.values())
    for reported in ("hydra", "heads           3", "layers          2", "320 tokens", f"{count:,}"):
        assert reported in shown


def test_heads_in_a_file_named_like_weights_are_read_too(target: Target, tmp_path: Path) -> None:
    folder = write_hydra(tmp_path, random_hydra(HYDRA))
    (folder / FILE).rename(folder / "model.safetensors")
    assert kind_of(open_head_files(folder).checkpoint.names).name == "hydra"
    assert look_into(folder).kind is ContentsKind.HEADS
    heads = read_for(folder, target)
    assert (heads.num_heads, heads.nbytes) == (3, heads_of(target).nbytes)

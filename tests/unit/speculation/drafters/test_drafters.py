"""What every registered drafter must keep to, whoever wrote it."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from medusa_core.engine.direct import generate
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, GenerateSettings
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.drafter import (
    NUM_RANKS,
    Drafter,
    DrafterSpec,
)
from medusa_core.speculation.drafters.grown import GrownDrafter
from medusa_core.speculation.drafters.lineup import (
    drafter_registry,
    drafters_for,
    serving_drafters,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import source_registry
from tests.support.engine.by_turns import by_turns
from tests.support.engine.drafts import received
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says

DRAFTERS = pytest.mark.parametrize("spec", drafter_registry().specs, ids=lambda spec: spec.name)
MESSAGES = user_says("the trees are many")
SETTINGS = GenerateSettings(
    drafter="medusa", rule="sample", temperature=1.1, seed=6, max_new_tokens=24
)


def states(target: Target, count: int) -> list[torch.Tensor]:
    """Hidden states to draft from."""
    config, precision = target.config, target.precision
    return [torch.randn(config.hidden_size, dtype=precision.compute) for _ in range(count)]


def check_proposal(drafter: Drafter, target: Target, root_id: int, max_rows: int) -> int:
    """A whole tree under the root, within the rows, of tokens that exist; returns its nodes."""
    proposal = drafter.propose(root_id, max_rows)
    tree = proposal.tree
    num_nodes = tree.shape.num_nodes
    assert 1 <= num_nodes <= max_rows
    assert len(tree.token_ids) == len(proposal.sources) == num_nodes
    assert tree.token_ids[0] == root_id
    assert all(0 <= token < target.config.vocab_size for token in tree.token_ids)
    assert proposal.sources[0] == TARGET
    drafted = zip(tree.shape.depths, proposal.sources, strict=True)
    assert all(source.head == depth for depth, source in drafted)
    assert all(source.drafter != TARGET.drafter for source in proposal.sources[1:])
    for node in range(num_nodes):
        siblings = [tree.token_ids[child] for child in tree.shape.children[node]]
        assert len(set(siblings)) == len(siblings), "a token drafted twice can't be accepted twice"
    return num_nodes


@DRAFTERS
@torch.inference_mode()
def test_a_proposal_is_a_complete_tree_within_its_rows(
    spec: DrafterSpec, target_of: Callable[[str], Target]
) -> None:
    rng, target = random.Random(1), target_of(spec.name)
    for num_rows in (1, 2, 5, 16, 64):
        drafter = spec.build(target, RowBudget(num_rows))
        drafter.begin([1, 2, 3])
        check_proposal(drafter, target, 3, num_rows)
        for length, hidden in enumerate(states(target, 4)):
            drafter.observe(received(target, (7, 8), hidden))
            check_proposal(drafter, target, 8, num_rows)
            check_proposal(drafter, target, 8, rng.randint(1, num_rows))
            if length == 2:
                drafter.truncate(2)
                check_proposal(drafter, target, 2, num_rows)


@DRAFTERS
@torch.inference_mode()
def test_a_new_answer_has_no_state_of_the_last(
    spec: DrafterSpec, target_of: Callable[[str], Target]
) -> None:
    target = target_of(spec.name)
    fresh, used = spec.build(target, RowBudget(12)), spec.build(target, RowBudget(12))
    first, second = states(target, 2)
    used.begin([9, 9])
    used.observe(received(target, (9,), first))
    used.propose(9, 12)
    for drafter in (fresh, used):
        drafter.begin([1, 2])
        drafter.observe(received(target, (5,), second))
    mine, other = used.propose(5, 12), fresh.propose(5, 12)
    assert mine._replace(odds=other.odds) == other
    assert mine.odds() == other.odds()


@pytest.mark.parametrize(("spec", "tree_rows"), by_turns(drafter_registry().specs, [1, 2, 7, 40]))
def test_trees_of_any_size_change_neither_text_nor_cache(
    spec: DrafterSpec, tree_rows: int, target_of: Callable[[str], Target]
) -> None:
    target = target_of(spec.name)
    settings = replace(SETTINGS, drafter=spec.name, tree_rows=tree_rows)
    run = decode(
        target,
        settings,
        MESSAGES,
        after_step=lambda session: check_cache(session, target, 1e-12),
    )
    check_same_tokens(decode(target, plainly(SETTINGS), MESSAGES), run)
    assert all(step.num_rows <= tree_rows for step in run.steps[1:])


def test_drafters_and_rules_are_found_by_name_and_unknown_ones_refused() -> None:
    registry = drafter_registry()
    assert {"medusa", "none"} <= set(registry.names)
    assert registry.get("none").name == "none"
    with pytest.raises(RequestError, match="psychic") as caught:
        registry.get("psychic")
    assert "medusa" in caught.value.hint


def test_every_source_drafts_alone_or_in_a_combination() -> None:
    drafters = {spec.name: spec.sources for spec in drafter_registry().specs}
    for source in source_registry().specs:
        drafter = source.name if source.alone is None else source.alone.name
        assert drafters[drafter][0] == source.name


def test_benchmark_drafters_are_not_offered(tiny: Target) -> None:
    serving = {spec.name for spec in serving_drafters(tiny)}
    offered = {spec.name for spec in drafters_for(tiny)}
    assert serving - offered == {"vllm"}


def test_medusa_heads_get_drafts_accepted_on_pebble(load: LoadTarget) -> None:
    # Else all laws hold of it because it never does anything.
    settings = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=64)
    run = decode(load("pebble", "float32"), settings, user_says("Tell me a story about a cat."))
    assert run.done.mean_acceptance_length > 1.2
    assert {source.head for step in run.steps for source in step.sources} >= {0, 1, 2}


def test_a_dynamic_tree_branches_where_the_heads_are_unsure(tiny: Target) -> None:
    assert tiny.heads is not None
    drafter = drafter_registry().get("medusa-dynamic").build(tiny, RowBudget(8))
    shapes = set()
    for seed in range(12):
        torch.manual_seed(seed)
        state = torch.randn(tiny.config.hidden_size) * (0.1 if seed % 2 else 6.0)
        state = state.to(tiny.runner.hidden_dtype)
        drafter.begin((1, 2))
        drafter.observe(Observation((3,), state[None]))
        proposal = drafter.propose(3, 8)
        shape = proposal.tree.shape
        shapes.add(shape)
        assert shape.num_nodes == 8
        chances = torch.softmax(tiny.heads.logits(state, 3, tiny.heads.num_heads).float(), dim=-1)
        given = proposal.odds().of_drafts(shape.num_nodes - 1)
        worth = [1.0]
        for node in range(1, shape.num_nodes):
            token_id = proposal.tree.token_ids[node]
            chance = float(chances[shape.depths[node] - 1, token_id])
            assert given[node - 1] == pytest.approx(chance, rel=1e-4)
            worth.append(worth[shape.parents[node]] * chance)
        # No guess that was left out is worth more than one that was taken.
        taken = dict(zip(shape.paths, worth, strict=True))
        best = chances.topk(5, dim=-1).values
        for path, value in taken.items():
            rank = sum(path_[:-1] == path for path_ in taken)
            if len(path) < tiny.heads.num_heads and rank < 5:
                assert value * float(best[len(path), rank]) <= min(worth) * 1.0001
    assert len(shapes) > 2


def test_a_dynamic_tree_gets_more_accepted_than_a_fixed_one_on_pebble(load: LoadTarget) -> None:
    pebble = load("pebble", "float32")
    settings = GenerateSettings(drafter="medusa", tree_rows=8, max_new_tokens=100)
    prompts = ("Tell me a story about a red boat.", "What is water?", "Describe the sea.")
    lengths = {}
    for drafter in ("medusa", "medusa-dynamic"):
        done = [
            generate(pebble, user_says(text), replace(settings, drafter=drafter))
            for text in prompts
        ]
        lengths[drafter] = sum(sum(d.accept_lengths) for d in done) / sum(d.num_steps for d in done)
    assert lengths["medusa-dynamic"] > lengths["medusa"] * 1.01


@pytest.mark.parametrize("name", ["medusa", "medusa-dynamic", "composite"])
def test_heads_propose_tokens_that_the_noise_ranks_first(name: str, tiny: Target) -> None:
    lifted = (71, 72, 73)

    def chance(scores: Tensor, token_ids: Tensor | None) -> Tensor:
        assert token_ids is None
        raised = scores.clone()
        for depth in range(len(scores)):
            raised[depth, lifted[depth]] += 1000
        return raised

    drafter = drafter_registry().get(name).build(tiny, RowBudget(8))
    state = torch.randn(tiny.config.hidden_size).to(tiny.runner.hidden_dtype)
    for reported, is_lifted in ((chance, True), (None, False)):
        drafter.begin((1, 2))
        drafter.observe(Observation((3,), state[None], chance=reported))
        tree = drafter.propose(3, 8).tree
        best = {
            depth: tree.token_ids[node]
            for node, (depth, path) in enumerate(
                zip(tree.shape.depths, tree.shape.paths, strict=True)
            )
            if path and path[-1] == 0
        }
        assert (best[1] == lifted[0]) == is_lifted
        assert (best[2] == lifted[1]) == is_lifted


def heads_and_suffixes(target: Target, num_rows: int) -> GrownDrafter:
    """Return a drafter of these two sources only."""
    specs = [source_registry().get(name) for name in ("medusa", "suffix")]
    return GrownDrafter(RowBudget(num_rows), target, specs)


def test_a_merged_tree_contains_tokens_that_the_noise_ranks_first(tiny: Target) -> None:
    def chance(scores: Tensor, token_ids: Tensor | None) -> Tensor:
        raised = scores.clone()
        raised[:, 77] += 1000
        return raised

    drafter = heads_and_suffixes(tiny, 8)
    state = torch.randn(tiny.config.hidden_size).to(tiny.runner.hidden_dtype)
    for reported, is_lifted in ((chance, True), (None, False)):
        drafter.begin((4, 5, 6, 7, 8, 4, 5, 6))
        drafter.observe(Observation((7,), state[None], chance=reported))
        proposal = drafter.propose(7, 8)
        tree = proposal.tree
        first = {tree.token_ids[node] for node in tree.shape.children[0]}
        assert {source.drafter for source in proposal.sources} >= {"suffix", "medusa"}
        assert 8 in first
        assert (77 in first) == is_lifted


def test_a_suffix_match_replaces_less_likely_drafts_of_the_heads(tiny: Target) -> None:
    assert tiny.heads is not None
    drafter = heads_and_suffixes(tiny, 2)
    decided = set()
    for seed in range(8):
        torch.manual_seed(seed)
        state = torch.randn(tiny.config.hidden_size) * (0.1 if seed % 2 else 30.0)
        state = state.to(tiny.runner.hidden_dtype)
        drafter.begin((4, 5, 6, 7, 8, 4, 5, 6))
        drafter.observe(Observation((7,), state[None]))
        proposal = drafter.propose(7, 2)
        sure = torch.softmax(tiny.heads.logits(state, 7, 1)[0].float(), dim=-1).max().item()
        (draft,) = proposal.sources[1:]
        # After four tokens that occurred before, three of four times the same follows.
        assert draft.drafter == ("suffix" if sure < 0.74 else "medusa")
        assert (proposal.tree.token_ids[1] == 8) == (sure < 0.74)
        decided.add(draft.drafter)
    assert decided == {"suffix", "medusa"}


@pytest.mark.parametrize("name", ["medusa", "medusa-dynamic", "composite"])
@pytest.mark.parametrize("text", [(1, 2, 3), (4, 5, 6, 7, 8, 4, 5, 6)])
def test_learning_uses_the_heads_top_ranked_drafts(
    name: str, text: tuple[int, ...], tiny: Target
) -> None:
    assert tiny.heads is not None
    drafter = drafter_registry().get(name).build(tiny, RowBudget(40))
    state = torch.randn(tiny.config.hidden_size).to(tiny.runner.hidden_dtype)
    drafter.begin(text)
    drafter.observe(Observation((7,), state[None]))
    guesses = drafter.propose(7, 40).top_tokens
    best = tiny.heads.logits(state, 7, tiny.heads.num_heads).topk(NUM_RANKS).indices.tolist()
    assert [list(of_head)[:NUM_RANKS] for of_head in guesses] == best[: len(guesses)]
    assert len(guesses) > 1


@pytest.mark.parametrize("drafter", drafter_registry().names)
def test_an_answer_that_fills_the_context_is_drafted_to_its_end(
    drafter: str, target_of: Callable[[str], Target]
) -> None:
    target = target_of(drafter)
    context = target.config.context_tokens
    one, two = (len(target.tokenizer.encode("word " * count)) for count in (1, 2))
    messages = user_says("word " * ((context - 20) // (two - one)))
    settings = GenerateSettings(drafter=drafter, tree_rows=64, max_new_tokens=20)
    drafted = decode(target, settings, messages)
    assert len(drafted.prompt_ids) + 64 > context  # no tree of so many rows has room
    check_same_tokens(decode(target, plainly(settings), messages), drafted)

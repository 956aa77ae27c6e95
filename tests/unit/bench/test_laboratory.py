"""What the laboratory's sweeps and simulations are built from."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from medusa_core.bench.contestant import TurnResult
from medusa_core.bench.race import RaceConversation
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.runtime.tree.tables import typical_table
from medusa_core.system.prompts import BenchPrompt
from tests.benchmarks import laboratory
from tests.benchmarks.oracle import DiceRule
from tests.benchmarks.sweep import _judged
from tests.support.engine.laws import decode, plain_scores, user_says


def test_a_sweep_trades_agreement_for_tokens_per_step(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    model, heads = folders["grouped"]
    where = ["--model", str(model), "--heads", str(heads), "--dtype", "float64", "--limit", "2"]
    how = ["--epsilons", "0.999,0.01", "--temperature", "1.5", "--delta", "1"]
    report = laboratory.run(["epsilon", *where, *how, "--max-new-tokens", "20"])
    points, exact = report["sweep"], report["exact"]
    assert isinstance(points, list)
    assert isinstance(exact, dict)
    strict, lax = points
    assert strict["mean_acceptance_length"] < lax["mean_acceptance_length"]
    assert 1 >= strict["agreement"] > lax["agreement"] > 0
    assert (exact["epsilon"], exact["agreement"]) == (0.0, 1.0)


def test_the_log_probability_of_a_text_is_the_targets(tiny: Target) -> None:
    settings = GenerateSettings(rule="sample", temperature=1.4, drafter="none", max_new_tokens=12)
    run = decode(tiny, settings, user_says("hello"))
    turn = TurnResult(run.done.text, run.token_ids, (1,) * 11, 1.0, 1.0)
    judged = _judged(tiny, RaceConversation(BenchPrompt("a", "c", ("hello",)), (turn,)), settings)
    total, text = 0.0, [*run.prompt_ids]
    for token_id in run.token_ids:
        total += float(torch.log_softmax(plain_scores(tiny, text), 0)[token_id])
        text.append(token_id)
    assert judged.log_probability == pytest.approx(total, rel=1e-5)
    assert judged.num_equal == len(run.token_ids)


@pytest.mark.parametrize("rows", [4, 16])
def test_random_draws_accept_as_many_drafts_as_the_accuracies_say(rows: int) -> None:
    table = typical_table(3)
    shape = table.tree(rows)
    rule = DiceRule(table.head_accuracies, seed=3)
    tree = TokenTree(shape, tuple(range(rows)))
    walks = [rule.walk(tree, torch.empty(0), WalkContext((), 0)) for _ in range(20_000)]
    mean = 1 + sum(len(walk.nodes) for walk in walks) / len(walks)
    assert mean == pytest.approx(table.expected_length(shape), rel=0.01)
    for walk in walks[:100]:  # each node is a child of the one before
        assert all(shape.parents[b] == a for a, b in pairwise((0, *walk.nodes)))

"""Medusa heads: both formats read, evaluated, fitted to the tree, refused when wrong."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.errors import CheckpointError, HeadsError
from medusa_core.heads import medusa
from medusa_core.heads.head_files import open_head_files
from medusa_core.heads.medusa import HeadsTarget, MedusaHeads, SharedWeights
from medusa_core.heads.reader import read_heads
from medusa_core.heads.weights import HeadWeights
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, LoadOptions, TokenSource
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.token_table import DenseTable
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.medusa import (
    SPEC,
    MedusaDrafter,
)
from medusa_core.speculation.drafters.observation import Observation
from tests.support.engine.fixtures import LoadTarget
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import (
    ACCURACIES,
    random_heads,
    random_rooted_heads,
    write_heads,
    write_rooted_heads,
)

FILE = "medusa_lm_head.safetensors"
REDUCED_IDS = random_rooted_heads(GROUPED).token_map


def read(folder: Path, target: Target) -> MedusaHeads:
    model = target.runner._model
    shared_weights = SharedWeights(model.lm_head, target.config.vocab_size, model.embedding)
    files = open_head_files(folder)
    of_target = HeadsTarget(target.config, target.precision, shared_weights, target.formats)
    return read_heads(files, of_target)


def naive_logits(
    tensors: dict[str, Tensor], hidden: Tensor, head: int, num_layers: int, shared: Tensor
) -> Tensor:
    """Return one head's logits by the paper's formula."""
    state = hidden
    for layer in range(num_layers):
        weight = tensors[f"{head}.{layer}.linear.weight"].double()
        bias = tensors[f"{head}.{layer}.linear.bias"].double()
        state = state + F.silu(weight @ state + bias)
    own = tensors.get(f"{head}.{num_layers}.weight")
    return (shared if own is None else own.double()) @ state


@pytest.mark.parametrize("is_shared", [False, True], ids=["v0.1", "shared"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_both_formats_compute_residual_blocks_then_a_projection(
    is_shared: bool, num_layers: int, tiny: Target, tmp_path: Path
) -> None:
    tensors = random_heads(GROUPED, 4, num_layers, is_shared)
    heads = read(write_heads(tmp_path, tensors), tiny)
    assert heads.num_heads == 4
    hidden = torch.randn(GROUPED.hidden_size, dtype=torch.float64)
    shared = tiny.runner._model.lm_head(torch.eye(GROUPED.hidden_size).double()).T
    for wanted in (1, 3, 4):
        logits = heads.logits(hidden, 0, wanted)
        assert logits.shape == (wanted, GROUPED.vocab_size)
        for head in range(wanted):
            expected = naive_logits(tensors, hidden, head, num_layers, shared)
            torch.testing.assert_close(logits[head], expected)


def test_heads_without_residual_layers_are_projections(tiny: Target, tmp_path: Path) -> None:
    tensors = {
        f"{head}.0.weight": torch.randn(GROUPED.vocab_size, GROUPED.hidden_size)
        for head in range(2)
    }
    heads = read(write_heads(tmp_path, tensors), tiny)
    hidden = torch.randn(GROUPED.hidden_size, dtype=torch.float64)
    expected = torch.stack([tensors[f"{head}.0.weight"].double() @ hidden for head in range(2)])
    torch.testing.assert_close(heads.logits(hidden, 0, 2), expected)


def test_ranked_returns_the_likeliest_tokens_of_each_head_in_order(tiny: Target) -> None:
    assert tiny.heads is not None
    hidden = torch.randn(GROUPED.hidden_size, dtype=torch.float64)
    logits = tiny.heads.logits(hidden, 0, 2)
    ranked = tiny.heads.ranked(hidden, 0, (3, 5)).token_ids
    for head in range(2):
        assert ranked[head] == logits[head].argsort(descending=True)[:5].tolist()


@pytest.mark.parametrize("has_one_projection", [False, True], ids=["target's", "one"])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rooted_heads_read_the_roots_embedding_in_their_first_layer(
    dtype: str, num_layers: int, has_one_projection: bool, load: LoadTarget, tmp_path: Path
) -> None:
    tiny = load("grouped", dtype)
    heads = random_rooted_heads(GROUPED, 3, num_layers, has_one_projection)
    write_rooted_heads(tmp_path, heads)
    found = read(tmp_path, tiny)
    assert found.num_heads == 3
    hidden = torch.randn(GROUPED.hidden_size, dtype=tiny.runner.hidden_dtype)
    eye = torch.eye(GROUPED.hidden_size, dtype=hidden.dtype)
    own = tiny.runner._model.lm_head(eye).T if heads.projection is None else heads.projection
    for root_id in (0, 7, 311):
        root = tiny.runner._model.embedding.matrix()[root_id].double()
        expected = []
        for head in heads.heads:
            state, beside = hidden.double(), [root]
            for weight, bias in head.layers:
                assert bias is not None
                read_row = torch.cat([state, *beside])
                state, beside = state + F.silu(weight.double() @ read_row + bias.double()), []
            expected.append(own.double() @ state)
        for wanted in (1, 3):
            scores = found.logits(hidden, root_id, wanted).double()
            torch.testing.assert_close(scores, torch.stack(expected[:wanted]), rtol=1e-4, atol=1e-4)
        ranked = found.ranked(hidden, root_id, (4, 2, 9))
        best = torch.stack(expected).topk(9).indices
        if heads.token_map is not None:
            best = heads.token_map[best]
        assert ranked.token_ids == best.tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("most", [4096, 60])
def test_with_sampling_noise_candidates_are_ranked_by_noisy_logits(
    most: int, dtype: str, load: LoadTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(medusa, "_MOST_CANDIDATES", most)
    tiny = load("grouped", dtype)
    write_rooted_heads(tmp_path, random_rooted_heads(GROUPED))
    noise = torch.randn(3, GROUPED.vocab_size, generator=torch.Generator().manual_seed(8)).double()
    requested: list[Tensor] = []

    def chance(
        scores: Tensor, token_ids: Tensor | None, depths: Sequence[int] | None = None
    ) -> Tensor:
        ids = torch.arange(scores.shape[-1]) if token_ids is None else token_ids
        requested.append(ids.expand(len(scores), -1))
        return scores.double() + noise[: len(scores)].gather(1, requested[-1])

    for heads in (tiny.heads, read(tmp_path, tiny)):
        assert heads is not None
        hidden = torch.randn(GROUPED.hidden_size, dtype=tiny.runner.hidden_dtype) * 3
        scores = heads.logits(hidden, 7, 3).double()
        ids = torch.arange(heads.num_columns) if heads.num_columns > 160 else REDUCED_IDS
        best = ids[(scores + noise[:, ids]).topk(4).indices]
        ranked = heads.ranked(hidden, 7, (4, 2, 1), chance=chance)
        assert requested[-1].shape[1] == min(most, heads.num_columns)
        assert ranked.token_ids == best.tolist()
        columns = torch.tensor(ranked.columns)
        assert ids[columns].tolist() == ranked.token_ids
        torch.testing.assert_close(ranked.scores.double(), scores, rtol=1e-4, atol=1e-4)
        # What is told of a guess is the head's own, without chance.
        given = ranked.scores.float().softmax(dim=-1).gather(1, columns).flatten()
        assert list(ranked.chances()) == pytest.approx(given.tolist(), rel=1e-4)
        # What it is worth is judged with what is known of chance, among all that were looked at.
        shifted = (scores + noise[:, ids]) / 2
        looked_at = shifted.gather(1, scores.topk(requested[-1].shape[1]).indices)
        worths = (shifted.gather(1, columns) - looked_at.logsumexp(1, keepdim=True)).exp()
        assert list(ranked.noised_probabilities()) == pytest.approx(
            worths.flatten().tolist(), rel=1e-4
        )
    plain = heads.ranked(hidden, 7, (4, 2, 1))
    assert plain.noised_probabilities() == plain.chances()


def test_heads_run_in_the_dtype_of_the_target(load: LoadTarget) -> None:
    heads = load("grouped", "bfloat16").heads
    assert heads is not None
    hidden = torch.randn(GROUPED.hidden_size).bfloat16()
    assert heads.logits(hidden, 0, 3).dtype == torch.bfloat16


def test_published_counts_are_ignored_if_the_tensors_differ(tiny: Target, tmp_path: Path) -> None:
    write_heads(tmp_path, random_heads(GROUPED, 5))
    config = '{"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "N/A"}'
    (tmp_path / "config.json").write_text(config)
    assert read(tmp_path, tiny).num_heads == 5


# The drafter ------------------------------------------------------------------------------------


def test_the_tree_holds_the_ranked_tokens_at_their_paths(tiny: Target) -> None:
    heads = tiny.heads
    assert heads is not None
    shape = TreeShape.from_paths([(0,), (1,), (0, 0), (0, 2), (0, 2, 1)])
    drafter = MedusaDrafter(heads, shape)
    hidden = torch.randn(GROUPED.hidden_size, dtype=torch.float64)
    drafter.begin([1, 2])
    drafter.observe(Observation((7,), hidden[None]))
    proposal = drafter.propose(7, 64)
    best = heads.ranked(hidden, 7, shape.num_ranks).token_ids
    assert proposal.tree.token_ids == (
        7,
        best[0][0],
        best[0][1],
        best[1][0],
        best[1][2],
        best[2][1],
    )
    depths = [source.head for source in proposal.sources]
    assert depths == [0, 1, 1, 2, 2, 3]
    assert proposal.sources[0] == TARGET
    assert proposal.sources[-1] == TokenSource("medusa", 3)


def test_the_tree_is_cut_to_the_available_rows(tiny: Target) -> None:
    assert tiny.heads is not None
    drafter = MedusaDrafter(tiny.heads, TreeShape.from_paths([(0,), (1,), (0, 0)]))
    drafter.begin([1])
    drafter.observe(Observation((7,), torch.zeros(1, GROUPED.hidden_size, dtype=torch.float64)))
    for max_rows in (1, 2, 3, 4):
        proposal = drafter.propose(7, max_rows)
        assert proposal.tree.shape.num_nodes == max_rows == len(proposal.sources)


def test_without_a_hidden_state_the_drafter_proposes_nothing(tiny: Target) -> None:
    assert tiny.heads is not None
    drafter = MedusaDrafter(tiny.heads, TreeShape.from_paths([(0,), (1,)]))
    drafter.begin([1])
    assert drafter.propose(7, 64).tree.shape.num_nodes == 1
    drafter.observe(Observation((7,), torch.zeros(1, GROUPED.hidden_size, dtype=torch.float64)))
    assert drafter.propose(7, 64).tree.shape.num_nodes == 3
    drafter.truncate(1)
    assert drafter.propose(7, 64).tree.shape.num_nodes == 1


def test_trees_are_pruned_to_the_available_heads(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    deep = [*ACCURACIES, [0.9, 0.5], [0.9, 0.5]]
    one = write_heads(tmp_path, random_heads(GROUPED, 1), deep)
    target = load_target(folders["grouped"][0], one, LoadOptions("float64", "cpu"))
    drafter = SPEC.build(target, RowBudget(12))
    drafter.begin([1])
    drafter.observe(Observation((7,), torch.zeros(1, GROUPED.hidden_size, dtype=torch.float64)))
    shape = drafter.propose(7, 12).tree.shape
    assert shape.max_depth == 1
    assert shape.num_nodes > 1


# What is refused ----------------------------------------------------------------------------------


def test_heads_for_another_hidden_size_are_refused_with_both_sizes(
    tiny: Target, tmp_path: Path
) -> None:
    tensors = {"0.0.linear.weight": torch.zeros(8, 8), "0.0.linear.bias": torch.zeros(8)}
    with pytest.raises(HeadsError, match=r"8.*32") as caught:
        read(write_heads(tmp_path, tensors), tiny)
    assert caught.value.hint


def test_heads_for_another_vocabulary_are_refused_with_both_sizes(
    tiny: Target, tmp_path: Path
) -> None:
    tensors = random_heads(GROUPED)
    tensors |= {f"{head}.1.weight": torch.zeros(700, 32) for head in range(3)}
    with pytest.raises(HeadsError, match=r"700.*320") as caught:
        read(write_heads(tmp_path, tensors), tiny)
    assert caught.value.data == {"heads": 700, "model": 320}


@pytest.mark.parametrize(
    "extra", ["model.norm.weight", "0.0.linear.scale", "blocks.0.layers.0.weight", "medusa_head.0"]
)
def test_unknown_tensors_are_refused_by_name(extra: str, tiny: Target, tmp_path: Path) -> None:
    tensors = random_heads(GROUPED) | {extra: torch.zeros(1)}
    with pytest.raises(HeadsError, match=extra):
        read(write_heads(tmp_path, tensors), tiny)


def test_a_projection_at_an_unexpected_position_is_refused_by_name(
    tiny: Target, tmp_path: Path
) -> None:
    tensors = random_heads(GROUPED, 1, is_shared=True) | {"0.4.weight": torch.zeros(320, 32)}
    with pytest.raises(HeadsError, match=r"0\.4\.weight"):
        read(write_heads(tmp_path, tensors), tiny)


@pytest.mark.parametrize("missing", ["1.0.linear.bias", "1.0.linear.weight", "2.1.weight"])
def test_a_head_with_a_missing_tensor_is_refused(
    missing: str, tiny: Target, tmp_path: Path
) -> None:
    tensors = random_heads(GROUPED)
    del tensors[missing]
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        read(write_heads(tmp_path, tensors), tiny)
    assert caught.value.hint


def test_heads_that_are_not_numbered_from_zero_are_refused(tiny: Target, tmp_path: Path) -> None:
    tensors = {f"{int(k[0]) + 1}{k[1:]}": v for k, v in random_heads(GROUPED).items()}
    with pytest.raises(HeadsError, match="numbered"):
        read(write_heads(tmp_path, tensors), tiny)


def test_a_pickle_is_refused_unopened(tiny: Target, tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (ran,)

    (tmp_path / "medusa_lm_head.pt").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(HeadsError, match="pickle") as caught:
        read(tmp_path, tiny)
    assert "safetensors" in caught.value.hint
    assert not ran.exists()


def test_a_folder_without_heads_is_refused(tiny: Target, tmp_path: Path) -> None:
    with pytest.raises(HeadsError, match=FILE) as caught:
        read(tmp_path, tiny)
    assert caught.value.hint


def test_an_empty_file_of_heads_is_refused(tiny: Target, tmp_path: Path) -> None:
    save_file({}, tmp_path / FILE)
    with pytest.raises(HeadsError, match="none"):
        read(tmp_path, tiny)


def test_truncated_heads_are_refused(tiny: Target, tmp_path: Path) -> None:
    write_heads(tmp_path, random_heads(GROUPED))
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="damaged"):
        read(tmp_path, tiny)


def test_a_shared_projection_is_the_targets_lm_head(tiny: Target) -> None:
    weight = torch.randn(11, 4)
    hidden, table = torch.randn(4), DenseTable(weight)
    heads = MedusaHeads([HeadWeights((), None)], SharedWeights(make_linear(weight), 11, table))
    assert heads.num_heads == 1
    torch.testing.assert_close(heads.logits(hidden, 0, 1)[0], weight @ hidden)
    torch.testing.assert_close(heads._shared(hidden.unsqueeze(0))[0], weight @ hidden)

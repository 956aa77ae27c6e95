"""Hydra heads in this program's layout: a map of tokens, one projection, states that go around."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.hydra import HydraHeads
from medusa_core.heads.kind import read_shape
from medusa_core.heads.ranked import rank_tokens
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.targets import HYDRA
from tests.support.models.tiny import random_weights, write_tiny

TIED = replace(HYDRA, is_tied=True)
COLUMNS = 40
MESSAGES = user_says("read what came before")
Tensors = dict[str, Tensor]


def own_layout(is_tied: bool, num_heads: int = 3) -> Tensors:
    tensors = {
        name: tensor
        for name, tensor in random_hydra(HYDRA, num_heads, 1, has_bias=False).items()
        if "res_connection" not in name and "hydra_lm_head" not in name
    }
    generator = torch.Generator().manual_seed(5)
    ids = torch.randperm(HYDRA.vocab_size, generator=generator)[:COLUMNS].sort().values
    tensors["token_map"] = ids
    if not is_tied:
        rows = torch.randn(COLUMNS, HYDRA.hidden_size, generator=generator)
        tensors["lm_head.weight"] = rows.bfloat16()
    return tensors


def loaded(root: Path, tensors: Tensors, is_tied: bool, dtype: str = "float64") -> Target:
    spec = TIED if is_tied else HYDRA
    heads = write_hydra(root / "heads", tensors)
    return load_target(write_tiny(root / "model", spec), heads, LoadOptions(dtype, "cpu"))


@pytest.mark.parametrize("is_tied", [True, False])
def test_logits_equal_the_equations(is_tied: bool, tmp_path: Path) -> None:
    tensors = own_layout(is_tied)
    target = loaded(tmp_path, tensors, is_tied)
    heads = target.heads
    assert isinstance(heads, HydraHeads)
    assert heads.num_columns == COLUMNS
    vectors = random_weights(TIED if is_tied else HYDRA)["model.embed_tokens.weight"].double()
    projection = vectors[tensors["token_map"]] if is_tied else tensors["lm_head.weight"].double()
    hidden = torch.randn(HYDRA.hidden_size, dtype=torch.float64)
    path = torch.tensor([[7, 3]])
    x = torch.cat([hidden, *vectors[path[0]]])
    name = "hydra_mlp.1.0.linear"
    state = hidden + F.silu(tensors[f"{name}.weight"].double() @ x + tensors[f"{name}.bias"])
    expected = projection @ state
    torch.testing.assert_close(heads.logits(hidden, path)[0], expected)
    best = tensors["token_map"][expected.topk(4).indices].tolist()
    found = rank_tokens(heads.logits(hidden, path), 4, heads.vocabulary)
    assert found.token_ids.tolist() == best


@pytest.mark.parametrize("is_tied", [True, False])
def test_text_and_cache_equal_those_of_plain_decoding(is_tied: bool, tmp_path: Path) -> None:
    target = loaded(tmp_path, own_layout(is_tied), is_tied)
    settings = GenerateSettings(drafter="hydra", tree_rows=8, max_new_tokens=24)
    drafted = decode(
        target, settings, MESSAGES, after_step=lambda session: check_cache(session, target, 1e-12)
    )
    check_same_tokens(decode(target, plainly(settings), MESSAGES), drafted)


@pytest.mark.parametrize(
    ("dtype", "heads_format"),
    [("float32", ""), ("float32", "q4"), ("bfloat16", "bf16"), ("bfloat16", "int8")],
)
@pytest.mark.parametrize("is_tied", [True, False])
def test_the_plan_equals_the_allocated_memory(
    dtype: str, heads_format: str, is_tied: bool, tmp_path: Path
) -> None:
    heads_dir = write_hydra(tmp_path / "heads", own_layout(is_tied))
    model = write_tiny(tmp_path / "model", TIED if is_tied else HYDRA)
    options = LoadOptions(dtype, "cpu", WeightFormats(heads=heads_format))
    target = load_target(model, heads_dir, options)
    assert isinstance(target.heads, HydraHeads)
    assert target.heads.nbytes <= target.plan.heads_bytes <= 1.05 * target.heads.nbytes
    assert read_shape(heads_dir).is_reduced


def _twice(tensors: Tensors) -> None:
    tensors["token_map"][1] = tensors["token_map"][0]


def _beyond(tensors: Tensors) -> None:
    tensors["token_map"][-1] = HYDRA.vocab_size


def _below(tensors: Tensors) -> None:
    tensors["token_map"][0] = -1


@pytest.mark.parametrize("change", [_twice, _beyond, _below])
def test_a_senseless_token_map_is_refused(
    change: Callable[[Tensors], None], tmp_path: Path
) -> None:
    tensors = own_layout(is_tied=True)
    change(tensors)
    with pytest.raises(HeadsError, match="token_map"):
        loaded(tmp_path, tensors, is_tied=True)


def test_heads_that_project_by_embeddings_need_a_target_with_tied_ones(tmp_path: Path) -> None:
    with pytest.raises(HeadsError, match="token vectors"):
        loaded(tmp_path, own_layout(is_tied=True), is_tied=False)

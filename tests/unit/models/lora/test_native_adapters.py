"""LoRA adapters in the compiled step: right, and the same to the bit however a pass is cut."""

import random
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.models import weights as read_weights
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.quant.native_adapter import NativeAdapter, Up, native_adapter
from medusa_core.models.quant.native_linear import NativeLinear, panel_weights, tile_weights
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.backends.native_blocks import NativeDecoder
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.system.native.binding import open_library
from medusa_core.system.native.pool import Workers
from tests.support.engine.fakes import random_shape
from tests.support.engine.tree_paths import path_to
from tests.support.models.adapter_files import LoraSpec, config_of, random_lora, write_lora
from tests.support.models.natives import each_library, libraries
from tests.support.models.tiny import write_text_files
from tests.support.models.wide_peers import scores, wide_peer

OUTPUTS, INPUTS = 151, 96  # the last tiles aren't full
IDS = random.Random(8).choices(range(320), k=40)


def linear_of(path: Path, is_in_blocks: bool) -> NativeLinear:
    """A layer whose numbers are the same on every CPU, and its bias."""
    bias = torch.randn(OUTPUTS, generator=torch.Generator().manual_seed(1))
    if is_in_blocks:
        stored = random_blocks("q4_1", OUTPUTS, INPUTS, seed=8)
        return NativeLinear(open_library(path), [tile_weights(block_type("q4_1"), stored)], bias)
    weight = torch.randn(OUTPUTS, INPUTS, generator=torch.Generator().manual_seed(2))
    halves = [panel_weights(part) for part in weight.split(64)]  # several, one below the other
    return NativeLinear(open_library(path), halves, bias)


@cache
def adapter_of(rank: int, dtype: torch.dtype) -> tuple[NativeAdapter, Tensor]:
    """Return an adapter of two layers, one of them used twice, and its product in float64."""
    generator = torch.Generator().manual_seed(rank)
    down = torch.randn(rank + 3, INPUTS, generator=generator).to(dtype)
    places = [(0, rank, 0, 40), (rank, rank + 3, 48, 19), (0, rank, 70, 81)]
    product, ups = torch.zeros(OUTPUTS, INPUTS, dtype=torch.float64), []
    for start, end, first, rows in places:
        matrix = torch.randn(rows, end - start, generator=generator).to(dtype)
        product[first : first + rows] = matrix.double() @ down[start:end].double()
        ups.append(Up(matrix, start, first))
    return native_adapter(down, ups), product


@each_library
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("is_in_blocks", [False, True], ids=["panels", "blocks"])
@pytest.mark.parametrize("rank", [1, 13, 32, 200])
def test_a_compiled_layer_adds_its_adapters_product_row_by_row(
    path: Path, dtype: torch.dtype, is_in_blocks: bool, rank: int
) -> None:
    (adapter, product), plain = adapter_of(rank, dtype), linear_of(path, is_in_blocks)
    layer = plain.with_adapter(adapter)
    x = torch.randn(70, INPUTS, generator=torch.Generator().manual_seed(3))
    y, added = layer(x), x.double() @ product.t()
    assert (y - plain(x) - added).abs().max() <= 4e-6 * y.abs().max()
    assert torch.equal(y, linear_of(libraries()[0], is_in_blocks).with_adapter(adapter)(x))
    for count in (*range(1, 10), 33, 65):
        start = count % 5
        assert torch.equal(layer(x[start : start + count]), y[start : start + count]), count
    workers = Workers(open_library(path))
    workers.use(2, 3)
    assert torch.equal(layer.run(x, workers.decoding), y)
    assert torch.equal(layer.run(x[:1], workers.prefill), y[:1])


def test_a_layer_with_an_adapter_can_be_rebuilt_on_another_machine() -> None:
    adapter, _ = adapter_of(13, torch.float32)
    layer = linear_of(libraries()[0], False).with_adapter(adapter)
    layout, x = layer.layout(), torch.randn(3, INPUTS)
    again = layout.rebuild(*(tensor.clone() for tensor in layout.tensors))
    assert again.nbytes == layer.nbytes == sum(tensor.nbytes for tensor in layout.tensors)
    assert torch.equal(again(x), layer(x))
    assert again.layout().kind == layout.kind != linear_of(libraries()[0], False).layout().kind


def write_lora_for(model: Path, folder: Path, spec: LoraSpec, without: tuple[str, ...]) -> None:
    """A LoRA that changes all layers of a model's blocks but for those whose names end so."""
    sizes = {
        piece.name: (piece.tensor_rows, part.columns)
        for part in linear_parts(ModelFiles.open(model).config)
        for piece in part.pieces
        if not piece.name.endswith(without)
    }
    tensors, _ = random_lora(sizes, spec)
    write_lora(folder, tensors, config_of(spec))


RANKS = {"q_proj": 6, "1.mlp.up_proj": 3, "v_proj": 17}
# Of each family a LoRA, and which layers it leaves out.
FAMILIES: dict[str, tuple[LoraSpec, tuple[str, ...]]] = {
    "qwen 3": (LoraSpec(ranks=RANKS, alphas={"gate_proj": 20}), ()),
    "phi 3": (LoraSpec(rank=5), ()),  # its tensors are fused
    "gemma 4 E2B": (LoraSpec(is_rslora=True), ("k_proj", "1.mlp.down_proj")),
    "qwen 3 with experts": (LoraSpec(rank=70), ()),  # more numbers behind A than go in
    "qwen 3.5": (LoraSpec(), ("0.mlp.gate_proj",)),
    "lfm 2": (LoraSpec(rank=70), ("w1",)),
    "falcon h1 with norms": (LoraSpec(rank=16), ()),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_with_an_adapter_equal_merged_weights_and_no_chunking_changes_a_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide_peer(name).save_pretrained(tmp_path / "model")
    write_text_files(tmp_path / "model")
    write_lora_for(tmp_path / "model", tmp_path / "lora", *FAMILIES[name])

    def load(dtype: str) -> Target:
        options = LoadOptions(dtype, "cpu", context_tokens=128, adapter_dir=tmp_path / "lora")
        return load_target(tmp_path / "model", options=options)

    merged = scores(load("float64").runner, IDS, 1000)
    monkeypatch.setattr(read_weights, "is_unmerged", lambda *_: True)
    target = load("float32")
    runner = target.runner
    assert isinstance(runner, NativeRunner)
    whole = scores(runner, IDS, 1000)
    assert (whole - merged).norm() <= 1e-5 * merged.norm()
    assert torch.equal(scores(runner, IDS, 1), whole)
    assert torch.equal(scores(runner, IDS, 7), whole)
    shape = random_shape(random.Random(4), 24)
    tree = TokenTree(shape, tuple(random.Random(5).choices(range(320), k=24)))
    kv = runner.new_cache(96)
    runner.extend(IDS[:17], kv)
    nodes = runner.verify(PlacedTree(tree, kv))
    for node in (11, 23):
        path = [tree.token_ids[step] for step in path_to(shape, node)]
        alone = runner.extend([*IDS[:17], *path], runner.new_cache(96))[-1]
        assert torch.equal(nodes[node], alone)
    runner.use_threads(2, 2)
    assert torch.equal(scores(runner, IDS, 20), whole)
    assert torch.equal(runner.verify(PlacedTree(tree, kv)), nodes)
    for library in libraries():
        native = NativeDecoder(open_library(library), runner._model)
        other = NativeRunner(runner._model, target.precision, native)
        assert torch.equal(scores(other, IDS, 1000), whole)

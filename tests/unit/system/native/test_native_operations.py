"""What the compiled step is made of, operation by operation, against torch's."""

import math
import random
from array import array
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.messages import NUM_ALTERNATIVES
from medusa_core.models.quant.block_types import (
    BLOCK_TYPES,
    block_type,
)
from medusa_core.models.quant.native_linear import (
    NativeLinear,
    panel_weights,
    tile_weights,
)
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.speculation.rules.best_walk import (
    BestWalk,
    best_walk,
)
from medusa_core.speculation.rules.rule import descend
from medusa_core.system.native.binding import (
    native_library,
    open_library,
)
from medusa_core.system.native.score_reader import (
    Summary,
    TorchSummary,
)
from tests.support.models.natives import each_library, libraries

# How far a result may be from the exact one, in parts of the largest number.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}


@each_library
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("outputs", "inputs"), [(32, 16), (70, 34), (160, 48), (7, 256), (300, 32)]
)
def test_compiled_products_are_correct_and_rows_are_independent(
    path: Path, dtype: torch.dtype, outputs: int, inputs: int
) -> None:
    generator = torch.Generator().manual_seed(outputs)
    weight = torch.randn(outputs, inputs, generator=generator).to(dtype)
    bias = torch.randn(outputs, generator=generator).to(dtype)
    layer = NativeLinear(open_library(path), [panel_weights(weight)], bias)
    x = torch.randn(29, inputs, generator=generator)
    y = layer(x)
    exact = x.double() @ weight.double().t() + bias.double()
    assert (y - exact).abs().max() <= TOLERANCE[dtype] * exact.abs().max()
    for count in range(1, 26):  # few rows take panels side by side, many go in blocks
        start = count % 5
        assert torch.equal(layer(x[start : start + count]), y[start : start + count]), count


def rounded_rows(x: Tensor, together: int = 64) -> Tensor:
    """Inputs as 8 bits keep them: each few of a row by their own largest number."""
    parts = []
    for some in x.split(together, dim=1):
        reach = some.abs().amax(dim=1, keepdim=True)
        turned = torch.where(reach > 0, torch.tensor(127.0) / reach, torch.zeros_like(reach))
        parts.append((some * turned).round().double() * (reach / 127).double())
    return torch.cat(parts, dim=1)


@each_library
@pytest.mark.parametrize(("outputs", "inputs"), [(32, 32), (96, 64), (160, 96), (288, 416)])
def test_bytes_are_multiplied_exactly_on_every_cpu(path: Path, outputs: int, inputs: int) -> None:
    generator = torch.Generator().manual_seed(outputs)
    weight = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
    scale, bias, plus = (torch.randn(n, outputs, generator=generator) for n in (1, 1, 23))
    x = torch.randn(23, inputs, generator=generator)
    x[3, :32] *= 300  # costs the others their precision as far as they share its scale alone
    x[5] = 0
    layers = [
        NativeLinear(open_library(of), [panel_weights(weight, scale[0])], bias[0])
        for of in (path, libraries()[0])
    ]
    y = layers[0](x)
    assert torch.equal(y, layers[1](x)), "whole numbers are exact everywhere"
    exact = rounded_rows(x) @ (weight.double() * scale[0].double()[:, None]).t() + bias.double()
    assert (y - exact).abs().max() <= 2e-6 * exact.abs().max()
    assert torch.equal(y[5], bias[0])
    assert torch.equal(layers[0].plus(x, plus.clone()), y + plus)
    for count in range(1, 20):
        start = count % 4
        assert torch.equal(layers[0](x[start : start + count]), y[start : start + count]), count


def check_blocks(path: Path, name: str) -> None:
    outputs, inputs = 56, 512  # the last tile isn't full
    generator = torch.Generator().manual_seed(7)
    stored = random_blocks(name, outputs, inputs, seed=8)
    bias, plus = (torch.randn(n, outputs, generator=generator) for n in (1, 31))
    x = torch.randn(31, inputs, generator=generator)
    x[3, :32] *= 300
    x[5] = 0
    weights = tile_weights(block_type(name), stored)
    layers = [NativeLinear(open_library(of), [weights], bias[0]) for of in (path, libraries()[0])]
    y = layers[0](x)
    assert torch.equal(y, layers[1](x)), f"{name}: sums have one order everywhere"
    held = block_type(name).dequantize(stored).double()
    exact = rounded_rows(x, 32) @ held.t() + bias.double()
    assert (y - exact).abs().max() <= 2e-6 * exact.abs().max(), name
    assert torch.equal(y[5], bias[0]), name
    assert torch.equal(layers[0].plus(x, plus.clone()), y + plus), name
    for count in range(1, 26):
        start = count % 5
        assert torch.equal(layers[0](x[start : start + count]), y[start : start + count]), count


@each_library
def test_blocks_are_multiplied_exactly_on_every_cpu(path: Path) -> None:
    for name in BLOCK_TYPES:
        check_blocks(path, name)


@each_library
def test_tensors_of_several_types_form_one_layer(path: Path) -> None:
    library = open_library(path)
    shapes = {"q4_k": 48, "q6_k": 32, "q8_0": 64}
    parts = [
        tile_weights(block_type(name), random_blocks(name, rows, 256, seed=rows))
        for name, rows in shapes.items()
    ]
    parts.append(panel_weights(torch.randn(64, 256).bfloat16()))
    sizes = [part.outputs for part in parts]
    bias = torch.randn(sum(sizes))
    x = torch.randn(5, 256)
    alone = [
        NativeLinear(library, [part], some)
        for part, some in zip(parts, bias.split(sizes), strict=True)
    ]
    layer = NativeLinear(library, parts, bias)
    assert torch.equal(layer(x), torch.cat([one(x) for one in alone], dim=1))
    assert layer.num_outputs == sum(sizes)
    assert layer.nbytes == sum(one.nbytes for one in alone)


BAD = (math.nan, math.inf, -math.inf)


@each_library
def test_block_quantized_products_propagate_nan(path: Path) -> None:
    x, library = torch.randn(12, 256), open_library(path)
    x[[1, 5, 9], 70] = torch.tensor(BAD)
    for name in BLOCK_TYPES:
        weights = tile_weights(block_type(name), random_blocks(name, 32, 256, seed=9))
        layer = NativeLinear(library, [weights], None)
        for start, bad in zip((0, 4, 8), BAD, strict=True):
            y = layer(x[start : start + 4])
            assert y[1].isnan().all(), (name, bad)
            assert y[[0, 2, 3]].isfinite().all(), (name, bad)


@each_library
def test_int8_products_propagate_nan(path: Path) -> None:
    weight = torch.randint(-127, 128, (64, 96), dtype=torch.int8)
    layer = NativeLinear(open_library(path), [panel_weights(weight, torch.ones(64))], None)
    for bad in BAD:
        x = torch.randn(4, 96)
        x[2, 70] = bad
        y = layer(x)
        assert y[2].isnan().all(), bad
        assert y[[0, 1, 3]].isfinite().all(), bad


@each_library
@pytest.mark.parametrize("columns", [16, 17, 31, 33, 320, 4099])
def test_recorded_probabilities_are_the_softmax_of_logits(path: Path, columns: int) -> None:
    reader, plain = Summary(open_library(path)), TorchSummary()
    generator = torch.Generator().manual_seed(columns)
    scores = torch.randn(7, columns, generator=generator) * 5
    scores[2] *= 20  # so sure that most of the row is nothing
    scores[5, 3] = scores[5].max()  # two are best
    for rows in ((0,), (2, 0), (6, 5, 3, 2, 1)):
        best = scores.argmax(dim=-1)
        for choices in ([int(best[row]) for row in rows], [row % columns for row in rows]):
            ours, theirs = (each.choices(scores, rows, choices) for each in (reader, plain))
            count = len(rows) * (1 + NUM_ALTERNATIVES)
            floats = [memoryview(packed).cast("f")[:count].tolist() for packed in (ours, theirs)]
            assert floats[0] == pytest.approx(floats[1], rel=1e-5, abs=1e-9)
            others = memoryview(ours).cast("i")[count:].tolist()
            assert len(others) == len(rows) * NUM_ALTERNATIVES
            for place, (row, choice) in enumerate(zip(rows, choices, strict=True)):
                found = others[place * NUM_ALTERNATIVES : (place + 1) * NUM_ALTERNATIVES]
                left = scores[row].clone()
                left[choice] = -math.inf
                assert len({*found, choice}) == NUM_ALTERNATIVES + 1
                assert torch.equal(left[found], left.topk(NUM_ALTERNATIVES).values)
    scores[4], scores[4, 8] = 0.0, 100.0  # far above what is asked for
    places = [0, columns - 1, int(scores[2].argmin()), 5, int(scores[6].argmax())]
    at = array("i", [0, 0, 2, 4, 6])
    reported = [memoryview(r.probabilities(scores, at, places)).cast("f") for r in (reader, plain)]
    assert reported[0].tolist() == pytest.approx(reported[1].tolist(), rel=1e-5, abs=1e-9)


@each_library
def test_a_greedy_walk_follows_the_argmax_of_its_rows(path: Path) -> None:
    """And what it reads on its way is what a trace asks for afterwards."""
    library = open_library(path)
    walk, reader = BestWalk(library), Summary(library)
    draws = random.Random(3)
    lengths = set()
    for _ in range(300):
        paths = {()}
        for _ in range(draws.randrange(40)):
            parent = draws.choice(sorted(paths))
            paths.add((*parent, sum(p[:-1] == parent and p != () for p in paths)))
        shape = TreeShape.from_paths(paths - {()})
        # Few tokens, so that others than the children of a node hold the best one.
        token_ids = [draws.randrange(4) for _ in range(shape.num_nodes)]
        scores = torch.rand(shape.num_nodes, 53)
        best = [draws.randrange(4) for _ in range(shape.num_nodes)]
        scores[range(shape.num_nodes), best] = 2.0
        tree = TokenTree(shape, tuple(token_ids))
        expected = descend(tree, lambda node, _, best=best: best[node])
        met = walk(tree, scores, traces=True)
        assert met is not None
        assert met._replace(judged=b"") == expected
        run = (*(token_ids[node] for node in expected.nodes), expected.bonus_id)
        assert met.judged == reader.choices(scores, (0, *expected.nodes), run)
        unread = walk(tree, scores, traces=False)
        assert unread == expected
        assert not unread.judged
        lengths.add(len(expected.nodes))
        scores[expected.nodes[-1] if expected.nodes else 0, 50] = math.nan
        assert walk(tree, scores, traces=True) is None
    assert lengths >= {0, 1, 2, 3}


@each_library
def test_strided_rows_are_read_as_rows(path: Path) -> None:
    library = open_library(path)
    walk, reader = BestWalk(library), Summary(library)
    apart = torch.rand(3, 99)[:, :53]
    together = apart.contiguous()
    tree = TokenTree(TreeShape.from_paths([(0,), (1,)]), (0, 1, int(together[0].argmax())))
    assert walk(tree, apart, traces=True) == walk(tree, together, traces=True)
    assert reader.choices(apart, (0, 2), (5, 7)) == reader.choices(together, (0, 2), (5, 7))
    read = [reader.probabilities(rows, array("i", [0, 2]), [3, 4]) for rows in (apart, together)]
    assert read[0] == read[1]


@pytest.mark.parametrize("columns", [16, 53, 64, 4096])
def test_argmax_takes_the_first_of_equals_and_detects_nan(columns: int) -> None:
    library = native_library()
    assert library is not None
    equal = torch.zeros(1, columns)
    read = Summary(library).choices(equal, (0,), (2,))
    assert memoryview(read).cast("i")[-NUM_ALTERNATIVES:].tolist() == [0, 1, 3, 4, 5]
    scores = torch.zeros(8, columns)
    scores[0, [7, 10, columns - 1]] = 2.0
    scores[1, columns - 1] = 1.0
    scores[2] = -math.inf
    scores[2, columns // 2] = -3.0
    scores[3, columns - 1] = math.inf
    scores[4, 3], scores[4, 9] = math.nan, 9.0
    scores[5, columns - 1] = math.nan
    scores[6] = -math.inf
    walk, root_only = BestWalk(library), TokenTree(TreeShape.root_only(), (0,))
    found = [walk(root_only, scores[row : row + 1], traces=False) for row in range(8)]
    bonus = [None if met is None else met.bonus_id for met in found]
    assert bonus == [7, columns - 1, columns // 2, None, None, None, None, 0]
    assert best_walk(scores) is not None
    assert best_walk(scores.double()) is None

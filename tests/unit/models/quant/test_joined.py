"""Layers of several weight formats as one."""

import pytest
import torch

from medusa_core.models.quant import combined_linear
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.models.quant.joined_format import joined_format
from medusa_core.models.quant.native_linear import NativeLinear

HERE = Hardware("cpu", packs=("float32", "bfloat16"), compiles=True)
PIECES = [(weight_formats().get(name), rows) for name, rows in (("q4_0", 64), ("int8", 32))]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_joined_layer_equals_its_parts(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight, bias = torch.randn(96, 128), torch.randn(96)
    spec = joined_format(PIECES)
    tensors = spec.quantize(weight)
    if not is_compiled:
        monkeypatch.setattr(combined_linear, "NativeLinear", type(None))
    layer = spec.build(tensors, 96, bias, torch.float32)
    assert isinstance(layer, NativeLinear) is is_compiled
    parts = [
        of.build(of.quantize(rows), count, None, torch.float32)
        for (of, count), rows in zip(PIECES, weight.split([64, 32]), strict=True)
    ]
    x, residual = torch.randn(3, 128), torch.randn(3, 96)
    wanted = torch.cat([part(x) for part in parts], dim=1) + bias
    assert torch.equal(layer(x), wanted)
    assert torch.equal(layer.plus(x, residual.clone()), wanted + residual)
    assert layer.nbytes == spec.nbytes(96, 128, "cpu") + bias.nbytes


def test_a_joined_format_requires_what_its_parts_require() -> None:
    spec = joined_format(PIECES)
    assert spec.name == "q4_0+int8"
    assert spec.bits == pytest.approx((64 * 4.5 + 32 * 8) / 96)
    assert spec.supports(96, 128, "cpu")
    assert not spec.supports(96, 48, "cpu")
    assert not spec.limitation(HERE)
    assert "Cards" in spec.limitation(Hardware("cuda", (8, 6)))
    assert spec.compute == ("bfloat16", "float16")
    kinds = spec.tensors(96, 128, "bfloat16")
    made = spec.quantize(torch.randn(96, 128))
    assert {name: tuple(made[name].shape) for name in made} == {
        name: shape for name, (_, shape) in kinds.items()
    }

"""Weight formats on a CUDA device: laws 1 to 4, and memory that comes back."""

import gc
from pathlib import Path

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    quant_registry,
)
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import check_cache, check_sources, decode, plainly, user_says
from tests.support.models.tiny import ACCURACIES, TinySpec, random_heads, write_heads, write_tiny

DEVICE = "cuda"
WIDE = TinySpec(hidden_size=256, intermediate_size=512, num_layers=2, seed=51)
MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = GenerateSettings(drafter="medusa", max_new_tokens=40)
CARD = Hardware("cuda", (8, 6))
ROUNDING = [s for s in quant_registry().specs if not s.is_dense and not s.limitation(CARD)]

pytestmark = pytest.mark.usefixtures("bitsandbytes")


@pytest.fixture
def bitsandbytes() -> None:
    pytest.importorskip("bitsandbytes")


def load(root: Path, spec: QuantSpec) -> Target:
    model = write_tiny(root / "wide", WIDE)
    heads = write_heads(root / "wide-heads", random_heads(WIDE), ACCURACIES)
    return load_target(model, heads, LoadOptions("", DEVICE, WeightFormats(spec.name)))


@pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)
def test_a_quantized_linear_multiplies_about_as_the_dense_one_does(spec: QuantSpec) -> None:
    weight = torch.randn(256, 256, device=DEVICE).bfloat16()
    layer = spec.build(spec.quantize(weight), 256, None, torch.bfloat16)
    x = torch.randn(9, 256, device=DEVICE).bfloat16()
    expected = x.float() @ weight.float().t()
    assert (layer(x).float() - expected).norm() / expected.norm() < 0.15


@pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)
def test_decoding_laws_1_and_3_hold_with_an_oracle(spec: QuantSpec, tmp_path: Path) -> None:
    target = load(tmp_path, spec)
    plain = decode(target, plainly(SETTINGS), MESSAGES)
    run = decode(
        target,
        SETTINGS,
        MESSAGES,
        drafter=oracle_spec([*plain.prompt_ids, *plain.token_ids]),
        after_step=lambda session: check_cache(session, target, 0.1),
    )
    check_sources(run)
    assert run.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)
def test_the_plan_holds_and_memory_is_freed(spec: QuantSpec, tmp_path: Path) -> None:
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    target = load(tmp_path, spec)
    plan, heads = target.plan, target.heads
    assert heads is not None
    for measured, planned in (
        (target.weights_bytes, plan.weights_bytes),
        (heads.nbytes, plan.heads_bytes),
        (target.caches.nbytes, plan.kv_bytes),
    ):
        assert measured <= planned <= measured * 1.05
    del target, heads
    gc.collect()
    assert torch.cuda.memory_allocated() <= before + (1 << 20)

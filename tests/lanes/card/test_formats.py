"""Weight formats on a card, by bitsandbytes' own checks and kernels' demands."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    quant_registry,
)
from tests.support.card.card import ON_CARDS, fake_cuda
from tests.support.card.tensor import CardMode
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    decode,
    plain_scores,
    plainly,
    user_says,
)
from tests.support.models.mamba_files import wide
from tests.support.models.quantized_checkpoint import quantized_checkpoint
from tests.support.models.tiny import ACCURACIES, TinySpec, random_heads, write_heads, write_tiny

WIDE = TinySpec(hidden_size=128, intermediate_size=256, num_layers=2, seed=51)
BIASED = replace(WIDE, has_bias=True, seed=52)
IDS = [3, 50, 60, 200, 9, 11, 50]
MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = GenerateSettings(drafter="medusa", max_new_tokens=16)
CARD = Hardware("cuda", (8, 6))
ROUNDING = [s for s in quant_registry().specs if not s.is_dense and not s.limitation(CARD)]

FORMATS = pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    root = tmp_path_factory.mktemp("formats")
    return {
        name: (
            write_tiny(root / name, spec),
            write_heads(root / f"{name}-heads", random_heads(spec), ACCURACIES),
        )
        for name, spec in (("plain", WIDE), ("biased", BIASED))
    }


def load(
    card: CardMode, folders: tuple[Path, Path], spec: QuantSpec, kept: Path | None = None
) -> Target:
    with card.waiting():
        formats = WeightFormats(spec.name)
        return load_target(*folders, LoadOptions("", "cuda", formats, quantized_dir=kept))


@FORMATS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_quantized_linear_multiplies_about_as_the_dense_one_does(
    spec: QuantSpec, dtype: torch.dtype
) -> None:
    weight, x = torch.randn(96, 128).to(dtype), torch.randn(9, 128).to(dtype)
    expected = x.float() @ weight.float().t() + 1
    with fake_cuda() as card, card.waiting():
        bias = torch.ones(96, dtype=dtype, device="cuda")
        layer = spec.build(spec.quantize(weight.cuda()), 96, bias, dtype)
        product = layer(x.cuda())
        assert product.dtype == dtype
        offloaded = product.cpu().float() - expected
        assert offloaded.norm() / expected.norm() < 0.15
        assert torch.equal(layer.plus(x.cuda(), product).cpu(), (product * 2).cpu())
        assert layer.nbytes <= spec.nbytes(96, 128, "cuda") + bias.nbytes
        assert spec.nbytes(96, 128, "cuda") + bias.nbytes <= layer.nbytes * 1.05


def test_int8_handles_numbers_beyond_the_range_of_float16() -> None:
    spec = quant_registry().get("int8")
    with fake_cuda() as card:
        layer = spec.build(
            spec.quantize((torch.eye(64) / 2).bfloat16().cuda()), 64, None, torch.bfloat16
        )
        x = torch.full((2, 64), 1e6, dtype=torch.bfloat16, device="cuda")
        assert layer(x).isfinite().all().cpu()
        assert card.journal.kernels["cint8_vector_quant"] == 1


@pytest.mark.parametrize(("capability", "spec"), by_turns(ON_CARDS, ROUNDING))
def test_every_format_decodes_on_every_card(
    spec: QuantSpec, capability: tuple[int, int], folders: dict[str, tuple[Path, Path]]
) -> None:
    with fake_cuda(capability) as card:
        target = load(card, folders["biased"], spec)
        plain = decode(target, plainly(SETTINGS), MESSAGES)

        def look(session: Session) -> None:
            with card.waiting():
                check_cache(session, target, 0.1)

        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        run = decode(target, SETTINGS, MESSAGES, drafter=oracle, after_step=look)
        assert run.done.num_steps < plain.done.num_steps
        kernels = {name.rsplit("_", 1)[0] for name in card.journal.kernels}
        assert ("cgemm_4bit" if spec.name.startswith("nf4") else "cint8_vector") in kernels


@pytest.mark.parametrize(("spec", "graphs"), by_turns(ROUNDING, [False, True]))
def test_the_plan_holds_and_memory_is_freed(
    graphs: bool, spec: QuantSpec, folders: dict[str, tuple[Path, Path]]
) -> None:
    with fake_cuda(graphs_pay=graphs) as card:
        target = load(card, folders["plain"], spec)
        heads, plan = target.heads, target.plan
        assert heads is not None
        assert target.weights_bytes <= plan.weights_bytes <= target.weights_bytes * 1.05
        assert heads.nbytes <= plan.heads_bytes <= heads.nbytes * 1.05
        assert card.memory.taken_bytes >= target.weights_bytes + heads.nbytes
        cache = target.caches.nbytes
        assert cache <= plan.kv_bytes <= cache * 1.05
        assert card.memory.taken_bytes >= target.weights_bytes + heads.nbytes + cache
        before = card.memory.taken_bytes
        session = Session(target)
        session.make_room(target.config.context_tokens, 64)
        assert card.memory.taken_bytes == before  # it lies in what was reserved
        del target, heads, session
        assert card.memory.taken_bytes <= 1024  # bitsandbytes keeps a table of 256 numbers


@pytest.mark.parametrize("is_nested", [False, True], ids=["plain", "nested"])
def test_a_repository_in_4_bits_is_read_on_a_card(
    is_nested: bool, folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    model, _ = folders["plain"]
    folder = quantized_checkpoint(model, tmp_path / "quantized", is_nested)
    with fake_cuda() as card:
        formats = WeightFormats("nf4-dq" if is_nested else "nf4")
        with card.waiting():
            expected = load_target(model, options=LoadOptions("", "cuda", formats))
            target = load_target(folder, options=LoadOptions("", "cuda"))
        assert target.weights_bytes <= target.plan.weights_bytes <= target.weights_bytes * 1.05
        scores, same = plain_scores(target, IDS).cpu(), plain_scores(expected, IDS).cpu()
        # Rows that move have their scales unpacked, so that nothing is rounded twice.
        assert (scores - same).abs().max() <= (0.1 * same.abs().max() if is_nested else 0)


@FORMATS
def test_a_cached_quantized_weight_equals_the_one_quantized_at_load(
    spec: QuantSpec, folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    with fake_cuda() as card:
        first = load(card, folders["biased"], spec, tmp_path)
        again = load(card, folders["biased"], spec, tmp_path)
        texts = [decode(target, SETTINGS, MESSAGES) for target in (first, again)]
        check_same_tokens(*texts)
        assert first.weights_bytes == again.weights_bytes


@pytest.mark.parametrize("name", ["nemotron h"])
def test_recurrent_layers_compute_in_4_bits(name: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, max_new_tokens=8)
    folder = wide(name, tmp_path / "model")
    with fake_cuda(graphs_pay=True) as card:
        with card.waiting():
            options = LoadOptions("", "cuda", WeightFormats("nf4-dq"), context_tokens=512)
            target = load_target(folder, None, options)
        assert target.weights_bytes <= target.plan.weights_bytes
        plain = decode(target, plainly(settings), MESSAGES)

        def look(session: Session) -> None:
            with card.waiting():
                check_cache(session, target, 0.1)

        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        run = decode(target, settings, MESSAGES, drafter=oracle, after_step=look)
        assert run.done.num_steps < plain.done.num_steps
        assert card.journal.kernels

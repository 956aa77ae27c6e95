"""Weight formats: what they round, laws 1 to 3 under each, and law 4."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from shutil import copytree

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.api import demo_model
from medusa_core.errors import RequestError
from medusa_core.heads.medusa import MedusaHeads
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.quant.block_rounding import round_to
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.quant.choice import (
    best_dtype,
    resolve_formats,
)
from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    quant_registry,
)
from medusa_core.models.quant.nf4_tensors import (
    assemble,
    quantize,
    read_matrix,
)
from medusa_core.speculation.drafters.lineup import serving_drafters
from medusa_core.speculation.rules.rule import (
    rule_registry,
)
from tests.support.cases import case
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import (
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_sources,
    decode,
    plainly,
    user_says,
)
from tests.support.models.held_bytes import held_bytes
from tests.support.models.targets import add_phrases
from tests.support.models.tiny import (
    ACCURACIES,
    TinySpec,
    random_heads,
    random_rooted_heads,
    write_heads,
    write_rooted_heads,
    write_tiny,
)

HERE = Hardware("cpu", packs=("float32", "bfloat16"), compiles=True)
SPECS = quant_registry().specs
OF_CPUS = [spec for spec in SPECS if spec.supports(128, 128, "cpu")]
ROUNDING = [spec for spec in OF_CPUS if not spec.is_dense]
RULES = [rule for rule in rule_registry().specs if rule.choice.is_exact]
# Wide enough for every format; with biases, which go beside packed weights.
WIDE = TinySpec(hidden_size=128, intermediate_size=192, has_bias=True, seed=11)
NARROW = TinySpec(intermediate_size=96, seed=12)
ODD = TinySpec(hidden_size=48, intermediate_size=80, seed=12)  # no blocks of 32 fill a row
SETTINGS = GenerateSettings(drafter="medusa", temperature=0.9, top_p=0.9, seed=4, max_new_tokens=40)
PROMPTS = ("What is the capital of France?", "Tell me a story about a lighthouse.")
# Shares of the norm that a format may lose on normally distributed weights.
LOSS = {
    "int8": 0.012,
    "q4": 0.083,
    "bf16": 0.003,
    "fp16": 4e-4,
    "fp32": 0,
    "fp64": 0,
}

LoadAs = Callable[[str, str], Target]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    root = tmp_path_factory.mktemp("quantized")
    add_phrases(write_tiny(root / "wide", WIDE))
    return {
        "wide": (
            root / "wide",
            write_heads(root / "wide-heads", random_heads(WIDE), ACCURACIES),
        ),
        "pebble": demo_model(),
    }


@pytest.fixture(scope="module")
def load_as(
    folders: dict[str, tuple[Path, Path]], tmp_path_factory: pytest.TempPathFactory
) -> LoadAs:
    """Targets by name and format; the format `exact:X` is X's rounded weights in float64."""

    @cache
    def load(name: str, quant: str) -> Target:
        model, heads = folders[name]
        kind, _, rounded_as = quant.partition(":")
        if kind == "exact":
            folder = tmp_path_factory.mktemp("unpacked") / name
            copytree(model, folder)
            unpack_weights(folder, quant_registry().get(rounded_as))
            return load_target(folder, heads, LoadOptions("float64"))
        return load_target(model, heads, LoadOptions(formats=WeightFormats(quant)))

    return load


def unpack_weights(folder: Path, spec: QuantSpec) -> None:
    """Replace the linear weights of a checkpoint by what a format makes of them."""
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if name.endswith("proj.weight") and spec.supports(*tensor.shape, "cpu"):
            tensors[name] = unpacked(spec.quantize(tensor))
    save_file(tensors, folder / "model.safetensors")


def unpacked(tensors: dict[str, Tensor]) -> Tensor:
    """Rounded weights as numbers, by the formats' descriptions."""
    if "blocks" in tensors:
        return block_type("q4_0").dequantize(tensors["blocks"]).double()
    return tensors["weight"].double() * tensors["scale"].double().unsqueeze(1)


@pytest.mark.parametrize("spec", OF_CPUS, ids=lambda spec: spec.name)
def test_a_linear_multiplies_by_its_rounded_weights(spec: QuantSpec) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(96, 128, generator=generator)
    bias = torch.randn(96, generator=generator)
    compute = getattr(torch, spec.compute[0])
    tensors = spec.quantize(weight)
    layer = spec.build(tensors, 96, bias.to(compute), compute)
    x = torch.randn(7, 128, generator=generator).to(compute)
    held = weight.to(compute) if spec.is_dense else unpacked(spec.quantize(weight))
    lost = (held.double() - weight.double()).norm() / weight.norm()
    assert lost <= LOSS[spec.name]
    expected = x.double() @ held.double().t() + bias.to(compute).double()
    error = (layer(x).double() - expected).abs().max() / expected.abs().max()
    assert error <= 8 * torch.finfo(compute).eps
    residual = torch.randn(7, 96, generator=generator).to(compute)
    both = (layer.plus(x, residual.clone()).double() - expected - residual.double()).abs().max()
    assert both / expected.abs().max() <= 8 * torch.finfo(compute).eps


@pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)
def test_a_row_is_the_same_alone_and_among_others(spec: QuantSpec) -> None:
    weight = torch.randn(128, 256)
    layer = spec.build(spec.quantize(weight), 128, None, torch.bfloat16)
    x = torch.randn(33, 256).bfloat16()
    together = layer(x)
    for count in (1, 2, 5, 16):
        assert torch.equal(layer(x[:count]), together[:count])


def test_on_cuda_each_input_row_is_rounded_by_itself() -> None:
    # The same kernels have a CPU version: what runs on a card can be checked here.
    from medusa_core.models.quant.int8_linear import int8_rows_linear

    tensors = quant_registry().get("int8").quantize(weight := torch.randn(64, 128))
    layer = int8_rows_linear(tensors["weight"], tensors["scale"], None)
    x = torch.randn(9, 128).bfloat16()
    x[3] *= 100  # would be an outlier to its neighbours
    expected = x.double() @ weight.double().t()
    error = (layer(x).double() - expected).norm(dim=1) / expected.norm(dim=1)
    assert float(error.max()) < 0.03
    assert torch.equal(layer(x)[:1], layer(x[:1]))


@pytest.mark.parametrize("is_nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_nf4_is_decoded_as_by_bitsandbytes(dtype: torch.dtype, is_nested: bool) -> None:
    from medusa_core.models.quant.quiet_bitsandbytes import bitsandbytes

    weight = torch.randn(96, 1088).to(dtype)
    weight[5, :64] = 0
    packed, state = bitsandbytes.functional.quantize_4bit(
        weight, blocksize=64, compress_statistics=is_nested, quant_type="nf4"
    )
    theirs = bitsandbytes.functional.dequantize_4bit(packed, state)
    matrix = read_matrix({"weight": packed, **state.as_dict(packed=True)}, 96, 1088)
    assert matrix.numbers().dtype == dtype
    assert torch.allclose(matrix.numbers(), theirs, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)
    scales, levels, codes = matrix.scales, matrix.levels, matrix.codes
    put_together = assemble(matrix.packed, scales, levels, 1088, dtype)
    assert torch.equal(read_matrix(put_together, 96, 1088).numbers(), matrix.numbers())
    assert codes.max() == 15


def test_nf4_converted_to_cpu_blocks_loses_little() -> None:
    stored = read_matrix(quantize(torch.randn(96, 1088), is_nested=True), 96, 1088)
    numbers, found = stored.numbers(), block_type("nf4_0").dequantize(stored.blocks())
    assert (found - numbers).norm() <= 0.0052 * numbers.norm()
    others = {of: block_type(of).dequantize(round_to(of, numbers)) for of in ("q4_0", "q8_0")}
    lost = {of: float((back - numbers).norm() / numbers.norm()) for of, back in others.items()}
    assert lost["q4_0"] > 0.08, "a block of whole numbers has other levels"
    assert lost["q8_0"] > 0.005, "and one of twice the bits isn't nearer"


@pytest.mark.parametrize("spec", ROUNDING, ids=lambda spec: spec.name)
def test_laws_1_and_2_tokens_differ_only_at_ties(
    spec: QuantSpec, load_as: LoadAs, report_ties: Callable[[list[Tie]], None]
) -> None:
    ties = []
    # What drafts for the demo drafts for the wide one, too: it has heads and phrases as well.
    drafters = serving_drafters(load_as("pebble", spec.name))
    # Each format has its share of them.
    drafters = drafters[ROUNDING.index(spec) :: len(ROUNDING)]
    for drafter, name, rule, prompt in zip(
        drafters, cycle(("wide", "pebble")), cycle(RULES), cycle(PROMPTS)
    ):
        target, exact = load_as(name, spec.name), load_as(name, f"exact:{spec.name}")
        settings = replace(SETTINGS, drafter=drafter.name, rule=rule.name, max_new_tokens=24)
        plain = decode(target, plainly(settings), user_says(prompt))
        for with_oracle in (None, oracle_spec([*plain.prompt_ids, *plain.token_ids])):
            with case(name, drafter, rule):
                drafted = decode(target, settings, user_says(prompt), drafter=with_oracle)
                check_sources(drafted)
                ties.append(check_same_but_for_ties(plain, drafted, target, exact, rule))
    report_ties([tie for tie in ties if tie is not None])


@pytest.mark.parametrize(("name", "spec"), by_turns(["wide", "pebble"], ROUNDING))
def test_law_3_the_cache_equals_one_without_drafts(
    name: str, spec: QuantSpec, load_as: LoadAs
) -> None:
    target = load_as(name, spec.name)
    plain = decode(target, plainly(SETTINGS), user_says(PROMPTS[1]))
    run = decode(
        target,
        SETTINGS,
        user_says(PROMPTS[1]),
        drafter=oracle_spec([*plain.prompt_ids, *plain.token_ids]),
        after_step=lambda session: check_cache(session, target, 0.05),
    )
    assert run.done.num_steps < plain.done.num_steps


def weight_roots(target: Target) -> list[object]:
    decoder = target.runner._model
    return [*decoder.blocks, decoder.embedding, decoder.lm_head, decoder.final_norm]


def combinations() -> Iterator[tuple[str, str, WeightFormats]]:
    several = WeightFormats("int8", lm_head="int8", heads="bf16", embedding="fp32")
    # The last four: what the compiled step computes in part, or not at all.
    for dtype, formats in (
        *(("float64", WeightFormats()), ("float32", WeightFormats())),
        *(("", WeightFormats(quant)) for quant in ("bf16", "int8", "q4")),
        *(
            ("", several),
            ("", WeightFormats(lm_head="int8")),
            ("", WeightFormats(embedding="fp32")),
        ),
        *(("bfloat16", WeightFormats(embedding="fp16")), ("float16", WeightFormats())),
    ):
        yield "wide", dtype, formats
        if dtype != "float64" and not formats.linears:
            yield "narrow", dtype, formats
    for name in ("wide", "rooted", "narrow", "pebble"):
        yield name, "", WeightFormats("q4", lm_head="q4", heads="int8")
    yield "rooted", "float32", WeightFormats()
    yield "rooted", "", several
    yield "pebble", "", WeightFormats("bf16")


def head_roots(heads: MedusaHeads) -> list[object]:
    """Return the objects that hold the weights of heads."""
    return [heads._residuals, heads._own_projections, heads._one_projection]


@pytest.mark.parametrize(("name", "dtype", "formats"), list(combinations()))
def test_law_4_measured_memory_exceeds_the_plan_by_at_most_a_twentieth(
    name: str,
    dtype: str,
    formats: WeightFormats,
    folders: dict[str, tuple[Path, Path]],
    tmp_path: Path,
) -> None:
    if name == "narrow":
        model = write_tiny(tmp_path / "narrow", NARROW)
        heads = write_heads(tmp_path / "narrow-heads", random_heads(NARROW), ACCURACIES)
    elif name == "rooted":
        model = folders["wide"][0]
        heads = write_rooted_heads(tmp_path / "heads", random_rooted_heads(WIDE))
    else:
        model, heads = folders[name]
    target = load_target(model, heads, LoadOptions(dtype, formats=formats))
    measured = {
        "weights": held_bytes(weight_roots(target)),
        "heads": held_bytes(head_roots(target.heads)) if target.heads else 0,
        "kv": held_bytes([target.caches._memory]),
    }
    plan = target.plan
    planned = {"weights": plan.weights_bytes, "heads": plan.heads_bytes, "kv": plan.kv_bytes}
    for part, size in planned.items():
        assert measured[part] <= size <= measured[part] * 1.05, (part, measured[part], size)


def test_unsupported_hardware_is_named_with_the_missing_capability() -> None:
    pascal, turing, ampere = (Hardware("cuda", c) for c in ((6, 1), (7, 5), (8, 6)))
    bare_cpu = Hardware("cpu", multiplies_bfloat16=False)
    compiled_cpu = replace(bare_cpu, packs=("float32", "bfloat16"))
    all_of_them = (pascal, turing, ampere, HERE, compiled_cpu, bare_cpu)
    assert not quant_registry().get("int8").limitation(replace(compiled_cpu, compiles=True))
    lacks = {s.name: [bool(s.limitation(hardware)) for hardware in all_of_them] for s in SPECS}
    assert lacks["fp32"] == [False] * 6
    assert lacks["bf16"] == [True, True, False, False, False, True]
    assert lacks["fp16"] == [True, False, False, True, True, True]
    assert lacks["int8"] == [True, False, False, False, True, True]
    assert lacks["nf4"] == lacks["nf4-dq"] == [False, False, False, True, True, True]
    assert [best_dtype(hardware) for hardware in all_of_them] == [
        "float32",
        "float16",
        "bfloat16",
        "bfloat16",
        "bfloat16",
        "float32",
    ]
    gtx_16 = replace(turing, has_tensor_cores=False)
    formats = resolve_formats(WeightFormats(), "", gtx_16)
    assert (formats.compute, formats.cache) == ("float32", "float16")


def test_incompatible_formats_are_refused_with_a_message() -> None:
    with pytest.raises(RequestError, match="looked up, not multiplied"):
        resolve_formats(WeightFormats(embedding="nf4"), "", HERE)
    with pytest.raises(RequestError, match="can't be computed with in float64"):
        resolve_formats(WeightFormats("int8"), "float64", HERE)
    with pytest.raises(RequestError, match="no weight format"):
        resolve_formats(WeightFormats("q4_k_m"), "", HERE)


@pytest.mark.parametrize("name", ["nf4", "nf4-dq"])
@pytest.mark.parametrize("part", ["linears", "lm_head", "heads"])
def test_nf4_is_refused_on_a_cpu_and_q4_named_instead(part: str, name: str) -> None:
    with pytest.raises(RequestError, match="A CPU doesn't multiply nf4") as refused:
        resolve_formats(WeightFormats(**{part: name}), "", HERE)
    assert "q4" in refused.value.hint
    card = Hardware("cuda", (8, 6))
    assert resolve_formats(WeightFormats(**{part: name}), "", card)
    with pytest.raises(RequestError, match="A card doesn't multiply q4") as refused:
        resolve_formats(WeightFormats(**{part: "q4"}), "", card)
    assert "nf4" in refused.value.hint


def test_heads_are_rounded_if_their_target_is_compiled() -> None:
    uncompiled = replace(HERE, compiles=False)
    for linears, dtype, hardware, heads, compiles in (
        ("", "", HERE, "int8", True),
        ("bf16", "bfloat16", HERE, "int8", True),
        ("int8", "", HERE, "int8", True),
        ("", "float32", HERE, "fp32", True),  # is asked for where every bit counts
        ("", "float64", HERE, "fp64", False),
        ("q4", "", HERE, "q4", True),
        ("nf4", "", Hardware("cuda", (8, 6)), "nf4", False),
        ("", "", uncompiled, "bf16", False),
        ("int8", "", uncompiled, "int8", False),
        ("", "", Hardware("cuda", (8, 6)), "bf16", False),
    ):
        chosen = resolve_formats(WeightFormats(linears), dtype, hardware)
        assert (chosen.heads.name, chosen.compiles) == (heads, compiles), (linears, dtype, hardware)
    assert resolve_formats(WeightFormats(heads="bf16"), "", HERE).heads.name == "bf16"


def test_both_16_bit_formats_are_equally_good() -> None:
    chosen = resolve_formats(WeightFormats("q4", heads="fp16"), "bfloat16", HERE)
    assert chosen.heads.name == "bf16"


def test_unsupported_shapes_stay_unquantized(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "odd", ODD)
    quantized = load_target(model, None, LoadOptions(formats=WeightFormats("q4")))
    dense = load_target(model, None, LoadOptions("bfloat16"))
    settings = GenerateSettings(drafter="none", max_new_tokens=20)
    answers = [decode(target, settings, user_says("hello")) for target in (quantized, dense)]
    assert answers[0].token_ids == answers[1].token_ids

"""LoRA adapters: the target with one is W + s · B A, merged or beside its weights."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.__main__ import main
from medusa_core.errors import AdapterError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.lora.adapter_config import parse_lora_config
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import precision_of
from medusa_core.models.quant.format import quant_registry
from medusa_core.models.quant.linear import DenseLinear
from medusa_core.models.quant.nf4_tensors import quantize
from medusa_core.models.quantized_cache.folder import QuantizedModels
from medusa_core.models.row_order import interleave_rows
from medusa_core.runtime.backends import native_blocks
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from medusa_core.speculation.tuning.measurements import calibration_key
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import (
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    check_sources,
    decode,
    plain_scores,
    plainly,
    user_says,
)
from tests.support.models.adapter_files import (
    ALL,
    LoraSpec,
    config_of,
    lora_for,
    merge_slowly,
    random_lora,
    sizes_of,
    write_lora,
)
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.packed_files import gptq, pack_checkpoint
from tests.support.models.peers import CONFIGS, peer_of
from tests.support.models.quantized_checkpoint import quantized_checkpoint
from tests.support.models.tiny import (
    ACCURACIES,
    TinySpec,
    random_heads,
    write_heads,
    write_text_files,
    write_tiny,
)

SPEC = TinySpec(hidden_size=128, intermediate_size=256, num_heads=2, num_kv_heads=1, seed=8)
IDS = [5, 80, 200, 31, 7, 150, 42]
MESSAGES = user_says("with something beside it")
EXACT = [rule for rule in rule_registry().specs if rule.choice.is_exact]
LORAS = {
    "usual": LoraSpec(),
    "rank-stabilized": LoraSpec(is_rslora=True),
    "some layers": LoraSpec(modules=("v_proj", "down_proj")),
    "patterns": LoraSpec(
        ranks={"q_proj": 6, "1.mlp.up_proj": 3},
        alphas={"gate_proj": 20, "k_proj": 1.5},
    ),
    "odd rank": LoraSpec(rank=5),
}
WAYS = ("gguf", "gptq", "nf4")


def scores(
    folder: Path, dtype: str = "float64", adapter: Path | None = None, **more: Any
) -> Tensor:
    options = LoadOptions(dtype, "cpu", adapter_dir=adapter, **more)
    return plain_scores(load_target(folder, options=options), IDS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("adapters") / "model", SPEC)


@pytest.mark.parametrize("name", LORAS)
def test_a_merged_adapter_equals_the_papers_equation(
    name: str, model: Path, tmp_path: Path
) -> None:
    added = lora_for(model, tmp_path / "lora", LORAS[name])
    merged = copytree(model, tmp_path / "merged")
    merge_slowly(merged, added)
    found = scores(model, adapter=tmp_path / "lora")
    assert torch.allclose(found, scores(merged), rtol=1e-9, atol=1e-9)
    assert not torch.allclose(found, scores(model), atol=1e-2)


@pytest.mark.parametrize(
    "family",
    [
        *("qwen2", "qwen3", "phi3", "gemma2", "granite", "olmo2"),
        *("qwen3_5_text", "qwen3_next", "bamba", "falcon_h1", "nemotron_h"),
    ],
)
def test_adapters_fit_families_with_other_names_and_orders(family: str, tmp_path: Path) -> None:
    name = next(name for name in CONFIGS if CONFIGS[name]().model_type == family)
    peer_of(name).save_pretrained(tmp_path / "model")
    write_text_files(tmp_path / "model")
    lfm2 = ("in_proj", "out_proj", "w1", "w2", "w3")
    states = ("in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_qkvz", "in_proj_ba")
    spec = LoraSpec(modules=(*ALL, "qkv_proj", "gate_up_proj", *lfm2, *states))
    added = lora_for(tmp_path / "model", tmp_path / "lora", spec)
    merged = copytree(tmp_path / "model", tmp_path / "merged")
    merge_slowly(merged, added)
    found = scores(tmp_path / "model", adapter=tmp_path / "lora")
    assert torch.allclose(found, scores(merged), rtol=1e-9, atol=1e-9)


def quantized(way: str, folder: Path) -> tuple[Path, Path]:
    """A model that is quantized in its files, and a folder of the numbers that those hold."""
    plain, packed = write_tiny(folder / "plain", SPEC), folder / "packed"
    if way == "gguf":
        packed = write_as_gguf(plain, folder / "model.gguf", "q8_0")
        numbers = ModelFiles.open(packed).checkpoint()
        found = {name: numbers.floats(name, torch.float32) for name in numbers.names}
    elif way == "nf4":
        quantized_checkpoint(plain, packed, is_nested=False)
        found = load_file(plain / "model.safetensors")
        found |= {
            name: quant_registry().get("nf4").dequantize(quantize(tensor, False), *tensor.shape)
            for name, tensor in found.items()
            if name.endswith("proj.weight")
        }
    else:
        copytree(plain, packed)
        made = pack_checkpoint(packed, gptq())
        found = load_file(plain / "model.safetensors")
        found |= {name: tensor.float() for name, tensor in made.items()}
    save_file(found, plain / "model.safetensors")
    return packed, plain


@pytest.fixture(scope="module")
def packed_pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[Path, Path, Path]]:
    """Return a quantized model, a LoRA for it, and the sum of both unquantized, by format."""

    @cache
    def make(way: str) -> tuple[Path, Path, Path]:
        folder = tmp_path_factory.mktemp(way)
        packed, plain = quantized(way, folder)
        merge_slowly(plain, lora_for(plain, folder / "lora", LORAS["patterns"]))
        return packed, folder / "lora", plain

    return make


PackedPair = Callable[[str], tuple[Path, Path, Path]]


@pytest.mark.parametrize("way", WAYS)
def test_an_unmerged_adapter_beside_quantized_weights_adds_its_product(
    way: str, packed_pair: PackedPair
) -> None:
    packed, lora, summed = packed_pair(way)
    wanted = scores(summed, "float64")
    halved = scores(summed, "bfloat16", formats=WeightFormats("bf16"))
    error = (scores(packed, "", lora).double() - wanted).std()
    assert error < 8 * (halved.double() - wanted).std()
    assert error < 0.2 * (scores(packed, "").double() - wanted).std()


@pytest.mark.parametrize("way", WAYS)
def test_an_adapter_is_merged_before_stored_weights_are_quantized_anew(
    way: str, packed_pair: PackedPair
) -> None:
    packed, lora, summed = packed_pair(way)
    merged = scores(packed, "float64", lora, formats=WeightFormats("fp64"))
    assert torch.allclose(merged, scores(summed, "float64"), rtol=0, atol=1e-4)
    options = LoadOptions("float32", "cpu", formats=WeightFormats("q4"))
    plain = load_target(packed, options=options)
    target = load_target(packed, options=replace(options, adapter_dir=lora))
    assert target.plan.weights_bytes == plain.plan.weights_bytes, "it takes no memory"
    assert target.weights_bytes == plain.weights_bytes
    of_sum = load_target(summed, options=options)
    error = (plain_scores(target, IDS) - plain_scores(of_sum, IDS)).std()
    assert error < 0.1 * (plain_scores(plain, IDS) - plain_scores(of_sum, IDS)).std()


@pytest.mark.parametrize("name", LORAS)
def test_an_unmerged_adapter_equals_a_merged_one(name: str, model: Path, tmp_path: Path) -> None:
    added = lora_for(model, tmp_path, LORAS[name])
    config, precision = ModelFiles.open(model).config, precision_of("float64", torch.device("cpu"))
    adapter = Adapter(tmp_path, config)
    weights = load_file(model / "model.safetensors")
    for part in linear_parts(config):
        names = [f"{piece.name}.weight" for piece in part.pieces]
        matrices = [weights[name].double() for name in names]
        changes = [added.get(piece.name, torch.zeros(1, 1)) for piece in part.pieces]

        def fused(matrices: list[Tensor], part: LinearSpec = part) -> Tensor:
            rows = [
                interleave_rows(matrix, *config.head_rows) if piece.rotates else matrix
                for piece, matrix in zip(part.pieces, matrices, strict=True)
            ]
            return torch.cat(rows)

        x = torch.randn(3, part.columns, dtype=torch.float64)
        layer = adapter.add_to(part, DenseLinear(fused(matrices)), precision)
        wanted = x @ fused([m + c for m, c in zip(matrices, changes, strict=True)]).T
        residual = torch.randn_like(wanted)
        assert torch.allclose(layer(x), wanted, rtol=1e-12, atol=1e-12)
        assert torch.allclose(layer.plus(x, residual.clone()), wanted + residual, atol=1e-12)


@pytest.mark.parametrize(("way", "dtype"), by_turns(list(WAYS), ["float32", "bfloat16"]))
def test_the_plan_counts_an_unmerged_adapter_to_the_byte(
    way: str, dtype: str, packed_pair: PackedPair
) -> None:
    packed, lora, _ = packed_pair(way)
    plain = load_target(packed, options=LoadOptions(dtype, "cpu"))
    target = load_target(packed, options=LoadOptions(dtype, "cpu", adapter_dir=lora))
    more = target.weights_bytes - plain.weights_bytes
    assert more == target.plan.weights_bytes - plain.plan.weights_bytes > 0
    assert isinstance(target.runner, NativeRunner)
    assert target.caches.nbytes <= target.plan.kv_bytes <= 1.05 * target.caches.nbytes


@pytest.mark.parametrize("quant", ["", "int8", "q4"])
def test_a_merged_adapter_takes_no_memory_and_is_merged_before_quantization(
    quant: str, model: Path, tmp_path: Path
) -> None:
    added = lora_for(model, tmp_path / "lora")
    merged = copytree(model, tmp_path / "merged")
    merge_slowly(merged, added)
    formats = WeightFormats(quant)
    options = LoadOptions(device="cpu", formats=formats, adapter_dir=tmp_path / "lora")
    target = load_target(model, options=options)
    plain = load_target(merged, options=LoadOptions(device="cpu", formats=formats))
    assert torch.equal(plain_scores(target, IDS), plain_scores(plain, IDS))
    assert target.plan.weights_bytes == plain.plan.weights_bytes
    assert type(target.runner) is type(plain.runner)


def exactly(rule: RuleSpec, drafter: str) -> GenerateSettings:
    return GenerateSettings(
        rule=rule.name, drafter=drafter, temperature=0.8, top_k=40, seed=3, max_new_tokens=40
    )


@pytest.mark.parametrize("rule", EXACT, ids=lambda rule: rule.name)
@pytest.mark.parametrize("drafter", ["medusa", "suffix", "oracle"])
def test_laws_1_to_3_hold_with_an_adapter_merged(
    drafter: str, rule: RuleSpec, model: Path, tmp_path: Path
) -> None:
    lora_for(model, tmp_path / "lora")
    heads = write_heads(tmp_path / "heads", random_heads(SPEC), ACCURACIES)
    target = load_target(model, heads, LoadOptions("float64", "cpu", adapter_dir=tmp_path / "lora"))
    check_laws(target, exactly(rule, drafter if drafter != "oracle" else "composite"), drafter)


def check_laws(
    target: Target, settings: GenerateSettings, drafter: str, tolerance: float = 1e-12
) -> None:
    longer = replace(plainly(settings), max_new_tokens=48)
    truth = decode(target, longer, MESSAGES)
    oracle = oracle_spec([*truth.prompt_ids, *truth.token_ids])
    spec = oracle if drafter == "oracle" else drafter_registry().get(drafter)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=spec,
        after_step=lambda session: check_cache(session, target, tolerance),
    )
    plain = decode(target, plainly(settings), MESSAGES)
    check_same_tokens(plain, run)
    check_sources(run)
    assert drafter != "oracle" or run.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize("rule", EXACT, ids=lambda rule: rule.name)
@pytest.mark.parametrize("drafter", ["medusa", "oracle"])
@pytest.mark.parametrize("way", WAYS)
def test_laws_1_to_3_hold_bit_for_bit_with_an_unmerged_adapter(
    way: str, drafter: str, rule: RuleSpec, packed_pair: PackedPair, tmp_path: Path
) -> None:
    packed, lora, _ = packed_pair(way)
    heads = write_heads(tmp_path / "heads", random_heads(SPEC), ACCURACIES)
    target = load_target(packed, heads, LoadOptions("float32", "cpu", adapter_dir=lora))
    assert isinstance(target.runner, NativeRunner)
    check_laws(target, exactly(rule, "medusa"), drafter, tolerance=0.0)


@pytest.mark.parametrize("drafter", ["medusa", "oracle"])
def test_torch_decodes_with_an_unmerged_adapter_as_well(
    drafter: str,
    packed_pair: PackedPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    """Of a family that the compiled step doesn't know."""
    packed, lora, summed = packed_pair("gguf")
    monkeypatch.setattr(native_blocks, "why_not", lambda config: "not now")
    heads = write_heads(tmp_path / "heads", random_heads(SPEC), ACCURACIES)
    target = load_target(packed, heads, LoadOptions("float32", "cpu", adapter_dir=lora))
    assert isinstance(target.runner, ResidentRunner)
    exact = load_target(summed, options=LoadOptions("float64", "cpu"))
    rule = rule_registry().get("greedy")
    settings = exactly(rule, "medusa")
    plain = decode(target, replace(plainly(settings), max_new_tokens=48), MESSAGES)
    oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
    plain = decode(target, plainly(settings), MESSAGES)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle if drafter == "oracle" else drafter_registry().get(drafter),
        after_step=lambda session: check_cache(session, target, 1e-4),
    )
    tie = check_same_but_for_ties(plain, run, target, exact, rule)
    report_ties([tie] if tie is not None else [])
    check_sources(run)


def test_unloading_an_adapter_restores_the_target(model: Path, tmp_path: Path) -> None:
    before = scores(model, "")
    lora_for(model, tmp_path / "lora")
    assert not torch.equal(scores(model, "", tmp_path / "lora"), before)
    assert torch.equal(scores(model, ""), before)


def test_cached_models_with_and_without_an_adapter_are_distinguished(
    model: Path, tmp_path: Path
) -> None:
    lora_for(model, tmp_path / "one")
    lora_for(model, tmp_path / "two", LoraSpec(seed=32))
    kept = tmp_path / "kept"

    def load(adapter: str) -> Tensor:
        lora = tmp_path / adapter if adapter else None
        return scores(model, "", lora, formats=WeightFormats("int8"), quantized_dir=kept)

    first = {name: load(name) for name in ("", "one", "two")}
    assert len(QuantizedModels(kept).entries()) == 3
    for name, found in first.items():
        assert torch.equal(load(name), found)
    assert not torch.equal(first[""], first["one"])
    assert not torch.equal(first["one"], first["two"])


def test_learned_rates_and_measurements_are_separate_per_adapter(
    model: Path, tmp_path: Path
) -> None:
    lora_for(model, tmp_path / "lora")
    options = LoadOptions("float32", "cpu", datastore_dir=tmp_path / "learned")
    with_it = replace(options, adapter_dir=tmp_path / "lora")
    plain, adapted = (load_target(model, options=each) for each in (options, with_it))
    for target in (plain, adapted):
        assert target.learned is not None
        target.learned.learn("a conversation", [1, 2], [3, 4, 5, 6])
        target.learned.close()
    assert len(list((tmp_path / "learned").glob("*"))) >= 2
    kept = {path.stem for path in (tmp_path / "learned").glob("*") if path.stat().st_size}
    assert len({name.partition(".")[0] for name in kept}) == 2
    folders = (model, tmp_path / "lora")
    assert calibration_key(plain, folders[:1]) != calibration_key(adapted, folders)


Change = Callable[[dict[str, Tensor], dict[str, Any]], object]
LEAD, LAYER = "base_model.model.", "model.layers.1.mlp.up_proj"
A, B = (f"{LEAD}{LAYER}.lora_{half}.weight" for half in "AB")


def output(**more: Any) -> Change:
    """Let the configuration contradict the tensors."""
    return lambda _, config: config.update(more)


def held(name: str, tensor: Tensor) -> Change:
    """The file holds another tensor."""
    return lambda tensors, _: tensors.update({name: tensor})


def renamed(layer: str) -> Change:
    """Rename the tensors of one layer to another's."""

    def change(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        for name in (A, B):
            tensors[name.replace(LAYER, layer)] = tensors.pop(name)

    return change


def cut(name: str, of: Callable[[Tensor], Tensor]) -> Change:
    """A tensor is another."""
    return lambda tensors, _: tensors.update({name: of(tensors[name]).contiguous()})


HOSTILE: dict[str, tuple[Change, str]] = {
    "dora": (output(use_dora=True), "DoRA"),
    "dora's tensor": (held(f"{LEAD}{LAYER}.lora_magnitude_vector", torch.ones(256)), "DoRA"),
    "biases": (output(bias="all"), "biases"),
    "a bias": (held(f"{LEAD}{LAYER}.bias", torch.ones(256)), "biases"),
    "whole layers": (output(modules_to_save=["lm_head"]), "whole layers"),
    "a whole layer": (held(f"{LEAD}lm_head.weight", torch.ones(320, 128)), "whole layers"),
    "ia3": (output(peft_type="IA3"), "IA3"),
    "no type": (lambda _, config: config.pop("peft_type"), "type None"),
    "token vectors": (
        held(f"{LEAD}model.embed_tokens.lora_embedding_A", torch.ones(4, 320)),
        "token vectors",
    ),
    "the last projection": (renamed("lm_head"), "lm_head"),
    "an unknown layer": (renamed("model.layers.9.mlp.up_proj"), "no layer model.layers.9"),
    "a layer twice": (held(A.replace(".weight", ".b.weight"), torch.ones(4, 128)), "twice"),
    "an unknown tensor": (held("extra", torch.ones(1)), "extra"),
    "another rank": (output(r=7), "shape"),
    "a short A": (cut(A, lambda tensor: tensor[:, :-1]), "shape"),
    "a flat B": (cut(B, torch.flatten), "shape"),
    "half a pair": (lambda tensors, _: tensors.pop(B), "one half"),
    "no number": (cut(A, lambda tensor: tensor * float("nan")), "no number"),
    "infinite": (cut(B, lambda tensor: tensor / 0), "no number"),
    "whole numbers": (cut(A, torch.Tensor.int), "I32"),
    "nothing": (lambda tensors, _: tensors.clear(), "nothing"),
    "no rank": (output(r=0), "r is 0"),
    "rank in words": (output(r="four"), "r is 'four'"),
    "alpha in words": (output(lora_alpha="much"), "lora_alpha"),
    "a pattern that takes forever": (output(rank_pattern={"(x+x+)+y": 4}), "pattern"),
    "no pattern": (output(alpha_pattern={"(": 4}), "pattern"),
    "patterns in a list": (output(alpha_pattern=[1]), "table"),
    "sideways": (output(fan_in_fan_out=True), "sideways"),
    "pissa": (output(init_lora_weights="pissa_niter_4"), "pissa"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_unsupported_adapter_is_refused_with_a_message(
    name: str, model: Path, tmp_path: Path
) -> None:
    change, words = HOSTILE[name]
    spec = LoraSpec()
    tensors, _ = random_lora(sizes_of(model, spec), spec)
    config = config_of(spec)
    change(tensors, config)
    write_lora(tmp_path, tensors, config)
    with pytest.raises(AdapterError, match=re.escape(words)) as caught:
        load_target(model, options=LoadOptions("float32", "cpu", adapter_dir=tmp_path))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("how", ["gone", "cut", "text"])
def test_a_damaged_adapter_folder_is_refused_with_a_message(
    name: str, how: str, model: Path, tmp_path: Path
) -> None:
    lora_for(model, tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(whole[:-9] if how == "cut" else b"no")
    with pytest.raises(AdapterError) as caught:
        load_target(model, options=LoadOptions("float32", "cpu", adapter_dir=tmp_path))
    assert caught.value.hint


def test_an_adapter_pickle_is_not_opened(model: Path, tmp_path: Path) -> None:
    lora_for(model, tmp_path)
    (tmp_path / "adapter_model.safetensors").rename(tmp_path / "adapter_model.bin")
    with pytest.raises(AdapterError) as caught:
        load_target(model, options=LoadOptions("float32", "cpu", adapter_dir=tmp_path))
    assert "pickle" in caught.value.hint


@pytest.mark.parametrize(
    ("pattern", "layer", "fits"),
    [
        ("q_proj", "model.layers.0.self_attn.q_proj", True),
        ("self_attn.q_proj", "model.layers.0.self_attn.q_proj", True),
        ("proj", "model.layers.0.self_attn.q_proj", False),
        (r"model\.layers\.[01]\..*", "model.layers.1.mlp.up_proj", True),
        (r"model\.layers\.[01]\..*", "model.layers.2.mlp.up_proj", False),
    ],
)
def test_layer_patterns_match_as_in_peft(pattern: str, layer: str, fits: bool) -> None:
    raw = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "rank_pattern": {pattern: 2}}
    found = parse_lora_config(raw)
    assert found.rank_of(layer) == (2 if fits else 8)
    assert found.scale_of(layer) == 16 / found.rank_of(layer)


def test_tensors_may_contain_the_adapters_name(model: Path, tmp_path: Path) -> None:
    lora_for(model, tmp_path / "plain")
    tensors = load_file(tmp_path / "plain" / "adapter_model.safetensors")
    named = {n.replace(".weight", ".default.weight"): t for n, t in tensors.items()}
    write_lora(tmp_path / "named", named, config_of(LoraSpec()))
    found = [scores(model, adapter=tmp_path / name) for name in ("plain", "named")]
    assert torch.equal(*found)


def test_commands_accept_an_adapter(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lora_for(model, tmp_path)
    arguments = ["generate", "--model", str(model), "--device", "cpu", "--dtype", "float32"]
    arguments += ["--prompt", "hello", "--max-new-tokens", "24", "--threads", "1", "--json"]
    reported = []
    for more in ([], ["--adapter", str(tmp_path)]):
        assert main([*arguments, "--no-learned", *more]) == 0
        reported.append(json.loads(capsys.readouterr().out)["token_ids"])
    assert reported[0] != reported[1]

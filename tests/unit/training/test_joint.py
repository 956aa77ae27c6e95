"""Heads and a LoRA that learn together: gradients, runs cut anywhere, what is written."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.func import functional_call
from transformers import AutoModelForCausalLM

from medusa_core.__main__ import main
from medusa_core.bench.random_target import shape_config
from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.lora.adapter_shape import ADAPTER
from medusa_core.models.lora.adapter_writer import write_adapter
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.training.adapted import AdaptedTarget, load_adapted, recomputes
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads_command import load_for_training
from medusa_core.training.heads_config import HeadsConfig, config_from
from medusa_core.training.joint import JointTrainee, heads_weight
from medusa_core.training.joint_plan import plan_joint
from medusa_core.training.lora import LoraSpec
from medusa_core.training.medusa_trainee import MedusaTrainee
from medusa_core.training.trainee import collected
from tests.support.engine.laws import plain_states
from tests.support.models.adapter_files import lora_for
from tests.support.models.peers import CONFIGS, peer_of
from tests.support.models.tiny import TinySpec, write_text_files, write_tiny
from tests.support.training.runs import command, prompts_file, run

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=3, seed=21)
GROUPED = TinySpec(num_layers=2, seed=5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("joint") / "model", SPEC)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def config_for(model: Path, folder: Path, **more: Any) -> HeadsConfig:
    defaults: dict[str, Any] = {
        "joint": True,
        "rank": 4,
        "answers": 16,
        "max_new_tokens": 16,
        "steps": 16,
        "batch": 512,
        "num_heads": 2,
        "context": 128,
        "device": "cpu",
        "kind": "medusa-shared",
    }
    return HeadsConfig(model=str(model), data=(str(prompts_file(folder)),), **{**defaults, **more})


def test_the_adapter_equals_pefts_and_heads_draft_with_it(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(out, config_for(model, tmp_path, kind="medusa", steps=12))
    reported = json.loads((out / ADAPTER / "adapter_config.json").read_text(encoding="utf-8"))
    assert reported["peft_type"] == "LORA"
    assert (reported["r"], reported["lora_alpha"]) == (4, 16)
    assert set(reported["target_modules"]) == {
        *("q_proj", "k_proj", "v_proj", "o_proj"),
        *("gate_proj", "up_proj", "down_proj"),
    }
    tensors = load_file(out / ADAPTER / "adapter_model.safetensors")
    a = tensors["base_model.model.model.layers.2.mlp.down_proj.lora_A.weight"]
    b = tensors["base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight"]
    assert (a.shape, b.shape) == ((4, 96), (32, 4))
    assert all(bool(tensor.any()) for tensor in tensors.values())
    assert len(tensors) == 2 * 7 * SPEC.num_layers
    options = LoadOptions("float32", "cpu", adapter_dir=out / ADAPTER)
    target = load_target(model, out, options)
    assert "medusa" in [spec.name for spec in drafters_for(target)]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "adapter" in card
    assert "stayed as it is" not in card


def text(length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, 300, (length,), generator=generator)


def with_numbers(target: AdaptedTarget) -> AdaptedTarget:
    """A LoRA that has learned something."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in target.lora.parameters():
            parameter += torch.randn(parameter.shape, generator=generator) * 0.1
    return target


FIRST_OF_FAMILY = {CONFIGS[name]().model_type: name for name in reversed(CONFIGS)}
# Every operation once; all experts are refused alike.
DAILY = (
    *("gemma2", "gemma4_text", "falcon_h1", "granite", "lfm2", "nemotron_h", "olmo2", "phi3"),
    *("qwen3", "qwen3_5_text", "qwen3_moe"),
)


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[] if family in DAILY else pytest.mark.slow)
        for family in FIRST_OF_FAMILY
    ],
)
def test_states_equal_the_engines_with_and_without_the_adapter(family: str, tmp_path: Path) -> None:
    peer_of(FIRST_OF_FAMILY[family]).save_pretrained(tmp_path / "model")
    write_text_files(tmp_path / "model")
    form = LoraSpec(3, 6.0)
    if ModelFiles.open(tmp_path / "model").config.moe is not None:
        with pytest.raises(TrainingError, match="experts") as caught:
            load_adapted(tmp_path / "model", form, device="cpu", dtype="float64")
        assert "--joint" in caught.value.hint
        return
    adapted = load_adapted(tmp_path / "model", form, device="cpu", dtype="float64")
    texts = [text(40, 1), text(7, 2)]
    plain = load_target(tmp_path / "model", options=LoadOptions("float64", "cpu"))
    check_states(adapted, plain, texts)
    with torch.no_grad():  # what bfloat16 can hold, as it is written so
        for parameter in with_numbers(adapted).lora.parameters():
            parameter.copy_(parameter.bfloat16())
    write_adapter(tmp_path / "lora", adapted.lora.matrices(), form.alpha, "tiny")
    options = LoadOptions("float64", "cpu", adapter_dir=tmp_path / "lora")
    check_states(adapted, load_target(tmp_path / "model", options=options), texts)


def check_states(adapted: AdaptedTarget, target: Any, texts: list[Tensor]) -> None:
    found = adapted.states(texts)
    assert found.requires_grad
    wanted = torch.cat([plain_states(target, one.tolist())[0] for one in texts])
    assert torch.allclose(found, wanted, rtol=1e-9, atol=1e-9)
    with torch.inference_mode():
        scores = target.runner.logits(wanted)
    assert torch.allclose(adapted.logits(found), scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("quant", ["", "int8", "q4"])
def test_every_weight_format_trains_as_it_runs(quant: str, tmp_path: Path) -> None:
    spec = TinySpec(hidden_size=64, intermediate_size=128, seed=3)
    write_tiny(tmp_path, spec)
    adapted = load_adapted(tmp_path, LoraSpec(4), quant, "cpu")
    options = LoadOptions(device="cpu", formats=WeightFormats(quant))
    wanted, _ = plain_states(load_target(tmp_path, options=options), text(30, 4).tolist())
    found = adapted.states([text(30, 4)])
    assert (found - wanted).std() < 0.06 * wanted.std()
    found.square().mean().backward()
    grads = {name: parameter.grad for name, parameter in adapted.lora.named_parameters()}
    assert all(grad is not None and bool(torch.isfinite(grad).all()) for grad in grads.values())
    assert all(bool(grad.any()) for name, grad in grads.items() if "_up" in name)
    by_layer = len({name.split("/")[2] for name in grads if "/" in name})
    assert by_layer == spec.num_layers


def test_gradients_equal_finite_differences(tmp_path: Path) -> None:
    write_tiny(tmp_path, GROUPED)
    adapted = with_numbers(load_adapted(tmp_path, LoraSpec(2), device="cpu", dtype="float64"))
    weigh = torch.randn(16, GROUPED.hidden_size, dtype=torch.float64)
    texts = [text(11, 1), text(5, 2)]

    def value() -> Tensor:
        return (adapted.states(texts) * weigh).sum() + adapted.logits(
            adapted.states(texts)
        ).logsumexp(-1).sum()

    value().backward()
    for parameter in adapted.lora.parameters():
        assert parameter.grad is not None
        place = int(parameter.grad.abs().argmax())
        flat, step = parameter.data.view(-1), 1e-5
        before = float(flat[place])
        with torch.no_grad():
            flat[place] = before + step
            above = float(value())
            flat[place] = before - step
            below = float(value())
            flat[place] = before
        found = float(parameter.grad.view(-1)[place])
        assert found == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-6)


def test_recomputed_blocks_give_the_same_gradients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny(tmp_path, GROUPED)
    found = []
    for most in (1 << 30, 0):
        monkeypatch.setattr("medusa_core.training.adapted._MAX_ACTIVATION_BYTES", most)
        adapted = with_numbers(load_adapted(tmp_path, LoraSpec(2), device="cpu", dtype="float64"))
        adapted.states([text(20, 1)]).square().mean().backward()
        found.append([parameter.grad for parameter in adapted.lora.parameters()])
    for one, other in zip(*found, strict=True):
        assert one is not None
        assert other is not None
        assert torch.allclose(one, other, rtol=1e-12)


def answers_of(length: int) -> list[EncodedDocument]:
    """Texts with answers, and one without."""
    made = [
        OwnAnswer(tuple(text(5 + n, n).tolist()), tuple(text(length, 50 + n).tolist()), False)
        for n in range(3)
    ]
    return [answer.document for answer in (*made, OwnAnswer(tuple(text(6, 9).tolist()), (), False))]


def reference_loss(
    model: Path,
    joint: JointTrainee,
    documents: list[EncodedDocument],
    reported: Tensor,
    weight: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss in float64 by transformers and the papers' equations, and what it is a function of.

    Args:
        model: The target's folder.
        joint: Gives the numbers of heads and LoRA.
        documents: What is learned from.
        reported: The target's states before the answers' tokens, without the LoRA.
        weight: Of the heads.
    """
    peer = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float64)
    held = {n: p.detach().double().requires_grad_() for n, p in joint.module.named_parameters()}
    lora = joint.module["lora"]
    weights = {}
    for layer, _, _ in lora.matrices():
        key = layer.replace(".", "/")
        change = held[f"lora._up.{key}"] @ held[f"lora._down.{key}"]
        weights[f"{layer}.weight"] = (
            peer.get_parameter(f"{layer}.weight") + change * lora.form.scale
        )
    matrix = peer.lm_head.weight.double()
    states, roots = [], []
    for document in documents:
        ids = torch.from_numpy(document.ids.astype("int64"))
        start = int((document.kinds == 1).sum())
        if start < len(ids):
            names = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
            read = functional_call(peer.model, names, (ids[None],)).last_hidden_state[0]
            states.append(read[start - 1 : -1])
            roots.append(ids[start:])
    of_told = torch.log_softmax(reported.double() @ matrix.T, -1)
    found = torch.log_softmax(torch.cat(states) @ matrix.T, -1)
    total = (of_told.exp() * (of_told - found)).sum(-1).mean()
    for head in range(2):
        losses = []
        for state, ids in zip(states, roots, strict=True):
            w, b = (held[f"heads.blocks.{head}.0.{name}"] for name in ("weight", "bias"))
            scores = (state + torch.nn.functional.silu(state @ w.T + b)) @ matrix.T
            wanted = ids[1 + head :]
            losses.append(-torch.log_softmax(scores, -1)[range(len(wanted)), wanted])
        total = total + weight * 0.8**head * torch.cat(losses).mean()
    return total, held


def test_loss_and_gradients_equal_the_papers_equations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.training.medusa_trainee.trains_in_bf16", lambda _: False)
    model = write_tiny(tmp_path / "model", GROUPED)
    config = HeadsConfig(num_heads=2, joint=True, heads_weight=0.5, batch=1024)
    target = load_target(model, options=LoadOptions("float64", "cpu"))
    trainee = MedusaTrainee(target, config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in trainee.module.parameters():
            parameter += torch.randn(parameter.shape, generator=generator) * 0.1
    adapted = with_numbers(load_adapted(model, LoraSpec(2, 3.0), device="cpu", dtype="float64"))
    documents = answers_of(9)
    shard = collected(trainee, target, documents)
    joint = JointTrainee(adapted, trainee, config)
    assert joint.num_texts(documents) == 3
    found = joint.loss(documents, shard, torch.arange(3), 0.6)
    found.backward()
    weight = 0.5 * math.sin(0.6 * math.pi / 2)
    assert heads_weight(0.5, 0.6) == pytest.approx(weight)
    wanted, held = reference_loss(model, joint, documents, shard["hidden"], weight)
    wanted.backward()
    assert torch.allclose(found, wanted, rtol=1e-5)
    for name, parameter in joint.module.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad.double(), held[name].grad, rtol=1e-3, atol=1e-6), name


def test_some_texts_of_a_shard_are_computed_as_if_alone(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    config = HeadsConfig(num_heads=2, joint=True)
    target = load_target(model, options=LoadOptions("float64", "cpu"))
    trainee = MedusaTrainee(target, config)
    adapted = load_adapted(model, LoraSpec(2), device="cpu", dtype="float64")
    joint, documents = JointTrainee(adapted, trainee, config), answers_of(9)
    shard = collected(trainee, target, documents)
    again = joint.adapted(documents, shard)
    for name, tensor in shard.items():  # nothing has been learned yet
        assert torch.allclose(again[name].double(), tensor.double(), atol=0.05), name
    alone = joint.adapted(documents[1:2], collected(trainee, target, documents[1:2]))
    assert torch.equal(alone["hidden"], again["hidden"][9:18])


@pytest.mark.parametrize(
    "raw",
    [
        {"joint": True, "kind": "eagle"},
        {"joint": True, "kind": "streams"},
        {"joint": True, "adapter": "somewhere"},
        {"rank": 0},
        {"alpha": 0.0},
        {"heads_weight": -1.0},
    ],
    ids=str,
)
def test_incompatible_options_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(TrainingError) as caught:
        config_from(raw, "run.json")
    assert caught.value.hint


def test_heads_train_on_top_of_an_existing_adapter(model: Path, tmp_path: Path) -> None:
    lora_for(model, tmp_path / "lora")
    config = config_for(model, tmp_path, joint=False, adapter=str(tmp_path / "lora"))
    plain = load_for_training(config_for(model, tmp_path, joint=False))
    adapted = load_for_training(config)
    states = [plain_states(target, [5, 80, 200, 31])[0] for target in (plain, adapted)]
    assert not torch.allclose(*states, atol=0.1)
    assert adapted.name == "model + lora"


def test_a_dry_run_counts_the_memory_of_joint_training(model: Path, tmp_path: Path) -> None:
    target = load_target(model, options=LoadOptions("float32", "cpu"))
    small, large = (plan_joint(target.config, target.formats, rank, 4, 100) for rank in (4, 32))
    lora = load_adapted(model, LoraSpec(32), device="cpu").lora
    held = sum(parameter.nbytes for parameter in lora.parameters())
    assert large.lora_bytes == 4 * held
    assert small.peak_bytes < large.peak_bytes
    longer = plan_joint(target.config, target.formats, 32, 4, 400)
    assert longer.activation_bytes > 4 * large.activation_bytes
    reported = tmp_path / "plan.json"
    arguments = command(tmp_path / "out", model, prompts_file(tmp_path), "--max-new-tokens", "12")
    peaks = []
    for more in ([], ["--joint"]):
        assert main([*arguments[3:], *more, "--dry-run", "--json", str(reported)]) == 0
        peaks.append(json.loads(reported.read_text(encoding="utf-8")))
    assert peaks[1]["peak_bytes"] > peaks[0]["peak_bytes"] + large.lora_bytes
    assert peaks[1]["disk_bytes"] > peaks[0]["disk_bytes"] + large.disk_bytes


def test_a_large_model_recomputes_activations_and_stores_little() -> None:
    config = shape_config("vicuna-7b")
    formats = resolve_formats(WeightFormats("nf4-dq"), "", cuda_budget(8.0).hardware)
    assert recomputes(config, 1024)
    plan = plan_joint(config, formats, 32, 4, 512)
    assert 1.2e9 < plan.lora_bytes < 1.4e9
    assert plan.activation_bytes < 4e9

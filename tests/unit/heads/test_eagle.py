"""EAGLE heads: drafts equal the papers' equations in every spelling; hostile heads are refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.errors import CheckpointError, HeadsError, MedusaError
from medusa_core.heads.eagle import EagleHead
from medusa_core.heads.eagle_parts import EagleParts, eagle_parts
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import (
    ChainedSource,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.sources.eagle_source import SPEC
from medusa_core.speculation.rules.sampling import (
    Sampler,
    gumbel_noise,
)
from tests.support.engine.heard_text import TEXT, candidates_behind, hear
from tests.support.models.eagle_files import (
    EAGLE_HEADS,
    EagleSpec,
    Slowly,
    config_of,
    parts_of,
    write_eagle,
)
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import write_tiny

WIDE = replace(GROUPED, hidden_size=64, num_layers=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("eagle") / "target", GROUPED)


def loaded(model: Path, folder: Path, spec: EagleSpec, dtype: str = "float64") -> Target:
    return load_target(model, write_eagle(folder, spec), LoadOptions(dtype, "cpu"))


def source_for(target: Target) -> ChainedSource:
    """Return the source of a target's head."""
    source = SPEC.build(target, RowBudget(16))
    assert isinstance(source, ChainedSource)
    return source


def slowly(target: Target, model: Path, spec: EagleSpec) -> Slowly:
    checkpoint = ModelFiles.open(model).checkpoint()
    names = ("model.embed_tokens.weight", "lm_head.weight")
    return Slowly(spec, *(checkpoint.floats(name, torch.float64) for name in names))


@pytest.mark.parametrize("name", EAGLE_HEADS)
def test_drafts_equal_the_papers_equations(name: str, model: Path, tmp_path: Path) -> None:
    spec = EAGLE_HEADS[name]
    target = loaded(model, tmp_path, spec)
    assert isinstance(target.heads, EagleHead)
    reference = slowly(target, model, spec)
    drafts = []
    for pieces in ([10], [4, 1, 3, 2, 1], [1, 10]):
        source = source_for(target)
        features = hear(target, source, TEXT, pieces)
        source.start(TEXT[-1], 24)
        found: dict[tuple[int, ...], dict[int, float]] = {}
        paths: list[tuple[int, ...]] = [()]
        for _ in range(4):
            found |= {path: candidates_behind(source, path) for path in paths}
            paths = [(*path, token) for path in paths for token in list(found[path])[:2]]
        drafts.append(found)
    for path in drafts[0]:
        expected = reference.chances(features[: len(TEXT) - 1], TEXT[1:], list(path))
        best = sorted(expected, key=lambda token: -expected[token])[:10]
        wanted = [expected[token] for token in best]
        for found in drafts:
            assert list(found[path]) == best
            assert list(found[path].values()) == pytest.approx(wanted, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("more", [{}, {"top_k": 12}, {"temperature": 0.6}], ids=str)
@pytest.mark.parametrize("name", ["EAGLE-1", "EAGLE-3, SGLang"])
def test_under_sampling_candidates_are_ranked_with_the_noise_of_their_position(
    name: str, more: dict[str, Any], model: Path, tmp_path: Path
) -> None:
    spec = EAGLE_HEADS[name]
    target = loaded(model, tmp_path, spec)
    head = target.heads
    assert isinstance(head, EagleHead)
    source, reference = ChainedSource(head), slowly(target, model, spec)
    sampler = Sampler(GenerateSettings(rule="sample", seed=3, **more))

    def chance(scores: Tensor, token_ids: Tensor | None, depths: Any = None) -> Tensor:
        return sampler.shifted(scores, token_ids, 40, depths)

    features = hear(target, source, TEXT, [10])
    source.truncate(len(TEXT) - 2)
    final = features if head.reads_final else torch.zeros_like(features)
    deep = None if head.reads_final else features
    source.observe(Observation([TEXT[-1]], final, (len(TEXT) - 2,), chance, deep))
    source.start(TEXT[-1], 24)
    for path in ((), (4,), (4, 90)):
        given = reference.chances(features[: len(TEXT) - 1], TEXT[1:], list(path))
        tokens = torch.tensor(sorted(given))
        scores = torch.tensor([given[token] for token in sorted(given)]).double().log()
        noise = gumbel_noise(3, 40 + len(path), target.config.vocab_size)[tokens]
        best = (sampler.filtered(scores) + noise).topk(10)
        num_kept = int(best.values.isfinite().sum())
        assert (
            list(candidates_behind(source, path))[:num_kept]
            == tokens[best.indices].tolist()[:num_kept]
        )


def test_states_observed_within_a_step_leave_no_trace_of_its_drafts(
    model: Path, tmp_path: Path
) -> None:
    target = loaded(model, tmp_path, EAGLE_HEADS["EAGLE-3"])
    head = target.heads
    assert isinstance(head, EagleHead)
    found = []
    for guesses in (False, True):
        source = ChainedSource(head)
        hear(target, source, TEXT[:-2], [4, 5])
        if guesses:
            source.start(TEXT[-3], 16)
            for path in ((), (3,), (3, 4)):
                candidates_behind(source, path)
        states = torch.zeros(1, target.config.hidden_size, dtype=torch.float64)
        deep = torch.ones(1, 3 * target.config.hidden_size, dtype=torch.float64)
        source.observe(Observation([TEXT[-2]], states, (0,), None, deep))
        source.start(TEXT[-2], 16)
        found.append(candidates_behind(source, ()))
    assert found[0] == found[1]


@pytest.mark.parametrize("runner", ["native", "resident", "static"])
def test_every_runner_returns_the_inputs_of_tapped_layers(
    runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    from medusa_core.runtime.runner.resident import ResidentRunner
    from medusa_core.runtime.runner.static import StaticRunner

    folder = write_tiny(tmp_path / "wide", WIDE)
    target = load_target(folder, options=LoadOptions("float32", "cpu"))
    chosen = target.runner
    if runner != "native":
        kind = {"resident": ResidentRunner, "static": StaticRunner}[runner]
        chosen = kind(chosen._model, target.precision)
    chosen.tap((0, 2, 4))
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        expected = theirs(torch.tensor([TEXT]), output_hidden_states=True).hidden_states
        # what leaves the last layer before the norm isn't among them
        last = theirs.model.norm
        got: list[torch.Tensor] = []
        handle = last.register_forward_pre_hook(lambda _, inputs: got.append(inputs[0]))
        theirs(torch.tensor([TEXT]))
        handle.remove()
    with torch.inference_mode():
        kv = chosen.new_cache(64)
        states = chosen.extend(TEXT, kv)
    parts = states.view(len(TEXT), 4, -1)
    wanted = [expected[-1][0], expected[0][0], expected[2][0], got[0][0]]
    for index, tensor in enumerate(wanted):
        assert torch.allclose(parts[:, index], tensor, rtol=1e-3, atol=1e-3), index


Damage = Callable[[dict[str, torch.Tensor], dict[str, Any]], None]


def _set(name: str, tensor: torch.Tensor | None) -> Damage:
    def damage(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
        if tensor is None:
            del tensors[name]
        else:
            tensors[name] = tensor

    return damage


def _say(**values: Any) -> Damage:
    return lambda _, config: config.update(values)


HOSTILE: dict[str, Damage] = {
    "fc is missing": _set("fc.weight", None),
    "a norm is missing": _set("norm.weight", None),
    "fc has another width": _set("fc.weight", torch.zeros(32, 70)),
    "fc is a number": _set("fc.weight", torch.zeros(())),
    "a projection has another shape": _set("midlayer.self_attn.k_proj.weight", torch.zeros(8, 8)),
    "one tensor more": _set("midlayer.self_attn.sinks", torch.zeros(8)),
    "no number": _set("midlayer.mlp.up_proj.weight", torch.full((64, 32), float("nan"))),
    "an endless number": _set("lm_head.weight", torch.full((96, 32), float("inf"))),
    "d2t leads out of the vocabulary": _set("d2t", torch.full((96,), 10_000)),
    "d2t leads below it": _set("d2t", torch.arange(96) * -3),
    "d2t names a token twice": _set("d2t", torch.arange(96) * -1 + 5),
    "d2t is too short": _set("d2t", torch.zeros(95, dtype=torch.int64)),
    "d2t holds broken numbers": _set("d2t", torch.zeros(96)),
    "no heads of attention": _say(num_attention_heads=0),
    "heads without end": _say(num_attention_heads=10**9),
    "heads in words": _say(num_attention_heads="four"),
    "layers that aren't there": _say(eagle_aux_hidden_state_layer_ids=[1, 2, 900]),
    "layers in the wrong order": _say(eagle_aux_hidden_state_layer_ids=[2, 1, 0]),
    "layers in words": _say(eagle_aux_hidden_state_layer_ids=["a"]),
    "too few layers": _say(eagle_aux_hidden_state_layer_ids=[0, 1]),
    "a width of nothing": _say(hidden_size=0),
    "another kind of speculator": _say(speculators_model_type="dflash"),
    "a layer's sizes are a list": _say(transformer_layer_config=[1]),
    "the target is wider": _say(target_hidden_size=48),
    "a flag in words": _say(norm_output="yes"),
    "a norm of states that isn't there": _say(fc_norm=True),
    "a norm before fc that isn't there": _say(norm_before_fc=True),
    "a norm of the first state alone": _set("fc_norm.0.weight", torch.ones(32)),
    "queries are normed, keys aren't": _set("midlayer.self_attn.q_norm.weight", torch.ones(8)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_head_is_refused_with_a_message(name: str, model: Path, tmp_path: Path) -> None:
    folder = write_eagle(tmp_path, EAGLE_HEADS["EAGLE-3"])
    tensors = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    HOSTILE[name](tensors, config)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        load_target(model, folder, LoadOptions("float32", "cpu"))
    assert caught.value.hint


def test_a_head_without_a_configuration_is_refused(model: Path, tmp_path: Path) -> None:
    folder = write_eagle(tmp_path, EAGLE_HEADS["EAGLE-1"])
    (folder / "config.json").unlink()
    with pytest.raises(MedusaError, match=r"config\.json"):
        load_target(model, folder, LoadOptions("float32"))


def test_published_layouts_differ_only_in_names() -> None:
    same = [set(parts_of(EAGLE_HEADS[name])) for name in ("EAGLE-3", "EAGLE-3, SGLang")]
    assert same[0] == same[1]


def parsed(spec: EagleSpec, folder: Path, **config: Any) -> EagleParts:
    """Return the parsed head from names, shapes and configuration alone."""
    tensors = load_file(write_eagle(folder, spec) / "model.safetensors")
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    return eagle_parts(config_of(spec) | config, shapes)


def test_flags_within_eagle_config_are_read(tmp_path: Path) -> None:
    spec = EagleSpec("eagle3", more={"norm_before_fc": True})
    nested = {"norm_output": True, "norm_before_fc": True, "norm_before_residual": True}
    parts = parsed(spec, tmp_path, norm_before_fc=None, eagle_config=nested)
    assert parts.feeds_normed
    assert parts.norms_residual
    assert not parsed(spec, tmp_path).feeds_normed


@pytest.mark.parametrize("said", [{"norm_before_fc": False}, {"fc_norm": True}], ids=str)
def test_norms_that_differ_from_the_configuration_are_refused(
    said: dict[str, bool], tmp_path: Path
) -> None:
    spec = EagleSpec("speculators", more={"norm_before_fc": True})
    with pytest.raises(HeadsError, match="norms of what"):
        parsed(spec, tmp_path, **said)


@pytest.mark.parametrize(
    "said",
    [
        {"speculators_model_type": "eagle3"},
        {"mask_token_id": None},
        {"mask_token_id": -1},
        {"mask_token_id": "four"},
        {"mask_token_id": 320},
    ],
    ids=str,
)
def test_a_senseless_p_eagle_head_is_refused(
    said: dict[str, Any], model: Path, tmp_path: Path
) -> None:
    folder = write_eagle(tmp_path, EAGLE_HEADS["P-EAGLE"])
    config = config_of(EAGLE_HEADS["P-EAGLE"]) | said
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(HeadsError) as caught:
        load_target(model, folder, LoadOptions("float32", "cpu"))
    assert caught.value.hint


def test_mask_tokens_require_p_eagle(tmp_path: Path) -> None:
    with pytest.raises(HeadsError, match="P-EAGLE"):
        parsed(EagleSpec("speculators"), tmp_path, speculators_model_type="peagle")

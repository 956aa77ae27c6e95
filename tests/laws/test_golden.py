"""Every family computes the logits and hidden states, and all heads the drafts, of
`tests/reference/golden`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from medusa_core.models.architecture import arch_registry, gguf_archs
from medusa_core.system.native.binding import library_suffix, system_name
from medusa_core.system.resources import native_dir
from tests.reference import golden, golden_drafts
from tests.reference.golden import RECORD, Passes, Variant
from tests.support.models.heads_of_kind import HEADS_OF_KIND

VARIANTS = [variant for family in golden.families() for variant in golden.variants_of(family)]
MEANT = f"If this change means to compute that, `{RECORD} --overwrite FAMILY` records it."


def compiled_cases() -> Iterator[object]:
    """Return every model with each instruction set; all but the preferred one are slow."""
    here = golden.sets_of_this_cpu()
    built = {path.stem for path in (native_dir() / system_name()).glob(f"*{library_suffix()}")}
    recorded = {path.stem for path in golden.BITS_FOLDER.glob("*.json")}
    for name in here:
        if name not in recorded:
            reason = f"no bits of {name} are recorded: `{RECORD}` records those of this CPU"
            yield pytest.param(name, None, marks=pytest.mark.skip(reason))
            continue
        marks = [pytest.mark.slow] if name != here[0] else []
        for variant in VARIANTS:
            yield pytest.param(name, variant, marks=marks, id=f"{name}-{variant}")
    for name in sorted((built | recorded) - set(here)):
        reason = f"the compiled step of {name} can't run here: compare it on a CPU that has it"
        yield pytest.param(name, None, marks=pytest.mark.skip(reason))


def test_every_family_has_golden_logits() -> None:
    missing = set(arch_registry().names) - set(golden.families())
    assert not missing, f"Run `{RECORD}`, which records {', '.join(sorted(missing))}."
    gone = set(golden.families()) - set(arch_registry().names)
    assert not gone, f"Delete the files of {', '.join(sorted(gone))} from {golden.FOLDER}."


def test_golden_logits_include_every_gguf_architecture() -> None:
    compared = {variant.family for variant in VARIANTS if variant.gguf is not None}
    assert {family.name for family in gguf_archs().values()} <= compared


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_torch_computes_the_golden_logits_in_float64(variant: Variant, tmp_path: Path) -> None:
    folder = variant.write(tmp_path / "model")
    recorded = golden.recorded_projections(variant.family)[variant.name]
    differing = golden.differences(golden.exact_passes(folder).projections, recorded)
    assert not differing, f"{variant}: {'; '.join(differing)}. {MEANT}"
    if variant.gguf is not None:
        found = golden.gguf_passes(folder).projections
        differing = golden.differences(found, recorded, variant.gguf)
        assert not differing, f"{variant} in a GGUF file: {'; '.join(differing)}."


@pytest.mark.parametrize(("instruction_set", "variant"), list(compiled_cases()))
def test_the_compiled_step_computes_the_golden_bits(
    instruction_set: str, variant: Variant, tmp_path: Path
) -> None:
    recorded = golden.recorded_bits(instruction_set).get(str(variant), {})
    folder = variant.write(tmp_path / "model")
    with golden.computing_with(instruction_set):
        for weight_format in golden.FORMATS:
            wanted = recorded.get(weight_format)
            passes = golden.compiled_passes(folder, weight_format)
            if wanted is None:
                assert passes is None, f"{variant} is compiled now: `{RECORD}` records its bits."
                continue
            assert passes is not None, f"{variant} was compiled, and is no longer."
            found = passes.digests
            differing = [name for name in wanted if found.get(name) != wanted[name]]
            assert not differing, (
                f"{variant} in {weight_format}: other bits in {differing}. From float64 it is "
                f"{distance(passes, variant):.1g} of the largest logit. {MEANT}"
            )


@pytest.mark.parametrize("name", HEADS_OF_KIND)
def test_heads_draft_the_golden_tokens_in_float64(name: str, tmp_path: Path) -> None:
    recorded = golden_drafts.recorded_drafts()
    assert name in recorded, f"Run `{RECORD}`, which records them."
    differing = golden_drafts.differing_paths(
        golden_drafts.drafts_of(name, tmp_path), recorded[name]
    )
    assert not differing, (
        f"Other drafts after {differing}. If this change means to draft them, "
        f"`{RECORD} --overwrite heads` records them."
    )


def distance(passes: Passes, variant: Variant) -> float:
    """Return the distance of projections from those in float64, which distinguishes an error from
    rounding.
    """
    exact = golden.recorded_projections(variant.family)[variant.name]
    found = passes.projections
    return max(float(golden.relative_errors(found[name], exact[name]).max()) for name in exact)


@pytest.mark.slow
@pytest.mark.parametrize("family", golden.families())
def test_swapping_any_two_tensors_changes_the_golden_logits(family: str, tmp_path: Path) -> None:
    variant = max(golden.variants_of(family), key=lambda one: len(one.tensors))
    recorded = golden.recorded_projections(family)[variant.name]
    file = variant.write(tmp_path / "model") / "model.safetensors"
    tensors = load_file(file)
    noticed = set()
    for name, spec in variant.tensors.items():
        save_file(tensors | {name: golden.weights_of(f"another {name}", spec)}, file)
        if golden.differences(golden.exact_passes(file.parent).projections, recorded):
            noticed.add(name)
    # A router may choose an expert for no row; others of its layer are read alike.
    parts = {of_any_expert(name) for name in noticed}
    unnoticed = {name for name in variant.tensors if of_any_expert(name) not in parts}
    assert unnoticed == unused(variant)


def of_any_expert(name: str) -> str:
    return re.sub(r"\.experts\.\d+\.", ".experts.*.", name)


def unused(variant: Variant) -> set[str]:
    """Tensors that a checkpoint has, and no pass reads: keys and values of another layer serve."""
    readers = variant.config.get("num_kv_shared_layers", 0)
    count = variant.config["num_hidden_layers"] if readers else 0
    names = {
        f"model.layers.{layer}.self_attn.{name}.weight"
        for layer in range(count - readers, count)
        for name in ("k_proj", "v_proj", "k_norm")
    }
    return names & variant.tensors.keys()

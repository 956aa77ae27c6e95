"""Records what is missing of `tests/reference/golden`: `python -m tests.tools.record_golden`.

Run it after registering a family, after adding a model to `tests.support.models.peers.CONFIGS` or
a kind of heads to `tests.support.models.heads_of_kind.HEADS_OF_KIND`, or on a machine whose CPU has
an instruction set that none had before. What was recorded stays, unless `--overwrite` names the
families that a change means to compute otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import PreTrainedModel

from medusa_core.models.architecture import arch_registry
from tests.reference import golden
from tests.reference.golden import TensorSpec, Variant
from tests.support.models.tiny import trusted_template

_HEADS = "heads"  # beside the families that can be overwritten


def describe_variants() -> Iterator[Variant]:
    """A model of every configuration that is compared with transformers."""
    from tests.support.models import peers
    from tests.support.models.gguf_peers import peer_of
    from tests.support.models.wide_peers import wide_config

    for name in peers.CONFIGS:
        yield _described(name, peers.make_peer(name, wide_config(name)))
    for model_type, name in peers.RENAMED.items():
        peer = peers.make_peer(name, wide_config(name))
        yield _described(name, peer, model_type=model_type)
    # A GGUF file can't say everything of the others.
    for name in ("gemma2", "gemma3", "gemma3, longer"):
        yield _described(f"{name}, as in GGUF files", peer_of(name))


def _described(name: str, peer: PreTrainedModel, **changes: str) -> Variant:
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")) | changes
        tensors = load_file(Path(folder) / "model.safetensors")
    del config["transformers_version"]
    specs = {key: TensorSpec.like(tensors[key]) for key in sorted(tensors)}
    return Variant(config["model_type"], name, config, specs)


def record_family(family: str, variants: Sequence[Variant], kept: Sequence[Variant] = ()) -> None:
    """Write the files of a family.

    Args:
        family: Its `model_type`.
        variants: Its models that are computed.
        kept: Those whose recorded numbers stay.
    """
    arrays: dict[str, np.ndarray] = {}
    if kept:
        for name, passes in golden.recorded_projections(family).items():
            arrays |= {f"{name}/{of}": numbers for of, numbers in passes.items()}
    described = list(kept)
    for variant in variants:
        with tempfile.TemporaryDirectory() as folder:
            model = variant.write(Path(folder) / "model")
            exact = golden.exact_passes(model).projections
            arrays |= {f"{variant.name}/{of}": numbers for of, numbers in exact.items()}
            described.append(golden.with_gguf(variant, model, exact))
    write_lines(golden.FOLDER / f"{family}.json", {one.name: one.record for one in described})
    np.savez_compressed(golden.FOLDER / f"{family}.npz", **arrays)


def record_bits(instruction_set: str, variants: Sequence[Variant]) -> int:
    """Add what the compiled step of an instruction set computes for some models.

    Returns:
        Of how many models there were bits to add; the others aren't compiled.
    """
    bits: dict[str, dict[str, dict[str, str]]] = {}
    with golden.computing_with(instruction_set):
        for variant in variants:
            with tempfile.TemporaryDirectory() as folder:
                model = variant.write(Path(folder) / "model")
                for weight_format in golden.FORMATS:
                    passes = golden.compiled_passes(model, weight_format)
                    if passes is not None:
                        bits.setdefault(str(variant), {})[weight_format] = passes.digests
    if bits:
        write_bits(instruction_set, golden.recorded_bits(instruction_set) | bits)
    return len(bits)


def write_bits(
    instruction_set: str, bits: Mapping[str, object], dropped: Collection[str] = ()
) -> None:
    """Write the file of an instruction set, without some models."""
    golden.BITS_FOLDER.mkdir(exist_ok=True)
    path = golden.BITS_FOLDER / f"{instruction_set}.json"
    write_lines(path, {name: bits[name] for name in sorted(bits.keys() - dropped)})


def record_drafts(again: bool) -> list[str]:
    """Write what is missing of the heads' drafts; returns the kinds that were recorded.

    Args:
        again: Record all of them again.
    """
    # These read folders that `main` names.
    from tests.reference import golden_drafts
    from tests.support.models.heads_of_kind import HEADS_OF_KIND

    recorded = {} if again else golden_drafts.recorded_drafts()
    drafts: dict[str, golden_drafts.Drafts] = {}
    for name in HEADS_OF_KIND.keys() - recorded.keys():
        with tempfile.TemporaryDirectory() as folder:
            drafts[name] = golden_drafts.drafts_of(name, Path(folder))
    if drafts:
        golden_drafts.FILE.parent.mkdir(exist_ok=True)
        every = recorded | drafts
        write_lines(golden_drafts.FILE, {name: every[name] for name in HEADS_OF_KIND})
    return sorted(drafts)


def write_lines(path: Path, records: Mapping[str, object]) -> None:
    """Write an object of JSON with a line for each of its members."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in records.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def record(overwritten: Sequence[str], report: Callable[[str], object]) -> None:
    """Record what is missing.

    Args:
        overwritten: Families that are recorded again.
        report: Takes lines on what was done.
    """
    found: dict[str, list[Variant]] = {}
    for variant in describe_variants():
        found.setdefault(variant.family, []).append(variant)
    if without := sorted(set(arch_registry().names) - found.keys()):
        raise SystemExit(
            f"Add a model of {', '.join(without)} to CONFIGS of tests/support/models/peers.py."
        )
    golden.FOLDER.mkdir(exist_ok=True)
    if kinds := record_drafts(_HEADS in overwritten):
        report(f"drafts of heads: {', '.join(kinds)}")
    recorded = golden.families()
    again: set[str] = set()  # by their names
    for family, variants in found.items():
        kept: Sequence[Variant] = ()
        if family in recorded and family not in overwritten:
            kept = golden.variants_of(family)
        names = {variant.name for variant in kept}
        if new := [variant for variant in variants if variant.name not in names]:
            record_family(family, new, kept)
            again |= {str(variant) for variant in new}
            report(f"{family}: {', '.join(variant.name for variant in new)}")
    golden.variants_of.cache_clear()
    for path in golden.BITS_FOLDER.glob("*.json"):  # also of sets that this CPU lacks
        if stale := again & golden.recorded_bits(path.stem).keys():
            write_bits(path.stem, golden.recorded_bits(path.stem), stale)
            report(f"{path.stem}: {len(stale)} models have no bits until they are recorded there")
    every = [one for family in golden.families() for one in golden.variants_of(family)]
    for instruction_set in golden.sets_of_this_cpu():
        bits = golden.recorded_bits(instruction_set)
        missing = [one for one in every if bits.get(str(one), {}).keys() != golden.FORMATS.keys()]
        if count := record_bits(instruction_set, missing):
            report(f"{instruction_set}: bits of {count} models")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; see above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--overwrite",
        nargs="+",
        default=[],
        metavar="FAMILY",
        help="record these families again, whose numbers are meant to change; heads for the drafts "
        "of heads; all for everything",
    )
    wanted: list[str] = parser.parse_args(arguments).overwrite
    wanted = [_HEADS, *golden.families()] if wanted == ["all"] else wanted
    if unknown := set(wanted) - {_HEADS, *arch_registry().names}:
        parser.error(f"no family: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)  # small matrices
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as shared, trusted_template():
        os.environ.setdefault("MEDUSA_TEST_SHARED", shared)
        os.environ.setdefault("XDG_CACHE_HOME", shared)
        record(wanted, report)
    if not lines:
        print("Nothing is missing. --overwrite FAMILY records a family again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

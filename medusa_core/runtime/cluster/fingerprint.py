"""What must be the same on all machines of a cluster, or their layers would be another model's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from medusa_core import __version__
from medusa_core.errors import ClusterError
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.cluster.protocol import (
    StageOffer,
    StageSpeed,
)
from medusa_core.system.native.binding import (
    instruction_sets,
    library_suffix,
    native_library,
    system_name,
)
from medusa_core.system.resources import native_dir

_PIECE_BYTES = 1 << 22


def hash_of_model(files: ModelFiles) -> str:
    """The hash of a model: all bytes of its weights and of its `config.json`.

    Args:
        files: Its files.

    Raises:
        CheckpointError: A file is missing or damaged.
    """
    digest = hashlib.sha256()
    for file in sorted(files.sources, key=lambda path: path.name):
        with file.open("rb", buffering=0) as opened:
            while piece := opened.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()[:16]


def libraries_here() -> dict[str, str]:
    """The compiled steps that this machine could use, and the hash of each one's file."""
    folder, suffix = native_dir() / system_name(), library_suffix()
    paths = [folder / f"{name}{suffix}" for name in instruction_sets()]
    return {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in paths
        if path.is_file()
    }


def library_name() -> str:
    """The compiled step that this process uses; empty for none."""
    library = native_library()
    return "" if library is None else Path(library._name).stem


def versions(device: torch.device) -> dict[str, str]:
    """What else computes here, by name.

    Args:
        device: Where it does so.
    """
    return {
        "Medusa Chat": __version__,
        "torch": torch.__version__.partition("+")[0],
        "torch's kernels": torch.backends.cpu.get_cpu_capability(),
        "device": device.type,
    }


def check_offer(theirs: StageOffer, ours: StageOffer, library: str) -> None:
    """Refuse a machine whose layers would be those of another model, or computed otherwise.

    Args:
        theirs: What it says of itself.
        ours: What this machine would say.
        library: The compiled step that is used here; empty for none.

    Raises:
        ClusterError: The two differ; the message names in what.
    """
    if theirs.model_hash != ours.model_hash:
        what, hint = "the model's hash", "Copy the model again."
        raise _differs(theirs, what, theirs.model_hash, ours.model_hash, hint)
    for name, version in ours.versions.items():
        found = theirs.versions.get(name, "none")
        if found != version:
            hint = "Install the same version on all."
            raise _differs(theirs, name, found, version, hint)
    ours_here, theirs_there = ours.libraries.get(library), theirs.libraries.get(library)
    if library and theirs_there != ours_here:
        what, has = "the kernel library", ", ".join(theirs.libraries) or "none"
        hint = "Set MEDUSA_NATIVE here to a compiled step that all machines have, or to 0."
        has = f"{library} {theirs_there}" if theirs_there else has
        raise _differs(theirs, what, has, f"{library} {ours_here}", hint)


def check_speed(name: str, rate: StageSpeed, formats: dict[str, str | bool]) -> None:
    """Refuse a machine that takes other weight formats.

    Raises:
        ClusterError: It does; the message names which.
    """
    for part, wanted in formats.items():
        found = rate.formats.get(part)
        if found != wanted:
            raise ClusterError(
                f"{name} can't join: its format of {part} is {found}, here it is {wanted}.",
                "Choose formats that all machines have, with --dtype and --quant.",
            )


def _differs(theirs: StageOffer, what: str, found: str, wanted: str, hint: str) -> ClusterError:
    return ClusterError(
        f"{theirs.name} ({theirs.place}) can't join: {what} is {found}, here it is {wanted}.", hint
    )

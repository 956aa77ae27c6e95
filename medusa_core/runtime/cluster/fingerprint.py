"""Checks that all machines of a cluster compute the same model with the same kernels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from medusa_core import __version__
from medusa_core.errors import ClusterError
from medusa_core.i18n import tr
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
    """Hash a model's weights and its `config.json`.

    Raises:
        CheckpointError: A file is missing or damaged.
    """
    digest = hashlib.sha256()
    for file in sorted(files.sources, key=lambda path: path.name):
        with file.open("rb", buffering=0) as opened:
            while piece := opened.read(_PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()[:16]


def usable_libraries() -> dict[str, str]:
    """Return the kernel libraries that this machine can use, each with the hash of its file."""
    folder, suffix = native_dir() / system_name(), library_suffix()
    paths = [folder / f"{name}{suffix}" for name in instruction_sets()]
    return {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in paths
        if path.is_file()
    }


def library_name() -> str:
    """Return the name of the kernel library that this process uses; empty for none."""
    library = native_library()
    return "" if library is None else Path(library._name).stem


def versions(device: torch.device) -> dict[str, str]:
    """Return the versions that influence results, by name.

    Args:
        device: Device that computes.
    """
    return {
        "Medusa Chat": __version__,
        "torch": torch.__version__.partition("+")[0],
        "torch's kernels": torch.backends.cpu.get_cpu_capability(),
        "device": device.type,
    }


def check_offer(theirs: StageOffer, ours: StageOffer, library: str) -> None:
    """Refuse a machine with another model, other versions or other kernels.

    Args:
        theirs: Offer of the machine.
        ours: Offer of this machine.
        library: Kernel library of this process; empty for none.

    Raises:
        ClusterError: The two differ.
    """
    if theirs.model_hash != ours.model_hash:
        what, hint = tr("the model's hash"), tr("Copy the model again.")
        raise _differs(theirs, what, theirs.model_hash, ours.model_hash, hint)
    for name, version in ours.versions.items():
        found = theirs.versions.get(name, "none")
        if found != version:
            hint = tr("Install the same version on all.")
            raise _differs(theirs, name, found, version, hint)
    our_hash, their_hash = ours.libraries.get(library), theirs.libraries.get(library)
    if library and their_hash != our_hash:
        what, has = tr("the kernel library"), ", ".join(theirs.libraries) or "none"
        hint = tr("Set MEDUSA_NATIVE here to a compiled step that all machines have, or to 0.")
        has = f"{library} {their_hash}" if their_hash else has
        raise _differs(theirs, what, has, f"{library} {our_hash}", hint)


def check_formats(name: str, stage: StageSpeed, required_formats: dict[str, str | bool]) -> None:
    """Check that a machine uses the required weight formats.

    Args:
        name: Name of the machine, for the error.
        stage: Reply of the machine.
        required_formats: Formats of the other machines by part.

    Raises:
        ClusterError: A format differs.
    """
    for part, wanted in required_formats.items():
        found = stage.formats.get(part)
        if found != wanted:
            raise ClusterError(
                tr(
                    "{0} can't join: its format of {1} is {2}, here it is {3}.",
                    name,
                    part,
                    found,
                    wanted,
                ),
                "Choose formats that all machines have, with --dtype and --quant.",
            )


def _differs(theirs: StageOffer, what: str, found: str, wanted: str, hint: str) -> ClusterError:
    """The error of a machine that differs in something."""
    return ClusterError(
        tr(
            "{0} ({1}) can't join: {2} is {3}, here it is {4}.",
            theirs.name,
            theirs.place,
            what,
            found,
            wanted,
        ),
        hint,
    )

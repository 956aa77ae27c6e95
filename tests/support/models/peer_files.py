"""Random targets of families whose configurations say more than a `TinySpec`."""

import importlib
import os
from pathlib import Path

import torch
from filelock import FileLock

from tests.support.models.tiny import (
    ACCURACIES,
    TinySpec,
    random_heads,
    write_heads,
    write_text_files,
)


def write_peer(name: str, model: Path, heads: Path | None = None) -> None:
    """Write one of the models of `peers.CONFIGS` as a target, with Medusa heads.

    Its numbers are bfloat16, so that every compute dtype starts from the same.

    Args:
        name: Which.
        model: Takes the model.
        heads: Takes the heads; None for a model alone.
    """
    peers = importlib.import_module("tests.support.models.peers")  # transformers takes seconds
    peer = peers.peer_of(name).bfloat16()
    peer.save_pretrained(model)
    write_text_files(model)
    if heads is not None:
        spec = TinySpec(hidden_size=peer.config.hidden_size, seed=31)
        write_heads(heads, random_heads(spec), ACCURACIES)


def peer_folder(name: str) -> Path:
    """Return the folder of one of `peers.CONFIGS`, written once per test session."""
    folder = Path(os.environ["MEDUSA_TEST_SHARED"]) / "peers" / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_name(f"{name}.lock")):
        if not (done := folder.with_name(f"{name}.done")).exists():
            importlib.import_module("tests.support.models.peers").peer_of(name).save_pretrained(
                folder
            )
            done.touch()
    return folder


def write_guessing_peer(name: str, model: Path) -> None:
    """Return the folder of one of `mtp_peers.MTP_PEERS` with its MTP layer, written once per test
    session.
    """
    mtp_peers = importlib.import_module("tests.support.models.mtp_peers")
    mtp_peers.write_mtp_peer(name, model, torch.bfloat16)

"""One or more random targets for every kind of heads, for what holds for heads of all kinds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from tests.support.models.assistant_files import ASSISTANTS, AssistantSpec, write_assistant
from tests.support.models.block_files import BLOCK_DRAFTERS, BlockSpec, write_block
from tests.support.models.eagle_files import EAGLE_HEADS, EagleSpec, write_eagle
from tests.support.models.gguf_heads_files import (
    GEMMA_DSPARK,
    write_assistant_gguf,
    write_block_gguf,
    write_eagle_gguf,
)
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.mtp_files import write_mimo
from tests.support.models.peer_files import write_guessing_peer, write_peer
from tests.support.models.streams_files import STREAMS, write_streams
from tests.support.models.targets import GROUPED, HYDRA, Writer
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

# Wide enough for blocks of 32 numbers, and deep enough for every layer that heads read.
WIDE = replace(GROUPED, hidden_size=64, intermediate_size=96, num_layers=4)


class Formats(NamedTuple):
    """Dtype and formats in which a target is loaded; "" for the machine's default."""

    dtype: str = ""
    quant: str = ""
    heads: str = ""


EXACT = Formats("float64")
EVERY = (
    Formats("float32"),
    Formats(),
    Formats(quant="int8", heads="int8"),
    Formats(quant="q4_0", heads="q4"),
)
OF_PEERS = (Formats(), Formats(quant="int8", heads="int8"), Formats(heads="q4"))


@dataclass(frozen=True)
class HeadsOfKind:
    """Writers of a kind of heads and their target.

    Attributes:
        drafter: What drafts with them.
        write: Writes the target and the heads into their folders; heads that lie among the
            target's own tensors leave theirs unwritten.
        formats: In which it is worth loading them.
        remembers: Do they keep keys and values of a conversation?
        write_gguf: Writes the same heads as a GGUF file; None where there is no such file.
    """

    drafter: str
    write: Writer
    formats: tuple[Formats, ...] = EVERY
    remembers: bool = True
    write_gguf: Callable[[Path], Path] | None = None


def load_heads(
    folder: Path, formats: Formats, heads: Path | None = None, takes_heads: bool = True
) -> Target:
    """Load a target that `HeadsOfKind.write` wrote into "model" and "heads" of a folder.

    Args:
        folder: It.
        formats: In which.
        heads: To be taken instead of those there.
        takes_heads: False for the target alone.
    """
    own = folder / "heads"
    heads = heads or (own if own.exists() else None)
    weights = WeightFormats(formats.quant, heads=formats.heads)
    options = LoadOptions(formats.dtype, "cpu", weights, takes_own_heads=takes_heads)
    return load_target(folder / "model", heads if takes_heads else None, options)


def _medusa(is_shared: bool) -> HeadsOfKind:
    def write(model: Path, heads: Path) -> None:
        write_tiny(model, WIDE)
        write_heads(heads, random_heads(WIDE, is_shared=is_shared))

    return HeadsOfKind("medusa", write, remembers=False)


def _hydra(model: Path, heads: Path) -> None:
    write_tiny(model, HYDRA)
    write_hydra(heads, random_hydra(HYDRA))


def _eagle(spec: EagleSpec, is_in_gguf: bool = False) -> HeadsOfKind:
    spec = replace(spec, hidden=64, inner=96)

    def write(model: Path, heads: Path) -> None:
        write_tiny(model, WIDE)
        write_eagle(heads, spec)

    gguf = (lambda path: write_eagle_gguf(path, spec)) if is_in_gguf else None
    formats = (Formats("float32"), Formats(heads="int8"))
    return HeadsOfKind("eagle", write, formats, write_gguf=gguf)


def _block(drafter: str, spec: BlockSpec, target: TinySpec = WIDE) -> HeadsOfKind:
    if target is WIDE:
        spec = replace(spec, hidden=64, head_dim=32, inner=96, rank=spec.rank and 32)

    def write(model: Path, heads: Path) -> None:
        write_tiny(model, target)
        write_block(heads, spec)

    if target is WIDE:
        return HeadsOfKind(drafter, write)
    return HeadsOfKind(drafter, write, (), write_gguf=lambda path: write_block_gguf(path, spec))


def _streams(model: Path, heads: Path) -> None:
    write_tiny(model, STREAMS)
    write_streams(heads)


def _guessing_peer(name: str) -> HeadsOfKind:
    return HeadsOfKind("mtp", lambda model, _: write_guessing_peer(name, model), OF_PEERS)


def _assistant(name: str, spec: AssistantSpec, formats: Formats) -> HeadsOfKind:
    def write(model: Path, heads: Path) -> None:
        write_peer(name, model)
        write_assistant(heads, spec)

    def write_gguf(path: Path) -> Path:
        return write_assistant_gguf(path, spec)

    is_whole_in_gguf = not (spec.clusters or spec.has_bias)  # neither is there in such a file
    gguf = write_gguf if is_whole_in_gguf else None
    return HeadsOfKind("gemma4-assistant", write, (formats,), False, gguf)


_ASSISTANT_FORMATS = (
    *(Formats("float32"), Formats("bfloat16", heads="bf16"), Formats(heads="int8")),
    *(Formats(heads="q4"), Formats("float32")),
)
HEADS_OF_KIND: dict[str, HeadsOfKind] = {
    "Medusa": _medusa(is_shared=False),
    "Medusa that share the projection": _medusa(is_shared=True),
    "Hydra": HeadsOfKind("hydra", _hydra, remembers=False),
    **{name: _eagle(spec, name == "EAGLE-3") for name, spec in EAGLE_HEADS.items()},
    **{
        name: _block(drafter, BLOCK_DRAFTERS[name])
        for name, drafter in {
            "DFlash with windows and scaled scores": "dflash",
            "DFlash2": "dflash",
            "DSpark, DeepSeek": "dspark",
            "DSpark, Gemma 4": "dspark",
            "JetSpec": "jetspec",
        }.items()
    },
    "DSpark of Gemma's blocks": _block("dspark", GEMMA_DSPARK, GROUPED),
    "MiMo": HeadsOfKind("mtp", lambda model, _: write_mimo(model)),
    "streams": HeadsOfKind("streams", _streams),
    **{
        name: _guessing_peer(name)
        for name in ("qwen 3.5", "qwen 3.5 with experts", "qwen 3 next", "glm 4 with experts")
    },
    **{
        f"an assistant of {name}": _assistant(name, spec, formats)
        for (name, spec), formats in zip(ASSISTANTS.items(), _ASSISTANT_FORMATS, strict=True)
    },
}

"""Targets of the engine's tests, written once for all workers and loaded once in each."""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from medusa_core.loading.load import (
    LoadOptions,
    Target,
    load_target,
)
from medusa_core.messages import GenerateSettings
from medusa_core.models.datastore.phrases import write_phrases
from medusa_core.system.resources import demo_heads_dir, demo_model_dir
from medusa_core.training.phrase_counts import OwnText, PhraseRecipe, count_phrases
from tests.support.engine.laws import decode, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.assistant_files import AssistantSpec, write_assistant
from tests.support.models.block_files import DFLASH, JETSPEC, REDUCED, BlockSpec, write_block
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.mtp_files import write_mimo
from tests.support.models.peer_files import write_guessing_peer, write_peer
from tests.support.models.streams_files import STREAMS, write_streams
from tests.support.models.tiny import (
    ACCURACIES,
    LLAMA3_ROPE,
    TinySpec,
    random_heads,
    write_heads,
    write_tiny,
)

# Grouped queries, long-context rotation, a projection of its own, heads with theirs.
GROUPED = TinySpec(num_layers=2, rope=LLAMA3_ROPE, seed=3)
# Every query head with its keys, tied embeddings, biases, heads that share the projection.
TIED = TinySpec(num_layers=3, num_kv_heads=4, is_tied=True, has_bias=True, seed=4)
# One of every other family, wide enough for the compiled step.
FAMILIES = {
    name: TinySpec(model_type=name, hidden_size=64, intermediate_size=96, seed=seed)
    for seed, name in enumerate(("mistral", "qwen2", "qwen3"), start=5)
}
# With heads of another kind.
HYDRA = TinySpec(hidden_size=64, intermediate_size=96, seed=11)
# A smaller model with the same tokenizer, which drafts for "assisted".
SMALLER = TinySpec(num_layers=1, hidden_size=64, intermediate_size=48, seed=12)
# Of which one layer lies on the device, and the others on a disk.
STREAMED = TinySpec(num_layers=6, hidden_size=64, intermediate_size=96, seed=13)
# Families with a decoder of their own, by their names in `peers.CONFIGS`.
PEERS = {
    "falcon_h1": "falcon h1 with norms",
    "gemma4": "gemma 4 E2B",
    "granitemoehybrid": "granite 4 hybrid with experts",
    "lfm2": "lfm 2",
    "lfm2_moe": "lfm 2 with experts",
    "nemotron_h": "nemotron h",
    "qwen3_5": "qwen 3.5",
}
# Those of one drafter alone first.
TARGET_NAMES = (
    *("grouped", "tied", "eagle", "mimo", "streams", "assisted", "learned"),
    *("dflash", "dspark", "jetspec"),
    *FAMILIES,
    *PEERS,
    *("hydra", "pebble"),
)
OUTPUT = "said"  # the folder of what "learned" said before
SHARED = Path(os.environ["MEDUSA_TEST_SHARED"])
_OWN = Path(os.environ["XDG_CACHE_HOME"])


Writer = Callable[[Path, Path], object]  # of a target, into its folder and that of its heads


class Folder(NamedTuple):
    """Folder of a target and of its heads."""

    model: Path
    heads: Path | None


class Folders(Mapping[str, Folder]):
    """Folders of all targets by name; each is written when it is first used."""

    def __getitem__(self, name: str) -> Folder:
        return folder_of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(TARGET_NAMES)

    def __len__(self) -> int:
        return len(TARGET_NAMES)


@cache
def folder_of(name: str) -> Folder:
    """The folder of a target, written by the first worker that needs it."""
    if name == "pebble":
        return Folder(demo_model_dir(), demo_heads_dir())
    # Beside "streamed" goes a file of its layers, which comes and goes with one worker's tests.
    root = _OWN if name == "streamed" else SHARED
    model, heads, done = root / name, root / f"{name}-heads", root / f"{name}.done"
    with FileLock(root / f"{name}.lock"):
        if not done.exists():
            _WRITERS[name](model, heads)
            done.touch()
    return Folder(model, heads if heads.exists() else None)


def _tied(model: Path, heads: Path) -> None:
    write_tiny(model, TIED)
    write_heads(heads, random_heads(TIED, num_layers=2, is_shared=True))


def _eagle(model: Path, heads: Path) -> None:
    write_tiny(model, GROUPED)
    write_eagle(heads, EagleSpec("eagle3"))


def _block(spec: BlockSpec) -> Writer:
    def write(model: Path, heads: Path) -> None:
        write_tiny(model, GROUPED)
        write_block(heads, spec)

    return write


def _streams(model: Path, heads: Path) -> None:
    write_tiny(model, STREAMS)
    write_streams(heads)


def _hydra(model: Path, heads: Path) -> None:
    write_tiny(model, HYDRA)
    write_hydra(heads, random_hydra(HYDRA))


def _gemma4(model: Path, heads: Path) -> None:
    write_peer(PEERS["gemma4"], model)
    write_assistant(heads, AssistantSpec(clusters=32))


def _learned(model: Path, heads: Path) -> None:
    write_tiny(model, TIED)
    write_heads(heads, random_heads(TIED, is_shared=True))
    add_phrases(model)
    learn_answers(model)


def _with_heads(spec: TinySpec) -> Writer:
    def write(model: Path, heads: Path) -> None:
        write_tiny(model, spec)
        write_heads(heads, random_heads(spec), ACCURACIES)

    return write


def _with_phrases(write_target: Writer) -> Writer:
    def write(model: Path, heads: Path) -> None:
        write_target(model, heads)
        add_phrases(model)

    return write


_SAYING = {
    "grouped": _with_heads(GROUPED),
    "tied": _tied,
    "eagle": _eagle,
    "dflash": _block(DFLASH),
    "dspark": _block(REDUCED),
    "jetspec": _block(JETSPEC),
    "mimo": lambda model, _: write_mimo(model),
    "streamed": _with_heads(STREAMED),
    "streams": _streams,
    **{name: _with_heads(spec) for name, spec in FAMILIES.items()},
    **{name: partial(write_peer, peer) for name, peer in PEERS.items()},
    "qwen3_5": lambda model, _: write_guessing_peer(PEERS["qwen3_5"], model),
    "hydra": _hydra,
    "gemma4": _gemma4,
}
_WRITERS: dict[str, Writer] = {
    **{name: _with_phrases(write) for name, write in _SAYING.items()},
    "learned": _learned,
    "assisted": lambda model, _: write_tiny(model, GROUPED),
    "smaller": lambda model, _: write_tiny(model, SMALLER),
}


@cache
def load(name: str, dtype: str, device: str = "cpu") -> Target:
    """A target in a dtype on a device."""
    return load_target(*folder_of(name), options_of(name, dtype, device))


def options_of(name: str, dtype: str, device: str) -> LoadOptions:
    """Return the load options of a target."""
    assistant = folder_of("smaller").model if name == "assisted" else None
    output = _said() if name == "learned" else None
    options = LoadOptions(dtype, device, assistant_dir=assistant, datastore_dir=output)
    return options if name != "streamed" else with_layers_below(*folder_of(name), options, 1)


@cache
def _said() -> Path:
    """Return the answers that the target "learned" has, copied for this worker."""
    return shutil.copytree(folder_of("learned").model / OUTPUT, _OWN / OUTPUT)


def add_phrases(folder: Path) -> None:
    """Write a phrase table of a random target's answers beside it."""
    target = load_target(folder, options=LoadOptions("float64"))
    settings = GenerateSettings(drafter="none", max_new_tokens=30)
    answers = [decode(target, settings, user_says(word)) for word in ("one", "two", "three")]
    texts = [OwnText((*a.prompt_ids[-4:], *a.token_ids), 4) for a in answers]
    write_phrases(count_phrases(texts, replace(PhraseRecipe(), least_count=1)), folder)


def learn_answers(folder: Path) -> None:
    """Let a random target answer, and draft from these answers afterwards."""
    target = load_target(folder, options=LoadOptions("float64", datastore_dir=folder / OUTPUT))
    assert target.learned is not None
    for rule, output in itertools.product(
        ("greedy", "sample"), ("Hi there", "one", "two", "three")
    ):
        settings = GenerateSettings(rule=rule, drafter="none", seed=11, max_new_tokens=60)
        answer = decode(target, settings, user_says(output))
        target.learned.learn("a conversation", answer.prompt_ids, answer.token_ids)
    target.learned.close()

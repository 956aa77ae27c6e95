"""Configuration of a run that trains heads, from flags or a file."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from medusa_core.errors import MedusaError, TrainingError
from medusa_core.system.files import record_json
from medusa_core.system.files.json_file import read_json
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
from medusa_core.system.user_folders import places

KINDS = tuple(TRAINED_KINDS)
PROMPTS = ("both", "bundled", "own")
_MOST_HEADS = 8
_MOST_LAYERS, _MOST_BLOCK = 4, 16
_DEFAULT_RATE, _EAGLE_RATE, _PUBLISHED_WIDTH = 1e-3, 4e-4, 4096


@dataclass(frozen=True, slots=True)
class HeadsConfig:
    """Configuration of a run.

    Attributes:
        model: Folder, GGUF file or downloaded repository; empty for the demo model.
        kind: Kind of heads.
        num_heads: Tokens to draft; for eagle, training-time-test steps; for streams, their number.
        num_layers: Residual layers of each Medusa head; for dspark, layers of the drafter.
        block: Drafts per pass of a dspark drafter; 0 for num_heads.
        markov_rank: Rank of dspark's Markov head.
        stream_layers: Last layers of the model that streams run through.
        lora_rank: Rank of the streams' adapters.
        vocabulary: Size of the draft vocabulary, the most frequent tokens of the answers; 0 for the
            kind's default.
        data: Files or folders of prompts; empty for those of `prompts`.
        prompts: Without data: `bundled` ones, the model's `own`, or `both`.
        own_chats: History whose chats' first questions are used, too; empty for none.
        answers: Number of answers to write; 0 for as many as time and disk allow.
        answers_of: Folder of another run for this model, whose answers are used instead; empty for
            none.
        from_heads: Folder of trained Hydra heads to start from; empty for new heads.
        max_new_tokens: Maximum length of an answer.
        drawn_share: Share of answers that are sampled instead of greedy.
        temperature: Sampling temperature.
        quant: Weight format of the model; empty for the default.
        device: Device; empty for the best one.
        memory_gib: Device memory that the model may use; 0 for all free memory.
        tier_disk: Folder for layers that don't fit into memory; empty for none.
        cluster: HOST:PORT of machines that hold the layers; empty to run here.
        context: Maximum length of prompt and answer.
        steps: Training steps; 0 for two epochs, or what `minutes` allow.
        minutes: Approximate time of the whole run; 0 for no limit.
        batch: Positions per step.
        learning_rate: Learning rate of the heads; 0 for one by the model's width.
        joint: Train a LoRA of the model in the second part of the training.
        rank: Rank of the LoRA.
        alpha: LoRA alpha; the LoRA is scaled by alpha / rank.
        heads_weight: Final weight of the heads' loss relative to the model's own.
        adapter: Folder of a LoRA that the model is loaded with; empty for none.
        states_gib: Disk space for the model's states; states beyond it are recomputed.
        seed: Seed of all shuffling and sampling.
    """

    model: str = ""
    kind: str = "hydra"
    num_heads: int = 4
    num_layers: int = 1
    block: int = 0
    markov_rank: int = 64
    stream_layers: int = 2
    lora_rank: int = 16
    vocabulary: int = 0
    data: tuple[str, ...] = ()
    prompts: str = "both"
    own_chats: str = ""
    answers: int = 0
    answers_of: str = ""
    from_heads: str = ""
    max_new_tokens: int = 256
    drawn_share: float = 0.5
    temperature: float = 0.8
    quant: str = ""
    device: str = ""
    memory_gib: float = 0.0
    tier_disk: str = ""
    cluster: str = ""
    context: int = 1024
    steps: int = 0
    minutes: float = 0.0
    batch: int = 512
    learning_rate: float = 0.0
    joint: bool = False
    rank: int = 32
    alpha: float = 16.0
    heads_weight: float = 0.1
    adapter: str = ""
    states_gib: float = 4.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Validate the numbers.

        Raises:
            TrainingError: A number is invalid.
        """
        if self.kind not in KINDS:
            raise TrainingError(f"There are no heads {self.kind!r}.", f"Choose {', '.join(KINDS)}.")
        if self.prompts not in PROMPTS:
            raise TrainingError(
                f"There are no prompts {self.prompts!r}.", f"Choose {', '.join(PROMPTS)}."
            )
        bounds: dict[str, tuple[float, float]] = {
            "num_heads": (1, _MOST_HEADS),
            "num_layers": (1, _MOST_LAYERS),
            "block": (0, _MOST_BLOCK),
            "markov_rank": (1, 1024),
            "stream_layers": (1, 1000),
            "lora_rank": (1, 1024),
            "vocabulary": (0, 1 << 24),
            "answers": (0, 10**7),
            "max_new_tokens": (8, 1 << 16),
            "drawn_share": (0, 1),
            "temperature": (0.1, 10),
            "memory_gib": (0, 1 << 20),
            "context": (64, 1 << 20),
            "steps": (0, 10**9),
            "minutes": (0, 10**6),
            "batch": (8, 1 << 20),
            "learning_rate": (0, 1),
            "rank": (1, 1024),
            "alpha": (0.01, 1e4),
            "heads_weight": (0, 100),
            "states_gib": (0, 1 << 20),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise TrainingError(
                    f"{name.replace('_', ' ').capitalize()} is {value}.",
                    f"Choose {least:g} to {most:g}.",
                )
        if self.kind == "streams" and self.vocabulary:
            raise TrainingError(
                "Streams draft from the whole vocabulary.", "Leave out --vocabulary."
            )
        if self.steps and self.minutes:
            raise TrainingError("A run has steps or minutes, not both.", "Leave one of them out.")
        if self.joint:
            self._check_joint()
        if self.answers_of and (self.data or self.own_chats):
            raise TrainingError(
                "The answers of another run are answers to its own prompts.",
                "Leave out --data and --own-chats, or --answers-of.",
            )
        if self.from_heads and self.kind != "hydra":
            raise TrainingError(
                f"Training of the kind {self.kind} can't start from trained heads.",
                "Leave out --from, or choose hydra.",
            )
        if self.from_heads and self.vocabulary:
            raise TrainingError(
                "Heads keep the draft vocabulary that they were trained with.",
                "Leave out --vocabulary, or --from.",
            )
        if (self.joint or self.kind == "streams") and (self.tier_disk or self.cluster):
            raise TrainingError(
                "The model's layers learn, too: all of them must lie on this device.",
                "Leave out --tier-disk and --cluster; or leave out --joint, or choose other heads.",
            )

    def _check_joint(self) -> None:
        """Refuse joint training of kinds of heads or targets that don't support it."""
        if not TRAINED_KINDS[self.kind].learns_jointly:
            raise TrainingError(
                f"Heads of the kind {self.kind} aren't trained together with the model.",
                "Choose Medusa heads, such as medusa-shared, or leave out --joint.",
            )
        if self.adapter:
            raise TrainingError(
                "A model that has an adapter gets no second one.",
                "Leave out --adapter, or --joint: heads alone learn with the adapter on.",
            )

    @property
    def layers_dir(self) -> Path | None:
        """Folder for layers that don't fit into memory; None if the disk mustn't be used."""
        return Path(self.tier_disk) if self.tier_disk else None


def vocabulary_of(config: HeadsConfig) -> int:
    """Return the size of the draft vocabulary; 0 for all tokens, as in other Medusa heads."""
    return config.vocabulary or TRAINED_KINDS[config.kind].vocabulary


def learning_rate_of(config: HeadsConfig, width: int = _PUBLISHED_WIDTH) -> float:
    """Return the configured learning rate, or a default for the model.

    Published rates are for models of width 4,096; heads of narrower ones may learn faster. At width
    256, 400 steps at 3e-3 were better than 4,500 at the published 1e-3.

    Args:
        config: Configuration of the run.
        width: Hidden size of the model.
    """
    default = _EAGLE_RATE if config.kind == "eagle" else _DEFAULT_RATE
    return config.learning_rate or default * math.sqrt(_PUBLISHED_WIDTH / width)


def config_from(raw: Mapping[str, Any], source: str) -> HeadsConfig:
    """Return a configuration from JSON values.

    Args:
        raw: Values by name; missing ones get defaults.
        source: Origin of the values, for messages.

    Raises:
        TrainingError: A name is unknown, or a value has the wrong type or is invalid.
    """
    try:
        return record_json.from_json(HeadsConfig, raw, source)
    except ValueError as error:
        raise TrainingError(str(error), "See the help of train heads.") from error


def read_config(path: Path) -> HeadsConfig:
    """Read a configuration from a JSON file.

    Raises:
        TrainingError: It can't be read or is invalid.
    """
    try:
        raw = read_json(path)
    except MedusaError as error:
        raise TrainingError(error.message, "Name a JSON file of names and values.") from error
    return config_from(raw, path.name)


def add_heads_arguments(parser: argparse.ArgumentParser) -> None:
    """Add flags that choose the heads."""
    default = HeadsConfig()
    parser.add_argument("--kind", choices=KINDS, help=f"kind of heads (default: {default.kind})")
    parser.add_argument(
        "--num-heads",
        type=int,
        help=f"number of heads, each a token further ahead (default: {default.num_heads})",
    )
    parser.add_argument(
        "--block",
        type=int,
        help="dspark: draft tokens of a block (default: as many as --num-heads)",
    )
    parser.add_argument(
        "--markov-rank",
        type=int,
        help=f"dspark: rank of the bias by the previous token (default: {default.markov_rank})",
    )
    parser.add_argument(
        "--num-layers",
        type=int,
        help=f"layers of a dspark drafter or of each Medusa head (default: {default.num_layers})",
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        help="size of a reduced vocabulary of frequent tokens (default: by the kind)",
    )


def add_streams_arguments(parser: argparse.ArgumentParser) -> None:
    """Add flags that choose the streams."""
    default = HeadsConfig()
    parser.add_argument(
        *("--streams", "--num-heads"),
        type=int,
        dest="num_heads",
        help=f"tokens after the next one that are drafted (default: {default.num_heads})",
    )
    parser.add_argument(
        "--stream-layers",
        type=int,
        help=f"number of the model's last layers with streams (default: {default.stream_layers})",
    )
    parser.add_argument(
        "--lora-rank", type=int, help=f"rank of their LoRAs (default: {default.lora_rank})"
    )


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add flags for common settings; a file can set all."""
    default = HeadsConfig()
    parser.add_argument("--model", help="folder, GGUF file or downloaded repository")
    parser.add_argument(
        "--data", action="append", help="file or folder of prompts (default: those of --prompts)"
    )
    parser.add_argument(
        "--prompts",
        choices=PROMPTS,
        help="bundled ones, those that the model writes itself, or "
        f"{default.prompts} (the default)",
    )
    parser.add_argument(
        "--own-chats",
        nargs="?",
        const=str(places().history),
        metavar="HISTORY",
        help="ask what you asked in your own chats, too; nothing of them is kept with the heads",
    )
    parser.add_argument(
        "--answers", type=int, help="answers that the model writes (default: what time allows)"
    )
    parser.add_argument(
        "--answers-of",
        metavar="RUN",
        help="learn from the answers of another run for this model, the first --answers of them",
    )
    parser.add_argument(
        "--from",
        dest="from_heads",
        metavar="HEADS",
        help="start from trained Hydra heads in this folder, with a new learning rate schedule",
    )
    parser.add_argument("--max-new-tokens", type=int, help="longest answer")
    parser.add_argument("--quant", help="weight format of the model")
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument(
        "--memory-gib",
        type=float,
        help="device memory budget in GiB; layers beyond it are offloaded and streamed",
    )
    parser.add_argument("--tier-disk", help="folder on a disk for layers that don't fit in memory")
    parser.add_argument(
        "--cluster",
        metavar="HOST:PORT",
        help="address of a cluster of machines that run serve-layers",
    )
    parser.add_argument(
        "--joint",
        action="store_true",
        default=None,
        help="train the model with the heads, too, by a LoRA (Medusa-2)",
    )
    parser.add_argument("--adapter", help="folder or repository of a LoRA that changes the model")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, help="number of training steps")
    length.add_argument("--minutes", type=float, help="time limit of the whole run")
    parser.add_argument(
        "--states-gib",
        type=float,
        help=f"disk space for hidden states in GiB (default: {default.states_gib:g})",
    )
    parser.add_argument("--seed", type=int, help="seed of the order of examples and of sampling")


def config_of(args: argparse.Namespace) -> HeadsConfig:
    """Return the configuration of flags, which override the file's values.

    Raises:
        TrainingError: It is invalid.
    """
    default = HeadsConfig() if args.config is None else read_config(args.config)
    chosen = {
        field.name: getattr(args, field.name)
        for field in fields(HeadsConfig)
        if getattr(args, field.name, None) is not None
    }
    if "data" in chosen:
        chosen["data"] = tuple(str(Path(name).absolute()) for name in chosen["data"])
    for name in ("tier_disk", "answers_of", "from_heads"):
        if name in chosen:
            chosen[name] = str(Path(chosen[name]).absolute())
    if Path(chosen.get("adapter") or ".missing").is_dir():  # else it is a repository's name
        chosen["adapter"] = str(Path(chosen["adapter"]).absolute())
    return replace(default, **chosen)

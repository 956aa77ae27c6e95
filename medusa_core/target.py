"""A loaded target with everything that decoding needs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from medusa_core.heads.medusa import MedusaHeads
from medusa_core.heads.reader import has_merged_heads, read_heads
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig, read_config
from medusa_core.models.decoder import build_decoder
from medusa_core.models.precision import Precision, choose_precision
from medusa_core.runner.resident import ResidentRunner
from medusa_core.text.template import ChatTemplate
from medusa_core.text.tokenizer import Tokenizer
from medusa_core.tree.presets import TreeTable, read_tree_table

log = logging.getLogger(__name__)

OnProgress = Callable[[str, float, str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """A target, ready to decode.

    Attributes:
        name: Name of its folder.
        config: Its sizes.
        precision: Dtypes and device.
        runner: Runs its forward passes.
        tokenizer: Its tokenizer.
        template: Its chat template.
        eos_token_ids: Tokens that end an answer.
        heads: Medusa heads, or None.
        trees: Trees for the heads, or None without heads.
        num_parameters: Parameters of the target.
    """

    name: str
    config: ModelConfig
    precision: Precision
    runner: ResidentRunner
    tokenizer: Tokenizer
    template: ChatTemplate
    eos_token_ids: frozenset[int]
    heads: MedusaHeads | None
    trees: TreeTable | None
    num_parameters: int


def load_target(
    model_dir: Path,
    heads_dir: Path | None = None,
    dtype: str = "",
    device: str = "",
    on_progress: OnProgress | None = None,
) -> Target:
    """Load a target and its heads.

    Args:
        model_dir: Folder in Hugging Face layout.
        heads_dir: Folder with Medusa heads, or None: heads that lie in the model's own files serve.
        dtype: Name of a dtype; empty for the best on the device.
        device: Torch device name; empty for the best there is.
        on_progress: Told the stage, the share done and a text for people.

    Raises:
        ModelError: The model or the heads can't be used.
        RequestError: The dtype or the device isn't there.
    """
    tell = on_progress or _ignore
    precision = choose_precision(dtype, device)
    config = read_config(model_dir)
    tokenizer = Tokenizer.open(model_dir)
    template = ChatTemplate.open(model_dir, tokenizer)
    tell("weights", 0.0, f"Reading the weights of {model_dir.name}")
    checkpoint = Checkpoint.open_model(model_dir)
    model = build_decoder(config, precision, checkpoint)
    if heads_dir is None and has_merged_heads(checkpoint):
        heads_dir = model_dir
    heads, trees = None, None
    if heads_dir is not None:
        tell("heads", 0.9, f"Reading the Medusa heads of {heads_dir.name}")
        heads = read_heads(heads_dir, config, precision, model.lm_head)
        trees = read_tree_table(heads_dir, heads.num_heads)
    log.info("loaded %s in %s on %s", model_dir.name, precision.name, precision.device)
    return Target(
        name=model_dir.name,
        config=config,
        precision=precision,
        runner=ResidentRunner(model, precision),
        tokenizer=tokenizer,
        template=template,
        eos_token_ids=frozenset(config.eos_token_ids),
        heads=heads,
        trees=trees,
        num_parameters=model.num_parameters,
    )


def _ignore(stage: str, fraction: float, text: str) -> None:
    """Progress that nobody watches."""

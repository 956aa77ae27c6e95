"""Model card of trained heads: origin, training data and measured gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medusa_core.models.lora.adapter_shape import ADAPTER
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_eval import HeadsEval

_MODEL_STAYED = "The model stayed as it is."
_MODEL_LEARNED = "In the second part of the training the model learned with them."


def adapter_lines(config: HeadsConfig, base_model: str) -> list[str]:
    """Return the section about an adapter that was trained with the heads, as Markdown."""
    return [
        f"The folder `{ADAPTER}` holds what the model learned: a LoRA of rank {config.rank} (alpha",
        f"{config.alpha:g}) on every linear layer of its blocks, in PEFT's layout. It was held to",
        f"what {base_model} says without it (Kullback-Leibler divergence; the heads' loss weighed",
        f"up to {config.heads_weight:g}). The heads are for the model with the adapter on:",
        "",
        f"    medusa generate --model MODEL --heads HERE --adapter HERE/{ADAPTER} …",
        "",
        "Without the adapter the model is exactly as it was, and the heads draft worse.",
        "",
    ]


def model_card(
    config: HeadsConfig,
    base_model: str,
    num_answers: int,
    curve: Sequence[Mapping[str, Any]],
    results: HeadsEval | None,
) -> str:
    """Return the model card as Markdown.

    Args:
        config: Configuration of the run.
        base_model: Name of the model.
        num_answers: Number of answers trained on.
        curve: Learning curve.
        results: Final evaluation; None if there was no time.
    """
    data = "the bundled questions" if not config.data else "given prompts"
    if config.own_chats:
        data += " and to questions of its owner's own chats, which aren't kept here"
    what = TRAINED_KINDS[config.kind].card
    lines = [
        f"# Heads for {base_model}",
        "",
        f"{what[0].upper()}{what[1:]}, for drafting with {base_model} alone.",
        f"Learned from {num_answers:,} answers that the model wrote itself to {data}",
        f"(at most {config.max_new_tokens} tokens each, {config.drawn_share:.0%} of them drawn at",
        f"temperature {config.temperature:g}). {_MODEL_LEARNED if config.joint else _MODEL_STAYED}",
        "",
    ]
    if config.joint:
        lines += adapter_lines(config, base_model)
    if curve:
        last = curve[-1]
        shares = ", ".join(f"{share:.1%}" for share in last["top1"])
        lines += [
            "On held-out answers the best draft token 1, 2, … tokens ahead is right",
            f"in {shares} of all places (after {last['step']:,} steps).",
            "",
        ]
    if results is not None:
        lines += [
            "| category | tokens per step | × plain decoding |",
            "|---|---|---|",
            *(
                f"| {name} | {row['tau']:.2f} | {row['x_plain']:.2f} |"
                for name, row in results.by_category.items()
            ),
            "",
            "Tokens per step by rows of the tree: "
            + ", ".join(f"{rows}: {tau:.2f}" for rows, tau in results.tau.items())
            + ". Measured where they were trained.",
            "",
        ]
    return "\n".join(lines)

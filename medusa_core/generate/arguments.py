"""Arguments of the command line that say how to decode."""

from __future__ import annotations

import argparse

from medusa_core.errors import RequestError
from medusa_core.messages import GenerateSettings, WeightFormats
from medusa_core.quant.format import quant_registry


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments for the rule and all that it reads; shared with the benchmark."""
    defaults = GenerateSettings()
    parser.add_argument(
        "--rule",
        default=defaults.rule,
        help="greedy or sample, which are exact; or typical, which is creative and not exact",
    )
    parser.add_argument("--temperature", type=float, default=defaults.temperature)
    parser.add_argument("--top-k", type=int, default=defaults.top_k, help="0: off")
    parser.add_argument("--top-p", type=float, default=defaults.top_p, help="1: off")
    parser.add_argument("--min-p", type=float, default=defaults.min_p, help="0: off")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--repetition-penalty", type=float, default=1.0, help="1: off")
    parser.add_argument("--presence-penalty", type=float, default=0.0, help="0: off")
    parser.add_argument("--frequency-penalty", type=float, default=0.0, help="0: off")
    parser.add_argument(
        "--logit-bias", action="append", default=[], metavar="ID:BIAS", help="add to a token"
    )
    parser.add_argument(
        "--ban",
        action="append",
        type=int,
        default=[],
        metavar="ID",
        help="never this token",
    )
    parser.add_argument("--epsilon", type=float, default=defaults.epsilon, help="of typical")
    parser.add_argument("--delta", type=float, default=defaults.delta, help="of typical")
    parser.add_argument("--tree-rows", type=int, default=0, help="rows per step (default: best)")


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments for the weight format of every part; shared with the plan."""
    names = quant_registry().names
    parser.add_argument("--quant", choices=names, default="", help="weight format of the model")
    parser.add_argument("--heads-quant", choices=names, default="", help="of the Medusa heads")
    parser.add_argument("--lm-head-quant", choices=names, default="", help="of the last projection")
    parser.add_argument("--embedding-quant", choices=names, default="", help="of the token vectors")
    parser.add_argument(
        "--embedding-in-ram", action="store_true", help="keep the token vectors off the card"
    )


def formats_of(args: argparse.Namespace) -> WeightFormats:
    """The weight formats that the arguments ask for."""
    return WeightFormats(
        linears=args.quant,
        lm_head=args.lm_head_quant,
        embedding=args.embedding_quant,
        heads=args.heads_quant,
        embedding_in_ram=args.embedding_in_ram,
    )


def settings_of(
    args: argparse.Namespace, drafter: str, tree_rows: int, stop: tuple[str, ...] = ()
) -> GenerateSettings:
    """The settings that the arguments ask for.

    Args:
        args: Holds the arguments of `add_rule_arguments` and `max_new_tokens`.
        drafter: Name of the drafter.
        tree_rows: Rows of a step; 0 lets the engine choose.
        stop: Stop strings.

    Raises:
        RequestError: A bias is no pair of a token and a number.
    """
    return GenerateSettings(
        drafter=drafter,
        rule=args.rule,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        min_p=args.min_p,
        repetition_penalty=args.repetition_penalty,
        presence_penalty=args.presence_penalty,
        frequency_penalty=args.frequency_penalty,
        logit_bias=tuple(map(_bias, args.logit_bias)),
        banned=tuple(args.ban),
        epsilon=args.epsilon,
        delta=args.delta,
        seed=args.seed,
        max_new_tokens=args.max_new_tokens,
        stop=stop,
        tree_rows=tree_rows,
    )


def _bias(text: str) -> tuple[int, float]:
    token_id, _, bias = text.partition(":")
    try:
        return int(token_id), float(bias)
    except ValueError as error:
        raise RequestError(
            f"--logit-bias {text} is no pair of a token and a number.", "Write it as 123:-2.5."
        ) from error

"""Arguments for drafting and sampling."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from medusa_core.chats.setting import (
    SettingGroup,
    When,
)
from medusa_core.chats.settings import SETTINGS
from medusa_core.cli.program import argument_group, check_first
from medusa_core.errors import RequestError
from medusa_core.messages import AUTO_GROWTH, GenerateSettings, Overflow

_GREEDY, _SAMPLE = "greedy", "sample"
_OTHER_NAMES = {"temperature": ("--temp",)}  # llama.cpp's
_THINKS = {"usual": None, "on": True, "off": False}

DRAFTER_HELP = (
    "how tokens are drafted, such as composite (all methods), medusa, dflash, suffix (suffix tree) "
    "or none (default: the first of these that the model can use)"
)

_GROWTH_HELP = "shape of drafts: chain, tree, or auto for what is profitable in each step"


def add_drafter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for drafting."""
    add_drafter_argument(parser)
    argument_group(parser, "drafting").add_argument(
        "--no-learned",
        action="store_true",
        help="draft without what the model said in earlier conversations",
    )


def add_measure_argument(parser: argparse._ActionsContainer) -> None:
    """Add the argument that discards saved measurements."""
    parser.add_argument(
        "--measure-again",
        action="store_true",
        help="discard this model's measurements on this computer, and repeat them",
    )


def add_drafter_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the drafter, which endpoints ignore."""
    argument_group(parser, "drafting").add_argument("--drafter", default="", help=DRAFTER_HELP)
    parser.set_defaults(endpoint="")
    check_first(parser, lambda args: None if args.endpoint else check_drafters([args.drafter]))


def check_drafters(names: Sequence[str]) -> None:
    """Check names of drafters; empty names are skipped.

    Raises:
        RequestError: A drafter is not registered.
    """
    if any(names):
        from medusa_core.speculation.drafters.lineup import drafter_registry

        for name in filter(None, names):
            drafter_registry().get(name)


def check_rule(name: str) -> None:
    """Check the name of an acceptance rule.

    Raises:
        RequestError: The rule is not registered.
    """
    from medusa_core.speculation.rules.rule import rule_registry

    rule_registry().get(name)


def check_files(paths: Sequence[Path | None]) -> None:
    """Check output files before long work.

    Raises:
        RequestError: The folder of a file is missing, or the file is a folder.
    """
    for path in paths:
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise RequestError(
                f"{path} can't be written: there is no such folder, or it is one itself.",
                "Name another file.",
            )


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the acceptance rule and sampling; shared with the benchmark."""
    parser.set_defaults(endpoint="")
    check_first(parser, _check_settings)
    defaults = GenerateSettings()
    groups = {
        SettingGroup.SAMPLING: argument_group(parser, "sampling"),
        SettingGroup.SPEED_UP: argument_group(parser, "drafting"),
    }
    sampling = groups[SettingGroup.SAMPLING]
    groups[SettingGroup.SPEED_UP].add_argument("--growth", default=AUTO_GROWTH, help=_GROWTH_HELP)
    sampling.add_argument(
        "--rule",
        help="greedy or sample, which are exact; or typical, which is creative and not exact "
        "(default: sample with a temperature or another sampling flag, else greedy)",
    )
    sampling.add_argument(
        "--seed",
        type=int,
        default=defaults.seed,
        help="seed of the random numbers; each draws another text",
    )
    sampling.add_argument(
        "--overflow",
        choices=[policy.value for policy in Overflow],
        default=defaults.overflow.value,
        help="if a prompt is too long: refuse it (stop), or omit its oldest (rolling) or middle "
        "turns",
    )
    sampling.add_argument(
        "--thinking",
        choices=list(_THINKS),
        default="usual",
        help="whether a reasoning model thinks before it answers (default: usual, as its chat "
        "template does)",
    )
    for name, setting in SETTINGS.items():
        if setting.group is not SettingGroup.LENGTH:  # each command line has its own longest answer
            kind = int if setting.is_whole else float
            default = None if setting.when is When.DRAWS else getattr(defaults, name)
            options = [f"--{name.replace('_', '-')}", *_OTHER_NAMES.get(name, ())]
            groups[setting.group].add_argument(
                *options, type=kind, default=default, help=setting.help.replace("%", "%%")
            )
    sampling.add_argument(
        "--logit-bias",
        action="append",
        default=[],
        metavar="ID:BIAS",
        help="add BIAS to a token's logit",
    )
    sampling.add_argument(
        "--ban",
        action="append",
        type=int,
        default=[],
        metavar="ID",
        help="never generate this token",
    )


def settings_of(
    args: argparse.Namespace, drafter: str, tree_rows: int, stop: tuple[str, ...] = ()
) -> GenerateSettings:
    """Return the generation settings of the arguments.

    Args:
        args: Arguments of `add_rule_arguments`, and `max_new_tokens`.
        drafter: Name of the drafter.
        tree_rows: Rows of a step; 0 lets the engine choose.
        stop: Stop strings.

    Raises:
        RequestError: A bias is invalid; or see `rule_of`.
    """
    chosen = {name: getattr(args, name) for name in SETTINGS}
    numbers = {name: value for name, value in chosen.items() if value is not None}
    return GenerateSettings(
        **{**numbers, "tree_rows": tree_rows},
        drafter=drafter,
        growth=args.growth,
        rule=rule_of(args),
        logit_bias=tuple(map(_bias, args.logit_bias)),
        banned=tuple(args.ban),
        seed=args.seed,
        stop=stop,
        overflow=Overflow(args.overflow),
        thinks=_THINKS[args.thinking],
    )


def _check_settings(args: argparse.Namespace) -> None:
    """Check settings before a model is loaded.

    Raises:
        RequestError: A setting is out of range, or a name is not registered.
    """
    from medusa_core.engine.admission import admit_settings

    settings = settings_of(args, "", args.tree_rows)
    for growth in args.growth.split(","):  # a benchmark may compare several
        admit_settings(replace(settings, growth=growth.strip()))
    if not args.endpoint:  # an endpoint doesn't need torch, which takes seconds to import
        from medusa_core.speculation.rules.rule import rule_registry, with_greedy_at_zero

        settings = with_greedy_at_zero(settings)
        rule_registry().get(settings.rule).build(settings)


def rule_of(args: argparse.Namespace) -> str:
    """Return the acceptance rule; sampling arguments imply `sample`.

    Raises:
        RequestError: The rule is greedy, with sampling arguments that it ignores.
    """
    sampling = [
        name
        for name, setting in SETTINGS.items()
        if setting.when is When.DRAWS and getattr(args, name) not in (None, setting.off)
    ]
    if args.rule == _GREEDY and sampling:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
        raise RequestError(
            f"The rule greedy always takes the likeliest token: {options} would do nothing.",
            f"Leave out --rule, or choose --rule {_SAMPLE}.",
        )
    is_cold = args.temperature == 0
    rule: str = args.rule or (_SAMPLE if sampling and not is_cold else _GREEDY)
    return rule


def _bias(text: str) -> tuple[int, float]:
    """Parse a logit bias, such as `123:-2.5`."""
    token_id, _, bias = text.partition(":")
    try:
        return int(token_id), float(bias)
    except ValueError as error:
        raise RequestError(
            f"--logit-bias {text} is no pair of a token and a number.", "Write it as 123:-2.5."
        ) from error

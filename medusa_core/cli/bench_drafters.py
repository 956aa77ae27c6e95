"""`bench --drafters` and `--synthetic`: speeds of drafters and of forms of drafts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from medusa_core.cli.arguments import check_drafters
from medusa_core.cli.bench_arguments import listed_names, show_progress, whole_numbers, write_file
from medusa_core.cli.load_arguments import measurements_of
from medusa_core.errors import RequestError
from medusa_core.messages import AUTO_GROWTH, CHAIN, GROWTHS, TREE

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from medusa_core.system.prompts import BenchPrompt


def add_race_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose drafters and rows."""
    parser.add_argument(
        "--drafters",
        help="instead: all drafters that the window offers (all), of which the fastest becomes its "
        "default here; or some, with commas between",
    )
    parser.add_argument(
        "--rows",
        default="",
        help="with --drafters or --synthetic: rows of a step to compare chains, trees and auto "
        "at, or what --growth names of them (default: 2,4,8,16)",
    )
    parser.add_argument(
        "--synthetic",
        metavar="RATES",
        help="instead: a drafter with these acceptance rates at depth 1, 2, ...: 0.8,0.7,0.6",
    )


def check_race(args: argparse.Namespace) -> None:
    """Check the arguments before a model is loaded.

    Raises:
        RequestError: Drafters, rows, rates or forms are invalid.
    """
    if args.synthetic is not None and args.drafters is not None:
        raise RequestError(
            "--synthetic and --drafters are two measurements.", "Give one of them at a time."
        )
    if args.drafters is not None and not listed_names(args.drafters):
        raise RequestError(
            f"--drafters {args.drafters} names no drafter.", "Write all, or some as suffix,medusa."
        )
    check_drafters([one for one in listed_names(args.drafters or "") if one != "all"])
    if args.rows:
        whole_numbers(args.rows, "--rows")
    if args.synthetic is not None:
        from medusa_core.bench.synthetic import read_rates

        read_rates(args.synthetic)
    forms, compares = listed_names(args.growth), bool(args.drafters or args.synthetic)
    if not forms or not set(forms) <= set(GROWTHS) or (len(forms) > 1 and not compares):
        raise RequestError(
            f"Drafts can't grow as {args.growth!r} here.",
            f"Choose one of {', '.join(GROWTHS)}; with --drafters or --synthetic several.",
        )


def race(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    """Measure the drafters on the prompts, and print their speeds."""
    if args.synthetic or args.drafters != "all" or _compares_forms(args):
        return _race_forms(args, target, prompts)
    return _race_offered(args, target, prompts)


def _race_offered(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    """Measure the drafters that the app offers."""
    from medusa_core.bench.drafters import drafters_json, drafters_table, race_drafters

    known = measurements_of(args, target)
    speeds = race_drafters(target, known, prompts, args.max_new_tokens, show_progress)
    print(drafters_table(speeds))
    return drafters_json(speeds)


def _compares_forms(args: argparse.Namespace) -> bool:
    """Return whether forms or rows are compared, or their table is written."""
    return args.growth != AUTO_GROWTH or bool(args.rows) or args.markdown is not None


def _forms(args: argparse.Namespace) -> list[str]:
    """Return the forms to compare: all if only rows or rates are given."""
    forms = listed_names(args.growth)
    return (
        [CHAIN, TREE, AUTO_GROWTH]
        if forms == [AUTO_GROWTH] and (args.rows or args.synthetic)
        else forms
    )


def _race_forms(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    """Measure draft tree shapes over row counts, maybe with synthetic acceptance rates."""
    from medusa_core.bench.growth_race import ROWS, GrowthRacer, growth_json, growth_markdown
    from medusa_core.bench.synthetic import read_rates
    from medusa_core.speculation.drafters.lineup import drafter_registry, drafters_for

    costs = measurements_of(args, target).costs()
    rows = whole_numbers(args.rows, "--rows") if args.rows else ROWS
    racer = GrowthRacer(target, costs, _forms(args), rows)
    how = (prompts, args.max_new_tokens, args.repeats, show_progress)
    if args.synthetic:
        found = racer.race_synthetic(read_rates(args.synthetic), *how)
    else:
        offered = [spec.name for spec in drafters_for(target) if spec.drafts]
        chosen = offered if args.drafters == "all" else listed_names(args.drafters)
        specs = [drafter_registry().get(name) for name in chosen]
        for spec in specs:
            if not spec.can_draft(target):
                raise RequestError(
                    f"{target.name} can't use the drafter {spec.name!r}.", spec.hint_for(target)
                )
        found = racer.race(specs, *how)
    print(growth_markdown(found), end="")
    if args.markdown is not None:
        write_file(args.markdown, growth_markdown(found))
    return growth_json(found)

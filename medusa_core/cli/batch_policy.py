"""Which policy a batch carries out, and what is said of it at the end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from medusa_core.heads.kind import chosen_heads, chosen_shape
from medusa_core.loading.plan import BatchShape, policy_search
from medusa_core.memory.budget import limit_budget
from medusa_core.memory.measure.machine import MeasuredRates
from medusa_core.memory.placement import Planner
from medusa_core.memory.policy.forecast_vs_actual import part_rates
from medusa_core.memory.policy.policy_file import read_policy
from medusa_core.memory.policy.policy_search import PolicySearch
from medusa_core.memory.policy.result import FoundPolicy
from medusa_core.memory.policy.rules import check_policy
from medusa_core.memory.probe import live_budget
from medusa_core.messages import Fit, LoadOptions, PartRate, Policy
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import choose_device, hardware_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.resources import calibrations_dir


class ChosenPolicy(NamedTuple):
    """A policy, and what it was searched for.

    Attributes:
        found: It, and what is expected.
        searching: The search that found it.
        is_given: A file says so.
    """

    found: FoundPolicy
    searching: PolicySearch
    is_given: bool

    def next_best(self, missing_bytes: int) -> ChosenPolicy:
        """Another one, on a device that is smaller by so much than it seemed."""
        return self._replace(found=self.searching.best(missing_bytes))


class Conversations(NamedTuple):
    """What a batch is made of, in tokens.

    Attributes:
        lengths: Of every conversation, its answer included.
        new_tokens: Of each answer.
        context: The longest that one may become.
    """

    lengths: Sequence[int]
    new_tokens: int
    context: int


def chosen_policy(
    args: argparse.Namespace,
    files: ModelFiles,
    heads_dir: Path | None,
    options: LoadOptions,
    talks: Conversations,
) -> ChosenPolicy | None:
    """The policy that a file names, or the best one where not all has room.

    Args:
        args: Of `batch`.
        files: Of the model.
        heads_dir: Of its heads.
        options: As it is to be loaded, with `sessions` for as many conversations as are usual.
        talks: What is answered.

    Returns:
        None where nothing lies below the device, or nothing is known of what could.

    Raises:
        PlanError: None has room.
        RequestError: A file names none.
        TierError: The disk can't be measured.
    """
    given = None if args.policy is None else read_policy(args.policy)
    if given is None and not _must_offload(args, files, heads_dir, options):
        return None
    if given is not None:
        device = choose_device(options.device).type
        check_policy(given, files.config, device, has_disk=args.tier_disk is not None)
        options = options.with_policy(given)
    heads_dir, options = without_drafter(args, heads_dir, options)
    searching = _policy_search(args, files, heads_dir, options, talks, given)
    if given is None:
        return ChosenPolicy(searching.best(), searching, is_given=False)
    return ChosenPolicy(searching.forecast(given), searching, is_given=True)


def without_drafter(
    args: argparse.Namespace, heads_dir: Path | None, options: LoadOptions
) -> tuple[Path | None, LoadOptions]:
    """Under a policy heads are loaded if somebody wants them: rows of many pay more."""
    if args.drafter:
        return heads_dir, options
    return None, replace(options, takes_own_heads=False)


def rates_now(chosen: ChosenPolicy, traffic: Traffic) -> tuple[PartRate, ...]:
    """What was expected of each part, and what came of it until now."""
    return part_rates(chosen.found.forecast, traffic)


def closing_text(chosen: ChosenPolicy, traffic: Traffic, tokens_per_s: float) -> str:
    """Format the table of forecast and measured rates that ends a batch."""
    forecast = chosen.found.forecast
    whole = PartRate("answers", forecast.tokens_per_s, tokens_per_s or None, "tokens/s")
    lines = [f"{'':<21}{'forecast':>12}{'reached':>12}"]
    lines += map(_part_line, (whole, *rates_now(chosen, traffic)))
    return "\n".join(lines)


def _part_line(part: PartRate) -> str:
    rates = f"{_number(part.forecast):>12}{_number(part.reached):>12}"
    return f"{part.name:<21}{rates}  {part.unit}{'  binds' if part.binds else ''}"


def _number(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.3g}"


def _must_offload(
    args: argparse.Namespace, files: ModelFiles, heads_dir: Path | None, options: LoadOptions
) -> bool:
    """Whether something has to lie below the device, and policies know how."""
    asked = bool(args.memory_gib or args.tier_disk)
    if not asked or args.cluster or args.adapter or args.assistant or not files.config.is_ours:
        return False
    config, device = files.config, choose_device(options.device)
    formats = resolve_formats(options.formats, options.dtype, hardware_of(device), config.stored)
    shape = chosen_shape(files, heads_dir, options.takes_own_heads)
    budget = limit_budget(live_budget(options.device), options.memory_gib)
    planner = Planner(config, shape, formats, budget, options.sessions)
    return planner.resident(options.context_tokens).fit is Fit.NO


def _policy_search(
    args: argparse.Namespace,
    files: ModelFiles,
    heads_dir: Path | None,
    options: LoadOptions,
    talks: Conversations,
    given: Policy | None,
) -> PolicySearch:
    new_tokens = min(talks.new_tokens or talks.context // 2, talks.context - 1)
    prompt_tokens = max(1, round(fmean(talks.lengths)) - new_tokens)
    heads = chosen_heads(files, heads_dir, options.takes_own_heads)
    return policy_search(
        files.config,
        options,
        BatchShape(len(talks.lengths), prompt_tokens, new_tokens, talks.lengths, args.together),
        MeasuredRates(MeasurementFiles(calibrations_dir()), _say),
        num_threads=args.threads,
        has_drafter=bool(heads or args.assistant),
        has_adapter=bool(args.adapter),
        must_offload=given is None,
        given=given,
    )


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr, flush=True)

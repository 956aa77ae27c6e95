"""The policy of a batch, and its closing report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from medusa_core.cli.plan_throughput import refuse_transformers
from medusa_core.heads.kind import chosen_shape
from medusa_core.loading.measure.machine import MeasuredRates
from medusa_core.loading.memory.budget import limit_budget
from medusa_core.loading.memory.placement import Planner
from medusa_core.loading.memory.probe import live_budget
from medusa_core.loading.plan import BatchShape, policy_search
from medusa_core.loading.policy.forecast_vs_actual import part_rates
from medusa_core.loading.policy.policy_file import read_policy
from medusa_core.loading.policy.policy_search import PolicySearch
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.policy.rules import check_policy
from medusa_core.messages import Fit, LoadOptions, PartRate, Policy
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import choose_device, hardware_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.resources import calibrations_dir


class ChosenPolicy(NamedTuple):
    """A policy and its search.

    Attributes:
        found: The policy and its forecast.
        is_given: Whether the policy comes from a file.
    """

    found: FoundPolicy
    searching: PolicySearch
    is_given: bool

    def next_best(self, missing_bytes: int) -> ChosenPolicy:
        """Return the best policy for a device with less memory."""
        return self._replace(found=self.searching.best(missing_bytes))


class Conversations(NamedTuple):
    """Sizes of the conversations of a batch in tokens.

    Attributes:
        lengths: Length of each conversation with its answer.
        new_tokens: Most tokens of an answer.
        context: Context of the model.
    """

    lengths: Sequence[int]
    new_tokens: int
    context: int


def chosen_policy(
    args: argparse.Namespace,
    files: ModelFiles,
    heads_dir: Path | None,
    options: LoadOptions,
    conversations: Conversations,
) -> ChosenPolicy | None:
    """Return the policy of a file, or the best one if the model must be offloaded.

    Args:
        args: Arguments of `batch`.
        files: Files of the model.
        heads_dir: Folder of its heads.
        options: Load options with the default number of `sessions`.
        conversations: Sizes of the conversations.

    Returns:
        None if nothing is offloaded, or the model has no policies.

    Raises:
        PlanError: No policy fits.
        RequestError: The file has no valid policy.
        TierError: The disk can't be measured.
    """
    given = None if args.policy is None else read_policy(args.policy)
    if given is None and not _must_offload(args, files, heads_dir, options):
        return None
    if given is not None:
        device = choose_device(options.device).type
        check_policy(given, files.config, device, has_disk=args.tier_disk is not None)
        options = options.with_policy(given)
    _, options = without_drafter(args, heads_dir, options)
    searching = _policy_search(args, files, options, conversations, given)
    if given is None:
        return ChosenPolicy(searching.best(), searching, is_given=False)
    return ChosenPolicy(searching.forecast(given), searching, is_given=True)


def without_drafter(
    args: argparse.Namespace, heads_dir: Path | None, options: LoadOptions
) -> tuple[Path | None, LoadOptions]:
    """Return options without a drafter unless one is named: larger batches are faster."""
    if args.drafter:
        return heads_dir, options
    return None, replace(options, takes_own_heads=False)


def rates_now(chosen: ChosenPolicy, traffic: Traffic) -> tuple[PartRate, ...]:
    """Return forecast and measured rates of each part."""
    return part_rates(chosen.found.forecast, traffic)


def closing_text(chosen: ChosenPolicy, traffic: Traffic, tokens_per_s: float) -> str:
    """Format the table of forecast and measured rates that ends a batch."""
    forecast = chosen.found.forecast
    whole = PartRate("answers", forecast.tokens_per_s, tokens_per_s or None, "tokens/s")
    lines = [f"{'':<21}{'forecast':>12}{'reached':>12}"]
    lines += map(_part_line, (whole, *rates_now(chosen, traffic)))
    return "\n".join(lines)


def _part_line(part: PartRate) -> str:
    """Format the rates of a part."""
    rates = f"{_number(part.forecast):>12}{_number(part.reached):>12}"
    return f"{part.name:<21}{rates}  {part.unit}{'  binds' if part.binds else ''}"


def _number(rate: float | None) -> str:
    """Format a rate; a dash if unknown."""
    return "–" if rate is None else f"{rate:.3g}"


def _must_offload(
    args: argparse.Namespace, files: ModelFiles, heads_dir: Path | None, options: LoadOptions
) -> bool:
    """Return whether the model needs offloading, and policies support it."""
    may_offload = bool(args.memory_gib or args.tier_disk)
    if (
        not may_offload
        or args.cluster
        or args.adapter
        or args.assistant
        or not files.config.has_native_family
    ):
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
    options: LoadOptions,
    conversations: Conversations,
    given: Policy | None,
) -> PolicySearch:
    """Prepare the search of a policy, measuring the machine if needed."""
    refuse_transformers(files.config)
    new_tokens = min(
        conversations.new_tokens or conversations.context // 2, conversations.context - 1
    )
    prompt_tokens = max(1, round(fmean(conversations.lengths)) - new_tokens)
    return policy_search(
        files.config,
        options,
        BatchShape(
            len(conversations.lengths),
            prompt_tokens,
            new_tokens,
            conversations.lengths,
            args.together,
        ),
        MeasuredRates(MeasurementFiles(calibrations_dir()), _report),
        num_threads=args.threads,
        has_adapter=bool(args.adapter),
        must_offload=given is None,
    )


def _report(text: str) -> None:
    """Print what is being measured."""
    print(f"{text} …", file=sys.stderr, flush=True)

"""`medusa plan --throughput`: the offloading policy with the highest throughput."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from medusa_core.cli.load_arguments import placement_options
from medusa_core.errors import PlanError, RequestError
from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.policy.forecast_vs_actual import UNITS, in_unit
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.policy_file import found_as_json
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.policy.workload import Workload
from medusa_core.messages import Shares, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.system.resources import calibrations_dir

if TYPE_CHECKING:
    from medusa_core.loading.policy.policy_search import PolicySearch

_MOST_PROMPTS = 100_000


def add_throughput_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan --throughput`."""
    parser.add_argument(
        "--throughput",
        action="store_true",
        help="search the placement of weights, cache and activations with the most tokens/s",
    )
    parser.add_argument("--prompts", type=int, default=32, help="number of prompts in the batch")
    parser.add_argument(
        "--length", type=int, default=512, help="tokens of a prompt with its answer"
    )
    parser.add_argument(
        "--new-tokens", type=int, default=0, help="tokens of the answer (default: half of --length)"
    )
    parser.add_argument(
        "--measure", action="store_true", help="re-measure rates instead of using cached ones"
    )


def run_throughput(args: argparse.Namespace, name: str, config: ModelConfig) -> dict[str, Any]:
    """Search, print the policies, and return the fields of `--json`.

    Raises:
        PlanError: No policy fits.
        RequestError: The arguments are invalid.
    """
    from medusa_core.loading.measure.machine import MEASURED, MeasuredRates
    from medusa_core.loading.plan import BatchShape, policy_search
    from medusa_core.system.files.measurement_files import MeasurementFiles

    refuse_transformers(config)
    new_tokens = _checked(args, config)
    remeasure = MEASURED if args.measure else ()
    rates = MeasuredRates(MeasurementFiles(calibrations_dir()), _report, remeasure)
    batch = BatchShape(args.prompts, args.length - new_tokens, new_tokens)
    searching = policy_search(config, placement_options(args), batch, rates)
    found = _policies(searching)
    print(_text(name, searching, found))
    return as_json(searching.workload, searching.machine, found)


def refuse_transformers(config: ModelConfig) -> None:
    """Refuse a model that runs through transformers, which computes it as a whole.

    Raises:
        RequestError: It does.
    """
    if not config.has_native_family:
        raise RequestError(
            "A model that runs through transformers has no policy: it is never offloaded.",
            "Leave out --policy or --throughput, or choose a model of another architecture.",
        )


def _policies(searching: PolicySearch) -> dict[str, FoundPolicy]:
    """Find the best policy, and the best ones under some restrictions.

    Raises:
        PlanError: None fits.
    """
    resident = searching.resident_cache()
    searches = {
        "weights first": resident,
        "without overlap": searching.without_overlap(),
        "one at a time": resident.one_prompt(),
    }
    found = {"best": searching.best()}
    for name, each in searches.items():
        with suppress(PlanError):  # a restricted search may find none where the best one exists
            found[name] = each.best()
    return found


def as_json(
    workload: Workload, machine: MachineRates, policies: dict[str, FoundPolicy]
) -> dict[str, Any]:
    """Return the fields of `--json`."""
    # JSON has no infinity, the rate of a link that takes no time.
    rates = {
        name: 1e30 if value == float("inf") else value for name, value in asdict(machine).items()
    }
    return {
        "work": asdict(workload),
        "machine": rates,
        **{name.replace(" ", "_"): found_as_json(each) for name, each in policies.items()},
    }


def _checked(args: argparse.Namespace, config: ModelConfig) -> int:
    """Check the arguments, and return the tokens of an answer."""
    if not 1 <= args.prompts <= _MOST_PROMPTS:
        raise RequestError(
            f"{args.prompts} prompts make no batch.", f"Choose 1 to {_MOST_PROMPTS}."
        )
    new_tokens: int = args.new_tokens or args.length // 2
    if not 0 < new_tokens < args.length <= config.context_tokens:
        raise RequestError(
            f"A prompt and an answer of {args.length} tokens, {new_tokens} of them new, make no "
            "sense here.",
            f"The model reads at most {config.context_tokens}, and both need a token.",
        )
    return new_tokens


def _text(name: str, searching: PolicySearch, policies: dict[str, FoundPolicy]) -> str:
    """Format machine and policies."""
    work, machine = searching.workload, searching.machine
    tokens = f"{work.prompt_tokens} tokens, answers of {work.new_tokens}"
    sizes = (machine.device_bytes, machine.memory_bytes, machine.disk_bytes)
    device, memory, disk = (f"{size / GIB:.2f} GiB" for size in sizes)
    lines = [
        f"{name}, {work.num_prompts} prompts of {tokens}, on {searching.budget.name}",
        f"device {device}, memory {memory}, disk {disk} at {machine.from_disk / 1e9:.2f} GB/s",
    ]
    titles = {
        "best": "the best placement, which batch carries out",
        "weights first": "cache and activations on the device",
        "without overlap": "the best placement if loading and computing took turns",
        "one at a time": "one prompt at a time",
    }
    for key, each in policies.items():
        lines += ["", titles[key], *found_lines(work.num_layers, each)]
    return "\n".join(lines)


def found_lines(num_layers: int, found: FoundPolicy) -> list[str]:
    """Format a policy and its forecast."""
    policy, forecast = found
    shares = {
        "weights": policy.weights,
        "cache": policy.cache,
        "activations": policy.activations,
    }
    lines = [f"  {'':<14}" + "".join(f"{tier.value:>9}" for tier in Tier)]
    lines += [f"  {name:<14}{_percents(share)}" for name, share in shares.items()]
    num_resident = round(num_layers * policy.weights.device)
    size = f"block of {policy.num_sequences}: {policy.num_batches} × {policy.batch}"
    size += f", {policy.prompt_rows} rows of prompts a pass"
    times = f"prompts {forecast.prefill_s:.2f} s, a step {forecast.step_s:.2f} s"
    rates = ", ".join(_rate_text(name, rate) for name, rate in forecast.rates.items())
    if policy.cache.below:
        where = "on the device" if policy.attention == Tier.DEVICE.value else "where they lie"
        size += f"; attention to rows below it {where}"
    return [
        *lines,
        f"  {size}; {num_resident} of {num_layers} layers here",
        f"  {times}: {forecast.tokens_per_s:.2f} tokens/s expected",
        f"  {rates}",
        f"  binds: {', '.join(forecast.binds)}",
    ]


def _rate_text(name: str, rate: float) -> str:
    """Format a measured rate."""
    return f"{name} {in_unit(name, rate):.3g} {UNITS[name]}"


def _percents(shares: Shares) -> str:
    """Format how a tensor group is divided among tiers."""
    return "".join(f"{100 * getattr(shares, tier.value):>7.0f} %" for tier in Tier)


def _report(text: str) -> None:
    """Print what is being measured."""
    print(f"{text} …", file=sys.stderr, flush=True)

"""What a model would do of which some layers lie below the device: its plan, and an estimate.

Layers come while others are computed: a step takes what its slower half takes. Both halves are
measured here, once; what heads bring is what Medusa's usually do.

Source: FlexGen (Sheng et al. 2023), section 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medusa_core.loading.choice import ModelChoice
from medusa_core.memory.budget import GIB, Budget
from medusa_core.memory.recommend import Recommendation, plan_choice, recommend, settle_draft_model
from medusa_core.memory.tiers import Below, limited, plan_in_tiers
from medusa_core.messages import Fit, HeadsShape, LoadOptions, Placement, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import settle_formats
from medusa_core.system.user_folders import places

_ROWS = (1, 16)
_NAMES = {Tier.DEVICE: "here", Tier.MEMORY: "in memory", Tier.DISK: "on the disk"}


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """A plan in tiers.

    Attributes:
        choice: With a plan that has a placement.
        placement: Which layers lie where.
        steps_s: Seconds that a step of so many rows is expected to take; empty where the device
            isn't here to be measured.
        rates: Bytes a second that come from each tier, measured.
        tokens_per_s: Expected with heads; 0 where the device isn't here.
        whole: The weight format in which all layers have room; empty where there is none.
        whole_s: Seconds that its step of one row is expected to take; 0 where that isn't known.
    """

    choice: Recommendation
    placement: Placement
    steps_s: Mapping[int, float]
    rates: Mapping[Tier, float]
    tokens_per_s: float
    whole: str
    whole_s: float

    @property
    def is_worth_it(self) -> bool:
        """Is no way without offloading at least as fast?"""
        return not self.whole or (0 < self.steps_s.get(1, 0.0) < self.whole_s)

    @property
    def plain_tokens_per_s(self) -> float:
        """Expected without drafts; 0 where the device isn't here."""
        return 1 / self.steps_s[1] if self.steps_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Under the names that `plan --json` promises."""
        return {
            "tiers": [tier.value for tier in self.placement.tiers],
            "buffer_bytes": self.placement.buffer_bytes,
            "offloaded_bytes": self.placement.offloaded_bytes,
            "step_s": {str(rows): seconds for rows, seconds in self.steps_s.items()},
            "bytes_per_s": {tier.value: rate for tier, rate in self.rates.items()},
            "plain_tokens_per_s": self.plain_tokens_per_s,
            "tokens_per_s": self.tokens_per_s,
            "offload_is_worth_it": self.is_worth_it,
        }

    def text(self) -> str:
        """For people."""
        lines = [""]
        for tier, name in _NAMES.items():
            if layers := self.placement.layers(tier):
                count = f"{len(layers)} of {len(self.placement.tiers)} layers {name}"
                size = f"{self.placement.nbytes(tier) / GIB:.2f} GiB"
                lines.append(f"  {count}, {size}: {_ranges(layers)}")
        lines += [
            f"  {_NAMES[tier]}: {rate / 1e9:.2f} GB/s, measured"
            for tier, rate in self.rates.items()
        ]
        if self.steps_s:
            costs = ", ".join(
                f"T({rows}) {seconds:.2f} s" for rows, seconds in self.steps_s.items()
            )
            lines.append(f"  an estimate: {costs}; {self._speeds()}")
        return "\n".join([*lines, f"  {self._advice()}"])

    def _speeds(self) -> str:
        plain = f"{self.plain_tokens_per_s:.2f} tokens/s plain"
        more = self.tokens_per_s > self.plain_tokens_per_s
        return plain + (f", about {self.tokens_per_s:.2f} with heads" if more else "")

    def _advice(self) -> str:
        if not self.whole:
            return "offloading is the only way to load it here"
        if self.is_worth_it:
            return f"offloading is worth it: {self.whole} has room without, but is slower"
        return f"offloading isn't worth it: {self.whole} has room without"


@dataclass(frozen=True, slots=True)
class ForecastDevice:
    """A device that a model is planned for.

    Attributes:
        budget: What may be taken of it.
        below: What lies below it.
        name: Torch device name; None for a device that isn't here.
    """

    budget: Budget
    below: Below
    name: str | None


def device_with(budget: Budget, options: LoadOptions) -> ForecastDevice:
    """A device of this computer.

    Args:
        budget: What may be taken of it.
        options: Name it, and the folder for layers.

    Raises:
        RequestError: There is no such device.
    """
    from medusa_core.memory.probe import below_device

    return ForecastDevice(budget, below_device(options), options.device)


def plan_offload(
    config: ModelConfig,
    heads: HeadsShape,
    choice: Recommendation,
    device: ForecastDevice,
    draft_model: ModelConfig | None = None,
    *,
    may_shorten: bool = False,
) -> OffloadPlan | None:
    """What a model would do offloaded; blocks while disk and device are measured.

    Args:
        config: Its sizes.
        heads: Sizes of its heads.
        choice: As what it is to be loaded, without room for it.
        device: Where.
        draft_model: Sizes of a smaller model that drafts beside it, or None.
        may_shorten: Nobody asked for that context.

    Returns:
        None if there is no room even so.

    Raises:
        TierError: The disk can't be measured.
    """
    budget = device.budget
    formats = settle_formats(choice.formats, "", budget.hardware, config.stored)
    drafts = None
    if draft_model is not None:
        drafts = settle_draft_model(draft_model, choice.formats, "", budget.hardware)
    plan = plan_in_tiers(
        config,
        heads,
        formats,
        budget,
        device.below,
        choice.context_tokens,
        draft_model=drafts,
        may_shorten=may_shorten,
    )
    if plan is None or plan.placement is None:
        return None
    choice = replace(choice, plan=plan, context_tokens=plan.context_tokens)
    whole = recommend(config, heads, budget, draft_model)  # the best way without offloading
    name = "" if whole is None else whole.formats.linears or "the model as it is stored"
    if device.name is None:
        return OffloadPlan(choice, plan.placement, {}, {}, 0.0, name, 0.0)
    rates = _rates(plan.placement, device.name, device.below.disk)
    steps_s, tokens = _expected(config, heads, choice, budget, rates)
    whole_s = 0.0 if whole is None else _expected(config, heads, whole, budget, {})[0][1]
    return OffloadPlan(choice, plan.placement, steps_s, rates, tokens, name, whole_s)


def offloaded_load(
    choice: ModelChoice, layers_dir: Path, device: str = "", own_bytes: int = 0
) -> OffloadPlan | None:
    """`plan_offload` of a model on this computer.

    Args:
        choice: The model.
        layers_dir: Folder for its layers.
        device: Torch device name; empty for the best there is.
        own_bytes: What a loaded model holds there, which loading this one would free.

    Returns:
        None where it fits, has an adapter, or has no room even so.

    Raises:
        ModelError: Its files can't be read.
        RequestError: There is no such device.
        TierError: The disk can't be measured.
    """
    from medusa_core.heads.kind import chosen_shape
    from medusa_core.memory.probe import live_budget

    options, files = choice.options, ModelFiles.open(choice.model_dir)
    config = files.config
    heads = chosen_shape(files, choice.heads_dir, options.takes_own_heads)
    budget = limited(live_budget(device, own_bytes), options.memory_gib)
    context = options.context_tokens or config.usual_context
    draft_dir = options.assistant_dir
    draft_model = None if draft_dir is None else ModelFiles.open(draft_dir).config
    present = plan_choice(config, heads, options.formats, budget, context, draft_model=draft_model)
    if present.plan.fit is not Fit.NO or options.adapter_dir is not None:
        return None
    may_shorten = not options.context_tokens
    options = replace(options.with_layers_in(layers_dir), device=device)
    place = device_with(budget, options)
    return plan_offload(config, heads, present, place, draft_model, may_shorten=may_shorten)


def _rates(placement: Placement, device: str, disk: Path | None) -> dict[Tier, float]:
    """Bytes a second from every tier that holds layers."""
    from medusa_core.memory.bandwidth import card_bytes_per_s, disk_bytes_per_s
    from medusa_core.models.precision import choose_device

    kept = places().bandwidths
    rates = {}
    if placement.layers(Tier.MEMORY):
        rates[Tier.MEMORY] = card_bytes_per_s(choose_device(device), kept)
    if placement.layers(Tier.DISK) and disk is not None:
        rates[Tier.DISK] = disk_bytes_per_s(disk, kept)
    return rates


def _expected(
    config: ModelConfig,
    heads: HeadsShape,
    choice: Recommendation,
    budget: Budget,
    rates: Mapping[Tier, float],
) -> tuple[dict[int, float], float]:
    """Seconds that steps of some row counts should take, and tokens a second with heads."""
    from medusa_core.loading.forecast import (
        forecast,
        measure_read_rate,
        rate_limiting_format,
        step_s,
    )

    formats = settle_formats(choice.formats, "", budget.hardware, config.stored)
    read_rate = measure_read_rate(
        formats.device, rate_limiting_format(choice.formats, config, budget)
    )
    placed, coming_s = choice.plan.placement, 0.0
    if placed is not None:  # what lies on a disk comes beside what lies in memory
        coming_s = max(placed.nbytes(tier) / rate for tier, rate in rates.items())
    steps_s = {rows: step_s(config, formats, read_rate, rows, coming_s) for rows in _ROWS}
    speeds = forecast(config, heads, choice.formats, budget, read_rate, coming_s)
    return steps_s, speeds.tokens_per_s


def _ranges(layers: Sequence[int]) -> str:
    """Numbers as ranges, such as 0-3, 5, 7-9."""
    found: list[list[int]] = []
    for layer in layers:
        if found and layer == found[-1][-1] + 1:
            found[-1] = [found[-1][0], layer]
        else:
            found.append([layer])
    return ", ".join("-".join(map(str, each)) for each in found)

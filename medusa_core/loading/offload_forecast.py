"""Plan a model of which some layers are offloaded, and estimate its speed.

Layers are transferred while others are computed, as the cost model of policies has it; a batch of
one prompt is all that a chat is. Rates of disk and link are measured once and kept; the compute
time follows from the weights' bytes (`memory/estimate.py`), so that models can be compared before
they are downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.memory.budget import GIB, Budget, limit_budget
from medusa_core.loading.memory.estimate import ReadRate, forecast, rate_limiting_format, read_bytes
from medusa_core.loading.memory.placement import OffloadRoom, Planner, piece_bytes
from medusa_core.loading.memory.recommend import (
    Recommendation,
    plan_choice,
    recommend,
    resolve_draft_model,
)
from medusa_core.loading.policy.cost import pass_s
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.messages import Fit, HeadsShape, LoadOptions, Placement, Shares, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats

_ROWS = (1, 16)
_NAMES = {Tier.DEVICE: "here", Tier.MEMORY: "in memory", Tier.DISK: "on the disk"}


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """A plan with offloaded layers, and its expected speed.

    Attributes:
        choice: Weight formats and context, with a plan that has a placement.
        placement: Tier of each layer.
        steps_s: Expected seconds of a step by its rows; empty for a device that isn't here.
        rates: Measured bytes per second from each tier that holds layers.
        tokens_per_s: Expected with heads; 0 for a device that isn't here.
        whole: Weight format in which all layers fit the device; empty if none does.
        whole_s: Expected seconds of its step of one row; 0 if unknown.
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
        """Whether it is faster than every way without offloading."""
        return not self.whole or (0 < self.steps_s.get(1, 0.0) < self.whole_s)

    @property
    def plain_tokens_per_s(self) -> float:
        """Expected without drafts; 0 for a device that isn't here."""
        return 1 / self.steps_s[1] if self.steps_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the fields of `plan --json`."""
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
        """Format the plan for a terminal."""
        lines = [""]
        for tier, name in _NAMES.items():
            if layers := self.placement.layers(tier):
                count = f"{len(layers)} of {len(self.placement.tiers)} layers {name}"
                size = f"{self.placement.nbytes(tier) / GIB:.2f} GiB"
                lines.append(f"  {count}, {size}: {number_ranges(layers)}")
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
        """Expected tokens per second in words."""
        plain = f"{self.plain_tokens_per_s:.2f} tokens/s plain"
        more = self.tokens_per_s > self.plain_tokens_per_s
        return plain + (f", about {self.tokens_per_s:.2f} with heads" if more else "")

    def _advice(self) -> str:
        """Whether offloading is faster than a smaller format, in words."""
        if not self.whole:
            return "offloading is the only way to load it here"
        if self.is_worth_it:
            return f"offloading is worth it: {self.whole} has room without, but is slower"
        return f"offloading isn't worth it: {self.whole} has room without"


@dataclass(frozen=True, slots=True)
class ForecastDevice:
    """A device that a model is planned for.

    Attributes:
        budget: Memory of the device.
        room: Host memory and disk space for offloaded layers.
        name: Torch device name; None for a hypothetical device.
        remeasure: Saved measurements to repeat, as named in `MEASURED`.
    """

    budget: Budget
    room: OffloadRoom
    name: str | None
    remeasure: Collection[str] = ()


def device_with(
    budget: Budget, options: LoadOptions, remeasure: Collection[str] = ()
) -> ForecastDevice:
    """Return a device of this computer.

    Args:
        budget: Memory of the device.
        options: Name the device, and the folder for layers.
        remeasure: Kinds of kept measurements that are taken anew.

    Raises:
        RequestError: There is no such device.
    """
    from medusa_core.loading.memory.probe import offload_room

    return ForecastDevice(budget, offload_room(options), options.device, remeasure)


def plan_offload(
    config: ModelConfig,
    heads: HeadsShape,
    choice: Recommendation,
    device: ForecastDevice,
    draft_model: ModelConfig | None = None,
    *,
    may_shorten: bool = False,
) -> OffloadPlan | None:
    """Plan a model with offloaded layers; blocks while disk and device are measured.

    Args:
        config: Configuration of the model.
        heads: Sizes of its heads.
        choice: Weight formats and context that don't fit the device.
        device: The device.
        draft_model: Configuration of a smaller model that drafts, or None.
        may_shorten: A shorter context may be planned.

    Returns:
        None if it doesn't fit even so.

    Raises:
        TierError: The disk can't be measured.
    """
    budget = device.budget
    formats = resolve_formats(choice.formats, "", budget.hardware, config.stored)
    drafts = None
    if draft_model is not None:
        drafts = resolve_draft_model(draft_model, choice.formats, "", budget.hardware)
    planner = Planner(config, heads, formats, budget, draft_model=drafts)
    plan = planner.offload(choice.context_tokens, device.room, may_shorten=may_shorten)
    if plan is None or plan.placement is None:
        return None
    choice = replace(choice, plan=plan, context_tokens=plan.context_tokens)
    whole = recommend(config, heads, budget, draft_model)  # the best way without offloading
    name = "" if whole is None else whole.formats.linears or "the model as it is stored"
    if device.name is None:
        return OffloadPlan(choice, plan.placement, {}, {}, 0.0, name, 0.0)
    rate = _read_rate(config, choice, budget)
    machine = _machine(planner, plan.placement, device, rate)
    step_s = _step_time(plan.placement, machine)
    tokens_per_s = forecast(config, heads, choice.formats, budget, rate, step_s).tokens_per_s
    rates = {Tier.MEMORY: machine.to_device, Tier.DISK: machine.from_disk}
    return OffloadPlan(
        choice,
        plan.placement,
        {rows: step_s(rows) for rows in _ROWS},
        {tier: rates[tier] for tier in rates if plan.placement.layers(tier)},
        tokens_per_s,
        name,
        0.0 if whole is None else _resident_s(config, whole, budget),
    )


def offloaded_load(
    choice: ModelChoice, layers_dir: Path, device: str = "", own_bytes: int = 0
) -> OffloadPlan | None:
    """Plan a model of this computer with offloaded layers; see `plan_offload`.

    Args:
        choice: The model.
        layers_dir: Folder for its layers.
        device: Torch device name; empty for the best there is.
        own_bytes: Memory of the device that unloading the present model would free.

    Returns:
        None if it fits, has an adapter, or doesn't fit even so.

    Raises:
        ModelError: Its files can't be read.
        RequestError: There is no such device.
        TierError: The disk can't be measured.
    """
    from medusa_core.heads.kind import chosen_shape
    from medusa_core.loading.memory.probe import live_budget

    options, files = choice.options, ModelFiles.open(choice.model_dir)
    config = files.config
    heads = chosen_shape(files, choice.heads_dir, options.takes_own_heads)
    budget = limit_budget(live_budget(device, own_bytes), options.memory_gib)
    context = options.context_tokens or config.default_context
    draft_dir = options.assistant_dir
    draft_model = None if draft_dir is None else ModelFiles.open(draft_dir).config
    present = plan_choice(config, heads, options.formats, budget, context, draft_model=draft_model)
    if present.plan.fit is not Fit.NO or options.adapter_dir is not None:
        return None
    may_shorten = not options.context_tokens
    options = replace(options.with_layers_in(layers_dir), device=device)
    place = device_with(budget, options)
    return plan_offload(config, heads, present, place, draft_model, may_shorten=may_shorten)


def _machine(
    planner: Planner, placement: Placement, device: ForecastDevice, rate: ReadRate
) -> MachineRates:
    """Return the device with its link and disk, and layers that compute at a read rate.

    Raises:
        TierError: The disk can't be measured.
    """
    from medusa_core.loading.measure.machine import DiskRates, LinkRates, MeasuredRates
    from medusa_core.models.precision import choose_device
    from medusa_core.system.files.measurement_files import MeasurementFiles
    from medusa_core.system.resources import calibrations_dir

    config, formats = planner.config, planner.formats
    # Without a message: the estimate itself says that rates are measured.
    measured = MeasuredRates(MeasurementFiles(calibrations_dir()), lambda _: None, device.remeasure)
    link, disk = LinkRates(), DiskRates()
    if formats.device == "cuda":
        link = measured.card(choose_device(device.name or ""))
    if placement.layers(Tier.DISK) and device.room.disk is not None:
        disk = measured.disk(device.room.disk, piece_bytes(config, formats))
    curve = tuple(
        (rows, rate.step_s(read_bytes(config, formats, rows), rows) / config.num_layers)
        for rows, _ in rate.rates
    )
    return MachineRates(
        device_bytes=planner.budget.total_bytes,
        memory_bytes=device.room.memory_bytes,
        to_device=link.to_device,
        from_disk=disk.read,
        read_s=disk.each,
        layer_s=curve,
        head_s=((1, 0.0), (2, 0.0)),  # its bytes are among those that a step reads
    )


def offloaded_step(
    planner: Planner, placement: Placement, device: ForecastDevice, rate: ReadRate
) -> Callable[[int], float]:
    """Return the expected seconds of a step by its rows; blocks while disk and link are measured.

    Args:
        planner: Plans the model.
        placement: Tier of each layer.
        device: Device of the layers that aren't offloaded.
        rate: Rate at which it reads weights.

    Raises:
        TierError: The disk can't be measured.
    """
    return _step_time(placement, _machine(planner, placement, device, rate))


def _step_time(placement: Placement, machine: MachineRates) -> Callable[[int], float]:
    """Return the seconds of a step by its rows."""
    count = len(placement.tiers)
    shares = Shares(*(len(placement.layers(tier)) / count for tier in Tier))
    offloaded = count - len(placement.layers(Tier.DEVICE))
    layer_bytes = placement.offloaded_bytes / max(1, offloaded)
    return lambda rows: pass_s(count, layer_bytes, machine, shares, rows)


def _resident_s(config: ModelConfig, choice: Recommendation, budget: Budget) -> float:
    """Return the expected seconds of a step of one row with all layers on the device."""
    formats = resolve_formats(choice.formats, "", budget.hardware, config.stored)
    return _read_rate(config, choice, budget).step_s(read_bytes(config, formats, 1), 1)


def _read_rate(config: ModelConfig, choice: Recommendation, budget: Budget) -> ReadRate:
    """Measured rate at which the device reads weights in the chosen format."""
    from medusa_core.loading.measure.weights import measure_read_rate

    kind = rate_limiting_format(choice.formats, config, budget)
    return measure_read_rate(budget.hardware.device, kind)


def number_ranges(layers: Sequence[int]) -> str:
    """Format numbers as ranges, such as 0-3, 5, 7-9."""
    found: list[list[int]] = []
    for layer in layers:
        if found and layer == found[-1][-1] + 1:
            found[-1] = [found[-1][0], layer]
        else:
            found.append([layer])
    return ", ".join("-".join(map(str, each)) for each in found)

"""Plan a model of which the processor computes MLPs or experts beside a card; estimate its speed.

What doesn't fit a card is computed by the processor, or streamed to the card in every step. Rates
of card, processor and bus are measured once; the estimate says which is faster. Drafters take
memory, too: a plan names what they displace, and compares with a shorter context, a smaller
drafter and none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from medusa_core.errors import PlanError, RequestError
from medusa_core.i18n import tr
from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.memory.estimate import ReadRate, forecast, host_step_s, mixed_step_s
from medusa_core.loading.memory.placement import CpuLayers, HostMlpBytes, OffloadRoom, Planner
from medusa_core.loading.memory.recommend import Recommendation, resolve_draft_model
from medusa_core.loading.offload_forecast import (
    ForecastDevice,
    OffloadPlan,
    number_ranges,
    offloaded_step,
    plan_offload,
)
from medusa_core.messages import (
    CpuParts,
    CpuReason,
    Fit,
    HeadsShape,
    LoadOptions,
    MemoryPlan,
    WeightFormats,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats, resolve_formats, resolve_host_formats
from medusa_core.models.quant.format import quant_registry

_ROWS = (1, 4, 16)
_SMALL_DRAFTER = "nf4"
_MIN_CONTEXT = 512
StepTime = Callable[[int], float]


class _Rates(NamedTuple):
    """Measured rates.

    Attributes:
        cpu: Weights that the processor reads.
        card: Weights that the card reads; None for a card that isn't here.
        copies_s: Seconds of copying a row of activations to the processor and back.
    """

    cpu: ReadRate
    card: ReadRate | None
    copies_s: float


@dataclass(frozen=True, slots=True)
class DrafterOffer:
    """Another way to load a model whose drafter takes the place of layers on a card.

    Attributes:
        change: `context`, `drafter` or `none`: a shorter context, a smaller drafter or none.
        context_tokens: Longest prompt plus answer.
        cpu_layers: Number of layers of which the processor computes a part.
        plain_tokens_per_s: Expected without drafts; 0 for a card that isn't here.
        tokens_per_s: Expected with heads; 0 for a card that isn't here.
    """

    change: str
    context_tokens: int
    cpu_layers: int
    plain_tokens_per_s: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """A plan of which the processor computes parts, and its expected speed.

    Attributes:
        choice: Weight formats and context, with a plan that has `cpu_parts`.
        parts: These parts.
        steps_s: Expected seconds of a step by its rows; empty for a card that isn't here.
        cpu_steps_s: The processor's part of them.
        cpu_rate: Weights that the processor reads for one row. [bytes/s]
        tokens_per_s: Expected with heads; 0 for a card that isn't here.
        offers: Other ways to load it, if the drafter takes the place of layers.
    """

    choice: Recommendation
    parts: CpuParts
    steps_s: Mapping[int, float]
    cpu_steps_s: Mapping[int, float]
    cpu_rate: float
    tokens_per_s: float
    offers: tuple[DrafterOffer, ...]

    @property
    def plain_tokens_per_s(self) -> float:
        """Expected without drafts; 0 for a card that isn't here."""
        return 1 / self.steps_s[1] if self.steps_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the fields of `plan --json`."""
        return {
            "cpu_layers": list(self.parts.layers),
            "cpu_experts": self.parts.num_experts,
            "cpu_bytes": self.parts.nbytes,
            "cpu_reason": self.parts.reason.value,
            "cpu_step_s": {str(rows): seconds for rows, seconds in self.cpu_steps_s.items()},
            "cpu_bytes_per_s": self.cpu_rate,
            "step_s": {str(rows): seconds for rows, seconds in self.steps_s.items()},
            "streamed_step_s": self.parts.streamed_s,
            "plain_tokens_per_s": self.plain_tokens_per_s,
            "tokens_per_s": self.tokens_per_s,
            "drafter_layers": self.parts.drafter_layers,
            "offers": [asdict(offer) for offer in self.offers],
        }

    def text(self) -> str:
        """Format the plan for a terminal."""
        parts = self.parts
        layers = number_ranges(parts.layers)
        rate = f"{self.cpu_rate / 1e9:.1f} GB/s, measured"
        lines = [
            "",
            f"  {parts.summary}: {layers}",
            f"  they take {parts.nbytes / GIB:.2f} GiB of this computer's memory",
            f"  why: {parts.why}",
            f"  its part of a step: {_times(self.cpu_steps_s)}; it reads {rate}",
        ]
        if self.steps_s:
            speed = _speeds(self.plain_tokens_per_s, self.tokens_per_s)
            lines.append(f"  an estimate: {_times(self.steps_s)}; {speed}")
        else:
            lines.append("  the card's part isn't known, as that card isn't here")
        if self.offers:
            lines.append(f"  {parts.drafter_layers} of these layers make room for the drafter:")
            lines += [f"    {_offer_words(offer)}" for offer in self.offers]
        return "\n".join(lines)


def host_formats(
    config: ModelConfig, options: LoadOptions, formats: PartFormats
) -> PartFormats | None:
    """Return the formats of parts that this processor computes beside a card; None if it may not.

    Args:
        config: Configuration of the model.
        options: How it is loaded.
        formats: Formats on its device.

    Raises:
        RequestError: It may not, and was requested.
    """
    import torch

    from medusa_core.models.precision import hardware_of

    lack = ""
    if not config.has_native_family:
        lack = tr("Transformers computes this model as a whole.")
    elif options.cluster or options.adapter_dir is not None or options.policy is not None:
        lack = tr("With an adapter, a policy or a cluster, a card computes all of its layers.")
    if formats.device != "cpu" and not lack:
        processor = hardware_of(torch.device("cpu"))
        return resolve_host_formats(options.formats, options.dtype, processor, config.stored)
    if formats.device != "cpu" and (options.experts == "ram" or options.cpu_layers):
        raise RequestError(lack, "Leave out --experts and --cpu-layers.")
    return None


def place_parts(
    planner: Planner, plan: MemoryPlan, room: OffloadRoom, options: LoadOptions
) -> MemoryPlan | None:
    """Plan a model for a load: as few MLPs and experts as needed are computed by the processor.

    Where layers may be streamed instead, the faster way is planned.

    Args:
        planner: Plans the model, with formats for the processor.
        plan: Plan with everything on the card.
        room: Host memory, and a folder for layers.
        options: How the model is loaded.

    Returns:
        None if the processor needn't, or may not, compute anything, or there is no room.

    Raises:
        PlanError: There is no room, and it was requested.
        RequestError: The options contradict each other or the model.
        TierError: The disk can't be measured.
    """
    cpu = CpuLayers.of(planner.config, options)
    if not cpu.required and (plan.fit is not Fit.NO or not cpu.allowed):
        return None
    shorten = not options.context_tokens and plan.fit is Fit.NO
    placed = planner.with_cpu(plan.context_tokens, *cpu, room.memory_bytes, may_shorten=shorten)
    if placed is None and cpu.required:
        raise PlanError(
            "Card and computer have too little memory for this placement.",
            "Leave out --experts and --cpu-layers, or choose a smaller weight format.",
        )
    if placed is None or placed.cpu_parts is None:
        return placed
    parts = _with_reason(planner, placed, placed.cpu_parts, cpu, room)
    streamed = None
    if not cpu.required and (options.memory_gib or options.has_disk):
        streamed = planner.offload(plan.context_tokens, room, may_shorten=shorten)
    if streamed is None or streamed.placement is None:
        return replace(placed, cpu_parts=parts)
    device = ForecastDevice(planner.budget, room, options.device)
    rates = _measure(planner, device)
    assert rates.card is not None  # it is here
    streamed_s = offloaded_step(planner, streamed.placement, device, rates.card)(1)
    parts = _compared(planner, parts, rates, streamed_s)
    return streamed if parts.step_s > streamed_s else replace(placed, cpu_parts=parts)


def plan_cpu(
    config: ModelConfig,
    heads: HeadsShape,
    choice: Recommendation,
    device: ForecastDevice,
    options: LoadOptions,
    draft_model: ModelConfig | None = None,
) -> CpuPlan | OffloadPlan | None:
    """Plan a model for `plan` and the window; blocks while processor, card and bus are measured.

    Args:
        config: Configuration of the model.
        heads: Sizes of its heads.
        choice: Weight formats and context.
        device: The card.
        options: What may be computed by the processor, or streamed.
        draft_model: Configuration of a smaller model that drafts, or None.

    Returns:
        As `place_parts`, with its expected speed.

    Raises:
        PlanError: There is no room, and it was requested.
        RequestError: The options contradict each other or the model.
        TierError: The disk can't be measured.
    """
    hardware, cpu = device.budget.hardware, CpuLayers.of(config, options)
    if not cpu.required and (choice.plan.fit is not Fit.NO or not cpu.allowed):
        return None
    formats = resolve_formats(choice.formats, "", hardware, config.stored)
    host = host_formats(config, replace(options, formats=choice.formats), formats)
    if host is None:
        return None
    drafts = None
    if draft_model is not None:
        drafts = resolve_draft_model(draft_model, choice.formats, "", hardware)
    planner = Planner(config, heads, formats, device.budget, draft_model=drafts, host=host)
    unlimited = replace(options, memory_gib=0.0, tier_disk=None)  # streams are planned below
    plan = place_parts(planner, choice.plan, device.room, unlimited)
    if plan is None or plan.cpu_parts is None:
        return None
    parts, rates = plan.cpu_parts, _measure(planner, device)
    step_s = _step_time(planner, parts, rates)
    may_stream = parts.reason is not CpuReason.REQUESTED
    if may_stream and step_s is not None and (options.memory_gib or options.has_disk):
        shorten = not options.context_tokens
        streamed = plan_offload(config, heads, choice, device, draft_model, may_shorten=shorten)
        if streamed is not None:
            parts = _compared(planner, parts, rates, streamed.steps_s[1])
            if parts.step_s > parts.streamed_s:
                return streamed
    moved = _moved(planner, parts)
    return CpuPlan(
        choice=replace(
            choice, plan=replace(plan, cpu_parts=parts), context_tokens=plan.context_tokens
        ),
        parts=parts,
        steps_s={} if step_s is None else {rows: step_s(rows) for rows in _ROWS},
        cpu_steps_s={rows: host_step_s(config, moved, rates.cpu, rows) for rows in _ROWS},
        cpu_rate=rates.cpu.rates[0][1],
        tokens_per_s=_tokens_per_s(planner, choice.formats, parts, rates)[1],
        offers=tuple(_offers(planner, choice.formats, plan, device.room, options, rates)),
    )


def _with_reason(
    planner: Planner, plan: MemoryPlan, parts: CpuParts, cpu: CpuLayers, room: OffloadRoom
) -> CpuParts:
    """Add why the processor computes these parts, and how many a drafter displaces."""
    reason = CpuReason.REQUESTED if cpu.required else CpuReason.ONLY_WAY
    bare = replace(planner, heads=HeadsShape(), draft_model=None)
    without = bare.with_cpu(plan.context_tokens, *cpu, room.memory_bytes)
    displaced = len(parts.layers) - _num_cpu_layers(without)
    return replace(parts, reason=reason, drafter_layers=max(0, displaced))


def _compared(planner: Planner, parts: CpuParts, rates: _Rates, streamed_s: float) -> CpuParts:
    """Add the expected seconds of a step, and of one with streamed layers."""
    step_s = _step_time(planner, parts, rates)
    own_s = 0.0 if step_s is None else step_s(1)
    return replace(parts, reason=CpuReason.FASTER, step_s=own_s, streamed_s=streamed_s)


def _measure(planner: Planner, device: ForecastDevice) -> _Rates:
    """Measure processor, card and bus; what was measured before is kept."""
    from medusa_core.loading.measure.machine import MeasuredRates
    from medusa_core.loading.measure.weights import measure_read_rate
    from medusa_core.models.precision import choose_device
    from medusa_core.system.files.measurement_files import MeasurementFiles
    from medusa_core.system.resources import calibrations_dir

    assert planner.host is not None  # else the processor computes nothing
    cpu = measure_read_rate("cpu", planner.host.linears.name)
    if device.name is None:
        return _Rates(cpu, None, 0.0)
    measured = MeasuredRates(MeasurementFiles(calibrations_dir()), lambda _: None, device.remeasure)
    card = measure_read_rate(planner.formats.device, planner.formats.linears.name)
    return _Rates(cpu, card, measured.card(choose_device(device.name)).row_copies)


def _moved(planner: Planner, parts: CpuParts | None) -> list[HostMlpBytes]:
    """Sizes of what the processor computes."""
    layers = () if parts is None else parts.layers
    return [one for one in planner.host_mlps if one.layer in layers]


def _step_time(planner: Planner, parts: CpuParts | None, rates: _Rates) -> StepTime | None:
    """Return the seconds of a step by its rows; None for a card that isn't here."""
    card, moved = rates.card, _moved(planner, parts)
    if card is None:
        return None

    def step_s(rows: int) -> float:
        """Expected seconds of a step of some rows."""
        computed_s = mixed_step_s(planner.config, planner.formats, moved, card, rates.cpu, rows)
        return computed_s + len(moved) * rates.copies_s

    return step_s


def _tokens_per_s(
    planner: Planner, wanted: WeightFormats, parts: CpuParts | None, rates: _Rates
) -> tuple[float, float]:
    """Return the expected tokens per second without drafts, and with heads; 0 if unknown."""
    step_s = _step_time(planner, parts, rates)
    if step_s is None or rates.card is None:
        return 0.0, 0.0
    of = (planner.config, planner.heads, wanted, planner.budget, rates.card, step_s)
    return forecast(*of)[:2]


def _offers(
    planner: Planner,
    wanted: WeightFormats,
    plan: MemoryPlan,
    room: OffloadRoom,
    options: LoadOptions,
    rates: _Rates,
) -> Iterator[DrafterOffer]:
    """Yield other ways to load a model whose drafter displaces layers."""
    parts = plan.cpu_parts
    if parts is None or not parts.drafter_layers:
        return
    cpu, most = CpuLayers.of(planner.config, options), len(parts.layers) - parts.drafter_layers

    def offer(change: str, planner: Planner, context: int) -> DrafterOffer | None:
        """Plan a change, and return it as an offer if the processor computes fewer layers then."""
        placed = planner.with_cpu(context, *cpu, room.memory_bytes)
        if placed is None or _num_cpu_layers(placed) >= len(parts.layers):
            return None
        speeds = _tokens_per_s(planner, wanted, placed.cpu_parts, rates)
        return DrafterOffer(change, context, _num_cpu_layers(placed), *speeds)

    shorter, context = None, plan.context_tokens // 2
    while context >= _MIN_CONTEXT and (shorter is None or shorter.cpu_layers > most):
        shorter = offer("context", planner, context) or shorter
        context //= 2
    smaller = _with_smaller_drafter(planner, wanted)
    bare = replace(planner, heads=HeadsShape(), draft_model=None)
    found = (
        shorter,
        None if smaller is None else offer("drafter", smaller, plan.context_tokens),
        offer("none", bare, plan.context_tokens),
    )
    yield from (one for one in found if one is not None)


def _with_smaller_drafter(planner: Planner, wanted: WeightFormats) -> Planner | None:
    """Return a planner of the same model with a drafter in 4 bits; None if it is already."""
    formats, hardware, draft = planner.formats, planner.budget.hardware, planner.draft_model
    small = quant_registry().get(_SMALL_DRAFTER)
    if draft is not None:
        if draft.config.quantization or draft.formats.linears.bits <= small.bits:
            return None
        own = wanted._replace(linears=small.name)
        return replace(planner, draft_model=resolve_draft_model(draft.config, own, "", hardware))
    if formats.heads.bits <= small.bits:
        return None
    return replace(planner, formats=replace(formats, heads=small))


def _num_cpu_layers(plan: MemoryPlan | None) -> int:
    """Number of layers whose MLP or experts the processor computes."""
    return 0 if plan is None or plan.cpu_parts is None else len(plan.cpu_parts.layers)


def _offer_words(offer: DrafterOffer) -> str:
    """Describe an offer in a line for people."""
    ways = {
        "context": f"a context of {offer.context_tokens:,} tokens",
        "drafter": "the drafter in 4 bits",
        "none": "no drafter",
    }
    speed = _speeds(offer.plain_tokens_per_s, offer.tokens_per_s)
    layers = f"with {ways[offer.change]} {offer.cpu_layers} layers"
    return f"{layers}, {speed}" if offer.plain_tokens_per_s else layers


def _speeds(plain: float, with_heads: float) -> str:
    """Format plain speed, and speed with heads if that is higher."""
    words = f"{plain:.1f} tokens/s plain"
    return words + (f", about {with_heads:.1f} with heads" if with_heads > plain else "")


def _times(steps_s: Mapping[int, float]) -> str:
    """Format seconds of a step by its rows."""
    return ", ".join(f"T({rows}) {_ms(seconds)}" for rows, seconds in steps_s.items())


def _ms(seconds: float) -> str:
    """Format seconds as milliseconds."""
    return f"{1000 * seconds:.1f} ms"

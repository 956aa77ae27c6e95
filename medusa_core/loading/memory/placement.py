"""Plan which layers are offloaded where a model doesn't fit a device. Pure: sizes in, a plan out.

There is one placement: a `Policy` says how many layers' weights and KV rows are on the device, in
host memory and on a disk. A batch searches for its policy (`policy/search.py`). A single chat gets
as many layers on the device as fit, since each of them saves its bytes in every pass, whichever
layer it is.

Layers of a tier are spread evenly among the others, so that transfers are steady while a pass
computes.

Source: FlexGen (Sheng et al. 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.plan import (
    NO_ADAPTER,
    DraftModel,
    cache_itemsize,
    chunk_rows,
    fit_of,
    part_bytes,
    plan_memory,
    scratch_bytes,
)
from medusa_core.loading.policy.rules import offloaded_layers, tier_of
from medusa_core.loading.policy.workload import JUDGED_ROWS, MANY, TREE_ROWS
from medusa_core.messages import (
    CpuParts,
    Fit,
    HeadsShape,
    LoadOptions,
    MemoryPlan,
    Placement,
    Policy,
    Shares,
    Tier,
)
from medusa_core.models.blocks.sizes import block_tensors
from medusa_core.models.blocks.spec import linear_at
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import AdapterShape
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.kv.size import (
    brought_bytes,
    offloaded_row_bytes,
    ring_bytes,
    tail_bytes,
    whole_rows,
)
from medusa_core.runtime.offload.layer_entries import ALIGN_BYTES, NUM_BUFFERS, rounded_up

EXPERT_PLACES = ("auto", "ram", "card")
_MIN_CONTEXT = 512
_MAX_PROMPT_ROWS = 512
# Without a requested context the KV cache gets at most a third of the device: each further row of
# it would push weights off the device, which every pass then reads again.
_CACHE_SHARE = 3


@dataclass(frozen=True, slots=True)
class OffloadRoom:
    """Room for layers that don't fit the device.

    Attributes:
        memory_bytes: Free host memory; 0 where the CPU is the device.
        disk: Folder for layers on a disk; None if no layer may be there.
    """

    memory_bytes: int = 0
    disk: Path | None = None


@dataclass(frozen=True)
class Planner:
    """Plans the memory of one model on one device.

    Attributes:
        config: Configuration of the target.
        heads: Sizes of the heads.
        formats: Formats of all parts.
        budget: Memory of the device.
        sessions: Conversations that have room for a whole context at once.
        draft_model: Smaller model that drafts; None for none.
        adapter: LoRA adapter of the target.
        host: Formats of parts that the processor computes beside a card; None if it may not.
    """

    config: ModelConfig
    heads: HeadsShape
    formats: PartFormats
    budget: Budget
    sessions: int = 1
    draft_model: DraftModel | None = None
    adapter: AdapterShape = NO_ADAPTER
    host: PartFormats | None = None

    @cached_property
    def layer_bytes(self) -> tuple[int, ...]:
        """Bytes of each layer's linear parts."""
        return layer_bytes(self.config, self.formats)

    @cached_property
    def _ring_bytes(self) -> int:
        """Buffers through which offloaded layers pass."""
        return NUM_BUFFERS * piece_bytes(self.config, self.formats)

    @cached_property
    def host_mlps(self) -> tuple[HostMlpBytes, ...]:
        """MLPs and experts that the processor could compute, by layer; none of them is empty."""
        return host_mlps(self.config, self.formats, self.host) if self.host is not None else ()

    def resident(self, context_tokens: int, off_device: int = 0) -> MemoryPlan:
        """Plan with every layer on the device, whether that fits or not.

        Args:
            context_tokens: Longest prompt plus answer.
            off_device: Bytes of weights that are elsewhere.
        """
        return plan_memory(
            self.config,
            self.heads,
            self.formats,
            self.budget,
            context_tokens,
            self.sessions,
            self.draft_model,
            self.adapter,
            off_device,
        )

    def with_cpu(
        self,
        context_tokens: int,
        required: Collection[int],
        allowed: Collection[int],
        memory_bytes: int,
        *,
        may_shorten: bool = False,
    ) -> MemoryPlan | None:
        """Plan as few MLPs and experts in host memory, computed by the processor, as needed.

        Experts are moved first: a step reads only a few of them.

        Args:
            context_tokens: Longest prompt plus answer.
            required: Layers whose MLP or experts must be there.
            allowed: Layers whose MLP or experts may be there besides.
            memory_bytes: Free host memory.
            may_shorten: A shorter context may be planned, which keeps more layers on the card.

        Returns:
            None if the model doesn't fit even so.
        """
        placed = None
        for context in _contexts(context_tokens) if may_shorten else (context_tokens,):
            chosen = [one for one in self.host_mlps if one.layer in required]
            rest = [one for one in self.host_mlps if one.layer in {*allowed} - {*required}]
            rest.sort(key=lambda one: (not one.are_experts, one.layer))
            missing = -self.resident(context, sum(one.device_bytes for one in chosen)).free_bytes
            while missing > 0 and rest:
                chosen.append(rest.pop(0))
                missing -= chosen[-1].device_bytes
            nbytes = sum(one.host_bytes for one in chosen)
            if missing <= 0 and nbytes <= memory_bytes:
                placed = self._with_host(context, chosen)
                if placed.kv_bytes * _CACHE_SHARE <= self.budget.total_bytes:
                    return placed
        return placed

    def _with_host(self, context_tokens: int, chosen: Sequence[HostMlpBytes]) -> MemoryPlan:
        """Plan a model with the chosen MLPs or experts in host memory, and the rest on the card."""
        plan = self.resident(context_tokens, sum(one.device_bytes for one in chosen))
        if not chosen:
            return plan
        nbytes = sum(one.host_bytes for one in chosen)
        parts = CpuParts(
            layers=tuple(sorted(one.layer for one in chosen)),
            num_experts=sum(one.are_experts for one in chosen),
            num_layers=self.config.num_layers,
            nbytes=nbytes,
        )
        return replace(plan, ram_bytes=plan.ram_bytes + nbytes, cpu_parts=parts)

    def offload(
        self, context_tokens: int, room: OffloadRoom, *, may_shorten: bool = False
    ) -> MemoryPlan | None:
        """Plan as many layers on the device as fit, all KV rows among them.

        Args:
            context_tokens: Longest prompt plus answer.
            room: Room for the other layers.
            may_shorten: A shorter context may be planned, which keeps more layers on the device.

        Returns:
            None if the model doesn't fit even so.
        """
        placed = None
        for context in _contexts(context_tokens) if may_shorten else (context_tokens,):
            plan = self.resident(context)
            if plan.fit is not Fit.NO:
                return plan
            placed = self._most_layers(plan, room) or placed
            if placed is not None and placed.kv_bytes * _CACHE_SHARE <= self.budget.total_bytes:
                return placed
        return placed

    def place(self, policy: Policy, context_tokens: int) -> MemoryPlan:
        """Plan what a policy demands; `fit` of the plan says whether there is room.

        Prompts are computed in fewer rows at once where more wouldn't fit.

        Args:
            policy: Tiers of weights, KV rows and activations.
            context_tokens: Longest prompt plus answer.
        """
        plan = self.resident(context_tokens)
        if not (policy.weights.below or policy.cache.below):
            return plan
        placed = plan
        trees = (1,) if policy.num_sequences >= MANY else (TREE_ROWS, 1)
        for tree_rows, rows in product(trees, rows_at_once(self.formats.device)):
            placed = self._with_policy(plan, policy, rows, tree_rows)
            if placed.fit is not Fit.NO:
                break
        return placed

    def host_bytes(self, policy: Policy, plan: MemoryPlan) -> int:
        """Host memory that a placed plan needs; 0 where the CPU is the device."""
        placement = plan.placement
        if self.formats.device == "cpu" or placement is None:
            return 0
        rows = policy.num_sequences * whole_rows(plan.context_tokens)
        held = rows * self._kv_row_bytes(placement.cached_layers(Tier.MEMORY))
        buffers = sum(self._disk_kv_bytes(plan.context_tokens, policy, placement))
        if placement.layers(Tier.DISK):
            buffers += self._ring_bytes
        return placement.nbytes(Tier.MEMORY) + held + buffers

    def _most_layers(self, plan: MemoryPlan, room: OffloadRoom) -> MemoryPlan | None:
        """Keep as many layers as fit on the device; fewer prompt rows are better than no plan."""
        config, formats = self.config, self.formats
        context, count = plan.context_tokens, config.num_layers
        for rows in (prompt_rows(config, formats, context), chunk_rows(formats.device)):
            scratch = scratch_bytes(config, formats, context, rows)
            for resident in range(count - 1, -1, -1):
                tiers = self._tiers(resident, room.memory_bytes)
                if Tier.DISK in tiers and room.disk is None:
                    continue
                placement = Placement(tiers, self.layer_bytes, 0, prompt_rows=rows)
                placed = self._placed(plan, placement, scratch)
                if placed.fit is not Fit.NO:
                    return placed
        return None

    def _tiers(self, resident: int, memory_bytes: int) -> tuple[Tier, ...]:
        """Tier of each layer: `resident` on the device, then as many as fit in host memory."""
        count = self.config.num_layers
        most = min(count - resident, memory_bytes // min(self.layer_bytes))
        for in_memory in range(most, -1, -1):
            tiers = _spread(resident, in_memory, count)
            sizes = zip(tiers, self.layer_bytes, strict=True)
            if sum(size for tier, size in sizes if tier is Tier.MEMORY) <= memory_bytes:
                break
        return tiers

    def _with_policy(
        self, plan: MemoryPlan, policy: Policy, rows: int, tree_rows: int
    ) -> MemoryPlan:
        """Apply a policy to the plan of the resident model.

        Args:
            rows: Rows of prompts that a pass prefills.
            tree_rows: Rows of a step for each sequence.
        """
        count = self.config.num_layers
        placement = Placement(
            tiers=tiers_of(policy.weights, count),
            layer_bytes=self.layer_bytes,
            buffer_bytes=0,
            prompt_rows=rows,
            pass_rows=policy.prompt_rows,
            cache_tiers=tiers_of(policy.cache, count) if policy.cache.below else (),
            attention=Tier(policy.attention),
            states=tier_of(policy.activations),
            batch=policy.batch,
            tree_rows=tree_rows,
        )
        buffers, tails = self._kv_buffers(plan.context_tokens, policy, placement)
        offloaded = placement.cached_layers(Tier.MEMORY) + placement.cached_layers(Tier.DISK)
        rows_gone = self.sessions * whole_rows(plan.context_tokens)
        kv = plan.kv_bytes - rows_gone * self._kv_row_bytes(offloaded) + tails + buffers
        scratch = self._scratch_bytes(plan.context_tokens, policy, placement)
        return self._placed(plan, placement, scratch, kv, buffers)

    def _placed(
        self,
        plan: MemoryPlan,
        placement: Placement,
        scratch: int,
        kv: int | None = None,
        kv_buffers: int = 0,
    ) -> MemoryPlan:
        """Apply a placement to the plan of the resident model.

        Args:
            plan: Plan with every layer on the device.
            placement: Tiers of the layers.
            scratch: Bytes that passes need besides weights and KV rows.
            kv: Bytes of KV rows on the device, buffers included; None for those of `plan`.
            kv_buffers: Bytes of `kv` through which offloaded rows pass.
        """
        is_offloaded = placement.offloaded_bytes > 0
        ring = self._ring_bytes * is_offloaded
        weights = plan.weights_bytes - placement.offloaded_bytes + ring
        kv = plan.kv_bytes if kv is None else kv
        more = weights - plan.weights_bytes + kv - plan.kv_bytes + scratch - plan.scratch_bytes
        free = plan.free_bytes - more
        return replace(
            plan,
            weights_bytes=weights,
            kv_bytes=kv,
            scratch_bytes=scratch,
            free_bytes=free,
            max_context=plan.context_tokens if free >= 0 else 0,
            fit=fit_of(free),
            placement=replace(placement, buffer_bytes=ring + kv_buffers),
        )

    def _kv_row_bytes(self, layers: tuple[int, ...]) -> int:
        """Bytes of one token's offloaded keys and values in some layers."""
        item = cache_itemsize(self.config, self.formats)
        return offloaded_row_bytes(self.config, item, self.formats.cache_format, layers)

    def _kv_buffers(
        self, context_tokens: int, policy: Policy, placement: Placement
    ) -> tuple[int, int]:
        """Device bytes through which offloaded KV rows pass, and of their newest rows."""
        if self.formats.device == "cpu":
            return self._disk_kv_bytes(context_tokens, policy, placement)
        if placement.attention is Tier.MEMORY:
            return 0, 0
        kinds = (cache_itemsize(self.config, self.formats), self.formats.cache_format)
        room = (policy.batch, whole_rows(context_tokens))
        stores = (placement.cached_layers(tier) for tier in (Tier.MEMORY, Tier.DISK))
        return sum(brought_bytes(self.config, *kinds, layers, *room) for layers in stores), 0

    def _disk_kv_bytes(
        self, context_tokens: int, policy: Policy, placement: Placement
    ) -> tuple[int, int]:
        """Host bytes through which KV rows on the disk pass, and of their newest rows."""
        item = cache_itemsize(self.config, self.formats)
        kinds = (self.config, item, self.formats.cache_format)
        on_disk = placement.cached_layers(Tier.DISK)
        ring = ring_bytes(*kinds, on_disk, policy.batch, whole_rows(context_tokens))
        return ring, tail_bytes(*kinds, on_disk, policy.num_sequences, placement.tree_rows)

    def _scratch_bytes(self, context_tokens: int, policy: Policy, placement: Placement) -> int:
        """Scratch of a batch: rows that are computed and scored at once, and activations."""
        rows = max(placement.prompt_rows, policy.batch * placement.tree_rows)
        scored = policy.num_sequences * placement.tree_rows
        judged = JUDGED_ROWS * placement.tree_rows
        needed = scratch_bytes(self.config, self.formats, context_tokens, rows, scored, judged)
        if placement.states is not Tier.DEVICE:
            return needed
        return needed + 4 * self.config.hidden_size * max(policy.prompt_rows, policy.num_sequences)


class CpuLayers(NamedTuple):
    """Layers of a model on a card whose MLP or experts the processor computes.

    Attributes:
        required: Layers that it must compute.
        allowed: Layers that it may compute if they don't fit the card.
    """

    required: frozenset[int] = frozenset()
    allowed: frozenset[int] = frozenset()

    @classmethod
    def of(cls, config: ModelConfig, options: LoadOptions) -> CpuLayers:
        """Return what a user allows.

        Raises:
            RequestError: The options contradict each other or the model.
        """
        if options.experts not in EXPERT_PLACES:
            raise RequestError(
                tr("Experts can't be in {0}.", repr(options.experts)),
                tr("Choose {0}.", ", ".join(EXPERT_PLACES)),
            )
        wanted = options.cpu_layers
        if wanted is not None and wanted < 0:
            raise RequestError(
                tr("{0} layers can't be computed.", wanted), "Choose 0 or more, or auto."
            )
        usable = {layer for layer, block in enumerate(config.blocks) if block.host_linears}
        moe = {layer for layer in usable if config.blocks[layer].moe is not None}
        if options.experts == "ram" and not moe:
            raise RequestError("This model has no experts.", "Leave out --experts.")
        if options.experts == "card":
            usable -= moe
        required = {layer for layer in usable if layer < (wanted or 0)}
        required |= moe if options.experts == "ram" else set()
        allowed = usable if wanted is None else usable & moe
        return cls(frozenset(required), frozenset(allowed - required))


class HostMlpBytes(NamedTuple):
    """Sizes of a layer's MLP or experts.

    Attributes:
        layer: Index of the layer.
        are_experts: Whether they are experts, with their router.
        device_bytes: Bytes on the card.
        host_bytes: Bytes in host memory.
    """

    layer: int
    are_experts: bool
    device_bytes: int
    host_bytes: int


@lru_cache(maxsize=32)
def host_mlps(
    config: ModelConfig, formats: PartFormats, host: PartFormats
) -> tuple[HostMlpBytes, ...]:
    """Return the sizes of MLPs and experts, which a processor may compute beside a card."""
    found = []
    for layer, block in enumerate(config.blocks):
        parts = [linear_at(part, layer) for part in block.host_linears]
        here, there = (
            sum(part_bytes(part, config, of) for part in parts) for of in (formats, host)
        )
        found += [HostMlpBytes(layer, block.moe is not None, here, there)] if parts else []
    return tuple(found)


def layer_bytes(config: ModelConfig, formats: PartFormats) -> tuple[int, ...]:
    """Return the bytes of each layer's linear parts."""
    layers = (block_tensors(config, index).linears for index in range(config.num_layers))
    return tuple(sum(part_bytes(part, config, formats) for part in parts) for parts in layers)


def piece_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Return the size of a buffer for the largest layer, with every tensor aligned."""
    layers = (block_tensors(config, index).linears for index in range(config.num_layers))
    return max(
        rounded_up(
            sum(
                part_bytes(part, config, formats) + ALIGN_BYTES * _num_tensors(part, formats)
                for part in parts
            )
        )
        for parts in layers
    )


def prompt_rows(config: ModelConfig, formats: PartFormats, context_tokens: int) -> int:
    """Choose how many rows of a prompt are computed at once where layers are offloaded.

    Layers are read once for all of them. The scratch of the additional rows may cost one layer.
    """
    default, room = chunk_rows(formats.device), piece_bytes(config, formats)
    needed = scratch_bytes(config, formats, context_tokens)
    for rows in (4 * default, 2 * default):
        more = scratch_bytes(config, formats, context_tokens, rows) - needed
        if rows <= _MAX_PROMPT_ROWS and more <= room:
            return rows
    return default


def rows_at_once(device: str) -> tuple[int, ...]:
    """Return row counts of prompts to try where layers are offloaded, in descending order."""
    default = chunk_rows(device)
    wanted = (4 * default, 2 * default, default, default // 2, default // 4, default // 8)
    return tuple(rows for rows in wanted if rows <= _MAX_PROMPT_ROWS)


def tiers_of(shares: Shares, count: int) -> tuple[Tier, ...]:
    """Return the tier of each of `count` layers, those of a tier spread evenly."""
    in_memory, on_disk = offloaded_layers(shares, count)
    return _spread(count - in_memory - on_disk, in_memory, count)


def _spread(resident: int, in_memory: int, count: int) -> tuple[Tier, ...]:
    """Tier of each layer: `resident` on the device, `in_memory` in memory, the others on disk."""
    on_device = _evenly(resident, count)
    others = [layer for layer in range(count) if layer not in on_device]
    held = {others[place] for place in _evenly(in_memory, len(others))}
    return tuple(
        Tier.DEVICE if layer in on_device else Tier.MEMORY if layer in held else Tier.DISK
        for layer in range(count)
    )


def _evenly(number: int, count: int) -> frozenset[int]:
    """Choose `number` of `count` places, evenly."""
    return frozenset((2 * place + 1) * count // (2 * number) for place in range(number))


def _contexts(longest: int) -> Iterator[int]:
    """Yield the longest context, and halves of it."""
    yield longest
    while longest > _MIN_CONTEXT:
        longest = max(_MIN_CONTEXT, longest // 2)
        yield longest


def _num_tensors(part: LinearSpec, formats: PartFormats) -> int:
    """Return how many tensors a part is stored as, at most; GGUF blocks are one per piece."""
    if formats.keeps_blocks:
        return len(part.pieces) + part.has_bias
    spec = formats.fitting_linear(part, formats.linears)
    return len(spec.tensors(part.rows, part.columns, formats.compute)) + part.has_bias

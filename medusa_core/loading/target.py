"""A loaded target with everything that decoding needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from medusa_core.errors import CheckpointError, ClusterError, PlanError, RequestError
from medusa_core.heads.kind import Heads, has_own_heads, kind_of, read_shape
from medusa_core.heads.medusa import Lent
from medusa_core.memory.budget import GIB
from medusa_core.memory.plan import (
    NO_ADAPTER,
    DraftModel,
    chunk_rows,
    plan_memory,
    weights_bytes,
)
from medusa_core.memory.probe import below_device, live_budget
from medusa_core.memory.recommend import draft_formats, settle_draft_model
from medusa_core.memory.tiers import limited, plan_in_tiers
from medusa_core.messages import Fit, HeadsShape, LoadOptions, Machine, MemoryPlan, Move
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.header import check_header
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder, build_decoder, decoder_of
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.lora.adapter_shape import AdapterShape
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.parts import num_linear_parameters
from medusa_core.models.precision import Precision, hardware_of, precision_of, settle_device
from medusa_core.models.quant.choice import (
    PartFormats,
    settle_formats,
)
from medusa_core.models.quantized_cache.kept import (
    KeptModels,
    kept_key,
)
from medusa_core.models.quantized_cache.kept_weights import KeptWeights
from medusa_core.models.text.raw_text import RawText
from medusa_core.models.text.same_vocabulary import check_same_vocabulary
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.models.weights import AfterPart, CheckpointWeights, Keep
from medusa_core.runtime.cluster.joining import join_cluster
from medusa_core.runtime.cluster.line import Cluster
from medusa_core.runtime.cluster.opening import (
    Opened,
    open_on,
)
from medusa_core.runtime.cluster.share import client_config
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.offload.store import (
    FarStore,
    TierFolder,
)
from medusa_core.runtime.runner.choice import (
    choose_runner,
)
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.tree.tables import (
    TreeTable,
    read_tree_table,
)
from medusa_core.speculation.datastore.earlier_answers import Learned
from medusa_core.speculation.datastore.folder import store_of
from medusa_core.speculation.datastore.model_key import model_key
from medusa_core.speculation.datastore.phrases import (
    Phrases,
    read_phrases,
)

log = logging.getLogger(__name__)

OnProgress = Callable[[str, float, str], None]
Join = Callable[[str], Cluster]

_MOST_CONTEXT = 8192  # where nobody asks for more: a cache for 128,000 tokens would fill any card


@dataclass(frozen=True, slots=True)
class Target:
    """A target, ready to decode.

    Attributes:
        name: Of its folder, or as its GGUF file calls it; and of its adapter's folder.
        config: Its sizes; the context is what was planned for.
        precision: Dtypes and device.
        formats: Weight formats of its parts.
        plan: Where the device's memory goes.
        runner: Runs its forward passes.
        caches: All keys and values: what was planned for them.
        tokenizer: Its tokenizer.
        template: Writes its prompts: its chat template, or a base model's text as it is.
        eos_token_ids: Tokens that end an answer.
        lent: What it lends heads: its projection and its token vectors.
        heads: Heads of whichever kind, or None.
        trees: Trees for the heads; None without heads, or for heads that draft path by path.
        phrases: What it often says, or None where no such table lies beside it.
        assistant: A smaller model that drafts for it, or None.
        learned: What it said in earlier answers; None where that isn't kept.
        num_parameters: Parameters of the target.
        weights_bytes: Bytes that its weights take.
        device_note: Why a card that is here isn't used; empty if none is passed over.
    """

    name: str
    config: ModelConfig
    precision: Precision
    formats: PartFormats
    plan: MemoryPlan
    runner: Runner
    caches: CachePool
    tokenizer: Tokenizer
    template: Template
    eos_token_ids: frozenset[int]
    lent: Lent
    heads: Heads | None
    trees: TreeTable | None
    phrases: Phrases | None
    num_parameters: int
    weights_bytes: int
    device_note: str = ""
    assistant: Target | None = None
    learned: Learned | None = None

    @property
    def num_sessions(self) -> int:
        """How many conversations have room for a whole context at once."""
        return self.caches.num_rows // whole_rows(self.config.context_tokens)

    @property
    def chunk_rows(self) -> int:
        """Most rows of a prompt that are read at once."""
        placement = self.plan.placement
        return (
            chunk_rows(self.precision.device.type) if placement is None else placement.prompt_rows
        )

    @property
    def is_divided(self) -> bool:
        """Do other machines have its layers?"""
        return bool(self.runner.machines)

    def take_moves(self) -> tuple[Move, ...]:
        """Where layers went, of those that lie with other machines, since this was asked last."""
        return self.runner.take_moves()

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The other machines that have its layers, in the order of these."""
        return self.runner.machines

    def leave_cluster(self) -> None:
        """Tell the machines that have its layers, if others have them, that they aren't needed."""
        self.runner.leave()

    def lend_cache(self, least: int, wanted: int = 0) -> KvCache:
        """A cache out of what was planned; see `CachePool.lend`."""
        return self.caches.lend(self.runner.new_cache, least, wanted)


def make_caches(
    config: ModelConfig, runner: Runner, precision: Precision, sessions: int = 1
) -> CachePool:
    """Reserve what was planned for the caches of a target.

    Raises:
        OutOfMemoryError: The device has no room for it.
    """
    return runner.reserve(config, precision, sessions * whole_rows(config.context_tokens))


def share_workers(runner: Runner, heads: Heads) -> None:
    """Let the threads that compute a target compute its heads, too."""
    if runner.workers is not None:
        heads.share_workers(runner.workers)


def load_target(
    model_dir: Path,
    heads_dir: Path | None = None,
    options: LoadOptions | None = None,
    on_progress: OnProgress | None = None,
    join: Join = join_cluster,
) -> Target:
    """`load_files` of the files at a path.

    Args:
        model_dir: Folder in Hugging Face layout, or a GGUF file.
        heads_dir: As there.
        options: As there.
        on_progress: As there.
        join: As there.

    Raises:
        MedusaError: As there.
    """
    return load_files(ModelFiles.open(model_dir), heads_dir, options, on_progress, join)


def load_files(
    files: ModelFiles,
    heads_dir: Path | None = None,
    options: LoadOptions | None = None,
    on_progress: OnProgress | None = None,
    join: Join = join_cluster,
) -> Target:
    """Load a target and its heads.

    Args:
        files: The target's files.
        heads_dir: Folder with Medusa heads, or None: heads that lie in the model's own files serve.
        options: How.
        on_progress: Told the stage, the share done and a text for people. What it raises ends the
            load.
        join: The way to the machines at an address, which is asked where the options name one.

    Raises:
        ModelError: The model or the heads can't be used.
        OutOfMemoryError: The device has no room.
        PlanError: The device has no room, as is known before.
        ClusterError: The machines that are to have the layers can't be used.
        RequestError: The dtype, the format or the device isn't there.
        TierError: The disk has no room for layers, or fails.
    """
    options = options or LoadOptions()
    tell = on_progress or _ignore
    chosen = settle_device(options.device)
    device = chosen.device
    options = replace(options, device=str(device))  # the plan is for what is used
    config = files.config
    formats = settle_formats(options.formats, options.dtype, hardware_of(device), config.stored)
    precision = precision_of(formats.compute, device, formats.cache_format, formats.attended)
    tokenizer = files.tokenizer
    template = RawText() if options.is_raw else files.template
    phrases = read_phrases(options.phrases_dir or files.path, config.vocab_size)
    checkpoint = files.checkpoint()
    check_header(checkpoint, config)
    if heads_dir is None and options.takes_own_heads and has_own_heads(checkpoint.names):
        heads_dir = files.path
    shape = HeadsShape() if heads_dir is None else read_shape(heads_dir)
    draft = None if options.assistant_dir is None else ModelFiles.open(options.assistant_dir)
    draft_model = None if draft is None else _planned_draft_model(draft, options, tokenizer)
    adapter = None if options.adapter_dir is None else Adapter(options.adapter_dir, config)
    changes = NO_ADAPTER if adapter is None else adapter.shape
    here = client_config(config) if options.cluster else config
    plan = plan_target(here, shape, formats, options, draft_model, changes)
    config = replace(config, context_tokens=plan.context_tokens)
    parts = _Parts(files, config, precision, formats, checkpoint, adapter)
    model, runner, num_parameters = _open(parts, plan, options, tell, join)
    with _leaving_on_failure(runner):
        lent = Lent(model.lm_head, config.vocab_size, model.embedding, model)
        heads, trees = None, None
        if heads_dir is not None:
            tell("heads", 1.0, f"Reading the heads of {heads_dir.name}")
            kind = kind_of(heads_dir)
            heads = kind.read(heads_dir, config, precision, lent, formats)
            trees = read_tree_table(heads_dir, heads.num_heads) if kind.is_ranked else None
        if heads is not None:
            share_workers(runner, heads)
            runner.tap(heads.taps)
            heads.reserve(options.sessions * whole_rows(config.context_tokens))
        assistant = None if draft is None else _load_draft_model(draft, options, config, tell)
        log.info("loaded %s as %s on %s", files.path.name, formats.linears.name, precision.device)
        return Target(
            name=_name(files, options.adapter_dir),
            config=config,
            precision=precision,
            device_note=chosen.note,
            formats=formats,
            plan=plan,
            runner=runner,
            caches=make_caches(config, runner, precision, options.sessions),
            tokenizer=tokenizer,
            template=template,
            eos_token_ids=frozenset(config.eos_token_ids),
            lent=lent,
            heads=heads,
            trees=trees,
            phrases=phrases,
            num_parameters=num_parameters,
            weights_bytes=model.nbytes + runner.buffer_bytes,
            assistant=assistant,
            learned=_learned(options, config, parts.weight_files, tokenizer),
        )


@contextmanager
def _leaving_on_failure(runner: Runner) -> Iterator[None]:
    """Machines that have the layers are let go where the rest of a load fails."""
    try:
        yield
    except BaseException:
        runner.leave()
        raise


def _planned_draft_model(
    files: ModelFiles, options: LoadOptions, tokenizer: Tokenizer
) -> DraftModel:
    """What is to be planned for a draft model, which is refused before anything is loaded."""
    hardware = hardware_of(torch.device(options.device))
    check_same_vocabulary(tokenizer, files.tokenizer, files.path.name)
    return settle_draft_model(files.config, options.formats, options.dtype, hardware)


def _name(files: ModelFiles, adapter_dir: Path | None) -> str:
    return files.name if adapter_dir is None else f"{files.name} + {adapter_dir.name}"


def _load_draft_model(
    files: ModelFiles, options: LoadOptions, config: ModelConfig, tell: OnProgress
) -> Target:
    """The smaller model, with a context as long as the target's where it has that."""
    its_own = replace(
        options,
        assistant_dir=None,
        memory_gib=0.0,
        tier_disk=None,
        adapter_dir=None,
        cluster="",  # drafting stays here
        phrases_dir=None,
        learned_dir=None,
        takes_own_heads=False,
        formats=draft_formats(files.config, options.formats),
        context_tokens=min(config.context_tokens, files.config.context_tokens),
    )
    return load_files(files, None, its_own, tell)


def _learned(
    options: LoadOptions, config: ModelConfig, files: frozenset[Path], tokenizer: Tokenizer
) -> Learned | None:
    if options.learned_dir is None:
        return None
    key = model_key(files, tokenizer.pieces)
    return Learned(store_of(options.learned_dir, key), config.vocab_size)


def plan_target(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    options: LoadOptions,
    draft_model: DraftModel | None = None,
    adapter: AdapterShape = NO_ADAPTER,
) -> MemoryPlan:
    """The plan for this device as it is now.

    Raises:
        PlanError: There is no room, and `ignores_plan` isn't set.
    """
    if options.memory_gib < 0:
        raise RequestError(f"{options.memory_gib:g} GiB of memory is less than nothing.")
    budget = limited(live_budget(options.device), options.memory_gib)
    sessions = options.sessions
    usual = min(_MOST_CONTEXT, config.usual_context)
    wanted = min(options.context_tokens or usual, config.context_tokens)
    plan = plan_memory(config, heads, formats, budget, wanted, sessions, draft_model, adapter)
    if plan.fit is not Fit.NO:
        return plan
    if not options.cluster and (options.memory_gib or options.has_disk):
        if adapter.pairs:
            raise RequestError(
                "With an adapter all layers must fit the device.",
                "Merge it into the model first, or leave out --memory-gib and --tier-disk.",
            )
        below = below_device(options)
        placed = plan_in_tiers(
            config,
            heads,
            formats,
            budget,
            below,
            wanted,
            sessions,
            draft_model,
            may_shorten=not options.context_tokens,
        )
        if placed is not None:
            return placed
    if not options.context_tokens and plan.max_context:
        longest = plan.max_context
        return plan_memory(config, heads, formats, budget, longest, sessions, draft_model, adapter)
    if options.ignores_plan:
        log.warning("%d bytes are missing by the plan, which is ignored", -plan.free_bytes)
        return plan
    raise PlanError(
        f"This model needs {-plan.free_bytes / GIB:.1f} GiB more than {budget.name} has free.",
        f"It fits with a context of {plan.max_context:,} tokens; or choose a smaller weight format."
        if plan.max_context
        else "Choose a smaller weight format or a smaller model, or close other programs; or name "
        "a folder for its layers with --tier-disk.",
        missing_bytes=-plan.free_bytes,
        max_context=plan.max_context,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a decoder is read from.

    Attributes:
        files: Of the model.
        config: Its sizes; the context is what was planned for.
        precision: What it computes in.
        formats: Of its parts.
        checkpoint: Its tensors.
        adapter: What changes them, or None.
    """

    files: ModelFiles
    config: ModelConfig
    precision: Precision
    formats: PartFormats
    checkpoint: Checkpoint
    adapter: Adapter | None

    @property
    def title(self) -> str:
        """Of the model's folder or file, for people."""
        return self.files.path.name

    @property
    def weight_files(self) -> frozenset[Path]:
        """Those that hold the weights and their changes."""
        return self.checkpoint.files | (frozenset() if self.adapter is None else self.adapter.files)

    @property
    def key(self) -> str:
        """Names what its quantized weights are made from."""
        return kept_key(self.weight_files | self.files.sources, self.formats.names)

    def decoder(self, keep: Keep | None, after_part: AfterPart) -> Decoder:
        """Read it."""
        weights = CheckpointWeights(
            *(self.checkpoint, self.config, self.precision, self.formats),
            *(keep, after_part, self.adapter),
        )
        return build_decoder(self.config, self.precision, self.checkpoint, weights)


def _open(
    parts: _Parts, plan: MemoryPlan, options: LoadOptions, tell: OnProgress, join: Join
) -> Opened:
    """The weights, here or on other machines, and what runs them."""
    if not options.cluster:
        store = far_store(plan, parts.precision, options, {"files": parts.key})
        model = _read_decoder(parts, options.kept_dir, store, tell)
        return Opened(model, choose_runner(model, parts.precision), model.num_parameters)
    if parts.adapter is not None:
        raise ClusterError(
            "Adapters can't be used with layers on other machines.",
            "Merge the adapter into the model, and give that to all machines.",
        )
    if not parts.precision.is_usual:
        raise ClusterError(
            "Layers on other machines keep their caches in plain numbers, and attend to all rows.",
            "Leave out --cache-quant and --sparse-attention.",
        )
    tell("weights", 0.0, f"Dividing the layers of {parts.title} at {options.cluster}")
    return open_on(
        join(options.cluster),
        parts.files,
        parts.config,
        parts.precision,
        parts.formats,
        options.formats,
        options.sessions,
    )


def _read_decoder(
    parts: _Parts, kept_dir: Path | None, store: FarStore | None, tell: OnProgress
) -> Decoder:
    """The weights, from what was kept of an earlier load if there is such."""
    if store is not None:
        return _read_in_tiers(parts, store, tell)
    config, formats = parts.config, parts.formats
    text = f"Reading the weights of {parts.title}"
    after_part = _progress(config, text, tell)
    is_worth_keeping = not formats.linears.is_dense and not config.quantization
    if kept_dir is None or not is_worth_keeping:
        return parts.decoder(None, after_part)
    kept = KeptModels(kept_dir)
    if (path := kept.find(parts.key)) is not None:
        try:
            kept_weights = KeptWeights(path, config, parts.precision, formats, after_part)
            return decoder_of(config)(config, parts.precision, kept_weights)
        except CheckpointError as error:
            kept.discard(path, error)
            after_part = _progress(config, text, tell)
    writer = kept.writer(parts.key, weights_bytes(config, formats))
    if writer is None:
        return parts.decoder(None, after_part)
    with writer:
        return parts.decoder(writer.keep, after_part)


def _read_in_tiers(parts: _Parts, store: FarStore, tell: OnProgress) -> Decoder:
    """The weights, of which some layers go below the device."""
    config, precision, formats = parts.config, parts.precision, parts.formats
    told = "Finding" if store.is_stored else "Storing"
    after_part = _progress(config, f"{told} the layers of {parts.title}", tell)
    weights = CheckpointWeights(
        parts.checkpoint, config, precision, formats, None, after_part, parts.adapter
    )
    with store:
        if store.is_stored:  # what it doesn't read isn't unknown
            return decoder_of(config)(config, precision, store.wrap(weights))
        return build_decoder(config, precision, parts.checkpoint, store.wrap(weights))


def far_store(
    plan: MemoryPlan, precision: Precision, options: LoadOptions, made_from: Mapping[str, object]
) -> FarStore | None:
    """What takes the layers that lie below the device; None where none do.

    Raises:
        TierError: The disk has no room for them, or can't be written.
    """
    if plan.placement is None:
        return None
    folder = None if options.tier_disk is None else TierFolder(options.tier_disk, made_from)
    return FarStore(plan.placement, precision, folder)


def _progress(config: ModelConfig, text: str, tell: OnProgress) -> AfterPart:
    """Tells the share of the parameters that are read."""
    tell("weights", 0.0, text)
    total = num_linear_parameters(config) + 2 * config.vocab_size * config.hidden_size
    done = 0

    def after_part(num_parameters: int) -> None:
        nonlocal done
        done += num_parameters
        tell("weights", min(1.0, done / total), text)

    return after_part


def _ignore(stage: str, fraction: float, text: str) -> None:
    """Progress that nobody watches."""

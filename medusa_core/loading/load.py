"""Load a target: its weights, its heads, and its draft model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from medusa_core.errors import HeadsFileError, ModelError
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import Heads, chosen_heads, is_heads_folder, kind_of, shape_of_files
from medusa_core.heads.medusa import HeadsTarget, SharedWeights
from medusa_core.i18n import tr
from medusa_core.loading.cpu_parts import host_formats
from medusa_core.loading.decoder import DecoderParts, Join, OnProgress, open_decoder
from medusa_core.loading.memory.plan import (
    NO_ADAPTER,
    DraftModel,
    check_cache_type,
    in_8_bits,
)
from medusa_core.loading.memory.recommend import draft_formats, resolve_draft_model
from medusa_core.loading.plan import plan_target
from medusa_core.loading.target import Target, make_caches, share_workers
from medusa_core.messages import HeadsShape, LoadOptions, MemoryPlan
from medusa_core.models.checkpoints.header import check_header
from medusa_core.models.config import ModelConfig
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.folder import model_key, own_table_dir, store_of
from medusa_core.models.datastore.folder_texts import FolderTexts
from medusa_core.models.datastore.phrases import (
    PhraseTable,
    read_phrases,
)
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.lora.adapter_shape import unmerged_parts
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import hardware_of, precision_of, resolve_device
from medusa_core.models.quant.choice import (
    resolve_formats,
)
from medusa_core.models.text.grammar_compiler import GrammarCompiler
from medusa_core.models.text.raw_text import RawText
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer, check_same_vocabulary
from medusa_core.models.through_transformers.formats import check_options
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.cluster.connection import join_cluster
from medusa_core.runtime.cluster.layer_range import client_config
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.tree.tables import (
    TreePresets,
    read_tree_table,
)
from medusa_core.system.files.gguf import release_headers

log = logging.getLogger(__name__)


def load_target(
    model: Path | ModelFiles,
    heads_dir: Path | None = None,
    options: LoadOptions | None = None,
    on_progress: OnProgress | None = None,
    join: Join = join_cluster,
) -> Target:
    """Load a target and its heads.

    Args:
        model: Folder in Hugging Face layout, GGUF file, or its opened files.
        heads_dir: Folder or GGUF file with heads; None for heads in the model's own files, if any.
        options: Load options.
        on_progress: Called with the stage, the fraction done and a text for users. Its errors end
            the load.
        join: Connects to the machines at the options' cluster address.

    Raises:
        ModelError: The model or the heads can't be used.
        OutOfMemoryError: The device has no room.
        PlanError: The model doesn't fit the device, by its plan.
        ClusterError: The machines for its layers can't be used.
        RequestError: The dtype, the format or the device isn't available.
        TierError: The disk has no room for layers, or fails.
    """
    files = model if isinstance(model, ModelFiles) else _open_model(model)
    report = on_progress or (lambda *_: None)
    planned = _plan(files, heads_dir, options or LoadOptions())
    options, parts, draft = planned.options, planned.parts, planned.draft
    config, precision, formats = parts.config, parts.precision, parts.formats
    decoder, runner, num_parameters = open_decoder(parts, planned.plan, options, report, join)
    with _released_on_error(runner):
        blocks = decoder if isinstance(decoder, Decoder) else None
        shared_weights = SharedWeights(
            decoder.lm_head, config.vocab_size, decoder.embedding, blocks
        )
        heads, trees = None, None
        if planned.heads is not None:
            heads, trees = _read_heads(planned.heads, parts, shared_weights, report)
            share_workers(runner, heads)
            runner.tap(heads.taps)
            heads.reserve(options.sessions * whole_rows(config.context_tokens))
        assistant = None if draft is None else _load_draft_model(draft, options, config, report)
        key = ""
        if options.datastore_dir is not None:
            key = model_key(parts.weight_files, files.tokenizer.pieces)
        release_headers()
        if parts.adapter is not None:
            beside = any(unmerged_parts(config, parts.adapter.shape, formats.keeps_blocks))
            log.info("the adapter is %s", "beside stored blocks" if beside else "merged")
        log.info("loaded %s as %s on %s", parts.title, formats.linears.name, precision.device)
        return Target(
            name=_name(files, options.adapter_dir),
            config=config,
            precision=precision,
            device_note=planned.device_note,
            formats=formats,
            plan=planned.plan,
            runner=runner,
            caches=make_caches(config, runner, precision, options.sessions),
            tokenizer=files.tokenizer,
            grammars=GrammarCompiler(files.tokenizer, config.eos_token_ids, config.vocab_size),
            template=planned.template,
            eos_token_ids=frozenset(config.eos_token_ids),
            shared_weights=shared_weights,
            heads=heads,
            trees=trees,
            phrases=planned.phrases or _own_phrases(options, config, key),
            num_parameters=num_parameters,
            weights_bytes=decoder.nbytes + runner.buffer_bytes,
            assistant=assistant,
            learned=_learned(options, config, key),
            folder_texts=_folder_texts(options, config, files.tokenizer),
        )


class _Planned(NamedTuple):
    """Decisions of a load before weights are read.

    Attributes:
        options: Load options with the resolved device.
        device_note: Why an available GPU isn't used; else empty.
        parts: Files and formats of the weights, with the planned context.
        plan: The memory plan.
        template: The chat template.
        phrases: The model's table of phrases, or None.
        heads: Files of the heads, which may be the model's own; or None.
        draft: Files of the draft model, or None.
    """

    options: LoadOptions
    device_note: str
    parts: DecoderParts
    plan: MemoryPlan
    template: Template
    phrases: PhraseTable | None
    heads: HeadFiles | None
    draft: ModelFiles | None


def _open_model(path: Path) -> ModelFiles:
    """Open a model's files.

    Raises:
        HeadsFileError: They are heads.
        ModelError: They can't be used.
    """
    try:
        files = ModelFiles.open(path)
        _ = files.config, files.tokenizer
    except ModelError as error:
        if path.is_dir() and is_heads_folder(path):
            raise HeadsFileError(
                tr("{0} holds heads, which draft for a model, and no model.", path.name),
                "Load the model, and this folder as its heads: under Drafter, or with --heads.",
            ) from error
        raise
    return files


def _plan(files: ModelFiles, heads_dir: Path | None, options: LoadOptions) -> _Planned:
    """Plan the load without reading weights; refuse what can't be loaded."""
    chosen = resolve_device(options.device)
    device = chosen.device
    options = replace(options, device=str(device))  # the plan is for the resolved device
    config = files.config
    formats = resolve_formats(options.formats, options.dtype, hardware_of(device), config.stored)
    check_cache_type(options.formats.cache, config, formats)
    tokenizer = files.tokenizer
    template = RawText() if options.is_raw else files.template
    phrases = read_phrases(options.phrases_dir or files.path, config.vocab_size)
    checkpoint = files.checkpoint()
    check_options(
        config,
        formats,
        has_adapter=options.adapter_dir is not None,
        is_divided=bool(options.cluster),
    )
    if config.has_native_family:  # else transformers compares them while reading
        check_header(checkpoint, config)
    heads = chosen_heads(files, heads_dir, options.takes_own_heads)
    shape = HeadsShape() if heads is None else shape_of_files(heads)
    draft = None if options.assistant_dir is None else _open_model(options.assistant_dir)
    draft_model = None if draft is None else _planned_draft_model(draft, options, tokenizer)
    adapter = None if options.adapter_dir is None else Adapter(options.adapter_dir, config)
    changes = NO_ADAPTER if adapter is None else adapter.shape
    local_config = client_config(config) if options.cluster else config
    host = host_formats(config, options, formats)
    plan = plan_target(local_config, shape, formats, options, draft_model, changes, host)
    formats = in_8_bits(formats) if plan.shrinks_cache else formats
    precision = precision_of(formats.compute, device, formats.cache_format, formats.attended)
    config = replace(config, context_tokens=plan.context_tokens)
    parts = DecoderParts(files, config, precision, formats, checkpoint, adapter, host)
    return _Planned(options, chosen.note, parts, plan, template, phrases, heads, draft)


def _read_heads(
    files: HeadFiles, parts: DecoderParts, shared_weights: SharedWeights, report: OnProgress
) -> tuple[Heads, TreePresets | None]:
    """Read heads, and trees for those that draft by ranks."""
    report("heads", 1.0, tr("Reading the heads of {0}", files.path.name))
    kind = kind_of(files.checkpoint.names)
    target = HeadsTarget(parts.config, parts.precision, shared_weights, parts.formats)
    heads = kind.read(files, target)
    return heads, read_tree_table(files.path, heads.num_heads) if kind.is_ranked else None


@contextmanager
def _released_on_error(runner: Runner) -> Iterator[None]:
    """Release the layers on other machines if the rest of the load fails."""
    try:
        yield
    except BaseException:
        runner.leave()
        raise


def _planned_draft_model(
    files: ModelFiles, options: LoadOptions, tokenizer: Tokenizer
) -> DraftModel:
    """Sizes of a draft model for the plan; refuses one with another vocabulary."""
    hardware = hardware_of(torch.device(options.device))
    check_same_vocabulary(tokenizer, files.tokenizer, files.path.name)
    return resolve_draft_model(files.config, options.formats, options.dtype, hardware)


def _name(files: ModelFiles, adapter_dir: Path | None) -> str:
    """Name of the model, with that of its LoRA adapter."""
    return files.name if adapter_dir is None else f"{files.name} + {adapter_dir.name}"


def _load_draft_model(
    files: ModelFiles, options: LoadOptions, config: ModelConfig, report: OnProgress
) -> Target:
    """Load the draft model, with the target's context if it has as much."""
    draft_options = replace(
        options.with_layers_in(None),
        assistant_dir=None,
        memory_gib=0.0,
        policy=None,
        adapter_dir=None,
        cluster="",  # drafts are computed locally
        phrases_dir=None,
        datastore_dir=None,
        suffix_dir=None,
        takes_own_heads=False,
        experts="card",
        cpu_layers=0,
        formats=draft_formats(files.config, options.formats),
        context_tokens=min(config.context_tokens, files.config.context_tokens),
    )
    return load_target(files, None, draft_options, report)


def _learned(options: LoadOptions, config: ModelConfig, key: str) -> EarlierAnswers | None:
    """The datastore of earlier answers of this model; None if they aren't kept."""
    if options.datastore_dir is None:
        return None
    return EarlierAnswers(store_of(options.datastore_dir, key), config.vocab_size)


def _own_phrases(options: LoadOptions, config: ModelConfig, key: str) -> PhraseTable | None:
    """The table of the model's answers to bundled prompts; None if none was made."""
    if options.datastore_dir is None:
        return None
    try:
        return read_phrases(own_table_dir(options.datastore_dir, key), config.vocab_size)
    except ModelError as error:  # the user didn't name it
        log.warning("%s", error.message)
        return None


def _folder_texts(
    options: LoadOptions, config: ModelConfig, tokenizer: Tokenizer
) -> FolderTexts | None:
    """The texts of the folder that drafts are looked up in; None without one."""
    if options.suffix_dir is None:
        return None
    return FolderTexts(options.suffix_dir, tokenizer.encode, config.vocab_size)

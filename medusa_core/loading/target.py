"""A loaded target with everything needed for decoding."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.heads.kind import Heads
from medusa_core.heads.medusa import SharedWeights
from medusa_core.i18n import tr
from medusa_core.loading.memory.plan import (
    chunk_rows,
)
from medusa_core.messages import MemoryPlan
from medusa_core.models.config import ModelConfig
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.folder_texts import FolderTexts
from medusa_core.models.datastore.phrases import PhraseTable
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import (
    PartFormats,
)
from medusa_core.models.text.grammar_compiler import GrammarCompiler
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.runtime.backends.native_limits import torch_note
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.tree.tables import (
    TreePresets,
)
from medusa_core.system.native.cuda.kernels import kernel_note


@dataclass(frozen=True, slots=True)
class Target:
    """A target, ready to decode.

    Attributes:
        name: Name of its folder or GGUF file's metadata, with its adapter's folder.
        config: Its configuration, with the planned context.
        precision: Dtypes and device.
        formats: Weight formats of its parts.
        plan: The memory plan.
        runner: Runs its forward passes.
        caches: The planned memory for KV caches.
        tokenizer: Its tokenizer.
        grammars: Compiles grammars of answers.
        template: Its chat template, or raw text for a base model.
        eos_token_ids: Tokens that end an answer.
        shared_weights: Its output projection and token embeddings, which heads use, too.
        heads: Its heads, or None.
        trees: Trees for the heads; None without heads, or for heads that draft path by path.
        phrases: Table of phrases that it often generates, or None.
        assistant: A draft model, or None.
        learned: Datastore of earlier answers; None if they aren't kept.
        folder_texts: Texts of a folder that drafts are looked up in, or None.
        num_parameters: Number of parameters.
        weights_bytes: Bytes of its weights.
        device_note: Why an available GPU isn't used; else empty.
    """

    name: str
    config: ModelConfig
    precision: Precision
    formats: PartFormats
    plan: MemoryPlan
    runner: Runner
    caches: CachePool
    tokenizer: Tokenizer
    grammars: GrammarCompiler
    template: Template
    eos_token_ids: frozenset[int]
    shared_weights: SharedWeights
    heads: Heads | None
    trees: TreePresets | None
    phrases: PhraseTable | None
    num_parameters: int
    weights_bytes: int
    device_note: str = ""
    assistant: Target | None = None
    learned: EarlierAnswers | None = None
    folder_texts: FolderTexts | None = None

    @property
    def runner_note(self) -> str:
        """How transformers runs it, for users; empty for natively implemented families."""
        if self.config.has_native_family:
            return ""
        why = self.runner.plain_why
        how = tr("one token a step, as {0}", why) if why else tr("with token trees")
        return tr("Runs through transformers, {0}.", how)

    @property
    def not_compiled(self) -> str:
        """Why torch computes what our kernels could, on a CPU or a card; empty if it doesn't."""
        return torch_note(self.config, self.formats) or kernel_note(self.precision.device)

    @property
    def format_name(self) -> str:
        """Format of its linear layers: GGUF's file type if they are loaded unchanged."""
        name, config = self.formats.linears.name, self.config
        return config.file_type if config.file_type and name == config.quantization else name

    @property
    def num_sessions(self) -> int:
        """Number of conversations with room for a whole context at once."""
        return self.caches.num_rows // whole_rows(self.config.context_tokens)

    @property
    def cache_pools(self) -> tuple[CachePool, ...]:
        """Cache pools of the target, its heads and its draft model."""
        of_heads = None if self.heads is None else self.heads.caches
        of_assistant = () if self.assistant is None else self.assistant.cache_pools
        return (self.caches, *(() if of_heads is None else (of_heads,)), *of_assistant)

    @property
    def chunk_rows(self) -> int:
        """Maximum rows of a prefill chunk."""
        placement = self.plan.placement
        return (
            chunk_rows(self.precision.device.type) if placement is None else placement.prompt_rows
        )

    @property
    def pass_rows(self) -> int:
        """Maximum rows of prompts in a pass that several conversations share."""
        placement = self.plan.placement
        return self.chunk_rows if placement is None else placement.pass_rows or self.chunk_rows

    @property
    def is_divided(self) -> bool:
        """Whether other machines hold layers."""
        return bool(self.runner.machines)

    def allocate_cache(self, min_rows: int) -> KvCache:
        """Allocate a cache from the pool; see `CachePool.allocate`."""
        return self.caches.allocate(self.runner.new_cache, min_rows)


def make_caches(
    config: ModelConfig, runner: Runner, precision: Precision, sessions: int = 1
) -> CachePool:
    """Reserve the planned memory for a target's caches.

    Raises:
        OutOfMemoryError: The device has no room for it.
    """
    return runner.reserve(config, precision, sessions * whole_rows(config.context_tokens))


def share_workers(runner: Runner, heads: Heads) -> None:
    """Let a target's worker threads compute its heads, too."""
    if runner.workers is not None:
        heads.share_workers(runner.workers)

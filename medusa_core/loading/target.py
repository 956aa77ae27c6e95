"""A loaded target with everything that decoding needs."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.heads.kind import Heads
from medusa_core.heads.medusa import SharedWeights
from medusa_core.memory.plan import (
    chunk_rows,
)
from medusa_core.messages import Machine, MemoryPlan, Move
from medusa_core.models.config import ModelConfig
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.phrases import PhraseTable
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import (
    PartFormats,
)
from medusa_core.models.text.grammar_compiler import GrammarCompiler
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.runner.native_limits import torch_note
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.tree.tables import (
    TreePresets,
)


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
        grammars: Compiles what answers must match.
        template: Writes its prompts: its chat template, or a base model's text as it is.
        eos_token_ids: Tokens that end an answer.
        shared_weights: What it lends heads: its projection and its token vectors.
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

    @property
    def runner_note(self) -> str:
        """How it runs where no family here describes it, for people; empty for families here."""
        if self.config.is_ours:
            return ""
        why = self.runner.plain_why
        how = f"one token a step, as {why}" if why else "with token trees"
        return f"Runs through transformers, {how}."

    @property
    def not_compiled(self) -> str:
        """Why a processor doesn't run the compiled step, for people; empty if it does."""
        return torch_note(self.config, self.formats)

    @property
    def format_name(self) -> str:
        """The format of its linear layers: GGUF's name of the mix where they are as in the file."""
        name, config = self.formats.linears.name, self.config
        return config.file_type if config.file_type and name == config.quantization else name

    @property
    def num_sessions(self) -> int:
        """How many conversations have room for a whole context at once."""
        return self.caches.num_rows // whole_rows(self.config.context_tokens)

    @property
    def cache_pools(self) -> tuple[CachePool, ...]:
        """What conversations borrow from: rows of its own, of its heads and of its draft model."""
        of_heads = None if self.heads is None else self.heads.caches
        of_assistant = () if self.assistant is None else self.assistant.cache_pools
        return (self.caches, *(() if of_heads is None else (of_heads,)), *of_assistant)

    @property
    def chunk_rows(self) -> int:
        """Most rows of a prompt that are read at once."""
        placement = self.plan.placement
        return (
            chunk_rows(self.precision.device.type) if placement is None else placement.prompt_rows
        )

    @property
    def pass_rows(self) -> int:
        """Most rows of prompts that a pass reads where several conversations share it."""
        placement = self.plan.placement
        return self.chunk_rows if placement is None else placement.pass_rows or self.chunk_rows

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

    def allocate_cache(self, least: int, wanted: int = 0) -> KvCache:
        """A cache out of what was planned; see `CachePool.allocate`."""
        return self.caches.allocate(self.runner.new_cache, least, wanted)


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

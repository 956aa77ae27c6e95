"""Requests and model of `bench --throughput`: a shape, or a real model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean

from medusa_core.bench.random_target import random_target, shape_config
from medusa_core.cli.load_arguments import model_dirs, options_of, ready
from medusa_core.cli.plan_throughput import refuse_transformers
from medusa_core.engine.batch.room import sessions_for
from medusa_core.errors import PlanError
from medusa_core.loading.load import load_target
from medusa_core.loading.measure.machine import MEASURED, MeasuredRates, OnMeasure
from medusa_core.loading.plan import BatchShape, policy_search
from medusa_core.loading.policy.policy_search import PolicySearch
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    LoadOptions,
    Policy,
    Role,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import calibrations_dir, demo_model_dir, prompts_dir

_WORDS = "the quick brown fox jumps over the lazy dog and runs into the green forest"
_ATTEMPTS = 6
_SPARE_TOKENS = 2


@dataclass(frozen=True, slots=True)
class ThroughputCase:
    """Requests and model of a measurement.

    Attributes:
        args: Arguments of `bench`.
        options: Load options.
        config: Config of the model.
        files: Files of a real model; None for a shape.
        requests: Requests of the block.
        lengths: Tokens of each conversation with its answer.
        new_tokens: Tokens of each answer.
    """

    args: argparse.Namespace
    options: LoadOptions
    config: ModelConfig
    files: ModelFiles | None
    requests: Sequence[Generate]
    lengths: Sequence[int]
    new_tokens: int

    @classmethod
    def of(cls, args: argparse.Namespace) -> ThroughputCase:
        """Choose model and prompts by the arguments.

        Raises:
            MedusaError: A file can't be read.
        """
        count, new_tokens = args.throughput, args.max_new_tokens
        files = None if args.shape else ModelFiles.open(model_dirs(args)[0])
        speaker = ModelFiles.open(demo_model_dir()) if files is None else files
        config = shape_config(args.shape) if files is None else files.config
        refuse_transformers(config)
        encode, render = speaker.tokenizer.encode_prompt, speaker.template.render

        def num_tokens(text: str) -> int:
            """Count the tokens of a rendered prompt."""
            return len(encode(render((ChatMessage(Role.USER, text),))))

        sources = [f"{_WORDS}, number {number}" for number in range(count)]
        if files is not None:
            path: Path = args.prompts or prompts_dir() / "general.jsonl"
            sources = [prompt.turns[0] for prompt in read_prompts(path)]
        texts = _texts(count, args.length, sources, num_tokens)
        settings = GenerateSettings(
            drafter="none",
            rule="greedy",
            max_new_tokens=new_tokens,
            banned=() if files is None else tuple(config.eos_token_ids),  # equal lengths
        )
        requests = [
            Generate(str(number), "", (ChatMessage(Role.USER, text),), settings)
            for number, text in enumerate(texts)
        ]
        lengths = [num_tokens(text) + new_tokens + _SPARE_TOKENS for text in texts]
        options = replace(options_of(args), context_tokens=max(lengths), takes_own_heads=False)
        return cls(args, options, config, files, requests, lengths, new_tokens)

    @property
    def prompt_tokens(self) -> float:
        """Mean tokens of a prompt."""
        return fmean(self.lengths) - self.new_tokens - _SPARE_TOKENS

    def policy_search(self, report: OnMeasure) -> PolicySearch:
        """Prepare the search of a policy; its rates are measured in this run."""
        rates = MeasuredRates(MeasurementFiles(calibrations_dir()), report, MEASURED)
        batch = BatchShape(
            len(self.requests), round(self.prompt_tokens), self.new_tokens, self.lengths
        )
        return policy_search(self.config, self.options, batch, rates, num_threads=self.args.threads)

    def load_best(
        self, searching: PolicySearch, found: FoundPolicy | None = None
    ) -> tuple[FoundPolicy, Target]:
        """Load the target under a given policy, or under the best one that fits.

        Raises:
            MedusaError: The target can't be loaded.
        """
        if found is not None:
            return found, self.load(found.policy)
        missing = 0
        for _ in range(_ATTEMPTS):
            best = searching.best(missing)
            try:
                return best, self.load(best.policy)
            except PlanError as error:
                lacking = error.data.get("missing_bytes")
                if not isinstance(lacking, int):
                    raise
                missing += lacking
        return best, self.load(best.policy)

    def load(self, policy: Policy) -> Target:
        """Load the target under a policy."""
        options, together = self.options.with_policy(policy), policy.num_sequences
        sessions = sessions_for(self.lengths, together, options.context_tokens)
        options = replace(options, sessions=sessions)
        if self.files is None:
            return ready(self.args, random_target(self.args.shape, options, 0))
        return ready(self.args, load_target(self.files, None, options))


def _texts(
    count: int, length: int, sources: Sequence[str], num_tokens: Callable[[str], int]
) -> list[str]:
    """Return the sources, or texts of their words with `length` tokens."""
    turns = [list(islice(cycle(sources), first, first + len(sources))) for first in range(count)]
    if not length:
        return [texts[0] for texts in turns]
    return [_cut(" ".join(texts).split(), length, num_tokens) for texts in turns]


def _cut(words: Sequence[str], length: int, num_tokens: Callable[[str], int]) -> str:
    """Repeat words up to `length` tokens."""
    low, high = 1, length
    many = list(islice(cycle(words), high))
    while low < high:
        middle = (low + high + 1) // 2
        if num_tokens(" ".join(many[:middle])) <= length:
            low = middle
        else:
            high = middle - 1
    return " ".join(many[:low])

"""Load a target for a batch, for as many conversations at once as memory allows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from medusa_core.cli.arguments import settings_of
from medusa_core.cli.batch_policy import ChosenPolicy, Conversations, chosen_policy, without_drafter
from medusa_core.cli.load_arguments import (
    model_dirs,
    options_of,
    ready,
)
from medusa_core.engine.batch.lines import BatchLine
from medusa_core.engine.batch.room import sessions_for
from medusa_core.errors import MedusaError, PlanError
from medusa_core.loading.load import load_target
from medusa_core.loading.policy.workload import MANY
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.speculation.drafters.lineup import drafters_for

TOGETHER = (32, 16, 8, 4, 2, 1)  # tried in this order
_ATTEMPTS = 6
_SPARE_TOKENS = 16  # per conversation, for the template and trees


class Loaded(NamedTuple):
    """A loaded target for a batch.

    Attributes:
        together: Number of conversations at the same time.
        chosen: The offload policy; None without one.
    """

    target: Target
    together: int
    chosen: ChosenPolicy | None = None


def load_for_batch(args: argparse.Namespace, lines: Sequence[BatchLine]) -> Loaded:
    """Load the model of the arguments.

    Raises:
        MedusaError: The model can't be loaded even for a single conversation.
    """
    model_dir, heads_dir = model_dirs(args)
    files = ModelFiles.open(model_dir)
    lengths = _lengths(args, lines, files)
    context = args.context or min(files.config.context_tokens, max(lengths))
    options = replace(options_of(args), context_tokens=context)
    failure: PlanError | None = None
    most = min(len(lines), args.together or TOGETHER[0])
    shortened = [min(length, context) for length in lengths]
    talks = Conversations(shortened, args.max_new_tokens, context)
    resident = replace(options, sessions=sessions_for(shortened, most, context))
    chosen = chosen_policy(args, files, heads_dir, resident, talks)
    if chosen is not None:
        heads_dir, options = without_drafter(args, heads_dir, options)
        return _load_as_chosen(args, files, heads_dir, options, talks, chosen)
    fewer = () if args.together else (number for number in TOGETHER if number < most)
    for together in (most, *fewer):
        sessions = sessions_for(shortened, together, context)
        try:
            target = load_target(files, heads_dir, replace(options, sessions=sessions))
        except PlanError as error:
            failure = error
            continue
        return Loaded(ready(args, target), together)
    assert failure is not None  # at least one was tried
    raise failure


def _load_as_chosen(
    args: argparse.Namespace,
    files: ModelFiles,
    heads_dir: Path | None,
    options: LoadOptions,
    conversations: Conversations,
    chosen: ChosenPolicy,
) -> Loaded:
    """Load under a policy; if it doesn't quite fit, under the next best one.

    Raises:
        MedusaError: The model can't be loaded.
    """
    missing = 0
    for attempt in range(_ATTEMPTS):
        policy = chosen.found.policy
        together = policy.num_sequences
        sessions = sessions_for(conversations.lengths, together, conversations.context)
        as_wanted = replace(options.with_policy(policy), sessions=sessions)
        try:
            target = load_target(files, heads_dir, as_wanted)
        except PlanError as error:
            lacking = error.data.get("missing_bytes")
            if chosen.is_given or not isinstance(lacking, int) or attempt == _ATTEMPTS - 1:
                raise
            missing += lacking
            chosen = chosen.next_best(missing)
            continue
        return Loaded(ready(args, target), together, chosen)
    raise AssertionError  # the last attempt returns or raises


def settings_for(args: argparse.Namespace, loaded: Loaded) -> GenerateSettings:
    """Return the generation settings of all prompts.

    Raises:
        RequestError: A setting is invalid.
    """
    target, together = loaded.target, loaded.together
    placement = target.plan.placement
    has_trees = placement is None or placement.tree_rows > 1 or loaded.chosen is None
    is_plain = together >= MANY or not has_trees
    drafter = args.drafter or ("none" if is_plain else drafters_for(target)[0].name)
    settings = settings_of(args, drafter, args.tree_rows, tuple(args.stop))
    # Reserve memory for the whole answer: else one could end early without it.
    most = settings.max_new_tokens or target.config.context_tokens
    return replace(settings, max_new_tokens=most)


def _lengths(args: argparse.Namespace, lines: Sequence[BatchLine], files: ModelFiles) -> list[int]:
    """Return the longest possible length of each conversation in tokens."""
    if not args.max_new_tokens:
        return [args.context or files.config.default_context] * len(lines)
    new_tokens: int = args.max_new_tokens + _SPARE_TOKENS
    return [_num_tokens(line, files.template, files.tokenizer) + new_tokens for line in lines]


def _num_tokens(line: BatchLine, template: Template, tokenizer: Tokenizer) -> int:
    """Count the tokens of a prompt; 0 if rendering fails, which its answer will report."""
    if not line.messages:
        return 0
    try:
        return len(tokenizer.encode_prompt(template.render(line.messages)))
    except MedusaError:
        return 0

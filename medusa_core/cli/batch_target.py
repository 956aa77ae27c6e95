"""A target for a batch: with room for as many conversations at once as memory allows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from medusa_core.cli.arguments import settings_of
from medusa_core.cli.load_arguments import (
    model_dirs,
    options_of,
    ready,
)
from medusa_core.engine.batch.lines import BatchLine
from medusa_core.engine.batch.room import sessions_for
from medusa_core.errors import MedusaError, PlanError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.template import Template
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.speculation.drafters.lineup import drafters_for

TOGETHER = (32, 16, 8, 4, 2, 1)  # tried in this order
MANY = 8  # rows of so many conversations pay more than drafts of each
_SPARE_TOKENS = 16  # of a context, for what a template adds and for trees


class Loaded(NamedTuple):
    """A target, and how many conversations it answers at once."""

    target: Target
    together: int


def load_for_batch(args: argparse.Namespace, lines: Sequence[BatchLine]) -> Loaded:
    """Load what the arguments choose.

    Raises:
        MedusaError: It can't be loaded, not even for one conversation.
    """
    model_dir, heads_dir = model_dirs(args)
    files = ModelFiles.open(model_dir)
    lengths = _lengths(args, lines, files)
    context = args.context or min(files.config.context_tokens, max(lengths))
    options = replace(options_of(args), context_tokens=context)
    lacking: PlanError | None = None
    most = min(len(lines), args.together or TOGETHER[0])
    fewer = () if args.together else (number for number in TOGETHER if number < most)
    for together in (most, *fewer):
        sessions = sessions_for([min(length, context) for length in lengths], together, context)
        try:
            target = load_target(files, heads_dir, replace(options, sessions=sessions))
        except PlanError as error:
            lacking = error
            continue
        return Loaded(ready(args, target), together)
    assert lacking is not None  # one was tried
    raise lacking


def settings_for(args: argparse.Namespace, loaded: Loaded) -> GenerateSettings:
    """How all lines are decoded.

    Raises:
        RequestError: A setting makes no sense.
    """
    target, together = loaded
    drafter = args.drafter or ("none" if together >= MANY else drafters_for(target)[0].name)
    settings = settings_of(args, drafter, args.tree_rows, tuple(args.stop))
    # Room is asked for the whole answer: else one could end early for want of it.
    most = settings.max_new_tokens or target.config.context_tokens
    return replace(settings, max_new_tokens=most)


def _lengths(args: argparse.Namespace, lines: Sequence[BatchLine], files: ModelFiles) -> list[int]:
    """Tokens that each conversation may become."""
    if not args.max_new_tokens:
        return [args.context or files.config.usual_context] * len(lines)
    new_tokens: int = args.max_new_tokens + _SPARE_TOKENS
    return [_num_tokens(line, files.template, files.tokenizer) + new_tokens for line in lines]


def _num_tokens(line: BatchLine, template: Template, tokenizer: Tokenizer) -> int:
    """Of the prompt; 0 where it can't be rendered, which its answer will tell."""
    if not line.messages:
        return 0
    try:
        return len(tokenizer.encode_prompt(template.render(line.messages)))
    except MedusaError:
        return 0

"""Special tokens for fill-in-the-middle (FIM), found by the names that models use."""

from __future__ import annotations

from collections.abc import Iterable

from medusa_core.messages import FillTokens
from medusa_core.models.text.tokenizer import Tokenizer

# Of Qwen and others, StarCoder, Granite, DeepSeek, CodeLlama, GLM, Falcon-H1; a model has all three
# of one row.
_NAMES = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
    ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),
    ("<PRE>", "<SUF>", "<MID>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("<|prefix|>", "<|suffix|>", "<|middle|>"),
)
_FILES = ("<|file_sep|>", "<file_sep>", "<filename>")
_REPOSITORIES = ("<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>")


def find_fill_tokens(tokenizer: Tokenizer) -> FillTokens | None:
    """Find a model's fill-in-the-middle tokens; None if it has none.

    Args:
        tokenizer: The model's tokenizer.
    """
    for names in _NAMES:
        found = [tokenizer.token_id(name) for name in names]
        if None not in found:
            prefix, suffix, middle = (one for one in found if one is not None)
            file, repository = _first(tokenizer, _FILES), _first(tokenizer, _REPOSITORIES)
            return FillTokens(prefix, suffix, middle, file, repository)
    return None


def _first(tokenizer: Tokenizer, names: Iterable[str]) -> int:
    found = (tokenizer.token_id(name) for name in names)
    return next((token_id for token_id in found if token_id is not None), -1)

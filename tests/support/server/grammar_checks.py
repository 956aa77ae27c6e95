"""Whether texts match grammars: a token for every byte, and some marks without text."""

from __future__ import annotations

from functools import cache

from llguidance import LLTokenizer, TokenizerWrapper

from medusa_core.models.text.grammar_limits import build_matcher

_MARKS = ("[TOOL_CALLS]", "[ARGS]", "<tool_call>", "</tool_call>", "<|python_tag|>", "</think>")
_REASONING = (
    "<|channel|>",
    "<|message|>",
    "<|start|>",
    "<|end|>",
    "<|A|>",
    "<|/A|>",
    "<|R|>",
    "<|/R|>",
)
_CALLS = (
    *("[CALL_ID]", "<|calls|>", "<|/calls|>", "<|call|>", "<|/call|>", "<|args|>", "<|q|>"),
    *(
        "<|ACT|>",
        "</p>",
        "<|t|>",
        "<｜D｜calls>",
        "<|tool_call|>",
        "<:calls>",
        "<|m|>",
        "<|constrain|>",
    ),
)
MARK_IDS = {mark: 257 + place for place, mark in enumerate((*_MARKS, *_REASONING, *_CALLS))}


class _Bytes:
    eos_token_id = 256
    bos_token_id = None
    special_token_ids = (256, *MARK_IDS.values())
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>", *map(str.encode, MARK_IDS))

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


@cache
def _tokenizer() -> LLTokenizer:
    return LLTokenizer(TokenizerWrapper(_Bytes()))


def token_ids_of(text: str, mark_ids: dict[str, int]) -> list[int]:
    """A text's bytes; marks are tokens of their own."""
    for mark, token_id in mark_ids.items():
        before, found, behind = text.partition(mark)
        if found:
            return [*token_ids_of(before, mark_ids), token_id, *token_ids_of(behind, mark_ids)]
    return list(text.encode())


def matches(grammar: str, text: str, mark_ids: dict[str, int] | None = None) -> bool:
    """Return whether a text is a complete answer."""
    matcher = build_matcher(_tokenizer(), grammar)
    token_ids = token_ids_of(text, mark_ids or {})
    return matcher.consume_tokens(token_ids) and matcher.is_accepting()

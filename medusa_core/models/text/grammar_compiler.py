"""Compile grammars for a target in a thread, so that running answers aren't delayed."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from medusa_core.errors import GrammarError
from medusa_core.models.text.grammar import Grammar
from medusa_core.models.text.grammar_limits import build_matcher, check_size
from medusa_core.models.text.grammar_process import GrammarProcess
from medusa_core.models.text.schema_rules import TIGHT_JSON
from medusa_core.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class GrammarCompiler:
    """Compiles one grammar at a time."""

    def __init__(
        self, tokenizer: Tokenizer, eos_token_ids: Collection[int], vocab_size: int
    ) -> None:
        """Prepare; the vocabulary is built with the first grammar.

        Args:
            tokenizer: Tokenizer of the target.
            eos_token_ids: Tokens that end an answer.
            vocab_size: Width of the target's logits.
        """
        self._vocabulary = _Vocabulary(tokenizer, sorted(eos_token_ids), vocab_size)
        self._process = GrammarProcess()
        self._turn = threading.Lock()
        self._tokenizer: LLTokenizer | None = None

    def compile(self, text: str) -> Future[Grammar]:
        """Start compiling a grammar.

        Args:
            text: Lark, or JSON with `grammars`.

        Returns:
            The grammar of one answer. The future fails with a `GrammarError` if the grammar is
            invalid, exceeds a limit, or the target has no EOS token.
        """
        future: Future[Grammar] = Future()
        threading.Thread(
            target=self._run, args=(future, text), name="medusa-grammar", daemon=True
        ).start()
        return future

    def _run(self, future: Future[Grammar], text: str) -> None:
        """Compile a grammar in a thread, one at a time, unless its future was cancelled."""
        with self._turn:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(self._compile(text))
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                future.set_exception(error)

    def _compile(self, text: str) -> Grammar:
        """Check a grammar in the worker process, then compile it for the vocabulary."""
        if not self._vocabulary.eos_token_ids:
            raise GrammarError(
                "This model has no token that ends an answer, so that no grammar can be complete.",
                "Choose another model, or ask without a grammar.",
            )
        check_size(text)
        self._process.check(text)
        if self._tokenizer is None:
            self._tokenizer = self._vocabulary.compiled()
        return Grammar(build_matcher(self._tokenizer, text), self._vocabulary.eos_token_ids)


class _Vocabulary:
    """A target's vocabulary with the interface that llguidance expects."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, eos_token_ids: list[int], vocab_size: int) -> None:
        self.eos_token_ids = eos_token_ids
        self._tokenizer, self._vocab_size = tokenizer, vocab_size

    @property
    def eos_token_id(self) -> int:
        """The first EOS id; llguidance expects exactly one."""
        return self.eos_token_ids[0]

    @property
    def special_token_ids(self) -> list[int]:
        """Ids of the special tokens, which text in a grammar can't match."""
        return [token_id for token_id, _ in self._tokenizer.special_tokens]

    @property
    def tokens(self) -> list[bytes]:
        """Bytes of all tokens by id; names of special tokens."""
        names = dict(self._tokenizer.special_tokens)
        return [
            names[token_id].encode() if token_id in names else self._tokenizer.bytes_of(token_id)
            for token_id in range(self._vocab_size)
        ]

    def __call__(self, text: bytes) -> list[int]:
        """Encode a text; names of special tokens in it are ordinary text."""
        return self._tokenizer.encode_literal(text.decode("utf-8", "replace"))

    def compiled(self) -> LLTokenizer:
        """Build the trie of all tokens; this holds the interpreter lock for 80 to 250 ms."""
        from llguidance import LLTokenizer, TokenizerWrapper

        return LLTokenizer(
            TokenizerWrapper(self), n_vocab=self._vocab_size, eos_token=self.eos_token_ids
        )


def json_schema_grammar(schema: str) -> str:
    """Return the grammar of the JSON values of a schema, with one space after `:` and `,`.

    Flexible white space would let an answer go on forever; a schema's `x-guidance` may allow it.

    Args:
        schema: The schema, as JSON.

    Raises:
        GrammarError: The schema isn't a JSON object.
    """
    try:
        is_object = isinstance(json.loads(schema), dict)
    except (ValueError, RecursionError) as error:
        raise GrammarError("The schema is no JSON.", "Write it as a JSON object.") from error
    if not is_object:
        raise GrammarError("The schema is no JSON object.", "Write it as a JSON object.")
    from llguidance import LLMatcher

    defaults: Any = TIGHT_JSON
    return LLMatcher.grammar_from_json_schema(schema, defaults=defaults)

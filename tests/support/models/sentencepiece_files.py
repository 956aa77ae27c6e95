"""SentencePiece models, trained on a few lines."""

import io
from collections.abc import Sequence

import sentencepiece

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and then the dog sleeps.",
    "def answer(question):\n    return question.strip() + '!'",
    "Once upon a time there was a little girl who lived in a village near the woods.",
    "Grüße aus Köln, çà et là, naïve café. 1 2 3 4 5 6 7 8 9 10",
] * 20


def train(
    model_type: str = "bpe",
    vocab_size: int = 400,
    byte_fallback: bool = True,
    own: Sequence[str] = ("<|own|>",),
) -> bytes:
    """A small model in the way Llama's was trained."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        model_type=model_type,
        vocab_size=vocab_size,
        byte_fallback=byte_fallback,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=list(own),
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()

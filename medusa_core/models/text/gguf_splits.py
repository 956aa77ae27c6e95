"""Pre-tokenizers of byte-level BPE by their names in GGUF files (`tokenizer.ggml.pre`).

Source: the names are those of llama.cpp's `llama-vocab.cpp`, the patterns those of the models'
tokenizer.json.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How texts are split before BPE.

    Attributes:
        patterns: Patterns whose matches are isolated, applied one after another.
        merges_words: Whether merges apply to words that are tokens (not `ignore_merges`).
        adds_bos: Whether BOS is added if the file doesn't say.
        normalizes: Whether texts are normalized to NFC.
    """

    patterns: tuple[str, ...]
    merges_words: bool = True
    adds_bos: bool = False
    normalizes: bool = False


_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"|[^\r\n\p{L}\p{N}]?\p{L}+"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_REST = rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{_SPACES}"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}{{1,3}}{_REST}"
_QWEN2 = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}{_REST}"
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*{_SPACES}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BY_CASE = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*",
)
_REST_WITH_SLASHES = rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{_SPACES}"
_CASED = "|".join(f"{part}{_CONTRACTIONS}?" for part in _BY_CASE)
_GPT4O = rf"{_CASED}|\p{{N}}{{1,3}}{_REST_WITH_SLASHES}"
_TEKKEN = rf"{'|'.join(_BY_CASE)}|\p{{N}}{_REST_WITH_SLASHES}"
_YOUTU = (
    r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-\u309f\u30a0-\u30ff]+",
    rf"{_CASED}|\p{{N}}{_REST_WITH_SLASHES}",
)

_CJK = r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# Cased letters of the Unicode version with which DeepSeek's first tokenizer was made.
_OLD_CASED = (
    r"[\p{Lu}\p{Ll}\p{Lt}&&[^\u0560-\u0588\u10c7-\u10ff\u1c80-\u1c8f\u2d00-\u2d2d\ua790-\ua7ff"
    r"\uab30-\uab6f\x{10500}-\x{10c7f}\x{10d00}-\x{1189f}\x{118e0}-\x{1e8ff}\x{1e944}-\x{10ffff}]]"
)
_DEEPSEEK_LLM = (
    r"[\r\n]",
    rf"\s?{_OLD_CASED}+",
    r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    r"\s+$",
    _CJK,
    r"\p{N}+",
)
_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")
_PUNCTUATION = r"""[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_LETTERS_OR_MARKS = (
    rf"{_PUNCTUATION}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*{_SPACES}"
)
_DEEPSEEK_V3 = (r"\p{N}{1,3}", r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _LETTERS_OR_MARKS)
_FALCON = (r"[\p{P}$+<=>^~|`]+", _GPT2, r"[0-9][0-9][0-9]")
_DEFAULT = (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")
_SEED = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+{_SPACES}"
_BAILING = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
_EXAONE_MOE = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
_MINICPM5 = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}+{_REST}"
_LINES = r"[^\n]+|[\n]+"

_of_llama3 = PreTokenizer((_LLAMA3,), merges_words=False, adds_bos=True)
_of_qwen2 = PreTokenizer((_QWEN2,))
_of_gpt4o = PreTokenizer((_GPT4O,))
_LLAMA3_NAMES = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0")
_GPT2_NAMES = ("gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "exaone4", "trillion", "mellum")
_DIGIT_NAMES = ("smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2")
_QWEN2_NAMES = ("deepseek-r1-qwen", "kormo", "megrez", "hunyuan", "stablelm2", "solar-open")

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": PreTokenizer(_DEFAULT),
    **dict.fromkeys(
        (*_GPT2_NAMES, "gigachat", "a.x-4.0", "granite-docling"), PreTokenizer((_GPT2,))
    ),
    **dict.fromkeys((*_LLAMA3_NAMES, "lfm2"), _of_llama3),
    **dict.fromkeys(("dbrx", "smaug-bpe", "olmo2", "chatglm-bpe"), PreTokenizer((_LLAMA3,))),
    **dict.fromkeys(("glm4", "glm5"), PreTokenizer((_LLAMA3,), merges_words=False)),
    **dict.fromkeys((*_QWEN2_NAMES, "f2llmv2", "grok-2"), _of_qwen2),
    "qwen2": replace(_of_qwen2, normalizes=True),
    "qwen35": PreTokenizer((_QWEN35,), normalizes=True),
    **dict.fromkeys(_DIGIT_NAMES, PreTokenizer((r"\p{N}", _GPT2))),
    "command-r": PreTokenizer((r"\p{N}", _GPT2), normalizes=True),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _of_gpt4o),
    **dict.fromkeys(("tiny_aya", "cohere2moe"), PreTokenizer((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O))),
    "tekken": PreTokenizer((_TEKKEN,), merges_words=False, adds_bos=True),
    "youtu": PreTokenizer(_YOUTU, merges_words=False),
    "falcon": PreTokenizer(_FALCON),
    "deepseek-llm": PreTokenizer(_DEEPSEEK_LLM),
    "deepseek-coder": PreTokenizer(_DEEPSEEK_CODER),
    **dict.fromkeys(
        ("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), PreTokenizer(_DEEPSEEK_V3)
    ),
    "seed-coder": PreTokenizer((_SEED,)),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), PreTokenizer((_BAILING,))),
    "exaone-moe": PreTokenizer((_EXAONE_MOE,)),
    "minicpm5": PreTokenizer((r"\p{N}{1,3}", _MINICPM5), merges_words=False),
    "laguna": PreTokenizer((_LINES, _QWEN2)),
}

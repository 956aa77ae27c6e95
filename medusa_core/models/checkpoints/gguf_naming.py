"""Names of a GGUF file for people: of its model, and of its quantization.

Source: `general.*` in ggml's docs/gguf.md; llama.cpp's `llama_ftype`.
"""

from __future__ import annotations

import re

from medusa_core.system.files.gguf import Gguf

_MAX_CHARS = 80
_PART = re.compile(r"-\d{5}-of-\d{5}$")
_WORD = re.compile(r"[a-z]+|\d+")
_FORMATS = frozenset({"awq", "gptq", "gguf", "hf", "fp16", "bf16"})  # of the source checkpoint
_TYPE = re.compile(
    r"(?<![A-Z0-9])([IT]?Q\d_(?:K(?:_[SML])?|NL|XXS|XS|[SM01])|MXFP4|BF16|F16|F32)(?![A-Z0-9])",
    re.IGNORECASE,
)
_USELESS = frozenset({"model", "models", "gguf", "hf", "output", "merged", "final", "checkpoint"})
# By `general.file_type`.
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}  # fmt: skip


def model_name(gguf: Gguf) -> str:
    """Return the model's name from the metadata, or else the file's name.

    A meaningless name, such as "Model", is replaced by base name, size and finetune. A name that
    only contains the stage of training isn't used if the file's name says more.
    """
    file_name = _PART.sub("", gguf.path.stem)
    base_name = _one_line(gguf.text("general.basename"))
    name = _without_formats(_one_line(re.split(r"[/\\]", gguf.text("general.name"))[-1]))
    if base_name and _is_useless(name) and not _is_useless(base_name):
        parts = (gguf.text("general.size_label"), gguf.text("general.finetune"))
        name = _without_formats(_one_line(" ".join((base_name, *parts)).replace("-", " ")))
    elif _is_useless(name) and not _is_useless(file_name):
        name = ""
    of_file, stage = _words(file_name), _words(gguf.text("general.finetune"))
    is_named = bool(of_file & _words(base_name))
    return file_name if not name or (is_named and stage and not of_file & stage) else name


def file_type(gguf: Gguf) -> str:
    """Return the quantization, such as Q4_K_M, from metadata or file name; empty if unknown."""
    number = gguf.entries.get("general.file_type")
    if isinstance(number, int) and number in _FILE_TYPES:
        return _FILE_TYPES[number]
    match = _TYPE.search(gguf.path.stem)
    return "" if match is None else match[1].upper()


def _without_formats(name: str) -> str:
    """Strip formats of the source checkpoint from the end of a name."""
    words = name.split(" ")
    while len(words) > 1 and words[-1].casefold() in _FORMATS:
        words.pop()
    return " ".join(words)[:_MAX_CHARS].strip()


def _is_useless(name: str) -> bool:
    """Whether a name consists of words that converters and trainers give to folders."""
    return all(word in _USELESS or word.isdigit() for word in re.findall(r"\w+", name.casefold()))


def _one_line(text: str) -> str:
    """Replace unprintable characters by spaces and collapse whitespace."""
    shown = (char if char.isprintable() else " " for char in text[: 4 * _MAX_CHARS])
    return " ".join("".join(shown).split())


def _words(text: str) -> set[str]:
    """Return the words of a name; numbers only from three digits on, as in versions and dates."""
    return {word for word in _WORD.findall(text.casefold()) if not word.isdigit() or len(word) > 3}

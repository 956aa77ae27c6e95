"""Recognises GGUF files that accompany a model, or don't generate text, and explains them.

Source: `general.type` in ggml's docs/gguf.md; the architectures of llama.cpp's `llama-arch.cpp`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from medusa_core.errors import CompanionError, HeadsFileError
from medusa_core.i18n import tr

_MOST_CHARS = 80
# Not anywhere in a name: a model may be named for its imatrix quantization or its MTP layers.
_DRAFTER = (
    r"(?:^|[-._])(?:dflash2?|dspark|eagle-?3)(?=[-._]|$)|^mtp(?=[-._]|$)"
    r"|^gemma.*[-._]assistant(?=[-._]|$)"
)
_DRAFTER_NAMES = re.compile(_DRAFTER, re.IGNORECASE)
_NAMES = re.compile(
    rf"{_DRAFTER}|(?:^|[-._])mmproj(?=[-._]|$)|^imatrix(?=[-._]|$)|^(?!.*Q\d).*[-._]imatrix$",
    re.IGNORECASE,
)
_BLOCK_SIZE = re.compile(r"^[-_]b(?:lock)?\d+(?=[-_.]|$)", re.IGNORECASE)
_FORMAT = re.compile(r"[-_.](?:i?q\d\w*|b?f\d\d|mxfp4)$", re.IGNORECASE)
_ITS_NAME = "general.base_model.0.name"
_ITS_MODEL = tr("Choose the file of the model itself; often it lies in the same repository.")
_AS_HEADS = tr("Load that model, and this file as its heads: under Drafter, or with --heads.")
_WRITER = tr("Choose a model that writes text, such as Qwen3 or Llama.")
_TYPES = {
    "adapter": (
        tr("an adapter (LoRA), which changes a model"),
        tr(
            "Load the model that it changes. Adapters are taken as folders with "
            "adapter_config.json."
        ),
    ),
    "imatrix": (tr("statistics by which a model is brought into few bits"), _ITS_MODEL),
    "mmproj": (tr("the part of a model that sees or hears"), _ITS_MODEL),
}
_VECTORS = tr("a model that turns texts into vectors and writes none")
_SOUND = tr("a model that makes sound")
# Drafters that can be loaded as heads, by architecture.
_DRAFTERS = {
    "dflash": tr("a DFlash drafter"),
    "eagle3": tr("an EAGLE-3 drafter"),
    "gemma4-assistant": tr("a Gemma 4 assistant, a drafter"),
}
_ARCHITECTURES = {
    "controlvector": (tr("a control vector, which steers a model"), _ITS_MODEL),
    **dict.fromkeys(
        (
            *("bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert"),
            *("jina-bert-v2", "jina-bert-v3", "gemma-embedding", "llama-embed", "t5encoder"),
        ),
        (_VECTORS, _WRITER),
    ),
    **dict.fromkeys(("wavtokenizer-dec", "qwen3tts", "pockettts"), (_SOUND, _WRITER)),
}
_ASSISTANT = "-assistant"


def check_is_model(name: str, entries: Mapping[str, object]) -> None:
    """Refuse a file that isn't a text model, by its metadata.

    Args:
        name: Name of the file.
        entries: Its metadata, by key.

    Raises:
        HeadsFileError: It is a drafter.
        CompanionError: It accompanies a model, or is a model of another kind.
    """
    kind, architecture = _text(entries, "general.type"), _text(entries, "general.architecture")
    architecture = architecture.replace("_", "-")  # some converters write gemma4_assistant
    if architecture in _DRAFTERS:
        raise _drafter(name, _DRAFTERS[architecture], entries)
    if kind in _TYPES:
        what, hint = _TYPES[kind]
    elif architecture == "clip":
        what, hint = tr("the part of a model that {0}", _senses(entries)), _ITS_MODEL
    elif architecture.endswith(_ASSISTANT):
        model = architecture.removesuffix(_ASSISTANT)
        what = tr("an assistant of a kind that isn't read; it drafts for models of type {0}", model)
        hint = tr("Load that model. This file isn't needed: under Drafter there are others.")
    elif architecture in _ARCHITECTURES:
        what, hint = _ARCHITECTURES[architecture]
    else:
        return
    raise _companion(name, what, hint, entries)


def check_has_layers(
    name: str, entries: Mapping[str, object], tensors: Mapping[str, object]
) -> None:
    """Refuse a file that has only a vocabulary, or only MTP layers.

    Args:
        name: Name of the file.
        entries: Its metadata, by key.
        tensors: Tensors of all files of the model, by name.

    Raises:
        HeadsFileError: It is a drafter.
        CompanionError: It is a vocabulary.
    """
    is_one_of_several = "split.count" in entries
    if not tensors and "tokenizer.ggml.tokens" in entries and not is_one_of_several:
        raise _companion(name, tr("a vocabulary without a model"), _ITS_MODEL, entries)
    drafts = any(".nextn." in tensor or tensor.startswith("nextn.") for tensor in tensors)
    if drafts and not any(tensor.startswith("blk.0.") for tensor in tensors):
        raise _drafter(
            name, tr("a layer that drafts tokens (MTP), without its model: a drafter"), entries
        )


def _companion(name: str, what: str, hint: str, entries: Mapping[str, object]) -> CompanionError:
    """Return the error for a companion file; it names the file's model if that is known."""
    model = _text(entries, _ITS_NAME)
    belongs = tr(" It belongs to {0}.", model) if model else ""
    return CompanionError(tr("{0} is {1}.{2}", name, what, belongs), hint)


def _drafter(name: str, what: str, entries: Mapping[str, object]) -> HeadsFileError:
    """Return the error for a drafter."""
    model = _text(entries, _ITS_NAME) or tr("another model")
    return HeadsFileError(tr("{0} is {1} for {2}.", name, what, model), _AS_HEADS)


def is_companion(file_name: str) -> bool:
    """Whether a file's name is one of a companion file."""
    return _NAMES.search(file_name.removesuffix(".gguf")) is not None


def is_drafter_name(file_name: str) -> bool:
    """Whether a file's name is one of a drafter."""
    return _DRAFTER_NAMES.search(file_name.removesuffix(".gguf")) is not None


def model_in_name(file_name: str) -> str:
    """Return the model in a drafter's file name, such as that of `mtp-Qwen3.5-9B-Q8_0.gguf`.

    Returns:
        Name of the model; empty if the file's name has none.
    """
    stem = file_name.removesuffix(".gguf")
    match = _DRAFTER_NAMES.search(stem)
    if match is None:
        return ""
    word = match[0].rpartition("-")[2] if match[0].casefold().startswith("gemma") else match[0]
    before, _, behind = stem.partition(word)
    behind = _BLOCK_SIZE.sub("", behind)
    name = "-".join(part for part in (before.strip("-._"), behind.strip("-._")) if part)
    # A model's name has a number; formats and block sizes, which have one too, are removed.
    return name if re.search(r"\d", before + _FORMAT.sub("", behind)) else ""


def _senses(entries: Mapping[str, object]) -> str:
    """Return what a vision or audio encoder does, as verbs."""
    sees, hears = (
        entries.get(f"clip.has_{sense}_encoder") is True for sense in ("vision", "audio")
    )
    if sees and hears:
        return tr("sees and hears")
    return tr("hears") if hears else tr("sees")


def _text(entries: Mapping[str, object], key: str) -> str:
    """Return a string of the metadata, printable and bounded."""
    value = entries.get(key)
    if not isinstance(value, str):
        return ""
    return "".join(char for char in value[:_MOST_CHARS] if char.isprintable()).strip()

"""Embedding models that are encoders, such as all-MiniLM (BERT), through transformers.

Each text is computed alone, without padding, and on a CPU by one thread of several: a batch can't
change its vector, and no operation waits for threads on a busy computer.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.engine.embeddings.conventions import Pooling
from medusa_core.engine.embeddings.embedder import Embedder, Vector
from medusa_core.engine.embeddings.files import EmbeddingFiles
from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.text.growth_bounds import check_growth
from medusa_core.models.text.tokenizer_errors import tokenizer_errors
from medusa_core.models.through_transformers.weights import load_pretrained
from medusa_core.system import compute_threads
from medusa_core.system.files.json_file import read_json

_MAX_BYTES = 128 << 20  # of tokenizer.json
_UNUSED = ("pooler.",)  # another pooling than sentence-transformers'


class TransformersEmbedder(Embedder):
    """`Embedder` that runs an encoder of the transformers library."""

    is_within_text = False

    def __init__(self, files: EmbeddingFiles, device: torch.device) -> None:
        """Load an encoder in float32.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: transformers can't read it.
            TokenizerError: The tokenizer can't be read.
            OutOfMemoryError: The device has too little memory.
        """
        self.name, self.conventions = files.name, files.conventions
        self.context_tokens = files.context_tokens
        self._pooling, self._device = files.pooling, device
        self._tokenizer = _read_tokenizer(files.path)
        self._model = _read_model(files.path, device)
        self.width = int(self._model.config.hidden_size)
        self.vocab_size = int(self._model.config.vocab_size)
        self.nbytes = sum(part.nbytes for part in self._model.parameters())
        self._num_threads = compute_threads.count() if device.type == "cpu" else 1
        self._pool = ThreadPoolExecutor(
            self._num_threads,
            "medusa-encoder",
            # Torch's number is each thread's own, and `limited` restores the one that it finds.
            initializer=compute_threads.use,
            initargs=(compute_threads.count(),),
        )

    def encode(self, text: str) -> list[int]:
        with tokenizer_errors(tr("The tokenizer can't encode this text")):
            return list(self._tokenizer.encode(text).ids)

    def reset(self) -> None:
        """Do nothing: a text is always computed whole."""

    def compute(self, sequences: Sequence[Sequence[int]], max_rows: int) -> list[Vector]:
        num_rows, group = len(sequences[0]), [sequences[0]]
        for sequence in sequences[1 : self._num_threads]:
            num_rows += len(sequence)
            if num_rows > max_rows:
                break
            group.append(sequence)
        return list(self._pool.map(self._vector, group))

    @torch.inference_mode()
    def _vector(self, token_ids: Sequence[int]) -> Vector:
        """Compute the vector of a text in the calling thread."""
        ids = torch.tensor([list(token_ids)], device=self._device)
        with compute_threads.limited(1):
            states = self._model(input_ids=ids, attention_mask=torch.ones_like(ids))
        states = states.last_hidden_state[0]
        if self._pooling is Pooling.MEAN:
            pooled = states.mean(dim=0)
        else:
            pooled = states[0 if self._pooling is Pooling.CLS else -1]
        vector: Vector = pooled.float().cpu().numpy()
        return vector


def _read_tokenizer(folder: Path) -> RustTokenizer:
    """Read `tokenizer.json`; names of special tokens in a text stay plain text."""
    path = folder / "tokenizer.json"
    check_growth(read_json(path, _MAX_BYTES))
    with tokenizer_errors(tr("{0} can't be read", path.name), tr("Download the file again.")):
        tokenizer = RustTokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
    return tokenizer


def _read_model(folder: Path, device: torch.device) -> Any:
    """Load the encoder."""
    from transformers import AutoModel  # slow

    raw_config = read_json(folder / "config.json")
    place = {} if device.type == "cpu" else {"device_map": {"": device}}
    model, found = load_pretrained(AutoModel, folder, raw_config, dtype=torch.float32, **place)
    missing = [name for name in found["missing_keys"] if not name.startswith(_UNUSED)]
    if missing:
        raise CheckpointError(
            tr("The weights lack the tensor {0}.", min(missing)),
            "The download is incomplete, or this is another kind of model.",
        )
    return model

"""The runner for models that transformers runs, as no family here describes them.

Sequences of a pass are computed one after the other. At load, the passes that this engine relies
on are tried on the model itself: a prompt in pieces, and a token tree, against the same tokens one
by one. A model that takes no trees decodes one token a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError, MedusaError, ModelError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.through_transformers.quietly import quietly
from medusa_core.models.through_transformers.sizes import sizes_of
from medusa_core.models.through_transformers.weights import TransformersModel
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.transformers_cache import TransformersCache, rows_config
from medusa_core.runtime.runner.rows import lines_of, padded_width, seen_by, words_of
from medusa_core.runtime.runner.runner import PlacedTree, Runner, Waited, only_wanted
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import compute_threads

# Of the scores' spread. Another pass may round otherwise; one that reads otherwise is off by more.
_MOST_ROUNDING = 0.1
_LEAST_ROUNDING = 1e-4
_MORE_ROUNDING = 4.0  # than between the two passes that are compared first
_CLEARLY = 0.25
_TRIED_PROMPT = 3
_TRIED_TREE = TreeShape.from_paths([(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 0, 0)])
_TRIED_LEAVES = [node for node, below in enumerate(_TRIED_TREE.children) if not below]


class _Pass(NamedTuple):
    """Rows of one sequence.

    Attributes:
        token_ids: Their tokens.
        depths: Places behind the committed rows.
        sees: Which sees which, [n, n]; None where each sees all before it.
        kv: Takes their rows, which are reserved.
        first: Which of the reserved rows is the first.
    """

    token_ids: Sequence[int]
    depths: Sequence[int]
    sees: Tensor | None
    kv: TransformersCache
    first: int = 0


class TransformersRunner(Runner):
    """Runs forward passes; see `Runner`."""

    def __init__(self, model: TransformersModel, precision: Precision) -> None:
        """Try what the model can do.

        Raises:
            ModelError: It doesn't say the same of tokens together as of each by itself.
        """
        self.hidden_dtype = self.cache_dtype = precision.compute
        self.taps: tuple[int, ...] = ()
        self._model = model
        self._precision = replace(precision, cache=precision.compute)
        self._tapped: dict[int, Tensor] = {}
        self._hooks: list[Any] = []
        self._goes_on = True
        self._most_error = 0.0
        self._masks = _Masks(model.theirs, precision.compute)
        self.plain_why = sizes_of(model.config).plain_why
        with quietly(), torch.inference_mode():  # of slow parts it would warn
            self._try()

    @property
    def waited(self) -> Waited:
        return Waited()  # all layers are on the device

    def use_threads(self, decoding: int, prefill: int) -> None:
        compute_threads.use(decoding)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TransformersCache:
        model, is_plain = self._model, bool(self.plain_why)
        return TransformersCache(
            model.config, model.theirs, self._precision, capacity, memory, is_plain
        )

    def reserve(self, config: ModelConfig, precision: Precision, num_rows: int) -> CachePool:
        return CachePool(rows_config(config), self.cache_dtype, precision.device, num_rows)

    def tap(self, layers: Sequence[int]) -> None:
        """As `Runner` has it.

        Raises:
            EngineError: The blocks of the model can't be told.
        """
        blocks, count = self._model.layers, self._model.config.num_layers
        if layers and not blocks:
            raise EngineError(
                f"What enters the layers of {self._model.config.model_type} models isn't known.",
                "Choose heads that read the last state alone.",
            )
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.taps = tuple(layers)
        for layer in self.taps:
            if layer < count:
                noted = _Entering(self._tapped, layer)
                self._hooks.append(blocks[layer].register_forward_pre_hook(noted, with_kwargs=True))
            else:
                self._hooks.append(blocks[-1].register_forward_hook(_Leaving(self._tapped, layer)))

    def verify(self, *placed: PlacedTree) -> Tensor:
        return only_wanted(torch.cat([self._verify(tree, kv) for tree, kv, *_ in placed]), placed)

    def _verify(self, tree: TokenTree, kv: KvCache) -> Tensor:
        assert isinstance(kv, TransformersCache)  # from new_cache
        shape, count = tree.shape, tree.shape.num_nodes
        if shape.depths == tuple(range(count)):
            return self._chain(tree.token_ids, kv)
        if self.plain_why:
            raise EngineError(
                f"This model takes no token trees: {self.plain_why}.", "Choose the drafter 'none'."
            )
        sees = seen_by(torch.tensor(words_of(lines_of(shape), count)).view(count, -1))
        kv.reserve(count)
        return self._forward(_Pass(tree.token_ids, shape.depths, sees, kv))

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        assert isinstance(kv, TransformersCache)  # from new_cache
        states = self._chain(token_ids, kv)
        kv.commit(range(len(token_ids)))
        return states[-1:] if only_last else states

    def embed_from(self, vectors: Tensor) -> None:
        raise EngineError(
            "A model that runs through transformers reads tokens alone.",
            "Load it on one machine.",
        )

    def logits(self, states: Tensor) -> Tensor:
        width = states.shape[1] // (1 + len(self.taps))
        with _our_errors():
            return self._model.logits(states[:, :width])

    def _chain(self, token_ids: Sequence[int], kv: TransformersCache) -> Tensor:
        """States of consecutive tokens, uncommitted."""
        kv.reserve(len(token_ids))
        if self._goes_on or not kv.length or len(token_ids) == 1:
            return self._forward(_Pass(token_ids, range(len(token_ids)), None, kv))
        return torch.cat(
            [
                self._forward(_Pass([token_id], [place], None, kv, place))
                for place, token_id in enumerate(token_ids)
            ]
        )

    def _forward(self, rows: _Pass) -> Tensor:
        """Compute rows whose slots are reserved. → [n, (1 + taps) · hidden]"""
        model, device, kv = self._model, self._precision.device, rows.kv
        takes: dict[str, Any] = {"use_cache": True}
        if sizes_of(model.config).has_masks:
            places = torch.tensor([list(rows.depths)], device=device) + kv.length
            takes["position_ids"] = places
            if rows.sees is not None:
                takes["attention_mask"] = self._masks.of(rows.sees.to(device), places[0], kv.length)
        ids = torch.tensor([list(rows.token_ids)], device=device)
        with _our_errors(), kv.reading(rows.first) as read, torch.no_grad():
            states = model.states(input_ids=ids, **{model.carries: read}, **takes)
        if not self.taps:
            return states
        return torch.cat([states, *(self._tapped[layer] for layer in self.taps)], dim=-1)

    def _try(self) -> None:
        """Find out how the model may be asked.

        Raises:
            ModelError: It can't be asked as this engine must.
        """
        ids = [(7 * place + 3) % self._model.config.vocab_size for place in range(12)]
        prompt, text = ids[:_TRIED_PROMPT], ids[: _TRIED_PROMPT + 2]
        alone = self.logits(self._read(*([token_id] for token_id in text)))
        together = self.logits(self._read(text))
        with _our_errors():
            whole = self._model.whole(torch.tensor([text], device=self._precision.device))
        spread = float(alone.double().std(dim=-1).mean())
        rounding = max(_mean_error(together, alone), _mean_error(whole, alone)) / spread
        if not rounding <= _MOST_ROUNDING:
            raise ModelError(
                f"Models of type {self._model.config.model_type} don't say the same of a text read "
                "at once as of its tokens read one after the other.",
                "Choose a model that writes text from left to right.",
            )
        self._most_error = spread * max(_LEAST_ROUNDING, _MORE_ROUNDING * rounding)
        self._goes_on = self._reads_on(prompt, text[_TRIED_PROMPT:], alone[_TRIED_PROMPT:])
        if not self.plain_why and not self._takes_trees(prompt, ids[_TRIED_PROMPT:]):
            self.plain_why = "its attention doesn't keep to the masks of token trees"

    def _reads_on(self, prompt: Sequence[int], rest: Sequence[int], alone: Tensor) -> bool:
        """Whether several tokens at once go on from what was read before.

        Some recurrent layers do so with single tokens alone: what they forget may be too little to
        be told from rounding, so their states are changed on purpose.
        """
        behind = self.logits(self._read(prompt, rest))[len(prompt) :]
        if not self._is_rather(behind, alone, self.logits(self._read(rest))):
            return False
        kv = self.new_cache(16)
        self.extend(prompt, kv)
        states = kv.recurrent_states
        for state in states:
            state.add_(1.0)
        changed = self.logits(self.extend(rest, kv))
        return not states or not torch.equal(changed, behind)

    def _takes_trees(self, prompt: Sequence[int], ids: Sequence[int]) -> bool:
        """Whether the rows of a tree are what its paths are by themselves."""
        count, kv = _TRIED_TREE.num_nodes, self.new_cache(16)
        self.extend(prompt, kv)
        tree = TokenTree(_TRIED_TREE, tuple(ids[:count]))
        try:
            found = self.logits(self.verify(PlacedTree(tree, kv)))
        except EngineError:  # transformers takes no such mask
            return False
        as_chain = self.logits(self._read([*prompt, *tree.token_ids]))[len(prompt) :]
        for node in _TRIED_LEAVES:
            path = [node]
            while (parent := _TRIED_TREE.parents[path[0]]) >= 0:
                path.insert(0, parent)
            alone = self.logits(self._read([*prompt, *(ids[each] for each in path)]))
            if not self._is_rather(found[path], alone[len(prompt) :], as_chain[path]):
                return False
        return True

    def _read(self, *chunks: Sequence[int]) -> Tensor:
        """States of a text that is read in these pieces."""
        kv = self.new_cache(16)
        return torch.cat([self.extend(chunk, kv) for chunk in chunks])

    def _is_rather(self, found: Tensor, right: Tensor, wrong: Tensor) -> bool:
        """Whether scores are the right ones but for rounding, and clearly not the wrong ones."""
        error = _mean_error(found, right)
        return error <= min(self._most_error, _CLEARLY * _mean_error(wrong, right))


def _mean_error(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).square().mean(dim=-1).sqrt().mean())


class _Masks:
    """Masks of four dimensions, of one kind or by the kinds of layers, as a model wants them."""

    def __init__(self, theirs: Any, dtype: torch.dtype) -> None:
        self._dtype = dtype
        window = getattr(theirs, "sliding_window", None)
        kinds = set(getattr(theirs, "layer_types", None) or ())
        self._windows = {kind: window if "sliding" in kind else None for kind in kinds}
        if len(kinds) < 2:
            self._window = window if not kinds or "sliding" in min(kinds) else None
            self._windows = {}

    def of(self, sees: Tensor, places: Tensor, length: int) -> Tensor | Mapping[str, Tensor]:
        """Masks of rows.

        Args:
            sees: Which row sees which. [n, n], bool
            places: Their positions. [n], int64
            length: Rows before them, which all see but for windows.

        Returns:
            [1, 1, n, length + n], or that by the kind of layer.
        """
        if not self._windows:
            return self._within(self._window, sees, places, length)
        return {
            kind: self._within(window, sees, places, length)
            for kind, window in self._windows.items()
        }

    def _within(self, window: int | None, sees: Tensor, places: Tensor, length: int) -> Tensor:
        count, width = len(sees), length + len(sees)
        before = torch.arange(length, device=sees.device)
        seen = torch.cat([sees.new_ones(count, length), sees], dim=1)
        if window is not None:
            seen &= places[:, None] - torch.cat([before, places])[None] < window
        mask = torch.zeros(count, padded_width(width), dtype=self._dtype, device=sees.device)
        mask[:, :width].masked_fill_(~seen, torch.finfo(self._dtype).min)
        return mask[None, None, :, :width]


class _Entering:
    """Notes what enters a block."""

    def __init__(self, tapped: dict[int, Tensor], layer: int) -> None:
        self._tapped, self._layer = tapped, layer

    def __call__(self, block: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        entering: Tensor = args[0] if args else kwargs["hidden_states"]
        self._tapped[self._layer] = entering[0]


class _Leaving:
    """Notes what leaves the last block."""

    def __init__(self, tapped: dict[int, Tensor], layer: int) -> None:
        self._tapped, self._layer = tapped, layer

    def __call__(self, block: Any, args: tuple[Any, ...], output: Any) -> None:
        leaving: Tensor = output[0] if isinstance(output, tuple) else output
        self._tapped[self._layer] = leaving[0]


@contextmanager
def _our_errors() -> Iterator[None]:
    """What goes wrong inside transformers, as an error of ours."""
    try:
        yield
    except MedusaError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            "The device has no memory left for this step.",
            "Close other programs, start a new chat, or choose a smaller model.",
        ) from error
    except Exception as error:  # whatever the code of a family raises
        raise EngineError(
            f"transformers failed: {type(error).__name__}: {error}",
            "Load the model again, or choose another one.",
        ) from error

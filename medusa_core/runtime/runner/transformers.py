"""The runner for models of families that aren't implemented here, through transformers.

The sequences of a pass are computed one after the other. At load, the runner tests on the model
itself what this engine relies on: a prompt in chunks, and a token tree, must give the logits of the
same tokens one by one. A model that can't verify trees decodes one token a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from medusa_core.errors import EngineError, MedusaError, ModelError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.through_transformers.quietly import quietly
from medusa_core.models.through_transformers.sizes import sizes_of
from medusa_core.models.through_transformers.weights import TransformersModel
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.runner.rows import lines_of, padded_width, seen_by, words_of
from medusa_core.runtime.runner.runner import PlacedTree, Runner, only_wanted
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import compute_threads

# transformers takes seconds to import, and every load looks for runners in this package.
if TYPE_CHECKING:
    from medusa_core.runtime.kv.transformers_cache import TransformersCache

# Errors relative to the standard deviation of logits. Passes of other shapes round differently; a
# pass that ignores a mask or a state is off by more.
_MAX_ROUNDING = 0.1
_MIN_ROUNDING = 1e-4
_ROUNDING_MARGIN = 4.0  # times the error of the first comparison
_WRONG_SHARE = 0.25  # of the distance to a wrong result
_PROBE_PROMPT = 3  # tokens
_PROBE_TREE = TreeShape.from_paths([(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 0, 0)])
_PROBE_LEAVES = [node for node, children in enumerate(_PROBE_TREE.children) if not children]


class _Pass(NamedTuple):
    """Rows of one sequence.

    Attributes:
        token_ids: Token ids.
        depths: Positions relative to the committed rows.
        visible: Mask among the rows, [n, n], bool; None for a causal mask.
        kv: Cache with the rows reserved.
        first: Index of the first row among the reserved ones.
    """

    token_ids: Sequence[int]
    depths: Sequence[int]
    visible: Tensor | None
    kv: TransformersCache
    first: int = 0


class TransformersRunner(Runner):
    """Runs forward passes; see `Runner`."""

    def __init__(self, model: TransformersModel, precision: Precision) -> None:
        """Test what the model supports.

        Raises:
            ModelError: Logits of several tokens in one pass differ from those of single tokens.
        """
        self.hidden_dtype = self.cache_dtype = precision.compute
        self._model = model
        self._precision = replace(precision, cache=precision.compute)
        self._tapped: dict[int, Tensor] = {}
        self._hooks: list[Any] = []
        self._reads_chunks = True
        self._max_error = 0.0
        self._masks = _Masks(model.hf_config, precision.compute)
        self.plain_why = sizes_of(model.config).plain_why
        with quietly(), torch.inference_mode():  # transformers warns of slow kernels
            self._probe()

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Set the number of torch's threads; prefill uses the same."""
        compute_threads.use(decoding)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TransformersCache:
        """Return an empty cache of the model's own kind."""
        from medusa_core.runtime.kv.transformers_cache import TransformersCache

        model, is_plain = self._model, bool(self.plain_why)
        return TransformersCache(
            model.config, model.hf_config, self._precision, capacity, memory, is_plain
        )

    def reserve(self, config: ModelConfig, precision: Precision, num_rows: int) -> CachePool:
        """Allocate the pool of all caches; see `Runner.reserve`."""
        from medusa_core.runtime.kv.transformers_cache import rows_config

        return CachePool(rows_config(config), self.cache_dtype, precision.device, num_rows)

    def tap(self, layers: Sequence[int]) -> None:
        """See `Runner`.

        Raises:
            EngineError: The list of the model's blocks wasn't found.
        """
        blocks, count = self._model.layers, self._model.config.num_layers
        if layers and not blocks:
            raise EngineError(
                tr(
                    "What enters the layers of {0} models isn't known.",
                    self._model.config.model_type,
                ),
                "Choose heads that read the last state alone.",
            )
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.taps = tuple(layers)
        for layer in self.taps:
            if layer < count:
                hook = partial(_keep_input, self._tapped, layer)
                self._hooks.append(blocks[layer].register_forward_pre_hook(hook, with_kwargs=True))
            else:
                keep = partial(_keep_output, self._tapped, layer)
                self._hooks.append(blocks[-1].register_forward_hook(keep))

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute trees one after the other; see `Runner.verify`."""
        return only_wanted(torch.cat([self._verify(tree, kv) for tree, kv, *_ in placed]), placed)

    def _verify(self, tree: TokenTree, kv: KvCache) -> Tensor:
        """Compute the nodes of one tree without committing them. [n, (1 + taps) · hidden]"""
        kv = cast("TransformersCache", kv)  # from new_cache
        shape, count = tree.shape, tree.shape.num_nodes
        if shape.depths == tuple(range(count)):
            return self._chain(tree.token_ids, kv)
        if self.plain_why:
            raise EngineError(
                tr("This model takes no token trees: {0}.", self.plain_why),
                "Choose the drafter 'none'.",
            )
        visible = seen_by(torch.tensor(words_of(lines_of(shape), count)).view(count, -1))
        kv.reserve(count)
        return self._forward(_Pass(tree.token_ids, shape.depths, visible, kv))

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute and commit consecutive tokens; see `Runner.extend`."""
        kv = cast("TransformersCache", kv)  # from new_cache
        states = self._chain(token_ids, kv)
        kv.commit(range(len(token_ids)))
        return states[-1:] if only_last else states

    def embed_from(self, vectors: Tensor) -> None:
        """Refuse: transformers looks up embeddings itself.

        Raises:
            EngineError: Always.
        """
        raise EngineError(
            "A model that runs through transformers reads tokens alone.",
            "Load it on one machine.",
        )

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits by the model's own head; see `Runner.logits`."""
        width = states.shape[1] // (1 + len(self.taps))
        with _our_errors():
            return self._model.logits(states[:, :width])

    def _chain(self, token_ids: Sequence[int], kv: TransformersCache) -> Tensor:
        """Compute consecutive tokens without committing them."""
        kv.reserve(len(token_ids))
        if self._reads_chunks or not kv.length or len(token_ids) == 1:
            return self._forward(_Pass(token_ids, range(len(token_ids)), None, kv))
        return torch.cat(
            [
                self._forward(_Pass([token_id], [place], None, kv, place))
                for place, token_id in enumerate(token_ids)
            ]
        )

    def _forward(self, rows: _Pass) -> Tensor:
        """Compute reserved rows. Returns [n, (1 + taps) · hidden]."""
        model, device, kv = self._model, self._precision.device, rows.kv
        kwargs: dict[str, Any] = {"use_cache": True}
        if sizes_of(model.config).has_masks:
            positions = torch.tensor([list(rows.depths)], device=device) + kv.length
            kwargs["position_ids"] = positions
            if rows.visible is not None:
                visible = rows.visible.to(device)
                kwargs["attention_mask"] = self._masks.of(visible, positions[0], kv.length)
        ids = torch.tensor([list(rows.token_ids)], device=device)
        with _our_errors(), kv.reading(rows.first) as read, torch.no_grad():
            states = model.states(input_ids=ids, **{model.cache_argument: read}, **kwargs)
        if not self.taps:
            return states
        return torch.cat([states, *(self._tapped[layer] for layer in self.taps)], dim=-1)

    def _probe(self) -> None:
        """Test whether the model reads prompts in one pass, in chunks, and token trees.

        Raises:
            ModelError: It doesn't read a prompt in one pass.
        """
        ids = [(7 * place + 3) % self._model.config.vocab_size for place in range(12)]
        prompt, text = ids[:_PROBE_PROMPT], ids[: _PROBE_PROMPT + 2]
        alone = self.logits(self._read(*([token_id] for token_id in text)))
        together = self.logits(self._read(text))
        with _our_errors():
            whole = self._model.whole(torch.tensor([text], device=self._precision.device))
        spread = float(alone.double().std(dim=-1).mean())
        rounding = max(_mean_error(together, alone), _mean_error(whole, alone)) / spread
        if not rounding <= _MAX_ROUNDING:  # NaN, too
            raise ModelError(
                tr(
                    "Models of type {0} don't say the same of a text read at once as of its tokens "
                    "read one after the other.",
                    self._model.config.model_type,
                ),
                "Choose a model that writes text from left to right.",
            )
        self._max_error = spread * max(_MIN_ROUNDING, _ROUNDING_MARGIN * rounding)
        rest = text[_PROBE_PROMPT:]
        self._reads_chunks = self._continues(prompt, rest, alone[_PROBE_PROMPT:])
        if not self.plain_why and not self._verifies_trees(prompt, ids[_PROBE_PROMPT:]):
            self.plain_why = tr("its attention doesn't keep to the masks of token trees")

    def _continues(self, prompt: Sequence[int], rest: Sequence[int], alone: Tensor) -> bool:
        """Whether a chunk of several tokens continues from cached ones.

        Some recurrent layers reset their state unless a pass has a single token. After a short
        prompt the difference may be as small as rounding, so the test changes the states.
        """
        continued = self.logits(self._read(prompt, rest))[len(prompt) :]
        if not self._is_closer(continued, alone, self.logits(self._read(rest))):
            return False
        kv = self.new_cache(16)
        self.extend(prompt, kv)
        states = kv.recurrent_states
        for state in states:
            state.add_(1.0)
        changed = self.logits(self.extend(rest, kv))
        return not states or not torch.equal(changed, continued)

    def _verifies_trees(self, prompt: Sequence[int], ids: Sequence[int]) -> bool:
        """Whether logits of a tree equal those of each of its paths alone."""
        count, kv = _PROBE_TREE.num_nodes, self.new_cache(16)
        self.extend(prompt, kv)
        tree = TokenTree(_PROBE_TREE, tuple(ids[:count]))
        try:
            found = self.logits(self.verify(PlacedTree(tree, kv)))
        except EngineError:  # the model rejects 4D masks
            return False
        as_chain = self.logits(self._read([*prompt, *tree.token_ids]))[len(prompt) :]
        for node in _PROBE_LEAVES:
            path = [node]
            while (parent := _PROBE_TREE.parents[path[0]]) >= 0:
                path.insert(0, parent)
            alone = self.logits(self._read([*prompt, *(ids[each] for each in path)]))
            if not self._is_closer(found[path], alone[len(prompt) :], as_chain[path]):
                return False
        return True

    def _read(self, *chunks: Sequence[int]) -> Tensor:
        """Hidden states of a text that is read in chunks."""
        kv = self.new_cache(16)
        return torch.cat([self.extend(chunk, kv) for chunk in chunks])

    def _is_closer(self, found: Tensor, right: Tensor, wrong: Tensor) -> bool:
        """Whether logits equal the right ones within rounding, and are far from wrong ones."""
        error = _mean_error(found, right)
        return error <= min(self._max_error, _WRONG_SHARE * _mean_error(wrong, right))


def _mean_error(found: Tensor, wanted: Tensor) -> float:
    """Root mean square difference of logits in a row, averaged over all rows."""
    return float((found.double() - wanted.double()).square().mean(dim=-1).sqrt().mean())


class _Masks:
    """Builds 4D masks: one, or one for each layer type, as the model expects."""

    def __init__(self, theirs: Any, dtype: torch.dtype) -> None:
        self._dtype = dtype
        window = getattr(theirs, "sliding_window", None)
        kinds = set(getattr(theirs, "layer_types", None) or ())
        self._windows = {kind: window if "sliding" in kind else None for kind in kinds}
        if len(kinds) < 2:
            self._window = window if not kinds or "sliding" in min(kinds) else None
            self._windows = {}

    def of(self, visible: Tensor, positions: Tensor, length: int) -> Tensor | Mapping[str, Tensor]:
        """Return the mask of rows.

        Args:
            visible: Mask among the rows. [n, n], bool
            positions: Positions of the rows. [n], int64
            length: Number of cached rows, all visible except for sliding windows.

        Returns:
            [1, 1, n, length + n], or a mapping of layer types to that.
        """
        if not self._windows:
            return self._with_window(self._window, visible, positions, length)
        return {
            kind: self._with_window(window, visible, positions, length)
            for kind, window in self._windows.items()
        }

    def _with_window(
        self, window: int | None, visible: Tensor, positions: Tensor, length: int
    ) -> Tensor:
        """Build the mask of one layer type; a window hides cached rows further back."""
        count, width = len(visible), length + len(visible)
        before = torch.arange(length, device=visible.device)
        seen = torch.cat([visible.new_ones(count, length), visible], dim=1)
        if window is not None:
            seen &= positions[:, None] - torch.cat([before, positions])[None] < window
        mask = torch.zeros(count, padded_width(width), dtype=self._dtype, device=visible.device)
        mask[:, :width].masked_fill_(~seen, torch.finfo(self._dtype).min)
        return mask[None, None, :, :width]


def _keep_input(
    tapped: dict[int, Tensor],
    layer: int,
    _block: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Keep the input of a block; a hook that torch calls with the last three arguments."""
    tapped[layer] = (args[0] if args else kwargs["hidden_states"])[0]


def _keep_output(
    tapped: dict[int, Tensor], layer: int, _block: Any, _args: tuple[Any, ...], output: Any
) -> None:
    """Keep the output of the last block; a hook that torch calls with the last three arguments."""
    tapped[layer] = (output[0] if isinstance(output, tuple) else output)[0]


@contextmanager
def _our_errors() -> Iterator[None]:
    """Translate exceptions of transformers into `MedusaError`s."""
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
            tr("transformers failed: {0}: {1}", type(error).__name__, error),
            "Load the model again, or choose another one.",
        ) from error

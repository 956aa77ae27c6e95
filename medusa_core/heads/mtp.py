"""Multi-token-prediction (MTP) layers at run time.

x = W [norm(h); norm(e)], or in the other order, of the target's state h at a token and the
embedding e of the token after it; then a block of the target's own architecture and a norm, after
which the target's output projection applies. The norm's output is the next step's h. The first h is
the target's state before the final norm in MiMo, and after it in Qwen and GLM.

Sources: DeepSeek-V3 (2024), section 2.2; MiMo (Xiaomi 2025), section 2.2; of Qwen3.5 and GLM
transformers' `MtpModel` and llama.cpp's `graph_mtp`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.chained import ChainedHead, reserved_rows, row_positions
from medusa_core.heads.layer_weights import LayerWeights, NamedTensors
from medusa_core.heads.medusa import SharedWeights
from medusa_core.heads.mtp_layouts import STATE_NORM, TOKEN_NORM
from medusa_core.heads.mtp_parts import MtpParts, joining_part
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.runtime.backends.decoder import Decoder, read_norm
from medusa_core.runtime.backends.native_layers import TreeRows, native_layers
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.kv.tensor import TensorCache


class MtpHead(ChainedHead):
    """A loaded MTP layer."""

    def __init__(
        self,
        parts: MtpParts,
        num_layers: int,
        checkpoint: Checkpoint,
        shared_weights: SharedWeights,
        formats: PartFormats,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            parts: Tensor names and sizes.
            num_layers: Number of the target's layers.
            shared_weights: Weights of the target that it shares.
            formats: Weight formats, with that of heads.
            precision: Dtypes and device.
        """
        layer, layout = parts.layer, parts.layout
        taps = () if layout.reads_normed else (num_layers,)
        super().__init__(layer, taps, shared_weights, precision)
        tensors = NamedTensors(checkpoint, parts.stored)
        weights = LayerWeights(tensors, layer, precision, formats, shared_weights)
        self._model = Decoder(layer, precision, weights)
        self._joining = weights.linear(joining_part(layer))
        self._token_norm, self._state_norm = (
            read_norm(layer, weights, name) for name in (TOKEN_NORM, STATE_NORM)
        )
        self._has_state_first = layout.state_before_embedding
        self._nbytes = weights.nbytes
        self._compiled = native_layers(self._model, linears_of(self._model.blocks), precision)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers of its own, without the target's LM head."""
        lent = self._model.lm_head
        return (self._joining, *(one for one in self._model.linears if one is not lent))

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
        return self._nbytes

    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        """Return the final hidden states, or those before the final norm."""
        read = deep if self.taps else states
        assert read is not None  # the runner returns the inputs of `taps`
        return read.to(self._precision.device, self._precision.compute)

    def step(self, read: Tensor, rows: TreeRows, kv: KvCache, only_last: bool = False) -> Tensor:
        """Run the layer on some rows; see `ChainedHead.step`."""
        model, device = self._model, self._precision.device
        context = model.begin(row_positions(rows, device), kv.capacity + 1)
        looked_up = model.offloaded_vectors(rows.token_ids)
        vectors = model.entering(
            torch.tensor(rows.token_ids, device=device),
            None if looked_up is None else looked_up.to(device),
            context,
        )
        pair = [self._token_norm(vectors), self._state_norm(read)]
        x = self._joining(torch.cat(pair[::-1] if self._has_state_first else pair, dim=-1))
        if self._compiled is not None and isinstance(kv, PanelCache):
            return self._compiled.run(x.float(), rows, kv, only_last=only_last)[:, 0]
        assert isinstance(kv, TensorCache)
        last = len(x) - 1 if only_last else None
        return model.final_norm(
            model.block(0, x, context, [reserved_rows(rows, kv, context)], last)
        )

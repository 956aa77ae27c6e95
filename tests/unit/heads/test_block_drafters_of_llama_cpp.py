"""Block drafters say the same in llama.cpp: the reference of our tests gives its scores."""

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support.models.block_files import DFLASH, DFLASH2, DSPARK, JETSPEC, BlockSpec, Slowly
from tests.support.models.gguf_heads_files import write_block_gguf

pytestmark = pytest.mark.slow

SIZES: dict[str, Any] = {"hidden": 256, "head_dim": 64, "inner": 128}
SPECS = {
    "DFlash": DFLASH,
    "DFlash2, before its selector": DFLASH2,
    "DSpark": DSPARK,
    "DSpark, Gemma 4": replace(DSPARK, layout="gemma4"),
    "JetSpec": JETSPEC,
}
ROOT, NUM_TOKENS = 33, 11


@pytest.mark.parametrize("name", SPECS)
def test_logits_equal_llama_cpps(name: str, tmp_path: Path) -> None:
    spec = replace(SPECS[name], **SIZES)
    torch.manual_seed(1)
    vectors, projection = torch.randn(2, spec.vocab, spec.hidden).unbind()
    own = {"token_embd": vectors, "output": projection}
    deep = torch.randn(NUM_TOKENS, len(spec.taps) * spec.hidden)
    path = write_block_gguf(tmp_path / "drafter.gguf", spec, own=own)
    theirs = scores_in_llama_cpp(path, spec, deep)
    slowly = Slowly(spec, vectors, projection)
    states = slowly.states(deep, ROOT)
    slowly.spec = replace(spec, selected=0)  # its scores aren't told with the selector's
    before = ROOT
    for level, found in enumerate(theirs):
        wanted = slowly.scores(states, level, before).float()
        torch.testing.assert_close(found, wanted, atol=1e-3 * float(wanted.abs().max()), rtol=0)
        before = int(found.argmax())  # the path that its Markov head goes


def scores_in_llama_cpp(path: Path, spec: BlockSpec, deep: Tensor) -> list[Tensor]:
    """Return llama.cpp's logits at the drafting positions, each after its previous most likely
    token.
    """
    peer = pytest.importorskip("llama_cpp", reason="llama-cpp-python isn't installed").llama_cpp
    peer.llama_backend_init()
    model = peer.llama_model_load_from_file(str(path).encode(), peer.llama_model_default_params())
    params = peer.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = 256, 64, 64
    params.type_k = params.type_v = peer.GGML_TYPE_F32
    params.flash_attn_type = peer.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = peer.llama_init_from_model(model, params)
    peer.llama_set_causal_attn(context, spec.layout == "jetspec")
    batch = peer.llama_batch_ext_init(context)
    rows = np.ascontiguousarray(deep.numpy())
    for place, row in enumerate(rows):
        numbers = row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        peer.llama_batch_ext_add_embd(batch, 0, peer.llama_embd(numbers, 1, row.size))
        peer.llama_batch_ext_set_pos(batch, place, (ctypes.c_int32 * 4)(place, place, place, 0))
    assert peer.llama_process(context, peer.LLAMA_PROCESS_TYPE_DECODE, batch) == 0
    peer.llama_batch_ext_clear(batch)
    for index in range(spec.num_places):
        peer.llama_batch_ext_add_token(batch, 0, spec.mask if index else ROOT)
        peer.llama_batch_ext_set_pos(batch, index, (ctypes.c_int32 * 4)(len(rows) + index))
        peer.llama_batch_ext_set_output_logits(batch, index, True)
    assert peer.llama_process(context, peer.LLAMA_PROCESS_TYPE_DECODE, batch) == 0
    found = []
    for index in range(spec.first_place, spec.num_places):
        row = np.ctypeslib.as_array(peer.llama_get_logits_ith(context, index), (spec.vocab,))
        found.append(torch.from_numpy(row.copy()))
    peer.llama_batch_ext_free(batch)
    peer.llama_free(context)
    peer.llama_model_free(model)
    return found

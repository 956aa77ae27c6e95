"""Random models with layers for multi-token prediction, and what transformers drafts with them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.cache_utils import MtpCache
from transformers.generation.candidate_generator import MTPCandidateGenerator
from transformers.modeling_layers import MtpModel

from medusa_core.heads.mtp import MtpHead
from medusa_core.loading.target import Target
from medusa_core.speculation.drafters.chained_source import ChainedSource
from tests.support.engine.heard_text import TEXT, best_path, hear
from tests.support.models.peers import CONFIGS, make_peer
from tests.support.models.tiny import write_text_files

DEPTH = 4


class Names(NamedTuple):
    """Tensor names of a publisher's MTP layers.

    Attributes:
        block: What the names of its block begin with.
        beside: Of what stands beside it the names, by transformers' own.
        copies: What is published once more, by its names there.
    """

    block: str
    beside: dict[str, str]
    copies: dict[str, str]


QWEN = Names(
    "mtp.layers.0.",
    {
        "eh_proj": "mtp.fc",
        "enorm": "mtp.pre_fc_norm_embedding",
        "hnorm": "mtp.pre_fc_norm_hidden",
        "post_norm": "mtp.norm",
    },
    {},
)
GLM = Names(
    "model.layers.3.",
    {name: f"model.layers.3.{name}" for name in ("eh_proj", "enorm", "hnorm")}
    | {"post_norm": "model.layers.3.shared_head.norm"},
    {
        "model.layers.3.embed_tokens.weight": "model.embed_tokens.weight",
        "model.layers.3.shared_head.head.weight": "lm_head.weight",
    },
)
# By their names in `CONFIGS`.
MTP_PEERS = {
    "qwen 3.5": QWEN,
    "qwen 3.5 with experts": QWEN,
    "qwen 3 next": QWEN,
    "glm 4 with experts": GLM,
}


def write_mtp_peer(
    name: str, folder: Path, dtype: torch.dtype = torch.float32, config: Any = None
) -> Path:
    """Write a model with an MTP layer as a target, optionally with other sizes, and return its
    folder.
    """
    peer, names = make_peer(name, config or CONFIGS[name]()).to(dtype), MTP_PEERS[name]
    peer.save_pretrained(folder)
    write_text_files(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    last = f"model.layers.{peer.config.num_hidden_layers - 1}."
    generator = torch.Generator().manual_seed(5)

    def like(tensor: Tensor) -> Tensor:
        scale = 0.3 if tensor.dim() > 1 else 0.1
        return (torch.randn(tensor.shape, generator=generator) * scale).to(tensor.dtype)

    added = {
        names.block + each.removeprefix(last): tensor + like(tensor)
        for each, tensor in sorted(tensors.items())
        if each.startswith(last)
    }
    hidden = peer.config.hidden_size
    added[f"{names.beside['eh_proj']}.weight"] = like(torch.empty(hidden, 2 * hidden, dtype=dtype))
    norm = tensors["model.norm.weight"]
    for part in ("enorm", "hnorm", "post_norm"):
        added[f"{names.beside[part]}.weight"] = norm + like(norm)
    added |= {name: tensors[of].clone() for name, of in names.copies.items()}
    save_file(tensors | added, path, {"format": "pt"})
    return folder


def theirs_of(folder: Path) -> tuple[Any, MtpModel]:
    """Transformers' own target, and its layer."""
    path = folder / "config.json"
    text = path.read_text(encoding="utf-8")
    more = {"num_mtp_layers": 1, "mtp_layer_types": ["full_attention"]}
    path.write_text(json.dumps(json.loads(text) | more), encoding="utf-8")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    behind = model.config.num_hidden_layers  # transformers knows the numbers of published ones
    model._keys_to_ignore_on_load_unexpected = [r"^mtp.*", rf"model\.layers\.{behind}\..*"]
    layer = MtpModel.from_pretrained(model)
    path.write_text(text, encoding="utf-8")
    return model, layer


@torch.no_grad()
def their_drafts(folder: Path, token_ids: list[int], count: int) -> list[int]:
    """Return transformers' drafts after a text, one token at a time."""
    model, layer = theirs_of(folder)
    ids = torch.tensor([token_ids])
    states = model(ids[:, :-1], output_hidden_states=True).hidden_states[-1]
    cache = MtpCache(config=model.config.get_mtp_config())
    places = torch.arange(1, len(token_ids))[None]
    drafted: list[int] = []
    read = ids[:, 1:]
    for _ in range(count):
        states = layer.forward_layer(0, states, places, cache, input_ids=read)[:, -1:]
        read = model.lm_head(states).argmax(dim=-1)
        places = places[:, -1:] + 1
        drafted.append(int(read))
    return drafted


def their_generator(folder: Path, token_ids: list[int], count: int) -> list[tuple[list[int], int]]:
    """Return transformers' drafts during generation: the preceding tokens and the draft."""
    model, _ = theirs_of(folder)
    drafts: list[tuple[list[int], int]] = []

    class Noting(MTPCandidateGenerator):
        def get_candidates(self, input_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
            found = super().get_candidates(input_ids, *args, **kwargs)
            if found[0].shape[1] > input_ids.shape[1]:
                drafts.append((input_ids[0].tolist(), int(found[0][0, -1])))
            return found

    with patch("transformers.generation.utils.MTPCandidateGenerator", Noting):
        ids = torch.tensor([token_ids])
        model.generate(ids, use_mtp=True, do_sample=False, max_new_tokens=count, eos_token_id=None)
    return drafts


def heard(target: Target, text: Sequence[int] = TEXT) -> ChainedSource:
    """Return a source of a target's MTP layer after prefill of a text."""
    assert isinstance(target.heads, MtpHead)
    source = ChainedSource(target.heads)
    hear(target, source, text, [6, 1, 3])
    source.start(text[-1], 24)
    return source


def drafts_of(target: Target) -> list[int]:
    """Return our engine's most likely drafts after a text."""
    return best_path(heard(target), DEPTH)

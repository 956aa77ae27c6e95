"""Keys of GGUF files: one of another kind is refused, one that changes the sum is heeded."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import CheckpointError, ModelError, TokenizerError
from medusa_core.models.checkpoints.gguf_config import config_of
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.gguf_tokenizer import make_gguf_tokenizer
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.system.files.gguf import read_gguf

Add = Callable[[gguf.GGUFWriter], None]
_BYTES = [chr(number) for number in range(0x21, 0x7F)]


def written(path: Path, *adds: Add, architecture: str = "llama") -> Path:
    """A file of some keys: heads of 16 numbers, as a config would have it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(32)
    writer.add_head_count(2)
    for add in adds:
        add(writer)
    writer.add_tensor("token_embd.weight", np.zeros((8, 32), np.float32))
    finish(writer)
    return path


def byte_level(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*_BYTES, "ab", "<|end|>"])


WRONG: dict[str, tuple[str, Add]] = {
    "merges as numbers": ("merges", lambda w: w.add_array("tokenizer.ggml.merges", [1, 2])),
    "merges as a text": ("merges", lambda w: w.add_string("tokenizer.ggml.merges", "a b")),
    "kinds as texts": ("token_type", lambda w: w.add_array("tokenizer.ggml.token_type", ["1"])),
    "kinds as fractions": ("token_type", lambda w: w.add_array("tokenizer.ggml.token_type", [1.0])),
    "scores as texts": ("scores", lambda w: w.add_array("tokenizer.ggml.scores", ["1"])),
    "BOS as 1": ("add_bos_token", lambda w: w.add_uint32("tokenizer.ggml.add_bos_token", 1)),
    "EOS as a text": ("eos_token_id", lambda w: w.add_string("tokenizer.ggml.eos_token_id", "7")),
    "EOS as true": ("eos_token_id", lambda w: w.add_bool("tokenizer.ggml.eos_token_id", True)),
    "a template as a number": (
        "chat_template",
        lambda w: w.add_uint32("tokenizer.chat_template", 1),
    ),
    "a factor as a text": (
        "rope.scaling.factor",
        lambda w: w.add_string("llama.rope.scaling.factor", "4"),
    ),
    "layers as a fraction": ("block_count", lambda w: w.add_float32("llama.block_count", 2.0)),
    "stretching as a number": (
        "rope.scaling.type",
        lambda w: w.add_uint32("llama.rope.scaling.type", 1),
    ),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_known_key_of_another_type_is_refused(name: str, tmp_path: Path) -> None:
    key, add = WRONG[name]
    with pytest.raises(CheckpointError, match=f"{key} isn't"):
        read_gguf(written(tmp_path / "x.gguf", add))


def test_unknown_keys_may_have_any_type(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.gguf",
        lambda w: w.add_uint32("general.finetune", 1),
        lambda w: w.add_string("qwen2.block_count", "another architecture's"),
    )
    assert read_gguf(path).tensors


@pytest.mark.parametrize(
    "add",
    [
        lambda w: w.add_float32("llama.rope.scaling.factor", 4.0),
        lambda w: w.add_uint32("llama.rope.scaling.factor", 4),
        lambda w: w.add_float32("llama.rope.scale_linear", 4.0),
        lambda w: w.add_uint32("llama.rope.scale_linear", 4),
    ],
    ids=["a factor", "as an integer", "the older key", "that as an integer"],
)
def test_every_spelling_of_a_rope_scaling_factor_is_read(add: Add, tmp_path: Path) -> None:
    raw, _, _ = config_of(read_gguf(written(tmp_path / "x.gguf", add)))
    assert raw["rope_scaling"] == {"rope_type": "linear", "factor": 4}


def test_a_model_without_rope_scaling_has_no_factor(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.gguf",
        lambda w: w.add_string("llama.rope.scaling.type", "none"),
        lambda w: w.add_float32("llama.rope.scaling.factor", 4.0),
    )
    assert "rope_scaling" not in config_of(read_gguf(path))[0]


UNSUPPORTED: dict[str, Add] = {
    "partial RoPE of 8 of 16": lambda w: w.add_rope_dimension_count(8),
    "attends in both directions": lambda w: w.add_causal_attention(False),
    "clamp_kqv": lambda w: w.add_clamp_kqv(8.0),
    "max_alibi_bias": lambda w: w.add_max_alibi_bias(8.0),
    "attention.value_length": lambda w: w.add_value_length(8),
    "use_parallel_residual": lambda w: w.add_parallel_residual(True),
    "rope.scaling.attn_factor": lambda w: w.add_rope_scaling_attn_factors(1.2),
    "final_logit_softcapping": lambda w: w.add_final_logit_softcapping(30.0),
    "logit_scale": lambda w: w.add_logit_scale(8.0),
    "attention.kv_lora_rank": lambda w: w.add_kv_lora_rank(512),
    "attention.temperature_scale": lambda w: w.add_attn_temperature_scale(0.1),
    "attention.value_length_swa": lambda w: w.add_value_length_swa(8),
    "expert_group_used_count": lambda w: w.add_expert_group_used_count(4),
}


@pytest.mark.parametrize("reason", sorted(UNSUPPORTED))
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_unsupported_keys_that_change_the_result_are_refused(
    reason: str, architecture: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "x.gguf", UNSUPPORTED[reason], architecture=architecture)
    with pytest.raises(ModelError, match=reason):
        config_of(read_gguf(path))


def test_keys_with_default_values_are_accepted(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.gguf",
        lambda w: w.add_rope_dimension_count(16),
        lambda w: w.add_causal_attention(True),
        lambda w: w.add_clamp_kqv(0.0),
        lambda w: w.add_value_length(16),
        lambda w: w.add_value_length_swa(16),
        lambda w: w.add_rope_dimension_count_swa(16),
        lambda w: w.add_parallel_residual(False),
        lambda w: w.add_rope_scaling_attn_factors(1.0),
        lambda w: w.add_rope_scaling_yarn_ext_factor(-1.0),
        lambda w: w.add_logit_scale(1.0),
        lambda w: w.add_expert_group_used_count(1),
        lambda w: w.add_rope_freq_base_swa(5e5),
        lambda w: w.add_swiglu_clamp_exp([0.0, 0.0]),
        lambda w: w.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX),
    )
    assert config_of(read_gguf(path))[0]["head_dim"] == 16


def test_architecture_specific_keys_are_refused_elsewhere(tmp_path: Path) -> None:
    for architecture, add in (
        ("granite", lambda w: w.add_logit_scale(8.0)),
        ("gemma2", lambda w: w.add_final_logit_softcapping(30.0)),
        ("phi3", lambda w: w.add_rope_scaling_attn_factors(1.2)),
    ):
        path = written(tmp_path / "x.gguf", add, architecture=architecture)
        assert config_of(read_gguf(path))[0]["head_dim"] == 16


def test_sliding_window_rope_settings_are_refused_without_a_window(tmp_path: Path) -> None:
    adds: list[Add] = [
        lambda w: w.add_sliding_window(64),
        lambda w: w.add_rope_freq_base(1e6),
        lambda w: w.add_rope_freq_base_swa(1e4),
    ]
    with pytest.raises(ModelError, match="freq_base_swa"):
        config_of(read_gguf(written(tmp_path / "x.gguf", *adds, architecture="olmo2")))
    adds[-1] = lambda w: w.add_rope_freq_base_swa(1e6)
    assert config_of(read_gguf(written(tmp_path / "x.gguf", *adds, architecture="olmo2")))


@pytest.mark.parametrize("name", ["bos", "eos", "eot", "eom"])
def test_an_eos_id_that_is_no_token_is_refused(name: str, tmp_path: Path) -> None:
    key = f"tokenizer.ggml.{name}_token_id"
    for token_id in (8, 10**9):
        path = written(tmp_path / "x.gguf", lambda w, value=token_id: w.add_uint32(key, value))
        with pytest.raises(CheckpointError, match=f"names token {token_id} as {name.upper()}"):
            config_of(read_gguf(path))
    for token_id in (7, 2**32 - 1):
        path = written(tmp_path / "x.gguf", lambda w, value=token_id: w.add_uint32(key, value))
        assert (2**32 - 1) not in config_of(read_gguf(path))[1]["eos_token_id"]


def test_a_bpe_vocabulary_without_merges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="merges are missing"):
        _ = ModelFiles.open(written(tmp_path / "x.gguf", byte_level)).tokenizer
    path = written(tmp_path / "y.gguf", byte_level, lambda w: w.add_token_merges(["a b"]))
    assert len(ModelFiles.open(path).tokenizer.encode("ab")) == 1


@pytest.mark.parametrize("context", [0, 2**31 - 1])
def test_a_senseless_size_is_reported_by_its_gguf_key(context: int, tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.gguf",
        lambda w: w.add_context_length(context),
        lambda w: w.add_block_count(1),
        lambda w: w.add_token_list(["a", "b"]),
    )
    with pytest.raises(ModelError) as caught:
        _ = ModelFiles.open(path).config
    assert caught.value.message.startswith(f"x.gguf: llama.context_length is {context}")
    assert "config.json" not in caught.value.message + caught.value.hint
    assert "GGUF" in caught.value.hint


def test_tokens_without_types_are_special_by_their_keys_and_names(tmp_path: Path) -> None:
    texts = [
        *_BYTES,
        *("<b", "ST", "STO"),
        "<|im_start|>",
        "<|im_end|>",
        "<end_of_turn>",
        "<\uff5cUser\uff5c>",
        "STOP",
        "<b>",
    ]
    path = written(
        tmp_path / "x.gguf",
        lambda w: w.add_tokenizer_model("gpt2"),
        lambda w: w.add_tokenizer_pre("gpt-2"),
        lambda w: w.add_token_list(texts),
        lambda w: w.add_token_merges(["< b", "<b >", "S T", "ST O", "STO P"]),
        lambda w: w.add_eos_token_id(texts.index("STOP")),
    )
    tokenizer = make_gguf_tokenizer(read_gguf(path))
    assert {name for _, name in tokenizer.special_tokens} == {
        "<|im_start|>",
        "<|im_end|>",
        "<end_of_turn>",
        "<\uff5cUser\uff5c>",
        "STOP",
    }
    assert tokenizer.encode("<|im_start|>a<b>") == [
        texts.index(text) for text in ("<|im_start|>", "a", "<", "b", ">")
    ]
    asked = Tokenizer(tokenizer._tokenizer)
    assert (asked.pieces, asked.vocab_size) == (tokenizer.pieces, tokenizer.vocab_size)

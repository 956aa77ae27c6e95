"""Which tensor of a published block drafter is which part, whatever it is called, and its settings.

A block drafter fills a block of places in one pass: place 0 is the last decided token, the others
are MASK. DFlash, DSpark (DFlash with a Markov head and a confidence head) and JetSpec (DFlash that
looks back alone in its block) are such.

Tensors, with H hidden, T states of the target side by side, V its tokens, C drafted ones, r a rank:

    fc.weight                                    [H, T · H]    model.fc, encoder.fc
    hidden_norm.weight                           [H]           encoder.output_norm_enc
    layers.{i}.input_layernorm.weight            [H]
    layers.{i}.self_attn.q_proj.weight           [q heads · head_dim, H]    .bias, all four or none
    layers.{i}.self_attn.{k,v}_proj.weight       [kv heads · head_dim, H]
    layers.{i}.self_attn.o_proj.weight           [H, q heads · head_dim]
    layers.{i}.self_attn.{q,k}_norm.weight       [head_dim]
    layers.{i}.post_attention_layernorm.weight   [H]
    layers.{i}.mlp.{gate,up}_proj.weight         [inner, H]
    layers.{i}.mlp.down_proj.weight              [H, inner]
    norm.weight                                  [H]
    embed_tokens.weight, lm_head.weight          [V, H]        copies of the target's: not read
    lm_head.weight                               [C, H]        read where C < V, with d2t
    d2t                                          [C] int64     token id − column

and of DSpark besides (C is V where there is no d2t):

    markov_head.markov_w1.weight                 [V, r]        scores of a place behind the token
    markov_head.markov_w2.weight                 [C, r]        t gain markov_w2 · markov_w1[t]
    confidence_head.proj.weight                  [1, H + r]    or [1, H]: read of the place's state
    confidence_head.proj.bias                    [1]           behind `norm`, then of markov_w1[t]

`config.json`, as DeepSeek writes it, holds Qwen3's keys (`model_type` "qwen3", `hidden_size`,
`num_hidden_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`, `intermediate_size`,
`rms_norm_eps`, `rope_parameters` or `rope_theta`, `vocab_size`) and

    architectures           ["Qwen3DSparkModel"]
    block_size              places of a block, each of which drafts a token
    mask_token_id           the token whose vector stands for MASK
    target_layer_ids        the target's layers whose leaving states are read, from 0 on, ascending;
                            −1 is what enters the first
    num_target_layers       layers of the target
    markov_rank             r; `markov_head_type` is "vanilla"
    enable_confidence_head, confidence_head_with_markov    true, true
    draft_vocab_size        C, where the vocabulary is reduced
    sample_from_anchor      true: place 0 drafts the next token, place 1 the one behind it, ... Else
                            place 0 drafts nothing, and there are `block_size` − 1 drafts

z-lab's DFlash and JetSpec have `mask_token_id` and `target_layer_ids` within `dflash_config`, and
place 0 drafts nothing. The "speculators" layout has the layers' keys within
`transformer_layer_config`, and `aux_hidden_state_layer_ids` name layers by what enters them.

Sources: DFlash (arXiv 2602.06036), z-lab/dflash `model.py`; DSpark (arXiv 2607.05147),
deepseek-ai/DeepSpec `modeling/dspark`; JetSpec (arXiv 2606.18394), hao-ai-lab/JetSpec
`draft_head.py`; vllm-project/speculators `models/{dflash,dspark}`; llama.cpp `conversion/qwen.py`.
"""

/* What Python checks before it calls anything: that both sides mean the same structures. */

#include <stddef.h>
#include <stdint.h>

#include "decoder.h"
#include "growth.h"
#include "heads.h"
#include "phrases.h"

enum { ABI_VERSION = 16 }; /* as in structs.py */

/* A field of a structure, or the structure itself, without a name. */
typedef struct {
    char structure[16], name[20];
    char kind; /* i and q: int32_t and int64_t, Q: uint64_t, f and d: float and double, 0: others */
    int32_t offset, size;
} Field;

#define KIND(x) _Generic((x), int32_t: 'i', int64_t: 'q', uint64_t: 'Q', float: 'f', double: 'd', default: 0)
#define SIZE(of) {#of, "", 0, 0, sizeof(of)}
/* Of a structure in the structure, which Python has without it. */
#define NESTED(of, member, name) \
    {#of, #name, KIND(((of *)0)->member), offsetof(of, member), sizeof(((of *)0)->member)}
#define FIELD(of, name) NESTED(of, name, name)

static const Field fields[] = {
    SIZE(Pool), FIELD(Pool, piece), FIELD(Pool, job), FIELD(Pool, claims), FIELD(Pool, done),
    FIELD(Pool, closed), FIELD(Pool, busy),
    SIZE(Linear), FIELD(Linear, weight), FIELD(Linear, bias), FIELD(Linear, scale), FIELD(Linear, outputs),
    FIELD(Linear, inputs), FIELD(Linear, kind), FIELD(Linear, reserved), FIELD(Linear, more),
    FIELD(Linear, adapter),
    SIZE(Up), FIELD(Up, weight), FIELD(Up, first), FIELD(Up, outputs), FIELD(Up, start), FIELD(Up, rank),
    SIZE(Adapter), FIELD(Adapter, down), FIELD(Adapter, ups), FIELD(Adapter, num_ups),
    FIELD(Adapter, inputs), FIELD(Adapter, inner), FIELD(Adapter, is_half),
    SIZE(Positions), FIELD(Positions, turns), FIELD(Positions, growth),
    SIZE(Norms), FIELD(Norms, before), FIELD(Norms, behind),
    SIZE(PartNorm), FIELD(PartNorm, weight), FIELD(PartNorm, together), FIELD(PartNorm, is_behind),
    SIZE(Attention), FIELD(Attention, heads), FIELD(Attention, window), FIELD(Attention, cap),
    FIELD(Attention, sinks),
    SIZE(MlpShape), FIELD(MlpShape, inner), FIELD(MlpShape, up_at),
    SIZE(Experts), FIELD(Experts, router), FIELD(Experts, shared_gate_up), FIELD(Experts, shared_down),
    FIELD(Experts, shared_gate), FIELD(Experts, gate_ups), FIELD(Experts, downs), FIELD(Experts, bias),
    FIELD(Experts, scales), FIELD(Experts, shape), FIELD(Experts, shared), FIELD(Experts, count),
    FIELD(Experts, chosen), FIELD(Experts, routing), FIELD(Experts, normalises),
    FIELD(Experts, packed_width), FIELD(Experts, sum_eps), FIELD(Experts, scale),
    SIZE(ExpertsBeside), FIELD(ExpertsBeside, experts), FIELD(ExpertsBeside, pre_norm),
    FIELD(ExpertsBeside, router_norm), FIELD(ExpertsBeside, post_norm),
    FIELD(ExpertsBeside, post_mlp_norm),
    SIZE(Gate), FIELD(Gate, kind), FIELD(Gate, bound), FIELD(Gate, scale),
    SIZE(StateShape), FIELD(StateShape, heads), FIELD(StateShape, key_dim), FIELD(StateShape, value_dim),
    FIELD(StateShape, key_heads), FIELD(StateShape, channels), FIELD(StateShape, conv_width),
    SIZE(States), FIELD(States, state), FIELD(States, tail), FIELD(States, keys), FIELD(States, updates),
    FIELD(States, decays), FIELD(States, inputs), FIELD(States, shape), FIELD(States, layers),
    FIELD(States, step_rows),
    SIZE(Convolution), FIELD(Convolution, weight), FIELD(Convolution, bias), FIELD(Convolution, channels),
    FIELD(Convolution, width),
    SIZE(Recurrence), FIELD(Recurrence, conv), FIELD(Recurrence, rate), FIELD(Recurrence, bias),
    FIELD(Recurrence, skip), FIELD(Recurrence, norm), FIELD(Recurrence, factors), FIELD(Recurrence, shape),
    FIELD(Recurrence, place), FIELD(Recurrence, tiles), FIELD(Recurrence, together),
    FIELD(Recurrence, gates_first), FIELD(Recurrence, is_delta), FIELD(Recurrence, width),
    FIELD(Recurrence, inputs_at), FIELD(Recurrence, gate_at), FIELD(Recurrence, queries_at),
    FIELD(Recurrence, keys_at), FIELD(Recurrence, values_at), FIELD(Recurrence, steps_apart),
    FIELD(Recurrence, steps_width), FIELD(Recurrence, steps_at), FIELD(Recurrence, least_step),
    FIELD(Recurrence, most_step), FIELD(Recurrence, eps),
    SIZE(Block), FIELD(Block, qkv), FIELD(Block, output), FIELD(Block, gate_up), FIELD(Block, down),
    FIELD(Block, gates), FIELD(Block, token_gate), FIELD(Block, token_projection),
    FIELD(Block, attention_norms), FIELD(Block, mlp_norms), FIELD(Block, q_norm), FIELD(Block, k_norm),
    FIELD(Block, v_norm), FIELD(Block, positions), FIELD(Block, token_norm), FIELD(Block, experts),
    FIELD(Block, experts_beside), FIELD(Block, attention), FIELD(Block, convolution),
    FIELD(Block, query_scale), FIELD(Block, scale), FIELD(Block, mixer_scale), FIELD(Block, mlp_scale),
    FIELD(Block, kv_heads), FIELD(Block, head_dim), FIELD(Block, inner), FIELD(Block, factor_at),
    FIELD(Block, width), FIELD(Block, keys_are_values), FIELD(Block, gates_at), FIELD(Block, mixed),
    FIELD(Block, token_at), FIELD(Block, token_width), FIELD(Block, recurrence), FIELD(Block, beside),
    SIZE(Decoder), FIELD(Decoder, blocks), FIELD(Decoder, final_norm), FIELD(Decoder, embedding),
    FIELD(Decoder, token_projection), FIELD(Decoder, token_norm), FIELD(Decoder, embedding_is_half),
    FIELD(Decoder, layers), FIELD(Decoder, hidden), FIELD(Decoder, gate), FIELD(Decoder, embedding_scale),
    FIELD(Decoder, residual_scale), FIELD(Decoder, eps), FIELD(Decoder, token_width),
    SIZE(LayerRows), FIELD(LayerRows, words), NESTED(LayerRows, memory.tail, tail),
    NESTED(LayerRows, memory.inputs, inputs), FIELD(LayerRows, kv_heads), FIELD(LayerRows, head_dim),
    FIELD(LayerRows, is_shared), FIELD(LayerRows, reserved),
    SIZE(Cache), FIELD(Cache, layers), FIELD(Cache, capacity), FIELD(Cache, num_layers),
    FIELD(Cache, is_half), FIELD(Cache, prefix), FIELD(Cache, num_shared),
    SIZE(Sequence), NESTED(Sequence, rows.rows, rows), NESTED(Sequence, rows.length, length),
    NESTED(Sequence, rows.parents, parents), NESTED(Sequence, rows.depths, depths), FIELD(Sequence, cache),
    FIELD(Sequence, states), FIELD(Sequence, pending), FIELD(Sequence, is_decided),
    SIZE(Pass), FIELD(Pass, sequences), FIELD(Pass, token_ids), FIELD(Pass, per_layer), FIELD(Pass, taps),
    FIELD(Pass, scratch), FIELD(Pass, hidden), FIELD(Pass, num_sequences), FIELD(Pass, rows),
    FIELD(Pass, first_wanted), FIELD(Pass, workers), FIELD(Pass, num_taps), FIELD(Pass, per_layer_width),
    SIZE(Heads), FIELD(Heads, first), FIELD(Heads, rest), FIELD(Heads, projections),
    FIELD(Heads, embedding), FIELD(Heads, hidden), FIELD(Heads, columns), FIELD(Heads, num_heads),
    FIELD(Heads, num_rest), FIELD(Heads, is_shared), FIELD(Heads, embedding_is_half),
    SIZE(Phrases), FIELD(Phrases, keys), FIELD(Phrases, starts), FIELD(Phrases, tokens),
    FIELD(Phrases, chances), FIELD(Phrases, buckets), FIELD(Phrases, shift), FIELD(Phrases, longest),
    SIZE(Node), FIELD(Node, worth), FIELD(Node, chance), FIELD(Node, parent), FIELD(Node, depth),
    FIELD(Node, token), FIELD(Node, marks), FIELD(Node, kind), FIELD(Node, unused),
    SIZE(Candidates), FIELD(Candidates, tokens), FIELD(Candidates, chances), FIELD(Candidates, counts),
    FIELD(Candidates, weight), FIELD(Candidates, size), FIELD(Candidates, mark),
    SIZE(Growth), FIELD(Growth, prices), FIELD(Growth, floors), FIELD(Growth, trust),
    FIELD(Growth, asking), FIELD(Growth, least), FIELD(Growth, promised), FIELD(Growth, nodes),
    FIELD(Growth, order), FIELD(Growth, open), FIELD(Growth, paths), FIELD(Growth, finished),
    FIELD(Growth, chances), FIELD(Growth, offers), FIELD(Growth, offered), FIELD(Growth, rows),
    FIELD(Growth, count), FIELD(Growth, num_open), FIELD(Growth, level), FIELD(Growth, num_offers),
    FIELD(Growth, chain),
};

int32_t abi(void) { return ABI_VERSION; }

/* All fields that Python fills in or reads. */
const Field *abi_fields(int32_t *count) {
    *count = sizeof fields / sizeof *fields;
    return fields;
}

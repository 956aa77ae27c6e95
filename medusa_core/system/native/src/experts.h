/* Mixture of experts: MLPs of which each row passes through a few, chosen by a router. */

#ifndef MEDUSA_EXPERTS_H
#define MEDUSA_EXPERTS_H

#include <stdint.h>

#include "gate.h"
#include "linear.h"
#include "pool.h"

/* How a router's scores become routing weights. */
enum {
    SOFTMAX,      /* over all experts */
    TOPK_SOFTMAX, /* over the chosen ones */
    SIGMOIDS,     /* each by itself; a bias may take part in the choice */
};

/* Sizes of a two-layer MLP. */
typedef struct {
    int32_t inner; /* intermediate size, a multiple of the lanes; 0 for no MLP */
    int32_t up_at; /* in an output row of `gate_up`, where the half that the activated gate multiplies
                      begins: `inner`, or 0 without a gate, where both factors are the same numbers */
} MlpShape;

typedef struct {
    Linear router;
    Linear shared_gate_up, shared_down; /* of the shared expert, if `shared` has a size */
    Linear shared_gate; /* one output, whose sigmoid multiplies the shared expert's; outputs 0: none */
    const Linear *gate_ups, *downs; /* of every expert */
    const float *bias;   /* of SIGMOIDS, added for the choice alone, or NULL. [count] */
    const float *scales; /* factors of the experts' routing weights, or NULL. [count] */
    MlpShape shape, shared;
    int32_t count, chosen;
    int32_t routing;    /* SOFTMAX, TOPK_SOFTMAX or SIGMOIDS */
    int32_t normalises; /* the routing weights of those chosen are divided by their sum */
    int32_t packed_width; /* numbers of a row that the widest of its layers needs room for */
    float sum_eps; /* of SIGMOIDS, added to that sum */
    float scale;   /* of all routing weights, at last */
} Experts;

/* Floats that `run_experts` needs. */
int64_t experts_scratch(const Experts *experts, int32_t hidden, int32_t rows);

/* Each row through its experts, added in the order of their numbers with their routing weights, then
   through the shared expert.
   x, routed: what experts read, and what the router reads. [rows, hidden] → y: [rows, hidden] */
void run_experts(Pool *pool, const Experts *experts, const Gate *gate, int32_t hidden, const float *x,
                 const float *routed, int32_t rows, float *scratch, float *y);

#endif

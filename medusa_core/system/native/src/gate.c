#include "gate.h"

#include "lanes.h"

enum { VECTORS_EACH = 256 }; /* of a piece of work on all rows' numbers */

/* gate · sigmoid(1.702 gate) · (factor + 1), where both stay within ±bound, the gate above alone. */
INLINE Lanes bounded(Lanes gate, Lanes factor, Lanes bound) {
    gate = choose(gate > bound, bound, gate);
    factor = choose(factor > bound, bound, choose(factor < -bound, -bound, factor));
    Lanes power = exponential(larger(gate * 1.702f, all(-88.0f)) * -1.0f);
    return gate / (1.0f + power) * (factor + 1.0f);
}

INLINE void activate_vectors(const Activation *job, int32_t index, int kind) {
    int32_t vectors = job->inner / LANES, first = index * VECTORS_EACH;
    int32_t left = job->rows * vectors - first;
    if (left > VECTORS_EACH) left = VECTORS_EACH;
    for (int64_t r = first / vectors, v = first % vectors; left > 0; r++, v = 0)
        for (; v < vectors && left > 0; v++, left--) {
            Lanes gate = load(job->gate + r * job->gate_stride + v * LANES) * job->of.scale;
            Lanes factor = load(job->factor + r * job->factor_stride + v * LANES);
            Lanes y = kind == BOUNDED ? bounded(gate, factor, all(job->of.bound))
                      : kind == RELU  ? positive(gate) * factor
                      : kind == GELU_ERF ? gelu_erf(gate) * factor
                                      : (kind == GELU ? gelu(gate) : silu(gate)) * factor;
            store(job->y + r * job->inner + v * LANES, y);
        }
}

static void activate_some(void *context, int32_t index, int32_t worker) {
    const Activation *job = context;
    (void)worker;
    switch (job->of.kind) {
        case SILU: activate_vectors(job, index, SILU); break;
        case GELU: activate_vectors(job, index, GELU); break;
        case RELU: activate_vectors(job, index, RELU); break;
        case GELU_ERF: activate_vectors(job, index, GELU_ERF); break;
        default: activate_vectors(job, index, BOUNDED);
    }
}

void activate(Pool *pool, const Activation *job) {
    int32_t vectors = job->rows * (job->inner / LANES);
    share(pool, activate_some, (void *)job, (vectors + VECTORS_EACH - 1) / VECTORS_EACH);
}

#include "activation.h"

#include "lanes.h"
#include "pool.h"

enum { TASK_VECTORS = 256 };

/* GPT-OSS's gate · sigmoid(1.702 gate) · (up + 1), with the gate at most `limit` and up within ±limit. */
INLINE Lanes clamped_swiglu(Lanes gate, Lanes up, Lanes limit) {
    gate = choose(gate > limit, limit, gate);
    up = choose(up > limit, limit, choose(up < -limit, -limit, up));
    Lanes power = exponential(larger(gate * 1.702f, all(-88.0f)) * -1.0f);
    return gate / (1.0f + power) * (up + 1.0f);
}

INLINE void activate_vectors(const ActivationJob *job, int32_t index, int code) {
    int32_t vectors = job->size / LANES, first = index * TASK_VECTORS;
    int32_t left = job->rows * vectors - first;
    if (left > TASK_VECTORS) left = TASK_VECTORS;
    for (int64_t r = first / vectors, v = first % vectors; left > 0; r++, v = 0)
        for (; v < vectors && left > 0; v++, left--) {
            Lanes gate = load(job->gate + r * job->gate_stride + v * LANES) * job->activation.gate_multiplier;
            Lanes up = load(job->up + r * job->up_stride + v * LANES);
            Lanes y = code == CLAMPED_SWIGLU ? clamped_swiglu(gate, up, all(job->activation.swiglu_limit))
                      : code == RELU2 ? relu(gate) * up /* up is the gate itself */
                      : code == GELU  ? gelu(gate) * up
                                      : (code == GELU_TANH ? gelu_tanh(gate) : silu(gate)) * up;
            store(job->y + r * job->size + v * LANES, y);
        }
}

/* Each activation is compiled by itself. */
static void activate_some(void *context, int32_t index, int32_t worker) {
    const ActivationJob *job = context;
    (void)worker;
    switch (job->activation.code) {
        case SILU: activate_vectors(job, index, SILU); break;
        case GELU_TANH: activate_vectors(job, index, GELU_TANH); break;
        case RELU2: activate_vectors(job, index, RELU2); break;
        case GELU: activate_vectors(job, index, GELU); break;
        default: activate_vectors(job, index, CLAMPED_SWIGLU);
    }
}

void activate(Pool *pool, const ActivationJob *job) {
    int32_t vectors = job->rows * (job->size / LANES);
    parallel_for(pool, activate_some, (void *)job, (vectors + TASK_VECTORS - 1) / TASK_VECTORS);
}

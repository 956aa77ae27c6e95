#include "convolution.h"

#include "pool.h"

enum { TASK_VECTORS = 8 }; /* channels of a task, for all rows */

typedef struct {
    const Convolution *conv;
    const Inputs *inputs;
    float *bcx, *y;
    int32_t first;
} GatedJob;

void find_taps(const Convolution *conv, const Inputs *inputs, int32_t row, const float **taps) {
    int32_t at = row;
    for (int32_t tap = conv->kernel_size - 1; tap >= 0; tap--) {
        taps[tap] = at >= 0 ? inputs->x + at * inputs->stride
                             : inputs->memory.state + (int64_t)(conv->kernel_size - 1 + at) * conv->channels;
        at = at >= 0 ? inputs->tree->parents[at] : at - 1;
    }
}

/* Shift the inputs of all decided rows but the last into the state, for a vector of channels. */
static void shift_state(const Convolution *conv, const Inputs *inputs, int64_t at) {
    int64_t channels = conv->channels, kept = conv->kernel_size - 1, past = inputs->tree->num_rows - 1;
    for (int64_t to = 0; to < kept; to++) {
        int64_t from = past + to;
        const float *input = from < kept ? inputs->memory.state + from * channels
                                         : inputs->x + (from - kept) * inputs->stride;
        store(inputs->memory.state + to * channels + at, load(input + at));
    }
}

void store_inputs(const Convolution *conv, const Inputs *inputs, int64_t begin, int64_t end) {
    int64_t rows = inputs->tree->num_rows, first = inputs->is_decided ? rows - 1 : 0;
    for (int64_t i = begin; i < end; i += LANES) {
        for (int64_t r = first; r < rows; r++)
            store(inputs->memory.inputs + (r - first) * conv->channels + i,
                  load(inputs->x + r * inputs->stride + i));
        if (inputs->is_decided) shift_state(conv, inputs, i);
    }
}

static void convolve_some(void *context, int32_t index, int32_t worker) {
    const GatedJob *job = context;
    int64_t channels = job->conv->channels, rows = job->inputs->tree->num_rows;
    int64_t begin = (int64_t)index * TASK_VECTORS * LANES, end = begin + TASK_VECTORS * LANES;
    const float *taps[MAX_KERNEL_SIZE];
    (void)worker;
    if (end > channels) end = channels;
    for (int64_t r = 0; r < rows; r++) {
        float *b = job->bcx + r * 3 * channels;
        for (int64_t i = begin; i < end; i += LANES)
            store(b + i, load(b + i) * load(b + 2 * channels + i));
    }
    for (int64_t r = job->first; r < rows; r++) {
        const float *c = job->bcx + (r * 3 + 1) * channels;
        find_taps(job->conv, job->inputs, (int32_t)r, taps);
        for (int64_t i = begin; i < end; i += LANES)
            store(job->y + r * channels + i, load(c + i) * convolve_vector(job->conv, taps, i));
    }
    store_inputs(job->conv, job->inputs, begin, end);
}

void convolve_gated(Pool *pool, const Convolution *conv, const Tree *tree, int32_t is_decided,
                    int32_t first, const ConvState *memory, float *bcx, float *y) {
    Inputs inputs = {tree, *memory, bcx, 3 * (int64_t)conv->channels, is_decided};
    GatedJob job = {conv, &inputs, bcx, y, first};
    int32_t vectors = conv->channels / LANES;
    parallel_for(pool, convolve_some, &job, (vectors + TASK_VECTORS - 1) / TASK_VECTORS);
}

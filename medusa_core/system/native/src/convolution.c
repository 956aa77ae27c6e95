#include "convolution.h"

#include <stddef.h>

#include "lanes.h"

enum { VECTORS_EACH = 8 }; /* of channels, in a piece of work: all rows of them */

typedef struct {
    const Convolution *how;
    const Rows *rows;
    const InputMemory *memory;
    float *bcx, *y;
    int32_t is_decided, first;
} Convolving;

/* What the convolution of a row reads, oldest first: of its ancestors, then of the committed rows. */
static void find_inputs(const Convolving *job, int32_t row, const float **inputs) {
    int32_t channels = job->how->channels, width = job->how->width, at = row;
    for (int32_t tap = width - 1; tap >= 0; tap--) {
        inputs[tap] = at >= 0 ? job->bcx + (int64_t)at * 3 * channels
                              : job->memory->tail + (int64_t)(width - 1 + at) * channels;
        at = at >= 0 ? job->rows->parents[at] : at - 1;
    }
}

/* One vector of channels of one row. The order of the sum is that of the taps. */
INLINE Lanes convolve_vector(const Convolution *how, const float *const *inputs, int64_t at) {
    Lanes made = load(inputs[0] + at) * load(how->weight + at);
    for (int64_t tap = 1; tap < how->width; tap++)
        made = fma(load(inputs[tap] + at), load(how->weight + tap * how->channels + at), made);
    return how->bias == NULL ? made : made + load(how->bias + at);
}

/* Let a vector of channels of all decided rows but the last become the last inputs. */
static void move_on(const Convolving *job, int64_t at) {
    int64_t channels = job->how->channels, kept = job->how->width - 1, past = job->rows->rows - 1;
    for (int64_t to = 0; to < kept; to++) {
        int64_t from = past + to;
        const float *input = from < kept ? job->memory->tail + from * channels
                                         : job->bcx + (from - kept) * 3 * channels;
        store(job->memory->tail + to * channels + at, load(input + at));
    }
}

static void convolve_some(void *context, int32_t index, int32_t worker) {
    const Convolving *job = context;
    int64_t channels = job->how->channels, rows = job->rows->rows;
    int64_t begin = (int64_t)index * VECTORS_EACH * LANES, end = begin + VECTORS_EACH * LANES;
    const float *inputs[MOST_TAPS];
    (void)worker;
    if (end > channels) end = channels;
    for (int64_t r = 0; r < rows; r++) {
        float *b = job->bcx + r * 3 * channels;
        for (int64_t i = begin; i < end; i += LANES)
            store(b + i, load(b + i) * load(b + 2 * channels + i));
    }
    for (int64_t r = job->first; r < rows; r++) {
        const float *c = job->bcx + (r * 3 + 1) * channels;
        find_inputs(job, (int32_t)r, inputs);
        for (int64_t i = begin; i < end; i += LANES)
            store(job->y + r * channels + i, load(c + i) * convolve_vector(job->how, inputs, i));
    }
    int64_t kept = job->is_decided ? rows - 1 : 0; /* the first whose own input is asked for */
    for (int64_t i = begin; i < end; i += LANES) {
        for (int64_t r = kept; r < rows; r++)
            store(job->memory->inputs + (r - kept) * channels + i, load(job->bcx + r * 3 * channels + i));
        if (job->is_decided) move_on(job, i);
    }
}

void convolve_gated(Pool *pool, const Convolution *how, const Rows *rows, int32_t is_decided,
                    int32_t first, const InputMemory *memory, float *bcx, float *y) {
    Convolving job = {how, rows, memory, bcx, y, is_decided, first};
    int32_t vectors = how->channels / LANES;
    share(pool, convolve_some, &job, (vectors + VECTORS_EACH - 1) / VECTORS_EACH);
}

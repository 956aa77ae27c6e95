#include "convolution.h"

enum { VECTORS_EACH = 8 }; /* of channels, in a piece of work: all rows of them */

typedef struct {
    const Convolution *how;
    const Inputs *inputs;
    float *bcx, *y;
    int32_t first;
} Convolving;

void find_inputs(const Convolution *how, const Inputs *inputs, int32_t row, const float **found) {
    int32_t at = row;
    for (int32_t tap = how->width - 1; tap >= 0; tap--) {
        found[tap] = at >= 0 ? inputs->x + at * inputs->stride
                             : inputs->memory.tail + (int64_t)(how->width - 1 + at) * how->channels;
        at = at >= 0 ? inputs->rows->parents[at] : at - 1;
    }
}

/* Let a vector of channels of all decided rows but the last become the last inputs. */
static void move_on(const Convolution *how, const Inputs *inputs, int64_t at) {
    int64_t channels = how->channels, kept = how->width - 1, past = inputs->rows->rows - 1;
    for (int64_t to = 0; to < kept; to++) {
        int64_t from = past + to;
        const float *input = from < kept ? inputs->memory.tail + from * channels
                                         : inputs->x + (from - kept) * inputs->stride;
        store(inputs->memory.tail + to * channels + at, load(input + at));
    }
}

void keep_inputs(const Convolution *how, const Inputs *inputs, int64_t begin, int64_t end) {
    int64_t rows = inputs->rows->rows, first = inputs->is_decided ? rows - 1 : 0;
    for (int64_t i = begin; i < end; i += LANES) {
        for (int64_t r = first; r < rows; r++)
            store(inputs->memory.inputs + (r - first) * how->channels + i,
                  load(inputs->x + r * inputs->stride + i));
        if (inputs->is_decided) move_on(how, inputs, i);
    }
}

static void convolve_some(void *context, int32_t index, int32_t worker) {
    const Convolving *job = context;
    int64_t channels = job->how->channels, rows = job->inputs->rows->rows;
    int64_t begin = (int64_t)index * VECTORS_EACH * LANES, end = begin + VECTORS_EACH * LANES;
    const float *found[MOST_TAPS];
    (void)worker;
    if (end > channels) end = channels;
    for (int64_t r = 0; r < rows; r++) {
        float *b = job->bcx + r * 3 * channels;
        for (int64_t i = begin; i < end; i += LANES)
            store(b + i, load(b + i) * load(b + 2 * channels + i));
    }
    for (int64_t r = job->first; r < rows; r++) {
        const float *c = job->bcx + (r * 3 + 1) * channels;
        find_inputs(job->how, job->inputs, (int32_t)r, found);
        for (int64_t i = begin; i < end; i += LANES)
            store(job->y + r * channels + i, load(c + i) * convolve_vector(job->how, found, i));
    }
    keep_inputs(job->how, job->inputs, begin, end);
}

void convolve_gated(Pool *pool, const Convolution *how, const Rows *rows, int32_t is_decided,
                    int32_t first, const InputMemory *memory, float *bcx, float *y) {
    Inputs inputs = {rows, *memory, bcx, 3 * (int64_t)how->channels, is_decided};
    Convolving job = {how, &inputs, bcx, y, first};
    int32_t vectors = how->channels / LANES;
    share(pool, convolve_some, &job, (vectors + VECTORS_EACH - 1) / VECTORS_EACH);
}

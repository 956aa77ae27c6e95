#include "adapter.h"

#include "lanes.h"

/* How many rows are taken at once, and how many of A's rows beside a single one or beside several:
   a sum waits for its last product, so eight or more take turns, as far as registers hold them. */
#if defined(__AVX512F__)
enum { ROWS = 4, ALONE = 8, BESIDE = 4 };
#else
enum { ROWS = 2, ALONE = 4, BESIDE = 2 };
#endif
enum { MOST_SUMS = ALONE > ROWS * BESIDE ? ALONE : ROWS * BESIDE };
enum { DOWN_GROUP = 8, UP_GROUP = 8 }; /* A's rows, and tiles of outputs, of a piece */

typedef struct {
    const Adapter *adapter;
    const float *x;
    float *made;
    int32_t rows;
    float *y;
    int32_t stride;
} Job;

INLINE Lanes load_weights(const void *from, int64_t at, int is_half) {
    return is_half ? load_halves((const uint16_t *)from + at) : load((const float *)from + at);
}

/* Products of some rows with some of A's; the counts are known when this is compiled. */
INLINE void dots(const Job *job, int32_t row, int32_t first, int rows, int count, int is_half) {
    const Adapter *adapter = job->adapter;
    int64_t inputs = adapter->inputs;
    Lanes total[MOST_SUMS];
    for (int i = 0; i < rows * count; i++) total[i] = (Lanes){0};
    for (int64_t i = 0; i < inputs; i += LANES) {
        Lanes x[ROWS];
        for (int r = 0; r < rows; r++) x[r] = load(job->x + (row + r) * inputs + i);
        for (int c = 0; c < count; c++) {
            Lanes weights = load_weights(adapter->down, (first + c) * inputs + i, is_half);
            for (int r = 0; r < rows; r++) total[c * rows + r] = fma(x[r], weights, total[c * rows + r]);
        }
    }
    for (int c = 0; c < count; c++)
        for (int r = 0; r < rows; r++)
            job->made[(int64_t)(row + r) * adapter->inner + first + c] = sum(total[c * rows + r]);
}

INLINE void all_dots(const Job *job, int32_t row, int32_t first, int32_t end, int rows, int is_half) {
    int count = rows == 1 ? ALONE : BESIDE;
    for (; first + count <= end; first += count) dots(job, row, first, rows, count, is_half);
    for (; first < end; first++) dots(job, row, first, rows, 1, is_half);
}

/* What some rows add to a tile of 16 outputs. */
INLINE void lift(const Job *job, const Up *up, int32_t row, int32_t tile, int rows, int is_half) {
    int64_t inner = job->adapter->inner, at = (int64_t)tile * LANES * up->rank;
    const float *made = job->made + row * inner + up->start;
    Lanes total[ROWS];
    for (int r = 0; r < rows; r++) total[r] = (Lanes){0};
    for (int32_t k = 0; k < up->rank; k++, at += LANES) {
        Lanes weights = load_weights(up->weight, at, is_half);
        for (int r = 0; r < rows; r++) total[r] = fma(all(made[r * inner + k]), weights, total[r]);
    }
    for (int r = 0; r < rows; r++) {
        float *y = job->y + (int64_t)(row + r) * job->stride + up->first + tile * LANES;
        store(y, load(y) + total[r]);
    }
}

static float number(const void *from, int64_t at, int is_half) {
    if (!is_half) return ((const float *)from)[at];
    union {
        uint32_t bits;
        float number;
    } wide = {(uint32_t)((const uint16_t *)from)[at] << 16};
    return wide.number;
}

/* What all rows add to a narrower last tile, number by number. */
static void lift_narrow(const Job *job, const Up *up, int32_t tile) {
    int32_t first = tile * LANES, width = up->outputs - first;
    for (int64_t r = 0; r < job->rows; r++)
        for (int32_t i = 0; i < width; i++) {
            const float *made = job->made + r * job->adapter->inner + up->start;
            int64_t at = (int64_t)first * up->rank + i;
            float total = 0;
            for (int32_t k = 0; k < up->rank; k++, at += width)
                total = __builtin_fmaf(made[k], number(up->weight, at, job->adapter->is_half), total);
            job->y[r * job->stride + up->first + first + i] += total;
        }
}

#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (n <= ROWS && job->adapter->is_half)                                                    \
            OF_ROWS(n, 1);                                                                         \
        else if (n <= ROWS)                                                                        \
            OF_ROWS(n, 0);                                                                         \
        break;

static void down_piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    int32_t first = index * DOWN_GROUP, end = first + DOWN_GROUP;
    (void)worker;
    if (end > job->adapter->inner) end = job->adapter->inner;
    for (int32_t row = 0; row < job->rows; row += ROWS)
#define OF_ROWS(n, is_half) all_dots(job, row, first, end, n, is_half)
        switch (job->rows - row < ROWS ? job->rows - row : ROWS) { CASE(1) CASE(2) CASE(3) CASE(4) }
#undef OF_ROWS
}

static int32_t tiles(const Up *up) { return (up->outputs + LANES - 1) / LANES; }
static int32_t pieces(const Up *up) { return (tiles(up) + UP_GROUP - 1) / UP_GROUP; }

static void up_piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const Up *up = job->adapter->ups;
    (void)worker;
    for (; index >= pieces(up); up++) index -= pieces(up);
    int32_t end = (index + 1) * UP_GROUP < tiles(up) ? (index + 1) * UP_GROUP : tiles(up);
    for (int32_t tile = index * UP_GROUP; tile < end; tile++) {
        if ((tile + 1) * LANES > up->outputs) {
            lift_narrow(job, up, tile);
            continue;
        }
        for (int32_t row = 0; row < job->rows; row += ROWS)
#define OF_ROWS(n, is_half) lift(job, up, row, tile, n, is_half)
            switch (job->rows - row < ROWS ? job->rows - row : ROWS) { CASE(1) CASE(2) CASE(3) CASE(4) }
#undef OF_ROWS
    }
}
#undef CASE

void add_adapter(Pool *pool, const Adapter *adapter, const float *x, float *made, int32_t rows, float *y,
                 int32_t stride) {
    Job job = {adapter, x, made, rows, y, stride};
    int32_t count = 0;
    for (int32_t u = 0; u < adapter->num_ups; u++) count += pieces(adapter->ups + u);
    share(pool, down_piece, &job, (adapter->inner + DOWN_GROUP - 1) / DOWN_GROUP);
    share(pool, up_piece, &job, count);
}

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
enum { PAIR = 2 * LANES };
enum { UP_GROUP = 8 }; /* tiles of outputs of a piece */

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

INLINE void load_pair(const void *from, int64_t at, Lanes to[2], int is_half) {
    if (!is_half) {
        to[0] = load((const float *)from + at);
        to[1] = load((const float *)from + at + LANES);
        return;
    }
    Words both = *(const Words *)((const uint16_t *)from + at);
    to[0] = (Lanes)(both << 16);
    to[1] = (Lanes)(both & 0xffff0000u);
}

/* Products of some rows with some of a tile of A's; the counts are known when this is compiled. */
INLINE void dots(const Job *job, int32_t row, int32_t first, int rows, int count, int is_half) {
    const Adapter *adapter = job->adapter;
    int64_t inputs = adapter->inputs, place = first % DOWN_TILE, left = adapter->inner - (first - place);
    int64_t height = left < DOWN_TILE ? left : DOWN_TILE, begin = (first - place) * inputs, i = 0;
    const float *x = job->x + row * inputs;
    Lanes total[MOST_SUMS];
    for (int t = 0; t < rows * count; t++) total[t] = (Lanes){0};
    for (; i + PAIR <= inputs; i += PAIR)
        for (int c = 0; c < count; c++) {
            Lanes weights[2];
            load_pair(adapter->down, begin + i * height + (place + c) * PAIR, weights, is_half);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < 2; v++)
                    total[c * rows + r] =
                        fma(load(x + r * inputs + i + v * LANES), weights[v], total[c * rows + r]);
        }
    for (int c = 0; c < count && i < inputs; c++) {
        Lanes weights = load_weights(adapter->down, begin + i * height + (place + c) * LANES, is_half);
        for (int r = 0; r < rows; r++)
            total[c * rows + r] = fma(load(x + r * inputs + i), weights, total[c * rows + r]);
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
    int32_t k = 0;
    for (; k + 2 <= up->rank; k += 2, at += PAIR) {
        Lanes weights[2];
        load_pair(up->weight, at, weights, is_half);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < 2; v++)
                total[r] = fma(all(made[r * inner + k + v]), weights[v], total[r]);
    }
    if (k < up->rank) {
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
    int32_t first = index * DOWN_TILE, end = first + DOWN_TILE;
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
    share(pool, down_piece, &job, (adapter->inner + DOWN_TILE - 1) / DOWN_TILE);
    share(pool, up_piece, &job, count);
}

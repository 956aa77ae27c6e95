#include "adapter.h"

#include "lanes.h"
#include "pool.h"

/* Rows that are computed together, and rows of A with a single row or with several: a sum has to wait for
   its last product, so eight or more of them take turns, as far as the registers hold them. */
#if defined(__AVX512F__)
enum { ROWS = 4, DOWN_ROWS_OF_ONE = 8, DOWN_ROWS = 4 };
#else
enum { ROWS = 2, DOWN_ROWS_OF_ONE = 4, DOWN_ROWS = 2 };
#endif
enum { MAX_SUMS = DOWN_ROWS_OF_ONE > ROWS * DOWN_ROWS ? DOWN_ROWS_OF_ONE : ROWS * DOWN_ROWS };
enum { PAIR = 2 * LANES };
enum { UP_TILES = 8 }; /* of a task */

typedef struct {
    const Adapter *adapter;
    const float *x;
    float *hidden;
    int32_t rows;
    float *y;
    int32_t stride;
} Job;

INLINE Lanes load_weights(const void *from, int64_t at, int is_bf16) {
    return is_bf16 ? load_bf16((const uint16_t *)from + at) : load((const float *)from + at);
}

INLINE void load_pair(const void *from, int64_t at, Lanes to[2], int is_bf16) {
    if (!is_bf16) {
        to[0] = load((const float *)from + at);
        to[1] = load((const float *)from + at + LANES);
        return;
    }
    Words both = *(const Words *)((const uint16_t *)from + at);
    to[0] = (Lanes)(both << 16);
    to[1] = (Lanes)(both & 0xffff0000u);
}

/* Products of rows of x and rows of A in one tile; the counts are compile-time constants. */
INLINE void dots(const Job *job, int32_t row, int32_t first, int rows, int count, int is_bf16) {
    const Adapter *adapter = job->adapter;
    int64_t inputs = adapter->inputs, place = first % DOWN_TILE, left = adapter->rank - (first - place);
    int64_t height = left < DOWN_TILE ? left : DOWN_TILE, begin = (first - place) * inputs, i = 0;
    const float *x = job->x + row * inputs;
    Lanes total[MAX_SUMS];
    for (int t = 0; t < rows * count; t++) total[t] = (Lanes){0};
    for (; i + PAIR <= inputs; i += PAIR)
        for (int c = 0; c < count; c++) {
            Lanes weights[2];
            load_pair(adapter->down, begin + i * height + (place + c) * PAIR, weights, is_bf16);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < 2; v++)
                    total[c * rows + r] =
                        fma(load(x + r * inputs + i + v * LANES), weights[v], total[c * rows + r]);
        }
    for (int c = 0; c < count && i < inputs; c++) {
        Lanes weights = load_weights(adapter->down, begin + i * height + (place + c) * LANES, is_bf16);
        for (int r = 0; r < rows; r++)
            total[c * rows + r] = fma(load(x + r * inputs + i), weights, total[c * rows + r]);
    }
    for (int c = 0; c < count; c++)
        for (int r = 0; r < rows; r++)
            job->hidden[(int64_t)(row + r) * adapter->rank + first + c] = sum(total[c * rows + r]);
}

INLINE void all_dots(const Job *job, int32_t row, int32_t first, int32_t end, int rows, int is_bf16) {
    int count = rows == 1 ? DOWN_ROWS_OF_ONE : DOWN_ROWS;
    for (; first + count <= end; first += count) dots(job, row, first, rows, count, is_bf16);
    for (; first < end; first++) dots(job, row, first, rows, 1, is_bf16);
}

/* Add B · hidden to a tile of 16 outputs. */
INLINE void add_up(const Job *job, const Up *up, int32_t row, int32_t tile, int rows, int is_bf16) {
    int64_t rank = job->adapter->rank, at = (int64_t)tile * LANES * up->rank;
    const float *hidden = job->hidden + row * rank + up->rank_start;
    Lanes total[ROWS];
    for (int r = 0; r < rows; r++) total[r] = (Lanes){0};
    int32_t k = 0;
    for (; k + 2 <= up->rank; k += 2, at += PAIR) {
        Lanes weights[2];
        load_pair(up->weight, at, weights, is_bf16);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < 2; v++)
                total[r] = fma(all(hidden[r * rank + k + v]), weights[v], total[r]);
    }
    if (k < up->rank) {
        Lanes weights = load_weights(up->weight, at, is_bf16);
        for (int r = 0; r < rows; r++) total[r] = fma(all(hidden[r * rank + k]), weights, total[r]);
    }
    for (int r = 0; r < rows; r++) {
        float *y = job->y + (int64_t)(row + r) * job->stride + up->first_output + tile * LANES;
        store(y, load(y) + total[r]);
    }
}

static float number(const void *from, int64_t at, int is_bf16) {
    if (!is_bf16) return ((const float *)from)[at];
    union {
        uint32_t bits;
        float number;
    } wide = {(uint32_t)((const uint16_t *)from)[at] << 16};
    return wide.number;
}

/* Add it to a narrower last tile, number by number. */
static void add_up_narrow(const Job *job, const Up *up, int32_t tile) {
    int32_t first = tile * LANES, width = up->outputs - first;
    for (int64_t r = 0; r < job->rows; r++)
        for (int32_t i = 0; i < width; i++) {
            const float *hidden = job->hidden + r * job->adapter->rank + up->rank_start;
            int64_t at = (int64_t)first * up->rank + i;
            float total = 0;
            for (int32_t k = 0; k < up->rank; k++, at += width)
                total = __builtin_fmaf(hidden[k], number(up->weight, at, job->adapter->is_bf16), total);
            job->y[r * job->stride + up->first_output + first + i] += total;
        }
}

#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (n <= ROWS && job->adapter->is_bf16)                                                    \
            OF_ROWS(n, 1);                                                                         \
        else if (n <= ROWS)                                                                        \
            OF_ROWS(n, 0);                                                                         \
        break;

static void down_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    int32_t first = index * DOWN_TILE, end = first + DOWN_TILE;
    (void)worker;
    if (end > job->adapter->rank) end = job->adapter->rank;
    for (int32_t row = 0; row < job->rows; row += ROWS)
#define OF_ROWS(n, is_bf16) all_dots(job, row, first, end, n, is_bf16)
        switch (job->rows - row < ROWS ? job->rows - row : ROWS) { CASE(1) CASE(2) CASE(3) CASE(4) }
#undef OF_ROWS
}

static int32_t tiles(const Up *up) { return (up->outputs + LANES - 1) / LANES; }
static int32_t num_tasks(const Up *up) { return (tiles(up) + UP_TILES - 1) / UP_TILES; }

static void up_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const Up *up = job->adapter->ups;
    (void)worker;
    for (; index >= num_tasks(up); up++) index -= num_tasks(up);
    int32_t end = (index + 1) * UP_TILES < tiles(up) ? (index + 1) * UP_TILES : tiles(up);
    for (int32_t tile = index * UP_TILES; tile < end; tile++) {
        if ((tile + 1) * LANES > up->outputs) {
            add_up_narrow(job, up, tile);
            continue;
        }
        for (int32_t row = 0; row < job->rows; row += ROWS)
#define OF_ROWS(n, is_bf16) add_up(job, up, row, tile, n, is_bf16)
            switch (job->rows - row < ROWS ? job->rows - row : ROWS) { CASE(1) CASE(2) CASE(3) CASE(4) }
#undef OF_ROWS
    }
}
#undef CASE

void add_adapter(Pool *pool, const Adapter *adapter, const float *x, float *hidden, int32_t rows, float *y,
                 int32_t stride) {
    Job job = {adapter, x, hidden, rows, y, stride};
    int32_t count = 0;
    for (int32_t u = 0; u < adapter->num_ups; u++) count += num_tasks(adapter->ups + u);
    parallel_for(pool, down_task, &job, (adapter->rank + DOWN_TILE - 1) / DOWN_TILE);
    parallel_for(pool, up_task, &job, count);
}

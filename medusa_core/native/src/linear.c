#include "linear.h"

#include <stddef.h>

#include "lanes.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#define MULTIPLIES_HALVES 1
#else
#define MULTIPLIES_HALVES 0
#endif

/* How many rows and how many lanes of outputs the registers hold at once. */
#if defined(__AVX512F__)
enum { MOST_ROWS = 12, WIDTH = 2 };
#else
enum { MOST_ROWS = 6, WIDTH = 1 };
#endif
enum { GROUP = 4 }; /* panels of a piece: for one row they are read side by side */

typedef struct {
    const Linear *layer;
    const Inputs *inputs;
    int32_t rows, outputs, stride;
    const float *plus;
    float *y;
} Job;

void prepare(const Linear *layer, Inputs *inputs, int32_t rows) {
    if (!MULTIPLIES_HALVES || !layer->is_half) return;
    int64_t count = (int64_t)rows * layer->inputs;
    uint16_t *halves = (uint16_t *)inputs->packed;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        Words rounded = round_to_half(load(inputs->x + i));
        *(Halves *)(halves + i) = __builtin_convertvector(rounded, Halves);
    }
    for (; i < count; i++) halves[i] = (uint16_t)round_to_half(all(inputs->x[i]))[0];
}

/* One input (or pair) of one row into one vector of sums. The order of a sum is the order of the
   inputs, however many rows and panels go together. */
INLINE Lanes add_pair(Lanes sum, Words weights, const Job *job, int32_t row, int32_t pair) {
    int32_t inputs = job->layer->inputs;
#if MULTIPLIES_HALVES
    int32_t two = (int32_t)job->inputs->packed[(int64_t)row * (inputs / 2) + pair];
    return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)weights,
                                   (__m512bh)_mm512_set1_epi32(two));
#else
    const float *x = job->inputs->x + (int64_t)row * inputs + 2 * pair;
    sum = fma(all(x[0]), (Lanes)(weights << 16), sum);
    return fma(all(x[1]), (Lanes)(weights & 0xffff0000u), sum);
#endif
}

INLINE Lanes finished(const Job *job, Lanes sum, int32_t row, int32_t output) {
    if (job->layer->bias != NULL) sum += load(job->layer->bias + output);
    if (job->plus != NULL) sum += load(job->plus + (int64_t)row * job->stride + output);
    return sum;
}

/* `rows` rows of `panels` whole panels, from lane `lane` on; the counts are known when this is
   compiled, so that all sums stay in registers. */
INLINE void block(const Job *job, int32_t first_row, int32_t panel, int32_t lane, int rows,
                  int panels, int width) {
    const Linear *layer = job->layer;
    Lanes sums_[MOST_ROWS * 2][2];
    for (int i = 0; i < rows * panels; i++)
        for (int v = 0; v < width; v++) sums_[i][v] = (Lanes){0};
    int64_t panel_size = (int64_t)layer->inputs * PANEL;
    if (layer->is_half) {
        const uint16_t *from = (const uint16_t *)layer->weight + panel * panel_size + 2 * lane;
        for (int32_t pair = 0; pair < layer->inputs / 2; pair++)
            for (int p = 0; p < panels; p++)
                for (int v = 0; v < width; v++) {
                    const uint16_t *at = from + p * panel_size + pair * 2 * PANEL + v * 2 * LANES;
                    Words weights = *(const Words *)at;
                    for (int r = 0; r < rows; r++)
                        sums_[r * panels + p][v] =
                            add_pair(sums_[r * panels + p][v], weights, job, first_row + r, pair);
                }
    } else {
        const float *from = (const float *)layer->weight + panel * panel_size + lane;
        for (int32_t k = 0; k < layer->inputs; k++)
            for (int p = 0; p < panels; p++)
                for (int v = 0; v < width; v++) {
                    Lanes weights = load(from + p * panel_size + k * PANEL + v * LANES);
                    for (int r = 0; r < rows; r++) {
                        float x = job->inputs->x[(int64_t)(first_row + r) * layer->inputs + k];
                        sums_[r * panels + p][v] = fma(all(x), weights, sums_[r * panels + p][v]);
                    }
                }
    }
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < panels; p++)
            for (int v = 0; v < width; v++) {
                int32_t output = (panel + p) * PANEL + lane + v * LANES;
                int64_t at = (int64_t)(first_row + r) * job->stride + output;
                store(job->y + at, finished(job, sums_[r * panels + p][v], first_row + r, output));
            }
}

/* Some rows of one whole panel. */
INLINE void panel_rows(const Job *job, int32_t row, int32_t panel, int rows) {
    for (int32_t lane = 0; lane < PANEL; lane += WIDTH * LANES)
        block(job, row, panel, lane, rows, 1, WIDTH);
}

static void panel_block(const Job *job, int32_t row, int32_t panel, int32_t rows) {
    switch (rows) {
    case 1: panel_rows(job, row, panel, 1); break;
    case 2: panel_rows(job, row, panel, 2); break;
    case 3: panel_rows(job, row, panel, 3); break;
    case 4: panel_rows(job, row, panel, 4); break;
    case 5: panel_rows(job, row, panel, 5); break;
    case 6: panel_rows(job, row, panel, 6); break;
#if defined(__AVX512F__)
    case 7: panel_rows(job, row, panel, 7); break;
    case 8: panel_rows(job, row, panel, 8); break;
    case 9: panel_rows(job, row, panel, 9); break;
    case 10: panel_rows(job, row, panel, 10); break;
    case 11: panel_rows(job, row, panel, 11); break;
    case 12: panel_rows(job, row, panel, 12); break;
#endif
    }
}

/* What a row of a narrower last panel comes to, one lane at a time. */
static void narrow(const Job *job, int32_t row, int32_t panel) {
    const Linear *layer = job->layer;
    int32_t first = panel * PANEL, width = layer->outputs - first;
    int64_t start = (int64_t)first * layer->inputs;
    for (int32_t i = 0; i < width && first + i < job->outputs; i++) {
        Lanes total = {0};
        if (layer->is_half) {
            const uint16_t *from = (const uint16_t *)layer->weight + start + 2 * i;
            for (int32_t pair = 0; pair < layer->inputs / 2; pair++, from += 2 * width) {
                Words weights = (Words){0} + (from[0] | (uint32_t)from[1] << 16);
                total = add_pair(total, weights, job, row, pair);
            }
        } else {
            const float *from = (const float *)layer->weight + start + i;
            const float *x = job->inputs->x + (int64_t)row * layer->inputs;
            for (int32_t k = 0; k < layer->inputs; k++, from += width)
                total = fma(all(x[k]), all(*from), total);
        }
        float y = total[0];
        if (layer->bias != NULL) y += layer->bias[first + i];
        int64_t at = (int64_t)row * job->stride + first + i;
        job->y[at] = job->plus == NULL ? y : y + job->plus[at];
    }
}

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    int32_t panel = index * GROUP;
    int32_t whole = job->layer->outputs / PANEL;
    int32_t end = (job->outputs + PANEL - 1) / PANEL;
    if (end > panel + GROUP) end = panel + GROUP;
    if (job->rows == 1 && panel + GROUP <= end && end <= whole) {
        for (int32_t lane = 0; lane < PANEL; lane += WIDTH * LANES)
            block(job, 0, panel, lane, 1, GROUP, WIDTH);
        return;
    }
    for (; panel < end; panel++) {
        if (panel == whole) {
            for (int32_t row = 0; row < job->rows; row++) narrow(job, row, panel);
            continue;
        }
        int32_t blocks = (job->rows + MOST_ROWS - 1) / MOST_ROWS;
        for (int32_t b = 0, row = 0; b < blocks; b++) {
            int32_t rows = (job->rows - row + blocks - b - 1) / (blocks - b);
            panel_block(job, row, panel, rows);
            row += rows;
        }
    }
}

void linear(Pool *pool, const Linear *layer, const Inputs *inputs, int32_t rows, int32_t outputs,
            const float *plus, float *y, int32_t stride) {
    Job job = {layer, inputs, rows, outputs, stride, plus, y};
    share(pool, piece, &job, (outputs + GROUP * PANEL - 1) / (GROUP * PANEL));
}

#include "linear.h"

#include "adapter.h"
#include "blocks.h"
#include "pool.h"
#include "words.h"

#include <stddef.h>

/* Rows of each type of weights, and vectors of outputs (WIDTH), whose sums the registers hold at once; and
   panels that are computed together for few rows: a sum has to wait for its last product, so a dozen of
   them take turns. All are measured: with one more the compiler spills registers. I8 has a second sum in
   integers. */
#if defined(__AVX512F__)
enum { MAX_F32 = 10, MAX_BF16 = HAS_BF16_DOT ? 11 : 10, MAX_I8 = 6, WIDTH = 2 };
#define PANELS(rows) ((rows) <= 2 ? 4 : (rows) <= 6 ? 2 : 1)
#define I8_PANELS(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)
#elif defined(__AVX2__)
enum { MAX_F32 = 6, MAX_BF16 = 6, MAX_I8 = 4, WIDTH = 1 };
#define PANELS(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define I8_PANELS(rows) PANELS(rows)
#else
enum { MAX_F32 = 5, MAX_BF16 = 4, MAX_I8 = 2, WIDTH = 1 };
#define PANELS(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define I8_PANELS(rows) ((rows) == 1 ? 2 : 1)
#endif
enum { MAX_SUMS = 12, MAX_I8_SUMS = 6 }; /* of a block, each of WIDTH vectors */
enum { TASK_PANELS = 4 }; /* a multiple of every PANELS */
enum { SCALE_WORDS = 64 / 4 }; /* words of I8 inputs that share a scale */
enum { MAX_CHUNK = 64 }; /* rows whose inputs stay in a core's cache while all weights are read */

typedef struct {
    const Linear *layer;
    const uint32_t *inputs;
    int32_t rows;
    const float *residual;
    float *y;
    int32_t stride; /* of a row of y and residual */
} Job;

/* Words of weights per output. */
static int32_t num_words(const Linear *layer) { return layer->inputs / word_size(layer->type); }

/* Words of a packed row: the inputs, and for I8 two more with each scale. */
static int64_t packed_words(const Linear *layer) {
    int64_t count = num_words(layer);
    int64_t scales = layer->type == I8 ? (count + SCALE_WORDS - 1) / SCALE_WORDS : 0;
    return count * input_words(layer->type) + 2 * scales;
}

static int32_t num_panels(const Linear *layer, int32_t rows) {
    return layer->type == I8 ? I8_PANELS(rows) : PANELS(rows);
}

/* Number of rows of the block that starts at `row`; blocks have about the same size. */
static int32_t block_rows(const Linear *layer, int32_t rows, int32_t row) {
    int32_t max_rows = layer->type == I8 ? MAX_I8 : layer->type == BF16 ? MAX_BF16 : MAX_F32;
    int32_t left = rows - row, blocks = (left + max_rows - 1) / max_rows;
    return (left + blocks - 1) / blocks;
}

/* Pack a row of bfloat16, with `step` words from each word to the next. */
static void pack_bf16(const float *from, int32_t count, uint32_t *to, int32_t step) {
    int32_t i = 0;
    for (; i + LANES / 2 <= count; i += LANES / 2) {
        Words halves = round_to_bf16(load(from + 2 * i));
        for (int32_t j = 0; j < LANES / 2; j++) to[(i + j) * step] = pair(halves, 2 * j);
    }
    for (; i < count; i++)
        to[i * step] = round_to_bf16(all(from[2 * i]))[0] |
                       round_to_bf16(all(from[2 * i + 1]))[0] << 16;
}

/* Pack a row of float32; the `per_word` inputs of a word of weights are adjacent. */
static void pack_f32(const float *from, int32_t count, int32_t per_word, uint32_t *to,
                         int32_t step) {
    const uint32_t *bits = (const uint32_t *)from;
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < per_word; j++) to[i * step + j] = bits[i * per_word + j];
}

/* Pack a row as int8. The words of a scale, of all rows, are preceded by that scale and the start of its
   sums for per_word row. */
static void pack_i8(const float *from, int32_t count, uint32_t *to, int32_t row, int32_t rows) {
    int32_t per_word = input_words(I8);
    for (int32_t first = 0; first < count; first += SCALE_WORDS) {
        int32_t size = count - first < SCALE_WORDS ? count - first : SCALE_WORDS;
        const float *inputs = from + 4 * first;
        Lanes maxima = {0}, nan = {0};
        for (int32_t i = 0; i < 4 * size; i += LANES) {
            Lanes x = load(inputs + i);
            maxima = larger_number(maxima, choose(x < 0.0f, -x, x));
            nan += x * 0.0f;
        }
        float maximum = largest(maxima), scale = maximum / 127.0f + sum(nan); /* NaN if an input is */
        Lanes inverse = all(maximum > 0.0f ? 127.0f / maximum : 0.0f);
        Words total = {0};
        uint32_t *words = to + 2 * rows + row * per_word;
        for (int32_t i = 0; i < 4 * size; i += LANES) {
            Signed bytes = round_to_int(load(inputs + i) * inverse);
            total += (Words)bytes;
            for (int32_t j = 0; j < LANES; j += 4, words += rows * per_word)
                to_bytes(bytes[j], bytes[j + 1], bytes[j + 2], bytes[j + 3], words, per_word);
        }
        to[2 * row] = bits_of(scale);
        to[2 * row + 1] = 0u - 128u * sum_of_ints(total);
        to += 2 * rows + size * rows * per_word;
    }
}

/* Pack the rows block by block, input by input. */
static void pack(const Linear *layer, const float *x, uint32_t *packed, int32_t rows) {
    int32_t count = num_words(layer), per_word = input_words(layer->type);
    for (int32_t row = 0, size; row < rows; row += size) {
        size = block_rows(layer, rows, row);
        uint32_t *to = packed + row * packed_words(layer);
        for (int32_t r = 0; r < size; r++) {
            const float *from = x + (int64_t)(row + r) * layer->inputs;
            if (layer->type == I8)
                pack_i8(from, count, to, r, size);
            else if (HAS_BF16_DOT && layer->type == BF16)
                pack_bf16(from, count, to + r * per_word, size * per_word);
            else
                pack_f32(from, count, per_word, to + r * per_word, size * per_word);
        }
    }
}

/* Store the outputs of a block, from output `lane` of its panels on. */
INLINE void put(const Job *job, Lanes total[][WIDTH], int32_t row, int32_t panel, int32_t lane,
                int rows, int panels) {
    const Linear *layer = job->layer;
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < panels; p++)
            for (int v = 0; v < WIDTH; v++) {
                int32_t output = (panel + p) * PANEL + lane + v * LANES;
                int64_t at = (int64_t)(row + r) * job->stride + output;
                Lanes y = total[r * panels + p][v];
                if (layer->scale != NULL) y *= load(layer->scale + output);
                if (layer->bias != NULL) y += load(layer->bias + output);
                if (job->residual != NULL) y += load(job->residual + at);
                store(job->y + at, y);
            }
}

/* Compute `rows` rows of `panels` whole panels; the counts are compile-time constants, so that all sums stay
   in registers. */
INLINE void block(const Job *job, int32_t row, int32_t panel, int32_t lane, int rows, int panels,
                  int type) {
    Lanes total[MAX_SUMS][WIDTH];
    for (int i = 0; i < rows * panels; i++)
        for (int v = 0; v < WIDTH; v++) total[i][v] = (Lanes){0};
    const Linear *layer = job->layer;
    int32_t count = num_words(layer), per_word = input_words(type);
    int64_t panel_size = (int64_t)count * PANEL;
    const uint32_t *from = (const uint32_t *)layer->weight + panel * panel_size + lane;
    const uint32_t *x = job->inputs + (int64_t)row * count * per_word;
    for (int32_t k = 0; k < count; k++, x += rows * per_word)
        for (int p = 0; p < panels; p++) {
            Words weights[WIDTH];
            for (int v = 0; v < WIDTH; v++)
                weights[v] = *(const Words *)(from + p * panel_size + k * PANEL + v * LANES);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < WIDTH; v++)
                    total[r * panels + p][v] =
                        add(total[r * panels + p][v], weights[v], x + r * per_word, type);
        }
    put(job, total, row, panel, lane, rows, panels);
}

/* The same for I8: integer sums, which are added to the total after each scale. */
INLINE void i8_block(const Job *job, int32_t row, int32_t panel, int32_t lane, int rows,
                       int panels) {
    Lanes total[MAX_I8_SUMS][WIDTH];
    for (int i = 0; i < rows * panels; i++)
        for (int v = 0; v < WIDTH; v++) total[i][v] = (Lanes){0};
    const Linear *layer = job->layer;
    int32_t count = num_words(layer), per_word = input_words(I8);
    int64_t panel_size = (int64_t)count * PANEL;
    const uint32_t *from = (const uint32_t *)layer->weight + panel * panel_size + lane;
    const uint32_t *x = job->inputs + row * packed_words(layer);
    for (int32_t first = 0; first < count; first += SCALE_WORDS) {
        Signed sums[MAX_I8_SUMS][WIDTH];
        const uint32_t *scales = x;
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < panels * WIDTH; i++)
                sums[r * panels + i / WIDTH][i % WIDTH] = begin_bytes((int32_t)scales[2 * r + 1]);
        x += 2 * rows;
        int32_t end = first + SCALE_WORDS < count ? first + SCALE_WORDS : count;
        for (int32_t k = first; k < end; k++, x += rows * per_word)
            for (int p = 0; p < panels; p++) {
                Words weights[WIDTH];
                for (int v = 0; v < WIDTH; v++)
                    weights[v] = *(const Words *)(from + p * panel_size + k * PANEL + v * LANES);
                for (int r = 0; r < rows; r++)
                    for (int v = 0; v < WIDTH; v++)
                        sums[r * panels + p][v] =
                            add_bytes(sums[r * panels + p][v], weights[v], x + r * per_word);
            }
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < panels * WIDTH; i++) {
                Lanes *to = &total[r * panels + i / WIDTH][i % WIDTH];
                Lanes numbers = __builtin_convertvector(sums[r * panels + i / WIDTH][i % WIDTH], Lanes);
                *to = fma(numbers, all(number(scales[2 * r])), *to);
            }
    }
    put(job, total, row, panel, lane, rows, panels);
}

INLINE void blocks(const Job *job, int32_t row, int32_t panel, int rows, int panels) {
    for (int32_t lane = 0; lane < PANEL; lane += WIDTH * LANES) {
        if (job->layer->type == BF16)
            block(job, row, panel, lane, rows, panels, BF16);
        else
            block(job, row, panel, lane, rows, panels, F32);
    }
}

/* The cases below are compiled for each number of rows; larger ones than the registers hold don't occur. */

/* Some rows of whole panels of I8. */
static void i8_panels(const Job *job, int32_t row, int32_t panel, int32_t rows, int32_t panels) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (I8_PANELS(n) > 1 && panels > 1)                                                     \
            i8_block(job, row, panel, lane, n, I8_PANELS(n));                                 \
        else if (n <= MAX_I8)                                                                   \
            i8_block(job, row, panel, lane, n, 1);                                               \
        break;
    for (int32_t lane = 0; lane < PANEL; lane += WIDTH * LANES) {
        switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
    }
#undef CASE
}

/* All rows of several whole panels. */
static void several_panels(const Job *job, int32_t panel, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (PANELS(n) > 1) blocks(job, 0, panel, n, PANELS(n));                                    \
        break;
    switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
#undef CASE
}

/* Some rows of one whole panel. */
static void panel_rows(const Job *job, int32_t row, int32_t panel, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (n <= MAX_F32 || n <= MAX_BF16) blocks(job, row, panel, n, 1);                       \
        break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
    }
#undef CASE
}

/* Some rows of a narrower last panel, number by number. */
static void narrow(const Job *job, int32_t row, int32_t panel, int32_t rows) {
    const Linear *layer = job->layer;
    int32_t first = panel * PANEL, width = layer->outputs - first;
    int32_t count = num_words(layer), per_word = input_words(layer->type);
    const uint32_t *from = (const uint32_t *)layer->weight + (int64_t)first * count;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t i = 0; i < width; i++) {
            const uint32_t *x = job->inputs + (int64_t)row * count * per_word + r * per_word;
            Lanes total = {0};
            for (int32_t k = 0; k < count; k++, x += rows * per_word)
                total = add(total, (Words){0} + from[k * width + i], x, layer->type);
            float y = total[0];
            int64_t at = (int64_t)(row + r) * job->stride + first + i;
            if (layer->bias != NULL) y += layer->bias[first + i];
            job->y[at] = job->residual == NULL ? y : y + job->residual[at];
        }
}

static void compute_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    int32_t panel = index * TASK_PANELS, panels = num_panels(job->layer, job->rows);
    int32_t whole = job->layer->outputs / PANEL;
    int32_t end = (job->layer->outputs + PANEL - 1) / PANEL;
    if (end > panel + TASK_PANELS) end = panel + TASK_PANELS;
    if (panels > 1 && panel + TASK_PANELS <= whole) {
        for (; panel < end; panel += panels)
            if (job->layer->type == I8)
                i8_panels(job, 0, panel, job->rows, panels);
            else
                several_panels(job, panel, job->rows);
        return;
    }
    for (; panel < end; panel++)
        for (int32_t row = 0, rows; row < job->rows; row += rows) {
            rows = block_rows(job->layer, job->rows, row);
            if (job->layer->type == I8)
                i8_panels(job, row, panel, rows, 1);
            else if (panel < whole)
                panel_rows(job, row, panel, rows);
            else
                narrow(job, row, panel, rows);
        }
}

static int32_t num_tasks(const Linear *layer) {
    int32_t panels = (layer->outputs + PANEL - 1) / PANEL;
    return (panels + TASK_PANELS - 1) / TASK_PANELS;
}

static void panels_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed,
                          int32_t rows, const float *residual, float *y, int32_t stride) {
    pack(layer, x, packed, rows);
    Job job = {layer, packed, rows, residual, y, stride};
    parallel_for(pool, compute_task, &job, num_tasks(layer));
}

static void linear_chunk(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                         const float *residual, float *y, int32_t stride) {
    for (const Linear *before = NULL; layer != NULL; before = layer, layer = layer->next) {
        int is_packed = before != NULL && before->type == layer->type;
        if (is_in_blocks(layer->type))
            blocks_linear(pool, layer, is_packed ? NULL : x, packed, rows, residual, y, stride);
        else
            panels_linear(pool, layer, x, packed, rows, residual, y, stride);
        y += layer->outputs;
        if (residual != NULL) residual += layer->outputs;
    }
}

void linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
            const float *residual, float *y) {
    int32_t stride = 0;
    for (const Linear *part = layer; part != NULL; part = part->next) stride += part->outputs;
    for (int32_t first = 0; first < rows; first += MAX_CHUNK) {
        int32_t count = rows - first < MAX_CHUNK ? rows - first : MAX_CHUNK;
        int64_t before = (int64_t)first * stride;
        const float *from = x + (int64_t)first * layer->inputs;
        const float *residual_from = residual == NULL ? NULL : residual + before;
        linear_chunk(pool, layer, from, packed, count, residual_from, y + before, stride);
        if (layer->adapter != NULL) /* `packed` is free again */
            add_adapter(pool, layer->adapter, from, (float *)packed, count, y + before, stride);
    }
}

static void task_of_each(void *context, int32_t index, int32_t worker) {
    const Job *jobs = context;
    int32_t size = num_tasks(jobs->layer);
    compute_task((void *)(jobs + index / size), index % size, worker);
}

void linear_each(Pool *pool, const Linear *layers, int32_t count, const float *x, uint32_t *packed,
                 float *y) {
    Job jobs[count];
    for (int32_t i = 0; i < count; i++) {
        int64_t inputs = layers->inputs, outputs = layers->outputs;
        if (is_in_blocks(layers->type)) {
            linear(pool, layers + i, x + i * inputs, packed, 1, NULL, y + i * outputs);
            continue;
        }
        jobs[i] = (Job){layers + i,        packed + i * inputs, 1, NULL, y + i * outputs,
                        (int32_t)outputs};
        pack(layers + i, x + i * inputs, packed + i * inputs, 1);
    }
    if (!is_in_blocks(layers->type)) parallel_for(pool, task_of_each, jobs, count * num_tasks(layers));
}

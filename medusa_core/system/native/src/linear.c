#include "linear.h"

#include <stddef.h>

#include "blocks.h"
#include "words.h"

/* How many rows of each kind of weights and how many lanes of outputs the registers hold at once; and
   of few rows how many panels: a sum waits for its last product, so a dozen of them have to take
   turns. All measured: one more, and the compiler runs out of registers. Sums of bytes are two. */
#if defined(__AVX512F__)
enum { MOST_FULL = 10, MOST_HALF = MULTIPLIES_HALVES ? 11 : 10, MOST_BYTE = 6, WIDTH = 2 };
#define BESIDE(rows) ((rows) <= 2 ? 4 : (rows) <= 6 ? 2 : 1)
#define BYTES_BESIDE(rows) ((rows) == 1 ? 4 : (rows) <= 3 ? 2 : 1)
#elif defined(__AVX2__)
enum { MOST_FULL = 6, MOST_HALF = 6, MOST_BYTE = 4, WIDTH = 1 };
#define BESIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define BYTES_BESIDE(rows) BESIDE(rows)
#else
enum { MOST_FULL = 5, MOST_HALF = 4, MOST_BYTE = 2, WIDTH = 1 };
#define BESIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define BYTES_BESIDE(rows) ((rows) == 1 ? 2 : 1)
#endif
enum { MOST_SUMS = 12, MOST_BYTE_SUMS = 6 }; /* of a block, in vectors as wide as it is */
enum { GROUP = 4 };       /* panels of a piece, a multiple of every BESIDE */
enum { SCALED = 64 / 4 }; /* words of inputs that share a scale */
enum { AT_ONCE = 64 }; /* rows whose inputs stay in a core's cache while all outputs pass */

typedef struct {
    const Linear *layer;
    const uint32_t *inputs;
    int32_t rows;
    const float *plus;
    float *y;
    int32_t stride; /* of a row of y and plus */
} Job;

/* The weights are taken in words: a float, two bfloat16 for two inputs, four bytes for four. */
static int32_t words(const Linear *layer) { return layer->inputs / word_size(layer->kind); }

/* Words that a packed row takes: what is multiplied, and of bytes two more for each scale. */
static int64_t packed_words(const Linear *layer) {
    int64_t count = words(layer), scales = layer->kind == BYTE ? (count + SCALED - 1) / SCALED : 0;
    return count * numbers_beside(layer->kind) + 2 * scales;
}

static int32_t panels_together(const Linear *layer, int32_t rows) {
    return layer->kind == BYTE ? BYTES_BESIDE(rows) : BESIDE(rows);
}

/* Rows go in blocks of about the same size: the rows of the block that starts at `row`. */
static int32_t block_rows(const Linear *layer, int32_t rows, int32_t row) {
    int32_t most = layer->kind == BYTE ? MOST_BYTE : layer->kind == HALF ? MOST_HALF : MOST_FULL;
    int32_t left = rows - row, blocks = (left + most - 1) / most;
    return (left + blocks - 1) / blocks;
}

/* Every other function that packs a row puts word after word `step` apart. */
static void pack_halves(const float *from, int32_t count, uint32_t *to, int32_t step) {
    int32_t i = 0;
    for (; i + LANES / 2 <= count; i += LANES / 2) {
        Words halves = round_to_half(load(from + 2 * i));
        for (int32_t j = 0; j < LANES / 2; j++) to[(i + j) * step] = pair(halves, 2 * j);
    }
    for (; i < count; i++)
        to[i * step] = round_to_half(all(from[2 * i]))[0] |
                       round_to_half(all(from[2 * i + 1]))[0] << 16;
}

/* What stands for one word, `each` numbers, lies side by side. */
static void pack_numbers(const float *from, int32_t count, int32_t each, uint32_t *to,
                         int32_t step) {
    const uint32_t *bits = (const uint32_t *)from;
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < each; j++) to[i * step + j] = bits[i * each + j];
}

/* Before the words of each scale of all `rows` come, of each row, that scale and what its sums
   begin with. */
static void pack_bytes(const float *from, int32_t count, uint32_t *to, int32_t row, int32_t rows) {
    int32_t each = numbers_beside(BYTE);
    for (int32_t first = 0; first < count; first += SCALED) {
        int32_t size = count - first < SCALED ? count - first : SCALED;
        const float *some = from + 4 * first;
        Lanes most = {0}, no_number = {0};
        for (int32_t i = 0; i < 4 * size; i += LANES) {
            Lanes x = load(some + i);
            most = larger_number(most, choose(x < 0.0f, -x, x));
            no_number += x * 0.0f;
        }
        float reach = largest(most), scale = reach / 127.0f + sum(no_number);
        Lanes turned = all(reach > 0.0f ? 127.0f / reach : 0.0f);
        Words total = {0};
        uint32_t *words = to + 2 * rows + row * each;
        for (int32_t i = 0; i < 4 * size; i += LANES) {
            Signed bytes = to_whole(load(some + i) * turned);
            total += (Words)bytes;
            for (int32_t j = 0; j < LANES; j += 4, words += rows * each)
                to_bytes(bytes[j], bytes[j + 1], bytes[j + 2], bytes[j + 3], words, each);
        }
        to[2 * row] = bits_of(scale);
        to[2 * row + 1] = 0u - 128u * sum_of_whole(total);
        to += 2 * rows + size * rows * each;
    }
}

/* The numbers of a block's rows side by side, input by input, in the form that is multiplied. */
static void pack(const Linear *layer, const float *x, uint32_t *packed, int32_t rows) {
    int32_t count = words(layer), each = numbers_beside(layer->kind);
    for (int32_t row = 0, size; row < rows; row += size) {
        size = block_rows(layer, rows, row);
        uint32_t *to = packed + row * packed_words(layer);
        for (int32_t r = 0; r < size; r++) {
            const float *from = x + (int64_t)(row + r) * layer->inputs;
            if (layer->kind == BYTE)
                pack_bytes(from, count, to, r, size);
            else if (MULTIPLIES_HALVES && layer->kind == HALF)
                pack_halves(from, count, to + r * each, size * each);
            else
                pack_numbers(from, count, each, to + r * each, size * each);
        }
    }
}

/* The sums of `rows` rows of `panels` panels, from lane `lane` on, as results. */
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
                if (job->plus != NULL) y += load(job->plus + at);
                store(job->y + at, y);
            }
}

/* `rows` rows of `panels` whole panels, from lane `lane` on; the counts are known when this is
   compiled, so that all sums stay in registers. */
INLINE void block(const Job *job, int32_t row, int32_t panel, int32_t lane, int rows, int panels,
                  int kind) {
    Lanes total[MOST_SUMS][WIDTH];
    for (int i = 0; i < rows * panels; i++)
        for (int v = 0; v < WIDTH; v++) total[i][v] = (Lanes){0};
    const Linear *layer = job->layer;
    int32_t count = words(layer), each = numbers_beside(kind);
    int64_t panel_size = (int64_t)count * PANEL;
    const uint32_t *from = (const uint32_t *)layer->weight + panel * panel_size + lane;
    const uint32_t *x = job->inputs + (int64_t)row * count * each;
    for (int32_t k = 0; k < count; k++, x += rows * each)
        for (int p = 0; p < panels; p++) {
            Words weights[WIDTH];
            for (int v = 0; v < WIDTH; v++)
                weights[v] = *(const Words *)(from + p * panel_size + k * PANEL + v * LANES);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < WIDTH; v++)
                    total[r * panels + p][v] =
                        add(total[r * panels + p][v], weights[v], x + r * each, kind);
        }
    put(job, total, row, panel, lane, rows, panels);
}

/* As `block`, of bytes: sums of whole numbers, each scale's added as it ends. */
INLINE void byte_block(const Job *job, int32_t row, int32_t panel, int32_t lane, int rows,
                       int panels) {
    Lanes total[MOST_BYTE_SUMS][WIDTH];
    for (int i = 0; i < rows * panels; i++)
        for (int v = 0; v < WIDTH; v++) total[i][v] = (Lanes){0};
    const Linear *layer = job->layer;
    int32_t count = words(layer), each = numbers_beside(BYTE);
    int64_t panel_size = (int64_t)count * PANEL;
    const uint32_t *from = (const uint32_t *)layer->weight + panel * panel_size + lane;
    const uint32_t *x = job->inputs + row * packed_words(layer);
    for (int32_t first = 0; first < count; first += SCALED) {
        Signed sums[MOST_BYTE_SUMS][WIDTH];
        const uint32_t *scales = x;
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < panels * WIDTH; i++)
                sums[r * panels + i / WIDTH][i % WIDTH] = begin_bytes((int32_t)scales[2 * r + 1]);
        x += 2 * rows;
        int32_t end = first + SCALED < count ? first + SCALED : count;
        for (int32_t k = first; k < end; k++, x += rows * each)
            for (int p = 0; p < panels; p++) {
                Words weights[WIDTH];
                for (int v = 0; v < WIDTH; v++)
                    weights[v] = *(const Words *)(from + p * panel_size + k * PANEL + v * LANES);
                for (int r = 0; r < rows; r++)
                    for (int v = 0; v < WIDTH; v++)
                        sums[r * panels + p][v] =
                            add_bytes(sums[r * panels + p][v], weights[v], x + r * each);
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
        if (job->layer->kind == HALF)
            block(job, row, panel, lane, rows, panels, HALF);
        else
            block(job, row, panel, lane, rows, panels, FULL);
    }
}

/* The counts of the cases below are known when this is compiled; those that the registers don't
   hold aren't compiled, and don't come. */

/* `rows` rows of some whole panels, of bytes. */
static void byte_panels(const Job *job, int32_t row, int32_t panel, int32_t rows, int32_t panels) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (BYTES_BESIDE(n) > 1 && panels > 1)                                                     \
            byte_block(job, row, panel, lane, n, BYTES_BESIDE(n));                                 \
        else if (n <= MOST_BYTE)                                                                   \
            byte_block(job, row, panel, lane, n, 1);                                               \
        break;
    for (int32_t lane = 0; lane < PANEL; lane += WIDTH * LANES) {
        switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
    }
#undef CASE
}

/* All rows of some whole panels, side by side; they fit into the registers. */
static void panels_beside(const Job *job, int32_t panel, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (BESIDE(n) > 1) blocks(job, 0, panel, n, BESIDE(n));                                    \
        break;
    switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
#undef CASE
}

/* Some rows of one whole panel. */
static void panel_rows(const Job *job, int32_t row, int32_t panel, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (n <= MOST_FULL || n <= MOST_HALF) blocks(job, row, panel, n, 1);                       \
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
    int32_t count = words(layer), each = numbers_beside(layer->kind);
    const uint32_t *from = (const uint32_t *)layer->weight + (int64_t)first * count;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t i = 0; i < width; i++) {
            const uint32_t *x = job->inputs + (int64_t)row * count * each + r * each;
            Lanes total = {0};
            for (int32_t k = 0; k < count; k++, x += rows * each)
                total = add(total, (Words){0} + from[k * width + i], x, layer->kind);
            float y = total[0];
            int64_t at = (int64_t)(row + r) * job->stride + first + i;
            if (layer->bias != NULL) y += layer->bias[first + i];
            job->y[at] = job->plus == NULL ? y : y + job->plus[at];
        }
}

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    int32_t panel = index * GROUP, together = panels_together(job->layer, job->rows);
    int32_t whole = job->layer->outputs / PANEL;
    int32_t end = (job->layer->outputs + PANEL - 1) / PANEL;
    if (end > panel + GROUP) end = panel + GROUP;
    if (together > 1 && panel + GROUP <= whole) {
        for (; panel < end; panel += together)
            if (job->layer->kind == BYTE)
                byte_panels(job, 0, panel, job->rows, together);
            else
                panels_beside(job, panel, job->rows);
        return;
    }
    for (; panel < end; panel++)
        for (int32_t row = 0, rows; row < job->rows; row += rows) {
            rows = block_rows(job->layer, job->rows, row);
            if (job->layer->kind == BYTE)
                byte_panels(job, row, panel, rows, 1);
            else if (panel < whole)
                panel_rows(job, row, panel, rows);
            else
                narrow(job, row, panel, rows);
        }
}

static int32_t pieces(const Linear *layer) {
    int32_t panels = (layer->outputs + PANEL - 1) / PANEL;
    return (panels + GROUP - 1) / GROUP;
}

static void panels_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed,
                          int32_t rows, const float *plus, float *y, int32_t stride) {
    pack(layer, x, packed, rows);
    Job job = {layer, packed, rows, plus, y, stride};
    share(pool, piece, &job, pieces(layer));
}

static void some_rows(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                      const float *plus, float *y, int32_t stride) {
    for (; layer != NULL; layer = layer->more) {
        if (is_in_blocks(layer->kind))
            blocks_linear(pool, layer, x, packed, rows, plus, y, stride);
        else
            panels_linear(pool, layer, x, packed, rows, plus, y, stride);
        y += layer->outputs;
        if (plus != NULL) plus += layer->outputs;
    }
}

void linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
            const float *plus, float *y) {
    int32_t stride = 0;
    for (const Linear *part = layer; part != NULL; part = part->more) stride += part->outputs;
    for (int32_t first = 0; first < rows; first += AT_ONCE) {
        int32_t some = rows - first < AT_ONCE ? rows - first : AT_ONCE;
        int64_t before = (int64_t)first * stride;
        const float *from = x + (int64_t)first * layer->inputs;
        some_rows(pool, layer, from, packed, some, plus == NULL ? NULL : plus + before, y + before, stride);
        if (layer->adapter != NULL) /* the packed rows have been read */
            add_adapter(pool, layer->adapter, from, (float *)packed, some, y + before, stride);
    }
}

static void piece_of_each(void *context, int32_t index, int32_t worker) {
    const Job *jobs = context;
    int32_t size = pieces(jobs->layer);
    piece((void *)(jobs + index / size), index % size, worker);
}

void linear_each(Pool *pool, const Linear *layers, int32_t count, const float *x, uint32_t *packed,
                 float *y) {
    Job jobs[count];
    for (int32_t i = 0; i < count; i++) {
        int64_t inputs = layers->inputs, outputs = layers->outputs;
        if (is_in_blocks(layers->kind)) {
            linear(pool, layers + i, x + i * inputs, packed, 1, NULL, y + i * outputs);
            continue;
        }
        jobs[i] = (Job){layers + i,        packed + i * inputs, 1, NULL, y + i * outputs,
                        (int32_t)outputs};
        pack(layers + i, x + i * inputs, packed + i * inputs, 1);
    }
    if (!is_in_blocks(layers->kind)) share(pool, piece_of_each, jobs, count * pieces(layers));
}
